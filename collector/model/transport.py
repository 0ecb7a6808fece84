"""What the network stack itself says of connections: sums of a connection's data, and what happened to it, one by one.

Sends and receives are summed by connection, as they are as many as packets; of datagrams by local end. All works on columns: the loops
here are over connections of a window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.rows import Rows, rows_of
from collector.model.transport_keys import TCP, UDP, ends_of, grouped, keys_of, sockaddr_ends
from collector.model.transport_names import OF_KERNEL, OF_STACK, RECEIVES, RETRANSMITS, SENDS, STACK, STATE_CHANGE, STATE_EVENT
from collector.schema import DecodedBatch, EventColumns
from collector.sockaddr import from_ip
from collector.words import TRANSPORT_DEEDS

__all__ = ["MAX_FLOWS", "Transport"]

Int64s: TypeAlias = NDArray[np.int64]

_DEED = {word: number for number, word in enumerate(TRANSPORT_DEEDS)}

MAX_FLOWS = 100_000
"""Connections held at once; what comes after that many begins with new rows, and readers add up the rows of a connection."""

_NONE = -1
_NEVER = 1 << 62


@dataclass(slots=True)
class _Flow:
    """One connection of one source, or one local end of datagrams."""

    n: int
    key: bytes
    first_ns: int
    last_ns: int
    pid: int | None = None
    pid_seq: int = _NEVER
    sends: int = 0
    bytes_sent: int = 0
    receives: int = 0
    bytes_received: int = 0
    retransmits: int = 0
    bytes_retransmitted: int | None = None
    timeouts: int | None = None
    rtt_us: int | None = None
    min_rtt_us: int | None = None
    max_rtt_us: int | None = None


@dataclass(frozen=True, slots=True)
class _Marks:
    """Events of one name in one window that are kept one by one; arrays of one length, _NONE where a value is not there."""

    rows: Int64s
    flows: Int64s
    deed: int
    event: int
    pid: Int64s
    status: Int64s
    state: Int64s
    count: Int64s
    size: Int64s


class Transport:
    """The connections of one trace; one that no event names costs nothing."""

    def __init__(self, max_flows: int = MAX_FLOWS) -> None:
        self._max_flows = max_flows
        self._flows: dict[bytes, _Flow] = {}
        self._made = 0
        self._events = 0
        self._tcbs: dict[int, int] = {}
        """The flow that an address of the stack's own object was last seen for."""

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in one window; gives the rows of its events."""
        marks: list[_Marks] = []
        named: list[tuple[Int64s, NDArray[np.uint64], Int64s]] = []
        for name, columns in batch.events.items():
            if name in OF_KERNEL:
                marks += self._kernel(batch, columns, *OF_KERNEL[name])
            elif name in OF_STACK:
                marks += self._stack(batch, columns, *OF_STACK[name], named)
        changes = batch.get(STATE_CHANGE)
        if changes is not None:
            marks += self._states(batch, changes, named)
        self._learn_objects(named)
        rows = self._event_rows(batch, marks) if marks else {}
        if len(self._flows) > self._max_flows:
            rows |= self._flow_rows()
        return rows

    def finish(self) -> Rows:
        """Rows of the connections that are held."""
        return self._flow_rows()

    # ------------------------------------------------------------------------------------------------ one name at a time

    def _kernel(self, batch: DecodedBatch, columns: EventColumns, source: int, protocol: int, what: str, event: int) -> Iterator[_Marks]:
        """Events of the kernel; see `events.network` for which side is which."""
        near, far = ends_of(columns, "saddr", "sport"), ends_of(columns, "daddr", "dport")
        if protocol == UDP:
            near = far if what == RECEIVES else near
        keys = keys_of(source, protocol, near, None if protocol == UDP else far)
        pids = _known_pids(columns.numbers("pid").astype(np.int64))
        first, number = grouped(keys)
        flows = self._flows_of(batch, columns.rows, keys, first, number, pids)
        sizes = columns.numbers("size").astype(np.int64)
        if what in (SENDS, RECEIVES):
            times, moved = np.bincount(number, minlength=first.size).tolist(), _summed(number, sizes, first.size)
            for flow, count, size in zip(flows, times, moved, strict=True):
                if what == SENDS:
                    flow.sends += count
                    flow.bytes_sent += size
                else:
                    flow.receives += count
                    flow.bytes_received += size
            return
        self._count(flows, number, what)
        none = np.full(number.size, _NONE, dtype=np.int64)
        numbers = np.array([flow.n for flow in flows], dtype=np.int64)[number]
        moved_again = sizes if what == "retransmit" else none
        yield _Marks(columns.rows, numbers, _DEED[what], event, pids, none, none, none, moved_again)

    def _stack(
        self,
        batch: DecodedBatch,
        columns: EventColumns,
        event: int,
        deed: str,
        named: list[tuple[Int64s, NDArray[np.uint64], Int64s]],
    ) -> Iterator[_Marks]:
        """Events of the stack's own provider that name both addresses."""
        (local, has_local), (remote, has_remote) = sockaddr_ends(columns, "local_address"), sockaddr_ends(columns, "remote_address")
        good = np.flatnonzero(has_local & has_remote)
        if not good.size:
            return
        keys = keys_of(STACK, TCP, local, remote)[good]
        rows = columns.rows[good]
        pids = _known_pids(_column(columns, "process_id", _column(columns, "pid"))[good])
        first, number = grouped(keys)
        flows = self._flows_of(batch, rows, keys, first, number, pids)
        self._count(flows, number, deed)
        if deed == "summary":
            self._sum_up(columns, good, flows, number)
        numbers = np.array([flow.n for flow in flows], dtype=np.int64)[number]
        named.append((rows, columns.numbers("tcb").astype(np.uint64)[good], numbers))
        status = _column(columns, "status")[good]
        state, count = _column(columns, "new_state", _column(columns, "state"))[good], _column(columns, "rexmit_count")[good]
        is_counted = deed in RETRANSMITS
        none = np.full(good.size, _NONE, dtype=np.int64)
        yield _Marks(rows, numbers, _DEED[deed], event, pids, status, state, count if is_counted else none, none)

    def _sum_up(self, columns: EventColumns, good: Int64s, flows: Sequence[_Flow], number: Int64s) -> None:
        """What the stack counted; loops over connections, which have one such event each."""
        names = ("data_segments_out", "data_bytes_out", "data_segments_in", "data_bytes_in", "bytes_retrans", "timeouts", "rtt_us",
                 "min_rtt_us", "max_rtt_us")  # fmt: skip
        values = zip(*(_bounded(columns.numbers(name)[good]) for name in names), strict=True)
        for at, (out, sent, received, got, again, timeouts, rtt, least, most) in zip(number.tolist(), values, strict=True):
            flow = flows[at]
            flow.sends, flow.bytes_sent = flow.sends + out, flow.bytes_sent + sent
            flow.receives, flow.bytes_received = flow.receives + received, flow.bytes_received + got
            flow.bytes_retransmitted = (flow.bytes_retransmitted or 0) + again
            flow.timeouts = (flow.timeouts or 0) + timeouts
            if rtt:  # 0: never measured
                flow.rtt_us, flow.min_rtt_us, flow.max_rtt_us = rtt, least, most

    def _states(
        self, batch: DecodedBatch, columns: EventColumns, named: list[tuple[Int64s, NDArray[np.uint64], Int64s]]
    ) -> Iterator[_Marks]:
        """State changes name the stack's own object alone: the connection is that of the last event that named it."""
        tcbs = columns.numbers("tcb").astype(np.uint64)
        flows = self._flows_of_objects(columns.rows, tcbs, named)
        good = np.flatnonzero(flows != _NONE)
        if good.size:
            none = np.full(good.size, _NONE, dtype=np.int64)
            state = columns.numbers("new_state").astype(np.int64)[good]
            yield _Marks(columns.rows[good], flows[good], _DEED["state"], STATE_EVENT, none, none, state, none, none)

    def _flows_of_objects(self, rows: Int64s, tcbs: NDArray[np.uint64], named: list[tuple[Int64s, NDArray[np.uint64], Int64s]]) -> Int64s:
        """The flow number behind each object at its row, _NONE where nothing has named it."""
        known_rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _, _ in named)])
        known_tcbs = np.concatenate([np.zeros(0, np.uint64), *(objects for _, objects, _ in named)])
        known_flows = np.concatenate([np.zeros(0, np.int64), *(numbers for _, _, numbers in named)])
        distinct, ids = np.unique(np.concatenate([known_tcbs, tcbs]), return_inverse=True)
        ids = ids.reshape(-1).astype(np.int64)
        span = int(max(known_rows.max(initial=0), rows.max(initial=0))) + 1
        known = ids[: known_tcbs.size] * span + known_rows
        order = np.argsort(known, kind="stable")
        known, known_ids, known_flows = known[order], ids[: known_tcbs.size][order], known_flows[order]
        asked = ids[known_tcbs.size :]
        place = np.searchsorted(known, asked * span + rows, side="right")
        flows = np.array([self._tcbs.get(tcb, _NONE) for tcb in distinct.tolist()], dtype=np.int64)[asked]
        if known.size:
            before = np.maximum(place - 1, 0)
            flows = np.where((known_ids[before] == asked) & (place > 0), known_flows[before], flows)
        return flows

    def _learn_objects(self, named: list[tuple[Int64s, NDArray[np.uint64], Int64s]]) -> None:
        if len(self._tcbs) > self._max_flows:
            self._tcbs.clear()
        if named:  # in the order of the records, whatever their names
            order = np.argsort(np.concatenate([rows for rows, _, _ in named]), kind="stable")
            objects = np.concatenate([objects for _, objects, _ in named])[order].tolist()
            self._tcbs.update(zip(objects, np.concatenate([numbers for _, _, numbers in named])[order].tolist(), strict=True))

    # ------------------------------------------------------------------------------------------------ flows

    def _flows_of(
        self, batch: DecodedBatch, rows: Int64s, keys: NDArray[np.uint8], first: Int64s, number: Int64s, pids: Int64s
    ) -> list[_Flow]:
        """The flow of each distinct key, with its times brought up to date."""
        ns = batch.ns[rows]
        last = np.zeros(first.size, dtype=np.int64)
        last[number] = ns  # of several values for one place the last one stays
        named = np.full(first.size, _NONE, dtype=np.int64)  # the first row that names a process
        has_pid = np.flatnonzero(pids != _NONE)[::-1]
        named[number[has_pid]] = has_pid
        found = []
        for i, (at, until, row) in enumerate(zip(first.tolist(), last.tolist(), named.tolist(), strict=True)):
            key = keys[at].tobytes()
            flow = self._flows.get(key)
            since = int(ns[first[i]])
            if flow is None:
                self._made += 1
                flow = self._flows[key] = _Flow(self._made, key, since, until)
            flow.first_ns, flow.last_ns = min(flow.first_ns, since), max(flow.last_ns, until)
            if row != _NONE and (seq := batch.raw.first_seq + int(rows[row])) < flow.pid_seq:
                flow.pid, flow.pid_seq = int(pids[row]), seq
            found.append(flow)
        return found

    @staticmethod
    def _count(flows: Sequence[_Flow], number: Int64s, deed: str) -> None:
        if deed in RETRANSMITS:
            for flow, count in zip(flows, np.bincount(number, minlength=len(flows)).tolist(), strict=True):
                flow.retransmits += count

    # ------------------------------------------------------------------------------------------------ rows

    def _event_rows(self, batch: DecodedBatch, marks: Sequence[_Marks]) -> Rows:
        rows = np.concatenate([mark.rows for mark in marks])
        order = np.argsort(rows, kind="stable")
        count = rows.size

        def joined(values: Sequence[Int64s]) -> Int64s:
            return np.concatenate(values)[order]

        def same(values: Sequence[int]) -> Int64s:
            return np.repeat(np.array(values, dtype=np.int64), [mark.rows.size for mark in marks])[order]

        columns = {
            "n": np.arange(self._events + 1, self._events + 1 + count, dtype=np.int64),
            "flow_n": joined([mark.flows for mark in marks]),
            "deed": same([mark.deed for mark in marks]),
            "event": same([mark.event for mark in marks]),
            "pid": joined([mark.pid for mark in marks]),
            "status": joined([mark.status for mark in marks]),
            "state": joined([mark.state for mark in marks]),
            "count": joined([mark.count for mark in marks]),
            "bytes": joined([mark.size for mark in marks]),
        }
        moments = batch.ns[rows[order]]
        masked = {name: np.ma.MaskedArray(values, values == _NONE) for name, values in columns.items()}
        self._events += count
        return {"transport_event": rows_of("transport_event", {**masked, "t_ns": moments}, count=count)}

    def _flow_rows(self) -> Rows:
        flows, self._flows = list(self._flows.values()), {}
        if not flows:
            return {}
        plain = ("n", "pid", "first_ns", "last_ns", "sends", "bytes_sent", "receives", "bytes_received", "retransmits",
                 "bytes_retransmitted", "timeouts", "rtt_us", "min_rtt_us", "max_rtt_us")  # fmt: skip
        keys = [flow.key for flow in flows]
        remotes = [(key[20:36], int.from_bytes(key[36:38], "big")) if key[1] == TCP else (None, None) for key in keys]
        return {
            "transport_flow": rows_of(
                "transport_flow",
                {name: [getattr(flow, name) for flow in flows] for name in plain}
                | {
                    "source": [key[0] for key in keys],
                    "protocol": [key[1] for key in keys],
                    "local_ip": [key[2:18] for key in keys],
                    "local_port": [int.from_bytes(key[18:20], "big") for key in keys],
                    "remote_ip": [ip for ip, _ in remotes],
                    "remote_port": [port for _, port in remotes],
                    "local": [from_ip(key[2:18], int.from_bytes(key[18:20], "big")).text for key in keys],
                    "remote": [None if ip is None or port is None else from_ip(ip, port).text for ip, port in remotes],
                    "sockets": 0,
                },
                count=len(flows),
            )
        }


def _known_pids(pids: Int64s) -> Int64s:
    """Process ids, _NONE for 0 and for the number that stands for none."""
    return np.where((pids <= 0) | (pids == 0xFFFFFFFF), _NONE, pids)


def _column(columns: EventColumns, name: str, otherwise: Int64s | None = None) -> Int64s:
    if name in columns.fields:
        return columns.numbers(name).astype(np.int64)
    return np.full(len(columns), _NONE, dtype=np.int64) if otherwise is None else otherwise


def _bounded(values: NDArray[np.generic]) -> list[int]:
    """Unsigned numbers as the database can hold them, a sum of many included."""
    listed: list[int] = np.minimum(values.astype(np.uint64), np.uint64(1 << 48)).tolist()
    return listed


def _summed(number: Int64s, values: Int64s, groups: int) -> list[int]:
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, number, values)
    listed: list[int] = sums.tolist()
    return listed

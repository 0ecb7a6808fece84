"""Takes in the plain records of a window: what each stretch adds to its socket, and rows as blocks of columns.

A stretch is taken at its first plain record, so whatever reads a socket's totals finds them as if its records had come one by one.
Numbers of operations and events are those of all records in their order; those of the exact model leave gaps for the plain ones.
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.afdcodes import STATUS_WOULD_BLOCK
from collector.model.afd_table import AfdTable
from collector.model.endpoints import Endpoints
from collector.model.plain_choice import PlainRecords
from collector.model.plain_stretches import id_table
from collector.model.rows import Column, Lines, Rows, rows_of
from collector.model.socket_rows import SKIPPED_KINDS
from collector.model.socket_state import DGRAM, STREAM, Kind, Socket
from collector.model.transfers import SENDING, TRANSFERS
from collector.words import OUTCOMES

__all__ = ["PlainReplay"]

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

_NO_TIME = np.iinfo(np.int64).min
_COMPLETED, _FAILED = OUTCOMES.index("completed"), OUTCOMES.index("failed")
_KINDS: Final = np.zeros(5000, dtype=np.int64)
_KINDS[list(TRANSFERS)] = list(TRANSFERS.values())
_IS_SENDING: Final = id_table(number for number, kind in TRANSFERS.items() if SENDING[kind])


class PlainReplay:
    """The plain records of one window.

    `positions` are the places of the stretches' first plain records, ascending; the caller asks for each stretch when it has come there.
    """

    def __init__(self, t: AfdTable, chosen: PlainRecords, endpoints: Endpoints) -> None:
        self._t, self._chosen, self._endpoints = t, chosen, endpoints
        rows = np.flatnonzero(chosen.is_plain[chosen.stretches.at] & chosen.stretches.passes)
        self._places = chosen.stretches.at[rows]
        number = chosen.stretches.number[rows]
        heads = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
        tails = np.append(heads[1:], rows.size) - 1
        position = self._places[heads]
        order = np.argsort(position, kind="stable")
        self.positions: list[int] = position[order].tolist()
        self._is_done = np.zeros(len(t), dtype=np.bool_)
        self._is_done[chosen.done] = True
        self._peer = np.zeros(len(t), dtype=np.int64)
        self._peer[chosen.done] = np.where(t.address[chosen.done] != 0, t.address[chosen.done], t.address[chosen.post])
        self._kind = np.zeros(len(t), dtype=np.int64)
        self._kind[chosen.done] = _KINDS[t.id[chosen.post]]
        self._totals = list(zip(*(column[order].tolist() for column in self._sums(heads, tails)), strict=True))
        self._of_place = np.zeros(len(t), dtype=np.int64)
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        self._of_place[self._places] = np.repeat(rank, tails - heads + 1)
        self._sockets: list[Socket] = []
        self._remotes: list[int] = []
        self._counts_peers: list[int] = []

    def _sums(self, heads: Int64s, tails: Int64s) -> tuple[Int64s, ...]:
        """By stretch, in the order of endpoints: what `take` reads."""
        t, at, chosen = self._t, self._places, self._chosen
        done = self._is_done[at] & (t.status[at] != STATUS_WOULD_BLOCK)
        sending = _IS_SENDING[t.id[at]]
        told = chosen.is_indication[at]
        length = t.length[at]
        moved = np.where(done, length, 0)
        add = np.add.reduceat
        return (
            t.endpoint[at[heads]],
            t.type_hint[at[heads]],
            t.ns[at[tails]],
            add(np.where(sending, moved, 0), heads),
            add(np.where(sending, 0, moved), heads),
            add((done & sending).astype(np.int64), heads),
            add((done & ~sending).astype(np.int64), heads),
            add(np.where(told, length, 0), heads),
            np.maximum.reduceat(np.where((moved > 0) | told, t.ns[at], _NO_TIME), heads),
            heads,
            tails,
        )

    def take(self, number: int) -> None:
        """Add a stretch to its socket."""
        endpoint, hint, last_ns, sent, received, sends, receives, told, traffic_ns, head, tail = self._totals[number]
        socket = self._endpoints.latest(endpoint)
        assert socket is not None, "records of an unknown socket were taken for plain"
        assert not socket.is_over, "records of a socket that is over were taken for plain"
        if hint and socket.type is None:
            socket.saw_type(hint)
        socket.last_ns = max(socket.last_ns, last_ns)
        socket.bytes_sent += sent
        socket.bytes_received += received
        socket.connection_received += received
        socket.sends += sends
        socket.receives += receives
        socket.bytes_indicated += told
        socket.connection_indicated += told
        if traffic_ns != _NO_TIME and (socket.last_traffic_ns is None or traffic_ns > socket.last_traffic_ns):
            socket.last_traffic_ns = traffic_ns
        first_kind = 0 if socket.type == DGRAM else Kind.RECV + 1 if socket.type != STREAM else len(SENDING)
        if first_kind < len(SENDING):
            self._add_peers(socket, self._places[head : tail + 1], first_kind)
        self._sockets.append(socket)
        self._remotes.append(socket.remote)
        self._counts_peers.append(first_kind)

    def _add_peers(self, socket: Socket, at: Int64s, first_kind: int) -> None:
        t = self._t
        at = at[self._is_done[at] & (t.status[at] != STATUS_WOULD_BLOCK)]
        at = at[self._kind[at] >= first_kind]
        address = np.where(self._peer[at] != 0, self._peer[at], socket.remote)
        at, address = at[address != 0], address[address != 0]
        sending = _IS_SENDING[t.id[at]]
        own, which = np.unique(address, return_inverse=True)
        for is_sending in (True, False):
            chosen = sending == is_sending
            counts = np.bincount(which[chosen], minlength=own.size).tolist()
            sums = np.zeros(own.size, dtype=np.int64)
            np.add.at(sums, which[chosen], t.length[at[chosen]])
            for number, count, length in zip(own.tolist(), counts, sums.tolist(), strict=True):
                if count:
                    peer = socket.peer(number)
                    if is_sending:
                        peer.bytes_sent += length
                        peer.sends += count
                    else:
                        peer.bytes_received += length
                        peer.receives += count

    def rows(self, *, operations: Int64s, events: Int64s, skipped: Int64s) -> Rows:
        """Rows of all plain records; numbers of the operations, of the indications' events and of the skipped records, in their order."""
        found: Rows = {}
        sockets = np.array([socket.n for socket in self._sockets], dtype=np.int64)
        if operations.size:
            found["operation"] = self._operations(operations, sockets)
        if events.size:
            owners = np.array([socket.owner.n for socket in self._sockets], dtype=np.int64)
            found["socket_event"] = self._events(events, sockets, owners)
        if skipped.size:
            found["skipped"] = self._skipped(skipped, sockets)
        return found

    def _operations(self, numbers: Int64s, sockets: Int64s) -> Lines:
        t, post, done = self._t, self._chosen.post, self._chosen.done
        stretch = self._of_place[post]
        failed = t.status[done] == STATUS_WOULD_BLOCK
        kind = _KINDS[t.id[post]]
        first_kind = np.array(self._counts_peers, dtype=np.int64)[stretch]
        falls_back = np.where(_IS_SENDING[t.id[post]] & (first_kind == 0), True, ~failed & (kind >= first_kind))
        peer = self._peer[done]
        peer = np.where((peer == 0) & falls_back, np.array(self._remotes, dtype=np.int64)[stretch], peer)
        buffer, done_buffer = t.buffer[post], t.buffer[done]
        columns: dict[str, Column] = {
            "n": numbers,
            "socket_n": sockets[stretch],
            "kind": _even(kind),
            "outcome": _even(np.where(failed, _FAILED, _COMPLETED)),
            "match": _even(self._chosen.match),
            "bytes": np.where(failed, 0, t.length[done]),
            "status": _even(t.status[done]),
            "buffer": _where(buffer, buffer != 0),
            "posted_len": _even(t.length[post]),
            "buffer_count": _where(t.buffer_count[post], t.has_buffer_count[post]),
            "space": _even(t.space[post]),
            "fast_path": t.fast[post],
            "buffer_inferred": False,
            "posted_ns": t.ns[post],
            "completed_ns": t.ns[done],
            "end_ns": t.ns[done],
            "peer_n": _where(peer, peer != 0),
            "completed_buffer": _where(done_buffer, (done_buffer != 0) & (done_buffer != buffer)),
            "completed_len": _even(t.length[done]),
            "activity": _where(t.activity[post], t.activity[post] != 0),
            "posted_stack_ref": _where(t.stack[post], t.stack[post] >= 0),
            "completed_stack_ref": _where(t.stack[done], t.stack[done] >= 0),
        }
        for when, at in (("posted", post), ("completed", done)):
            columns |= {
                f"{when}_event": _even(t.id[at]),
                f"{when}_tid": _even(t.tid[at]),
                f"{when}_pid": _even(t.pid[at]),
                f"{when}_cpu": _even(t.cpu[at]),
                f"{when}_location": _where(t.location[at], t.has_location[at]),
                f"{when}_seq": t.seq[at],
            }
        return rows_of("operation", columns, count=post.size)

    def _events(self, numbers: Int64s, sockets: Int64s, owners: Int64s) -> Lines:
        t, at = self._t, np.flatnonzero(self._chosen.is_indication)
        stretch = self._of_place[at]
        fields = t.fields[at].tolist()
        for i in np.flatnonzero((t.fields[at] == None) & ((t.buffer[at] | t.length[at]) != 0)).tolist():  # noqa: E711 - element by element
            fields[i] = f'{{"buffer": "{int(t.buffer[at[i]]) & 0xFFFFFFFFFFFFFFFF:#x}", "buffer_length": {int(t.length[at[i]])}}}'
        columns: dict[str, Column] = {
            "n": numbers,
            "socket_n": sockets[stretch],
            "owner_n": owners[stretch],
            "t_ns": t.ns[at],
            "seq": t.seq[at],
            "cpu": _even(t.cpu[at]),
            "pid": _even(t.pid[at]),
            "tid": _even(t.tid[at]),
            "event": _even(t.id[at]),
            "enter_exit": _where(t.enter_exit[at], t.has_enter_exit[at]),
            "location": _where(t.location[at], t.has_location[at]),
            "status": _where(t.status[at], t.has_status[at]),
            "address_n": _where(t.address[at], t.address[at] != 0),
            "fields": fields,
            "stack_ref": _where(t.stack[at], t.stack[at] >= 0),
        }
        return rows_of("socket_event", columns, count=at.size)

    def _skipped(self, numbers: Int64s, sockets: Int64s) -> Lines:
        t, at = self._t, np.flatnonzero(self._chosen.is_double)
        columns: dict[str, Column] = {
            "n": numbers,
            "socket_n": sockets[self._of_place[at]],
            "t_ns": t.ns[at],
            "kind": [SKIPPED_KINDS[number] for number in t.id[at].tolist()],
            "event": _even(t.id[at]),
            "bytes": _even(t.length[at]),
            "location": _where(t.location[at], t.has_location[at]),
            "reason": "double_count",
            "cpu": _even(t.cpu[at]),
            "pid": _even(t.pid[at]),
            "tid": _even(t.tid[at]),
            "buffer": _where(t.buffer[at], t.buffer[at] != 0),
            "status": _even(t.status[at]),
        }
        return rows_of("skipped", columns, count=at.size)


def _even(column: Int64s) -> Column:
    """A column, as one number where all rows have the same."""
    return int(column[0]) if (column == column[0]).all() else column


def _where(column: Int64s, present: Bools) -> Column:
    """A column that is NULL where a value is not present."""
    if present.all():
        return _even(column)
    return np.ma.MaskedArray(column, ~present) if present.any() else None

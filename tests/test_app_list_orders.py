"""Each order of each list puts the rows in the order of the column that it names, both ways."""

from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, ip_address
from itertools import pairwise
from typing import Any

import pytest
from fastapi.testclient import TestClient

from collector.words import END_REASONS, OPERATION_KINDS, OUTCOMES
from tests.build.answers import as_json
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import Imported
from tests.build.served import served
from tests.test_app_lists import LISTS, sorts_of

Cell = Any  # what JSON has: a number, a text, a process; None where the trace does not say

AT_ONCE = 500
"""Rows that are compared; where there are more, the first ones of each order."""


def _host(text: str) -> bytes:
    address = ip_address(text)
    return bytes(10) + b"\xff\xff" + address.packed if isinstance(address, IPv4Address) else address.packed


PLACES: dict[str, Callable[[Cell], Cell]] = {
    "process": lambda process: process["image"],
    "kind": lambda kind: OPERATION_KINDS.index(kind) if kind in OPERATION_KINDS else kind,
    "outcome": OUTCOMES.index,
    "end_reason": END_REASONS.index,
    "reason": lambda text: int(text.partition(" ")[0]),
    "host": _host,
}
"""Where a cell of a column stands among others, for columns that are not in the order of what they show."""


def place(key: str, cell: Cell) -> Cell:
    """What a cell is compared by: addresses and statuses by their number, as the database has it."""
    if key in PLACES:
        return PLACES[key](cell)
    if isinstance(cell, str) and cell.startswith("0x"):
        number = int(cell, 16)
        return number - (1 << 64) if number >> 63 else number
    return cell


# ---------------------------------------------------------------------------------------------------- a trace whose columns differ

THREE = range(3)
MIXED = (20, 30, 10)
"""The values of three rows in time order: in no order themselves."""
MS, S = 1_000_000, 1_000_000_000
FAILED, RESET, OVERFLOW = 0xC000_0120, 0xC000_020D, 0x8000_0005


def _operations(i: int) -> Iterator[dict[str, object]]:
    """Of socket `i`: two sends that share memory, receives that were too small or failed, sends that wait for 210 to 230 ms."""
    at = (i + 1) * S
    its: dict[str, object] = {"socket_n": i + 1, "peer_n": i + 1, "posted_tid": MIXED[i]}
    yield its | {"kind": 2, "posted_ns": MIXED[i] * MS, "completed_ns": at, "end_ns": at, "buffer": MIXED[i] << 16, "posted_len": 5_000}
    yield its | {"kind": 2, "posted_ns": at, "completed_ns": at + MS, "end_ns": at + MS, "bytes": 5_000}
    small = its | {"kind": (5, 7, 3)[i], "outcome": 1, "status": OVERFLOW, "posted_len": MIXED[i], "bytes": MIXED[i]}
    yield small | {"posted_ns": at, "completed_ns": at + MS, "end_ns": at + MS}
    for ns in (MIXED[i] * S, at, at + MS)[: MIXED[i] // 10]:
        yield its | {"kind": 3, "outcome": 1, "status": RESET, "posted_ns": ns, "completed_ns": ns, "end_ns": ns}
    took = 200 * MS + MIXED[i] * MS
    for ns in (*(at + n * S // 4 for n in range(2 + MIXED[i] // 10)), MIXED[i] * S):
        yield its | {"kind": 2, "bytes": 20, "posted_ns": ns, "completed_ns": ns + took, "end_ns": ns + took}


def _listened(i: int) -> Iterator[dict[str, object]]:
    """At listener `i`: as many of everything as its number in MIXED has tens."""
    its: dict[str, object] = {"socket_n": 4 + i, "t_ns": (i + 1) * S}
    yield its | {"what": "listen", "backlog_asked": MIXED[i]}
    for _ in range(MIXED[i] // 10):
        yield its | {"what": "indication", "backlog_now": MIXED[i]}
        yield its | {"what": "accepted", "wait_ns": MIXED[i]}
        yield its | {"what": "accept_failed", "status": FAILED}
        yield its | {"what": "pause"}


OPERATIONS = sorted((one for i in THREE for one in _operations(i)), key=lambda one: int(str(one["posted_ns"])))
FIRST = [next(n for n, one in enumerate(OPERATIONS, start=1) if one["socket_n"] == i + 1) for i in THREE]
"""The first operation of each socket, by number; the first of the second comes last."""

VARIED: dict[str, list[dict[str, object]]] = {
    "process": [
        {"pid": MIXED[i], "image": f"{MIXED[i]}.exe", "first_ns": i, "end_ns": 50 * S + MIXED[i], "end_seen": True} for i in THREE
    ],
    "owner": [{"process_n": i + 1, "first_ns": i} for i in THREE],
    "address": [
        {"text": f"192.0.2.{n}:{n}", "family": 2, "ip": bytes(10) + b"\xff\xff\xc0\x00\x02" + bytes([n]), "port": n} for n in MIXED
    ],
    "socket": [
        *(
            {"endpoint": 16 + i, "owner_n": i + 1, "process_n": i + 1, "type": 1, "local_n": i + 1, "remote_n": i + 1, "first_ns": i,
             "last_ns": 59 * S, "end": "open_at_end", "sends": 20}
            for i in THREE
        ),
        *(
            {"endpoint": 32 + i, "owner_n": i + 1, "process_n": i + 1, "type": 1, "local_n": i + 1, "listener": True, "first_ns": S + i,
             "last_ns": 59 * S, "end": "closed", "closed_ns": 59 * S + MIXED[i]}
            for i in THREE
        ),
        *({"endpoint": 48 + n, "accepted_from_n": listener, "first_ns": 2 * S, "last_ns": 3 * S, "end": "open_at_end"}
          for n, listener in enumerate((4, 5, 5))),
    ],
    "operation": OPERATIONS,
    "abort": [
        {"socket_n": i + 1, "t_ns": i * S, "event": 1032, "reason": 4, "initiator": ("transport", "afd", "transport")[i], "during": "close",
         "is_primary": i == 1, "unread_bytes": MIXED[i], "last_error": RESET + MIXED[i]}
        for i in THREE
    ],
    "drop": [
        {"socket_n": i + 1, "t_ns": i * S, "reason": MIXED[i], "length": MIXED[i], "source_n": i + 1, "receive_buffer_bytes": MIXED[i],
         "receives_outstanding": MIXED[i]}
        for i in THREE
    ],
    "overlap": [
        {"owner_n": i + 1, "first_n": FIRST[i], "second_n": FIRST[i] + 1, "t_ns": i * S, "lo": 16, "hi": 32, "pair": "send->send",
         "range": ("exact", "partial", "contained")[i], "certainty": ("possible", "certain", "possible")[i],
         "scope": ("same_socket", "cross_socket", "same_socket")[i], "severity": "low"}
        for i in THREE
    ],
    "io_finding": [
        {"kind": "freed_in_flight", "t_ns": i * S, "process_n": i + 1, "socket_n": i + 1, "operation_n": FIRST[i], "by_bytes": MIXED[i],
         "reason": "freed", "certainty": ("possible", "certain", "possible")[i]}
        for i in THREE
    ],
    "poll": [
        {"owner_n": i + 1, "tid": MIXED[i], "posted_ns": i * S, "completed_ns": i * S + 5, "handles": MIXED[i], "timeout_raw": MIXED[i],
         "error": MIXED[i]}
        for i in THREE
    ],
    "heap": [
        {"process_n": i + 1, "handle": MIXED[i] << 16, "life": 1, "first_ns": i * S, "created_ns": MIXED[i] * S,
         "destroyed_ns": 50 * S + MIXED[i], "committed": MIXED[i], "reserved": MIXED[i], "free_space": MIXED[i]}
        for i in THREE
    ],
    "heap_rollup": [
        {"scope": "heap", "scope_n": i + 1, "level": 36, "bucket": 0, "bytes_start": 0, "bytes_end": MIXED[i], "bytes_min": 0,
         "bytes_max": MIXED[i], "count_end": MIXED[i], "count_min": 0, "count_max": MIXED[i], "allocs": MIXED[i], "frees": 0,
         "alloc_bytes": MIXED[i], "free_bytes": 0}
        for i in THREE
    ],
    "listen_event": [one for i in THREE for one in _listened(i)],
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------- the orders


@pytest.fixture(scope="module")
def traces(sample: Imported, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[tuple[TestClient, str]]]:
    """The sample and the trace above: a client of each, and the path of its lists."""
    varied = built_database(tmp_path_factory.mktemp("varied"), VARIED)
    with served(sample.folder) as one, served(varied) as other:
        yield (one, f"/t/{sample.report.key}"), (other, f"/t/{BUILT_KEY}")


def column(trace: tuple[TestClient, str], name: str, sort: str, key: str) -> list[Cell]:
    """The cells of a column of a list in some order, as they are compared; None where there is none."""
    client, path = trace
    rows = as_json(client, f"{path}/{name}?limit={AT_ONCE}&sort={sort}")["listing"]["rows"]
    key = "t_ns" if name == "events" else key
    return [None if row[key] is None else place(key, row[key]) for row in rows]


@pytest.mark.parametrize("name", LISTS)
def test_rows_stand_in_the_order_of_their_column(traces: Sequence[tuple[TestClient, str]], name: str) -> None:
    keys = [sort.key for sort in sorts_of(LISTS[name])]
    by_time = next(key for key in ("t_ns", "first_ns", "posted_ns", "time") if key in keys)
    untold = set(keys) - {by_time}
    for trace in traces:
        for key in keys:
            for sort in (key, f"-{key}") if name != "events" else (key,):
                cells = column(trace, name, sort, key)
                known = [cell for cell in cells if cell is not None]
                assert known == sorted(known, reverse=sort != key), sort
                assert sum((a is None) != (b is None) for a, b in pairwise(cells)) <= 1, f"{sort}: what is unknown stands together"
            timely = [cell for cell in column(trace, name, by_time, key) if cell is not None]
            if timely not in (sorted(timely), sorted(timely, reverse=True)):
                untold.discard(key)
    assert untold == set(), "columns whose order is that of time in both traces: an order by time would pass"

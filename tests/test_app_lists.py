"""Each filter of each list has its SQL and its words; each order visits every row once."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from types import ModuleType

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection

from app.filters import BadFilter, Filter
from app.paging import Asked, BadPosition, Sort, ask
from app.queries import (
    aborts,
    allocations,
    drops,
    errors,
    events,
    frees,
    heaps,
    listeners,
    operations,
    overlaps,
    polls,
    ports,
    processes,
    sends,
    small_receives,
    sockets,
    stacks,
    stalls,
)
from collector.store.engine import TraceFolder
from tests.build.answers import as_json
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import CLIENT, KEY, small_folder

LISTS: dict[str, ModuleType] = {
    "aborts": aborts, "allocations": allocations, "drops": drops, "errors": errors, "events": events, "heaps": heaps,
    "in-flight-frees": frees, "listeners": listeners, "operations": operations, "overlaps": overlaps, "polls": polls, "ports": ports,
    "processes": processes, "sends": sends, "sockets": sockets, "stacks": stacks, "stalls": stalls,
    "too-small-receives": small_receives,
}  # fmt: skip
SOCKET = f"{CLIENT:#x}@10000000"

# list, query string, words in the sentence, how many rows are left; one line a filter
CASES = [
    ("processes", "name=CLIENT", "whose image has “CLIENT”", 1),
    ("processes", "pid=4242", "with id 4", 2),
    ("processes", "command=--now", "whose command line has “--now”", 1),
    ("processes", "has_sockets=yes", "with sockets", 2),
    ("processes", "has_heap=no", "without a traced heap", 3),
    ("processes", "from=51 s", "from +51.000", 3),
    ("processes", "to=6 ms", "to +0.006", 2),
    ("sockets", "process=4242@0", "of process 4242@0", 2),
    ("sockets", "process=900", "of process 900", 3),
    ("sockets", "process=later", "of process later", 0),
    ("sockets", f"endpoint={CLIENT:#x}", f"at endpoint {CLIENT:#x}", 2),
    ("sockets", "address=198.51.100.0/24", "with address 198.51.100.0/24", 2),
    ("sockets", "address=[2001:db8::1]:53", "with address [2001:db8::1]:53", 1),
    ("sockets", "host=EXAMPLE", "with a name like “EXAMPLE”", 0),
    ("sockets", "remote=198.51.100.0/24", "with remote address 198.51.100.0/24", 2),
    ("sockets", "remote=unknown", "with remote address unknown", 2),
    ("sockets", "process=unknown", "of process unknown", 0),
    ("sockets", "kept=left_open", "that were connected in the trace and never closed", 2),
    ("sockets", "kept=half_closed", "that stayed open 5.00 s or longer after their peer finished", 0),
    ("sockets", "port=443", "with port 443", 2),
    ("sockets", "protocol=udp", "speaking udp", 1),
    ("sockets", "type=stream", "of type stream", 4),
    ("sockets", "state=closed", "whose end is closed", 1),
    ("sockets", "state=closed,open_at_end", "whose end is closed or open at end", 5),
    ("sockets", "aborted=yes", "ended by an abort", 1),
    ("sockets", "min_errors=1", "with 1 errors or more", 2),
    ("sockets", "min_bytes=1 MB", "that moved 1.00 MB or more", 1),
    ("sockets", "from=44 s", "from +44.000", 3),
    ("sockets", "to=15 ms", "to +0.015", 1),
    ("sockets", "listener=yes", "that listen", 1),
    ("sockets", "loopback=yes", "with their other end in this trace", 2),
    ("sockets", "unused=", "6 sockets", 6),
    ("sockets", "unused=only", "that were never used", 1),
    ("operations", "process=4242@0", "of process 4242@0", 6),
    ("operations", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 5),
    ("operations", "kind=send,recv", "of kind send or recv", 5),
    ("operations", "outcome=in_flight", "that ended as in flight", 1),
    ("operations", "memory=heap", "whose buffer lies in a heap block", 1),
    ("operations", "memory=freed_block,image", "in a freed heap block or a loaded module", 0),
    ("operations", "status=10054", "with status STATUS_", 1),
    ("operations", "status=STATUS_BUFFER_OVERFLOW", "with status STATUS_BUFFER_OVERFLOW", 1),
    ("operations", "min_bytes=1000", "that moved 1.00 kB or more", 2),
    ("operations", "max_bytes=10", "that moved 10 B or less", 5),
    ("operations", "min_length=2 kB", "of buffers of 2.00 kB or more", 3),
    ("operations", "min_latency=1 s", "that took 1.00 s or longer", 4),
    ("operations", "max_latency=20 ms", "that took 20.0 ms or less", 2),
    ("operations", "space=user", "with a buffer address of space user", 3),
    ("operations", "buffer=0x1f0200", "whose buffer holds 0x1f0200", 3),
    ("operations", "tid=33", "in thread 33", 2),
    ("operations", "late=yes", "that completed after the close", 0),
    ("operations", "late=no", "that completed before the close", 8),
    ("operations", "foreign=yes", "posted under another process id", 1),
    ("operations", "from=5.5 s", "from +5.500", 4),
    ("operations", "to=1.2 s", "to +1.200", 2),
    ("aborts", "process=client", "of process client", 1),
    ("aborts", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 1),
    ("aborts", "reason=4", "for reason 4", 1),
    ("aborts", "initiator=afd", "by afd", 1),
    ("aborts", "during=close", "while it was being closed", 1),
    ("aborts", "primary=yes", "that are the cause", 1),
    ("aborts", "unread=yes", "with data unread", 1),
    ("aborts", "unread=no", "without known data unread", 1),
    ("aborts", "listener=yes", "at a listener", 1),
    ("aborts", "listener=no", "of connections with a socket", 1),
    ("aborts", "stale=yes", "soon after a use that followed a long rest", 0),
    ("aborts", "stale=no", "not after a long rest", 2),
    ("aborts", "from=40 s", "from +40.000", 1),
    ("aborts", "to=40 s", "to +40.000", 1),
    ("overlaps", "process=4242@0", "of process 4242@0", 1),
    ("overlaps", f"endpoint={CLIENT:#x}", f"on endpoint {CLIENT:#x}", 1),
    ("overlaps", "address=0x1f03e7", "that share the byte at 0x1f03e7", 1),
    ("overlaps", "address=0x1f03e8", "that share the byte at 0x1f03e8", 0),
    ("overlaps", "pair=send->recv", "of a receive over a send", 1),
    ("overlaps", "range=exact", "whose ranges are exact", 0),
    ("overlaps", "scope=same_socket", "on one socket", 1),
    ("overlaps", "severity=low", "of low severity", 0),
    ("overlaps", "certainty=certain", "that are certain", 1),
    ("overlaps", "min_bytes=745", "that share 745 B or more", 0),
    ("overlaps", "from=2 s", "from +2.000", 0),
    ("overlaps", "to=2 s", "to +2.000", 1),
    ("in-flight-frees", "process=900", "of process 900", 0),
    ("in-flight-frees", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 1),
    ("in-flight-frees", "kind=freed_in_flight", "of kind freed in flight", 1),
    ("in-flight-frees", "certainty=possible", "that are possible", 0),
    ("in-flight-frees", "from=1 s", "from +1.000", 1),
    ("in-flight-frees", "to=1 s", "to +1.000", 0),
    ("listeners", "process=900", "of process 900", 1),
    ("listeners", "endpoint=0xffff9a0c2a003030", "on endpoint 0xffff9a0c2a003030", 1),
    ("listeners", "port=8080", "on port 8080", 1),
    ("listeners", "min_backlog=5", "whose backlog reached 5", 0),
    ("listeners", "from=1 s", "from +1.000", 1),
    ("listeners", "to=1 ms", "to +0.001", 0),
    ("drops", "process=900", "of process 900", 1),
    ("drops", "endpoint=0xffff9a0c2a002020@20000000", "on endpoint 0xffff9a0c2a002020@20000000", 1),
    ("drops", "reason=3", "for reason 3", 0),
    ("drops", "source=2001:db8::/32", "from 2001:db8::/32", 1),
    ("drops", "from=9 s", "from +9.000", 0),
    ("drops", "to=9 s", "to +9.000", 1),
    ("polls", "process=900", "of process 900", 1),
    ("polls", "tid=33", "of thread 33", 1),
    ("polls", "status=0", "with status STATUS_SUCCESS", 1),
    ("polls", "min_latency=2 s", "that took 2.00 s or longer", 0),
    ("polls", "from=9.5 s", "from +9.500", 1),
    ("polls", "to=8 s", "to +8.000", 0),
    ("events", "process=900", "of process 900", 3),
    ("events", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 14),
    ("events", "event=1032", "with event id 1032", 1),
    ("events", "tid=33", "of thread 33", 2),
    ("events", "header_pid=33", "under process id 33", 0),
    ("events", "references=1", "with references from 1 on", 0),
    ("events", "status=10054", "with status STATUS_", 1),
    ("events", "from=12 s", "from +12.000", 5),
    ("events", "to=31 ms", "to +0.031", 3),
    ("allocations", "process=4242@0", "of process 4242@0", 3),
    ("allocations", "heap=0x1e0000", "of heap 0x1e0000", 3),
    ("allocations", "address=0x1f0100", "that hold 0x1f0100", 1),
    ("allocations", "min_size=8 kB", "of 8.00 kB or more", 2),
    ("allocations", "max_size=64", "of 64 B or less", 1),
    ("allocations", "state=live", "that are still held at the end", 2),
    ("allocations", "end=freed", "that were freed", 1),
    ("allocations", "min_life=1 s", "that lived 1.00 s or longer", 1),
    ("allocations", "max_life=1 ms", "that lived 1.00 ms or shorter", 0),
    ("allocations", "live_at=150 ms", "live at +0.150", 1),
    ("allocations", "began_from=150 ms", "allocated at +0.150", 2),
    ("allocations", "began_to=150 ms", "allocated at +0.150", 1),
    ("allocations", "heap=0x1e0000@1000000000", "of heap 0x1e0000@1000000000", 3),
    ("allocations", "stack=none", "made by stack none", 0),
    ("allocations", "stack=aaaabbbb", "made by stack aaaabbbb", 2),
    ("allocations", "freed_by=1111", "freed by stack 1111", 1),
    ("allocations", "tid=11", "made by thread 11", 2),
    ("allocations", "from=3 s", "from +3.000", 2),
    ("allocations", "to=150 ms", "to +0.150", 1),
    ("heaps", "process=4242@0", "of process 4242@0", 1),
    ("heaps", "process=900", "of process 900", 0),
    ("heaps", "heap=0x1e0000", "with handle 0x1e0000", 1),
    ("heaps", "heap=0x1e0010", "with handle 0x1e0010", 0),
    ("heaps", "state=there", "1 heap there at the end.", 1),
    ("heaps", "state=destroyed", "No heaps destroyed before the end.", 0),
    ("heaps", "min_held=0", "that hold 0 B or more", 1),
    ("heaps", "min_held=1", "that hold 1 B or more", 0),
    ("heaps", "max_held=1 kB", "that hold 1.00 kB or less", 1),
    ("heaps", "min_committed=1 MiB", "of 1.05 MB committed or more", 1),
    ("heaps", "max_committed=1 MB", "of 1.00 MB committed or less", 0),
    ("heaps", "max_committed=2 MB", "of 2.00 MB committed or less", 1),
    ("heaps", "from=1 s", "from +1.000", 1),
    ("heaps", "to=1 s", "to +1.000", 1),
    ("errors", "process=client", "of process client", 1),
    ("errors", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 1),
    ("errors", "kind=recvfrom", "of kind recvfrom", 1),
    ("errors", "status=10054", "with status STATUS_", 1),
    ("errors", "remote=unknown", "with remote address unknown", 0),
    ("errors", "from=30 s", "from +30.000", 1),
    ("errors", "to=30 s", "to +30.000", 1),
    ("ports", "process=4242@0", "of process 4242@0", 1),
    ("ports", "address=198.51.100.7", "to 198.51.100.7", 1),
    ("ports", "status=10048", "with a bind that failed with STATUS_", 0),
    ("ports", "from=44 s", "from +44.000", 1),
    ("ports", "to=1 ms", "to +0.001", 0),
    ("stacks", "process=900", "of process 900", 0),
    ("stacks", "frame=SEND_ALL", "with “SEND_ALL” in a frame", 1),
    ("stacks", "min_size=1 MB", "counting blocks of 1.00 MB or more", 1),
    ("stalls", "process=4242@0", "of process 4242@0", 0),
    ("stalls", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 0),
    ("stalls", "from=1 s", "from +1.000", 0),
    ("stalls", "to=1 s", "to +1.000", 0),
    ("processes", "min_bytes=1 MB", "that moved 1.00 MB or more", 1),
    ("processes", "min_errors=1", "with 1 errors or more", 2),
    ("processes", "min_heap=1", "whose heap reached 1 B", 1),
    ("sockets", "max_bytes=1 MB", "that moved 1.00 MB or less", 4),
    ("sockets", "status=10054", "whose last error is STATUS_", 1),
    ("sockets", "min_life=39 s", "that lived 39.0 s or longer", 2),
    ("sockets", "max_life=20 s", "that lived 20.0 s or shorter", 2),
    ("operations", "address=198.51.100.7", "with address 198.51.100.7", 6),
    ("operations", "address=2001:db8::1", "with address 2001:db8::1", 2),
    ("operations", "port=443", "with port 443", 6),
    ("operations", "protocol=udp", "speaking udp", 2),
    ("operations", "max_length=1 kB", "of buffers of 1.00 kB or less", 3),
    ("aborts", "address=198.51.100.0/24", "with address 198.51.100.0/24", 1),
    ("aborts", "port=8080", "with port 8", 1),
    ("aborts", "protocol=udp", "speaking udp", 0),
    ("aborts", "status=10054", "whose socket's last error is STATUS_", 1),
    ("aborts", "min_unread=1460", "with 1.46 kB unread or more", 1),
    ("aborts", "min_quiet=37 s", "after 37.0 s of quiet or more", 0),
    ("overlaps", "ip=198.51.100.7", "with address 198.51.100.7", 1),
    ("overlaps", "port=444", "with port 444", 0),
    ("overlaps", "protocol=tcp", "speaking tcp", 1),
    ("overlaps", "max_bytes=743", "that share 743 B or less", 0),
    ("in-flight-frees", "ip=198.51.100.8", "with address 198.51.100.8", 0),
    ("in-flight-frees", "port=443", "with port 443", 1),
    ("in-flight-frees", "protocol=udp", "speaking udp", 0),
    ("in-flight-frees", "operation=recv", "of a recv", 1),
    ("in-flight-frees", "address=0x1f0100", "whose block holds 0x1f0100", 1),
    ("in-flight-frees", "min_size=8 kB", "of blocks of 8.00 kB or more", 1),
    ("in-flight-frees", "max_size=64", "of blocks of 64 B or less", 0),
    ("listeners", "address=0.0.0.0", "on address 0.0.0.0", 1),
    ("listeners", "min_failed=1", "with 1 failed connections or more", 1),
    ("listeners", "min_wait=1 s", "whose longest wait is 1.00 s or more", 0),
    ("drops", "address=2001:db8::1", "with address 2001:db8::1", 1),
    ("drops", "port=54", "with port 54", 0),
    ("drops", "protocol=udp", "speaking udp", 1),
    ("drops", "min_bytes=1", "of 1 B or more", 1),
    ("drops", "max_bytes=1", "of 1 B or less", 0),
    ("polls", "max_latency=1 ms", "that took 1.00 ms or less", 0),
    ("polls", "min_handles=1", "of 1 handles or more", 1),
    ("events", "address=198.51.100.7", "with address 198.51.100.7", 15),
    ("events", "port=443", "with port 443", 15),
    ("events", "protocol=udp", "speaking udp", 3),
    ("errors", "address=2001:db8::/32", "with address 2001:db8::/32", 1),
    ("errors", "port=443", "with port 443", 1),
    ("errors", "protocol=udp", "speaking udp", 1),
    ("ports", "port=443", "with port 443", 1),
    ("ports", "protocol=udp", "speaking udp", 0),
    ("stalls", "address=198.51.100.7", "with address 198.51.100.7", 0),
    ("stalls", "port=443", "with port 443", 0),
    ("stalls", "protocol=tcp", "speaking tcp", 0),
    ("too-small-receives", "process=900", "of process 900", 1),
    ("too-small-receives", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 0),
    ("too-small-receives", "address=2001:db8::1", "with address 2001:db8::1", 1),
    ("too-small-receives", "port=53", "with port 53", 1),
    ("too-small-receives", "protocol=tcp", "speaking tcp", 0),
    ("too-small-receives", "min_length=2 kB", "of buffers of 2.00 kB or more", 0),
    ("too-small-receives", "max_length=2 kB", "of buffers of 2.00 kB or less", 1),
    ("too-small-receives", "tid=33", "in thread 33", 1),
    ("too-small-receives", "kind=recv", "of kind recv", 0),
    ("too-small-receives", "min_latency=2 s", "that took 2.00 s or longer", 0),
    ("too-small-receives", "max_latency=2 s", "that took 2.00 s or less", 1),
    ("stacks", "max_size=1 kB", "counting blocks of 1.00 kB or less", 1),
    ("stacks", "from=250 ms", "from +0.250", 1),
    ("stacks", "to=250 ms", "to +0.250", 1),
    ("sends", "process=4242@0", "of process 4242@0", 1),
    ("sends", f"endpoint={SOCKET}", f"on endpoint {SOCKET}", 1),
    ("sends", "address=198.51.100.7", "with address 198.51.100.7", 1),
    ("sends", "port=444", "with port 444", 0),
    ("sends", "protocol=tcp", "speaking tcp", 1),
    ("sends", "min_sends=2", "with 2 sends or more", 0),
    ("sends", "min_latency=1 s", "whose slowest send took 1.00 s or longer", 1),
    ("sends", "from=1.5 s", "from +1.500", 0),
    ("sends", "to=1.5 s", "to +1.500", 1),
    ("stalls", "min_waits=3", "with 3 waits or more", 0),
    ("stalls", "min_lost=1 s", "that lost 1.00 s or more", 0),
    ("stalls", "min_wait=1 s", "whose mean wait is 1.00 s or more", 0),
    ("events", "min_bytes=4 kB", "of 4.00 kB or more", 3),
    ("events", "max_bytes=100", "of 100 B or less", 5),
    ("too-small-receives", "from=1 s", "from +1.000", 1),
    ("too-small-receives", "to=1 ms", "to +0.001", 0),
    ("aborts", "protocol=tcp", "speaking tcp", 2),
    ("aborts", "min_quiet=35 s", "after 35.0 s of quiet or more", 1),
    ("allocations", "max_life=2 s", "that lived 2.00 s or shorter", 1),
    ("drops", "port=53", "with port 53", 1),
    ("drops", "reason=2", "for reason 2", 1),
    ("drops", "max_bytes=1200", "of 1.20 kB or less", 1),
    ("drops", "from=8 s", "from +8.000", 1),
    ("errors", "remote=198.51.100.0/24", "with remote address 198.51.100.0/24", 1),
    ("events", "header_pid=900", "under process id 900", 2),
    ("in-flight-frees", "process=4242@0", "of process 4242@0", 1),
    ("in-flight-frees", "ip=198.51.100.7", "with address 198.51.100.7", 1),
    ("in-flight-frees", "protocol=tcp", "speaking tcp", 1),
    ("in-flight-frees", "certainty=certain", "that are certain", 1),
    ("in-flight-frees", "max_size=9 kB", "of blocks of 9.00 kB or less", 1),
    ("in-flight-frees", "to=2 s", "to +2.000", 1),
    ("listeners", "min_backlog=4", "whose backlog reached 4", 1),
    ("listeners", "min_wait=1 ms", "whose longest wait is 1.00 ms or more", 1),
    ("listeners", "to=30 ms", "to +0.030", 1),
    ("overlaps", "port=443", "with port 443", 1),
    ("overlaps", "range=partial", "whose ranges are partial", 1),
    ("overlaps", "severity=high", "of high severity", 1),
    ("overlaps", "min_bytes=744", "that share 744 B or more", 1),
    ("overlaps", "max_bytes=744", "that share 744 B or less", 1),
    ("overlaps", "from=1.5 s", "from +1.500", 1),
    ("polls", "min_latency=1 s", "that took 1.00 s or longer", 1),
    ("polls", "max_latency=1 s", "that took 1.00 s or less", 1),
    ("polls", "to=9 s", "to +9.000", 1),
    ("ports", "protocol=tcp", "speaking tcp", 1),
    ("ports", "to=50 s", "to +50.000", 1),
    ("sends", "port=443", "with port 443", 1),
    ("sends", "min_sends=1", "with 1 sends or more", 1),
    ("sends", "from=1 s", "from +1.000", 1),
    ("stacks", "process=4242@0", "of process 4242@0", 2),
    ("too-small-receives", "endpoint=0xffff9a0c2a002020", "on endpoint 0xffff9a0c2a002020", 1),
    ("too-small-receives", "protocol=udp", "speaking udp", 1),
    ("too-small-receives", "kind=recvfrom", "of kind recvfrom", 1),
    ("too-small-receives", "min_length=500", "of buffers of 500 B or more", 1),
    ("too-small-receives", "min_latency=1 s", "that took 1.00 s or longer", 1),
    ("too-small-receives", "to=5 s", "to +5.000", 1),
]  # fmt: skip


STALLS = (
    ("process", "{process[link]}", "ledger"), ("endpoint", "{socket}", SOCKET), ("address", "203.0.113.11", "192.0.2.1"),
    ("port", "5222", "5223"), ("protocol", "tcp", "udp"), ("min_waits", "{count}", "25"), ("min_lost", "{lost_ns}", "5 s"),
    ("min_wait", "{mean_ns}", "201 ms"), ("from", "{first_ns}", "{last_ns}"), ("to", "60 s", "{first_ns}"),
)  # fmt: skip
"""Filters of the stalls, which the sample has one row of: a value that it passes, and one that it does not."""

MET_ELSEWHERE = {("events", "references"), ("ports", "status"), ("sockets", "host")}
"""Filters that rows pass in test_findings_links.py and test_app_neighbours.py."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    return small_folder(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def client(folder: TraceFolder) -> Iterator[TestClient]:
    with served(folder) as made:
        yield made


@pytest.fixture(scope="module")
def sample_client(sample: Imported) -> Iterator[TestClient]:
    with served(sample.folder) as made:
        yield made


def filters_of(module: ModuleType) -> tuple[Filter, ...]:
    found: tuple[Filter, ...] = module.FILTERS
    return found


def sorts_of(module: ModuleType) -> tuple[Sort, ...]:
    found: tuple[Sort, ...] = module.SORTS
    return found


@pytest.mark.parametrize(("name", "query", "words", "rows"), CASES)
def test_a_filter_narrows_the_rows_and_says_so(client: TestClient, name: str, query: str, words: str, rows: int) -> None:
    answer = client.get(f"/t/{KEY}/{name}?{query.replace('->', '-%3E')}&format=json")

    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert words in page["sentence"]
    assert len(page["listing"]["rows"]) == rows
    assert client.get(f"/t/{KEY}/{name}?{query}").status_code == 200


def test_every_filter_of_every_list_is_tried_here() -> None:
    tried = {(name, query.partition("=")[0]) for name, query, _, _ in CASES}
    filters = {(name, one.key) for name, module in LISTS.items() for one in filters_of(module)}
    assert filters - tried == set()
    met = {(name, query.partition("=")[0]) for name, query, _, rows in CASES if rows} | {("stalls", key) for key, _, _ in STALLS}
    assert filters - met == MET_ELSEWHERE, "a filter that no row ever passes would be taken for one that works"


@pytest.mark.parametrize(
    ("name", "sort"), [(name, sign + sort.key) for name, module in LISTS.items() for sort in sorts_of(module) for sign in ("", "-")]
)
def test_pages_of_one_row_visit_every_row_once(client: TestClient, name: str, sort: str) -> None:
    if (name, sort) == ("events", "-time"):
        assert client.get(f"/t/{KEY}/events?sort=-time").status_code == 400
        return
    whole = client.get(f"/t/{KEY}/{name}?sort={sort}&format=json").json()["listing"]["rows"]
    seen = []
    url: str | None = f"/t/{KEY}/{name}?sort={sort}&limit=1&format=json"
    while url is not None:
        listing = client.get(url).json()["listing"]
        seen += listing["rows"]
        url = listing["next"]
        assert len(seen) <= len(whole)
    assert seen == whole


def test_a_column_head_sorts_and_turns_round(client: TestClient) -> None:
    page = client.get(f"/t/{KEY}/sockets").text
    assert f'href="/t/{KEY}/sockets?sort=-bytes_sent"' in page  # the greatest first
    sorted_page = client.get(f"/t/{KEY}/sockets?sort=-bytes_sent").text
    assert f'href="/t/{KEY}/sockets?sort=bytes_sent"' in sorted_page
    assert 'aria-sort="descending"' in sorted_page


def test_removing_one_filter_keeps_the_others(client: TestClient) -> None:
    page = client.get(f"/t/{KEY}/operations?kind=recv&status=10054&sort=-bytes").text
    assert f'href="/t/{KEY}/operations?status=10054&amp;sort=-bytes"' in page
    assert f'href="/t/{KEY}/operations?kind=recv&amp;sort=-bytes"' in page
    assert f'href="/t/{KEY}/operations?sort=-bytes"' in page


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("sort=colour", "this list sorts by"),
        ("after=yesterday", "a page position is a time"),
        ("after=5", "has no such page"),
        ("limit=0", "1 to 200 rows"),
        ("limit=201", "1 to 200 rows"),
        ("limit=1001&format=json", "1 to 1000 rows"),
        ("kind=jump", "one or some of"),
        ("min_bytes=-5", "0 or more"),
        ("from=noon", "a number with a unit"),
        ("status=EBADF", "a status"),
        ("endpoint=zz", "not an address"),
        ("process=4242@x", "not a time"),
        ("format=xml", "html, json or csv"),
    ],
)
def test_what_cannot_be_used_is_a_page_that_says_so(client: TestClient, query: str, part: str) -> None:
    answer = client.get(f"/t/{KEY}/operations?{query}")
    assert answer.status_code == 400
    assert part in answer.text


HOSTILE_VALUES = (
    "0", "-1", "9" * 19, str((1 << 63) - 1), str(1 << 62), str(-(1 << 62)), "'", '"; drop table socket', "%", "_", "\\", "é", "@", "1e400",
    "0x" + "f" * 16, "4242@4611686018427387904", "0xffff9a0c2a001010@-1", "::/0", "0.0.0.0/0", "[::]:0", "<b>", "yes", "null", "NaN",
    "x" * 400,
)  # fmt: skip

ASK: dict[str, Callable[[Connection, Asked], object]] = {
    "aborts": aborts.aborts_page, "allocations": allocations.allocations_page, "drops": drops.drops_page, "errors": errors.errors,
    "events": events.events_page, "heaps": heaps.heaps_page, "in-flight-frees": frees.frees_page, "listeners": listeners.listeners_page,
    "operations": operations.operations_page, "overlaps": overlaps.overlaps_page, "polls": polls.polls_page, "ports": ports.remotes,
    "processes": processes.processes_page, "sends": sends.sends,
    "sockets": sockets.sockets_page, "stacks": stacks.held_by_stack, "stalls": stalls.stalls,
    "too-small-receives": small_receives.small_receives_page,
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_any_value_of_a_filter_is_used_or_refused(folder: TraceFolder, name: str) -> None:
    module = LISTS[name]
    keys = [one.key for one in filters_of(module)] + ["sort", "after", "limit"]
    used = 0
    with folder.trace(KEY).connect() as db:
        for key in keys:
            for value in HOSTILE_VALUES:
                try:
                    ASK[name](db, ask({key: value}, filters_of(module), sorts_of(module)))
                    used += 1
                except (BadFilter, BadPosition):
                    continue
    assert used > len(keys)


GROUPED = {"errors": 8, "heaps": 1, "ports": 5, "sends": 5, "stacks": 5, "stalls": 1}
"""Lists of sums, and how many groups the sample has at least."""


@pytest.mark.parametrize("narrowed", ["", "&from=1 s"])
@pytest.mark.parametrize(
    ("name", "sort"), [(name, sign + sort.key) for name in GROUPED for sort in sorts_of(LISTS[name]) for sign in ("", "-")]
)
def test_pages_of_groups_visit_every_group_once(sample_client: TestClient, sample: Imported, name: str, sort: str, narrowed: str) -> None:
    if narrowed and name == "stacks":
        narrowed = "&min_size=1"
    path = f"/t/{sample.report.key}/{name}?sort={sort}{narrowed}&format=json"
    whole = sample_client.get(f"{path}&limit=1000").json()["listing"]["rows"]
    assert len(whole) >= (1 if narrowed else GROUPED[name])
    seen = []
    url: str | None = f"{path}&limit={max(len(whole) // 3, 1)}"
    while url is not None:
        listing = sample_client.get(url).json()["listing"]
        seen += listing["rows"]
        url = listing["next"]
        assert listing["rows"]
        assert len(seen) <= len(whole)
    assert seen == whole
    key = sort.removeprefix("-")
    values = [row.get(key) for row in whole]
    if all(isinstance(value, int) for value in values):
        assert values == sorted(values, reverse=sort.startswith("-"))


def test_a_page_of_groups_says_its_order_and_leads_on(sample_client: TestClient, sample: Imported) -> None:
    path = f"/t/{sample.report.key}/errors"
    first = sample_client.get(f"{path}?limit=3").text
    assert "The first 3 groups of equal errors, the most frequent first." in first
    following = re.search(r'href="([^"]*after=[^"]*)" rel="next"', first)
    assert following is not None
    second = sample_client.get(unescape(following[1])).text
    assert "The next 3 groups of equal errors, the most frequent first." in second
    assert 'rel="first"' in second
    assert "The first 3 groups of equal errors, by process, falling." in sample_client.get(f"{path}?limit=3&sort=-process").text
    assert sample_client.get(f"{path}?after=5").status_code == 400


@pytest.mark.parametrize(("key", "own", "other"), STALLS)
def test_stalls_are_filtered_too(sample_client: TestClient, sample: Imported, key: str, own: str, other: str) -> None:
    path = f"/t/{sample.report.key}/stalls"
    (row,) = as_json(sample_client, path)["listing"]["rows"]

    assert [found["socket"] for found in as_json(sample_client, f"{path}?{key}={own.format(**row)}")["listing"]["rows"]] == [row["socket"]]
    assert as_json(sample_client, f"{path}?{key}={other.format(**row)}")["listing"]["rows"] == []

"""Records whose header names another process than the one that owns the socket; and what is used again after its process has ended."""

import re
from pathlib import Path

import pytest

from tests.build import Trace, afd, system
from tests.build.imported import Imported, collect
from tests.build.served import served

A, B, SYSTEM = 900, 7777, 4
EPROCESS = 0xFFFF_9A0C_1122_3080
FIRST, AFTER = 0xFFFF_9A0C_2A00_A000, 0xFFFF_9A0C_2A00_B000
BYTES = {100: SYSTEM, 200: B, 300: SYSTEM, 400: B}
"""Length of each send of A, and the process id in the header of its completion."""


def one_socket(*, has_kernel: bool) -> Trace:
    """Process A makes a socket; its sends complete in threads of others; A ends; the next process gets its id and process object."""
    trace = Trace().cpu(0, afd.opened(at_us=10, endpoint=FIRST, process=EPROCESS, pid=A))
    for n, (length, pid) in enumerate(BYTES.items()):
        at = 100 * (n + 1)
        trace.cpu(0, afd.send(at_us=at, length_bytes=length, buffer=0x1000, pid=A, location=3047, endpoint=FIRST, process=EPROCESS))
        trace.cpu(
            0,
            afd.send(
                at_us=at + 20, enter_exit=1, length_bytes=length, buffer=0x1000, pid=pid, location=3018, endpoint=FIRST, process=EPROCESS
            ),
        )
    trace.cpu(0, afd.close(at_us=600, endpoint=FIRST, process=EPROCESS, pid=SYSTEM))
    trace.cpu(0, afd.close(at_us=601, endpoint=FIRST, process=EPROCESS, pid=SYSTEM, enter_exit=1))
    trace.cpu(0, afd.opened(at_us=800, endpoint=AFTER, process=EPROCESS, pid=A))
    trace.cpu(0, afd.sent(at_us=850, length_bytes=900, buffer=0x1000, endpoint=AFTER, process=EPROCESS, pid=A))
    if has_kernel:
        trace.cpu(1, system.process_start(at_us=1, pid=A, image="first.exe", eprocess=EPROCESS))
        trace.cpu(1, system.process_end(at_us=700, pid=A, eprocess=EPROCESS))
        trace.cpu(1, system.process_start(at_us=750, pid=A, image="second.exe", eprocess=EPROCESS))
    return trace


@pytest.fixture(params=[True, False], ids=["with process events", "without"])
def imported(tmp_path: Path, request: pytest.FixtureRequest) -> Imported:
    return collect(one_socket(has_kernel=request.param), tmp_path)


def test_all_rows_belong_to_the_process_that_made_the_socket(imported: Imported) -> None:
    rows = imported.rows(
        "SELECT s.pid, o.bytes, o.outcome FROM v_operations o JOIN v_sockets s ON s.socket = o.socket ORDER BY o.posted_ns"
    )
    assert rows == [(A, length, "completed") for length in (*BYTES, 900)]
    assert imported.rows("SELECT DISTINCT pid FROM v_sockets") == [(A,)]
    assert imported.rows("SELECT count(*) FROM v_processes WHERE pid IN (?, ?)", SYSTEM, B) == [(0,)]


def test_the_next_process_of_the_same_id_and_object_has_its_own_rows(imported: Imported) -> None:
    starts = imported.one("SELECT count(*) FROM v_processes WHERE start_seen")
    rows = imported.rows(
        "SELECT p.image, o.bytes FROM v_operations o JOIN v_processes p ON p.process = o.process AND p.pid = ? ORDER BY o.posted_ns", A
    )
    images = ["first.exe"] * len(BYTES) + ["second.exe"] if starts else [None] * (len(BYTES) + 1)
    assert rows == list(zip(images, (*BYTES, 900), strict=True))


def test_the_header_is_shown_beside_the_owner(imported: Imported) -> None:
    assert imported.rows("SELECT header_pid, completed_pid FROM v_operations ORDER BY posted_ns") == [
        *((A, pid) for pid in BYTES.values()),
        (A, A),
    ]
    with served(imported.folder) as client:
        base = f"/t/{imported.report.key}"
        rows = client.get(f"{base}/events?format=json").json()["listing"]["rows"]
        headers = [row["header_pid"] for row in rows if row["name"] == "AfdSend"]
        assert (headers[::2], headers[1::2]) == ([A] * 5, [*BYTES.values(), A])
        assert {row["process"]["pid"] for row in rows if row["name"] == "AfdSend"} == {A}
        page = client.get(f"{base}/sockets/{rows[0]['socket']}").text
    marked = re.findall(r'differs" data-label="Header pid" title="differs from the owner[^>]*>(\d+)<', page)
    assert set(marked) == {str(SYSTEM), str(B)}
    assert len(marked) == len(BYTES) + 2, "and the close, which the system's process wrote"

"""The traces that are measured are what they claim to be; how fast anything is, no test asks."""

import re
from pathlib import Path

import pytest

from bench import lists
from bench.generate import write_trace
from bench.mixes import MIXES, PIDS, STACK_KEYS
from bench.pages import page_paths
from tests.build.imported import ImportTrace, collect
from tests.build.served import served


@pytest.mark.parametrize("mix", list(MIXES))
def test_every_record_of_a_generated_trace_is_counted(tmp_path: Path, import_trace: ImportTrace, mix: str) -> None:
    written = write_trace(tmp_path / "big.etl", MIXES[mix], 20_000)

    trace = import_trace(tmp_path / "big.etl")

    counted = dict(trace.rows("SELECT coalesce(event_name, ''), sum(count) FROM v_event_counts GROUP BY 1"))
    assert {name: counted.get(name) for name in written if name} == {name: count for name, count in written.items() if name}
    assert trace.report.counts["records"] == sum(written.values()) + 1  # and the log file header
    assert trace.one("SELECT sum(damaged) FROM v_event_counts") == 0
    assert trace.one("SELECT count(*) FROM v_processes") == len(PIDS)
    assert {image for (image,) in trace.rows("SELECT image FROM v_processes")} == {f"bench{pid}.exe" for pid in PIDS}


def test_the_same_trace_is_written_every_time(tmp_path: Path) -> None:
    for name in ("one.etl", "other.etl"):
        write_trace(tmp_path / name, MIXES["noise"], 5_000)

    assert (tmp_path / "one.etl").read_bytes() == (tmp_path / "other.etl").read_bytes()


def test_many_sockets_live_and_end(tmp_path: Path, import_trace: ImportTrace) -> None:
    written = write_trace(tmp_path / "big.etl", MIXES["winsock"], 36_000)  # two generations of 400 sockets with 45 records each

    trace = import_trace(tmp_path / "big.etl")

    assert trace.rows("SELECT count(*), count(created_ns), count(closed_ns), count(pid) FROM v_sockets") == [(800, 800, 800, 800)]
    assert trace.rows("SELECT kind, outcome, count(*) FROM v_operations GROUP BY 1, 2 ORDER BY 1") == [
        ("connect", "completed", 800),
        ("recv", "completed", written["AfdReceive"] // 2),
        ("send", "completed", written["AfdSend"] // 2),
    ]


def test_the_hot_socket_has_its_depth_in_flight(tmp_path: Path, import_trace: ImportTrace) -> None:
    write_trace(tmp_path / "big.etl", MIXES["hot"], 20_000)

    trace = import_trace(tmp_path / "big.etl")

    assert trace.one("SELECT count(*) FROM v_sockets") == 1
    assert trace.rows("SELECT outcome, count(*) FROM v_operations GROUP BY 1 ORDER BY 1") == [("completed", 9_936), ("in_flight", 64)]
    assert trace.one("SELECT count(*) FROM v_overlaps") == 0


def test_the_heap_has_a_stack_for_every_allocation(tmp_path: Path, import_trace: ImportTrace) -> None:
    written = write_trace(tmp_path / "big.etl", MIXES["heap"], 60_000)

    trace = import_trace(tmp_path / "big.etl")

    assert trace.one("SELECT count(*) FROM v_allocations") == written["HeapAlloc"]
    assert trace.one("SELECT count(*) FROM v_allocations WHERE end_ns IS NOT NULL") == written["HeapFree"]
    assert trace.one("SELECT count(*) FROM v_resizes") == written["HeapReAlloc"]
    assert trace.one("SELECT count(*) FROM v_allocations WHERE owner_stack IS NULL") == 0
    assert trace.one("SELECT count(*) FROM v_heap_anomalies") == 0
    assert trace.one("SELECT count(DISTINCT stack) FROM v_stacks") == STACK_KEYS


def test_every_page_that_is_measured_answers(tmp_path: Path) -> None:
    write_trace(tmp_path / "big.etl", MIXES["noise"], 20_000)
    trace = collect(tmp_path / "big.etl", tmp_path)

    paths = page_paths(trace.folder.root, trace.report.key)

    with served(trace.folder) as client:
        assert {name: client.get(path).status_code for name, path in paths.items()} == dict.fromkeys(paths, 200)


def test_every_list_is_asked_for_in_every_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "big.etl", MIXES["winsock"], 4_000)
    imported = collect(tmp_path / "big.etl", tmp_path)

    assert lists.main([str(imported.folder.root), imported.report.key]) == 0

    said = capsys.readouterr().out
    assert re.search(r"^\| operations \| [\d,]+ \| [\d,]+ \| (\d+) \| [\d,]+ \(.*\) \|  \|$", said, re.MULTILINE)
    counts = [int(words) for words in re.findall(r"^\| [a-z-]+ \| [\d,]+ \| [\d,]+ \| (\d+) \|", said, re.MULTILINE)]
    assert sum(counts) > 80
    assert re.search(r"^\d+ pages, 0 of them 503 .* 0 failed$", said, re.MULTILINE)

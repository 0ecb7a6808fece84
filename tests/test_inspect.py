"""The report on a file without a database."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.errors import FormatError
from collector.inspect import Inspection, inspect_trace
from collector.packages import traces_in
from collector.source import Source
from collector.store.catalog import Catalog
from tests.build.text_forms import TEXT_WRITERS
from tests.etl_bytes import START_TICKS, buffer, event, full, perfinfo, system, trace
from tests.text_answers import a_trace, collected

T = START_TICKS


def inspected(folder: Path, content: bytes) -> Inspection:
    path = folder / "some.etl"
    path.write_bytes(content)
    with Source.open(path) as source:
        return inspect_trace(source)


SOUND = trace(buffer([system(T + 10, 0x1023, bytes(8)), event(T + 20, 1003), perfinfo(T + 10_000_000)]), session="My Session", mode=0x10002)


def test_the_text_says_what_the_file_is(tmp_path: Path) -> None:
    lines = inspected(tmp_path, SOUND).lines()
    text = "\n".join(lines)

    assert "File              some.etl, 2,048 bytes" in lines
    assert "Session           My Session" in lines
    assert "Windows           10.0.19045, 4 processors, 64 bits" in lines
    assert "Clock             performance counter, 10,000,000 ticks a second" in lines
    assert "Time 0            2025-03-04T09:30:00Z (tick 1,000,000)" in lines
    assert "Records           4 within 0:00:01" in lines
    assert "File mode         0x00010002, layout 1.5, merged, circular" in lines
    assert "Problems: none" in lines
    assert "Heap HeapDestroy" in text
    assert "Microsoft-Windows-Winsock-AFD" in text


def test_known_and_damaged_records_are_told_apart(tmp_path: Path) -> None:
    events = {(event.provider_name, event.opcode): event for event in inspected(tmp_path, SOUND).events}

    heap = events["Heap", 0x23]
    assert (heap.event_name, heap.count, heap.known, heap.damaged) == ("HeapDestroy", 1, 1, 0)
    send = events["Microsoft-Windows-Winsock-AFD", 12]
    assert (send.count, send.known, send.damaged) == (1, 1, 1)
    assert events["PerfInfo", 0x2E].known == 0


def test_the_dictionary_is_json(tmp_path: Path) -> None:
    inspection = inspected(tmp_path, SOUND)
    found: dict[str, Any] = json.loads(json.dumps(inspection.as_dict()))  # Any: whatever JSON holds

    assert found["file"] == {"name": "some.etl", "size_bytes": 2048, "form": "ETL"}
    assert found["clock"]["start_utc"] == "2025-03-04T09:30:00Z"
    assert found["records"] == 4
    assert found["records_by_kind"] == {"SYSTEM64": 2, "EVENT64": 1, "PERFINFO64": 1}
    assert (found["first_ns"], found["last_ns"]) == (0, 900_000_000 + 100_000_000)
    assert sum(event["count"] for event in found["events"]) == 4
    assert found["losses"] == {"events_lost": 0, "buffers_lost": 0, "spans_ns": [], "everywhere": False}
    assert not inspection.is_limited


def test_losses_and_damage_come_first(tmp_path: Path) -> None:
    inspection = inspected(tmp_path, trace(buffer([system(T + 10), b"\xff" * 24]), buffers_written=1, events_lost=5))

    assert [problem.kind.name for problem in inspection.problems] == ["lost_events", "damaged_record", "buffers_written_differs"]
    assert inspection.is_limited
    text = "\n".join(inspection.lines())
    assert "5 events, 0 buffers by the header; places in the file: 1; without a place: any moment may lack records" in text
    assert "LOSS    Events lost by the session: 5." in text
    assert "First: buffer 1, offset 104." in text
    spans = json.loads(json.dumps(inspection.as_dict()))["losses"]["spans_ns"]
    assert spans == [[1000, 1000]]  # up to the end of the trace, which is the last record


def test_hostile_names_cannot_steer_a_terminal(tmp_path: Path) -> None:
    inspection = inspected(tmp_path, trace(buffer([full(T + 5)]), session="\x1b[2Jgone\r\nfake line", file_name="a\u202eb"))
    lines = inspection.lines()
    assert all(line.isprintable() for line in lines)
    assert r"Session           \x1b[2Jgone\r\nfake line" in lines


def test_times_that_are_no_dates_are_unknown(tmp_path: Path) -> None:
    inspection = inspected(tmp_path, trace(buffer([system(T + 5)]), start_filetime=0, end_filetime=-1))
    assert "Time 0            unknown (tick 1,000,000)" in inspection.lines()
    assert "Closed            unknown" in inspection.lines()
    assert json.loads(json.dumps(inspection.as_dict()))["clock"]["start_utc"] is None


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "some.etl"
    path.write_bytes(SOUND)
    told: list[tuple[int, int]] = []
    with Source.open(path) as source:
        inspect_trace(source, on_progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2048, 2048)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        inspected(tmp_path, b"no trace at all")


@pytest.mark.shared
def test_every_real_file_gives_a_report(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "traces" / "real").glob("*.etl")):
        with Source.open(path) as source:
            inspection = inspect_trace(source)
        assert sum(event.count for event in inspection.events) == inspection.records
        assert all(event.damaged == 0 for event in inspection.events), path.name
        assert all("\n" not in line for line in inspection.lines())
        json.dumps(inspection.as_dict())


@pytest.mark.shared
def test_providers_that_files_name_themselves(shared_dir: Path) -> None:
    for name, provider in (
        ("sonde.etl", "sonde-gateway"),
        ("AMSITrace.etl", "AmsiTrace"),
        ("BondEtwSample.etl", "MSOpenTech-Tx-BinaryEventSource"),
        ("primitive-types.etl", "solar_system"),
        ("SelfDescribingSingleEvent.etl", "MySource"),
        ("lxcore_kernel.etl", "Microsoft.Windows.Subsystem.LxCore"),
    ):
        with Source.open(shared_dir / "traces" / "real" / name) as source:
            assert provider in {event.provider_name for event in inspect_trace(source).events}, name


@pytest.mark.parametrize("writer", TEXT_WRITERS)
def test_of_a_text_only_what_it_has_is_said(writer: str, tmp_path: Path) -> None:
    if writer == "event log":
        pytest.importorskip("evtx", exc_type=ImportError)
    path = tmp_path / "report.txt"
    path.write_bytes(TEXT_WRITERS[writer](a_trace().write(tmp_path / "written.etl")))
    size = path.stat().st_size
    (source,) = traces_in(path)
    with source:
        report = inspect_trace(source)

    lines = report.lines()
    assert f"File              report.txt, {size:,} bytes" in lines
    assert [line for line in lines if line.startswith("Form ") and writer.split()[-1] in line]
    assert [line for line in lines if line.startswith("Windows ") and line.endswith("64 bits")]
    text = "\n".join(lines)
    for invented in ("sockscope.etl", "Session ", "Recorded as", "0.0.0", "Buffers", "File mode", "By header kind", "EVENT64"):
        assert invented not in text
    found: dict[str, Any] = json.loads(json.dumps(report.as_dict()))  # Any: whatever JSON holds
    assert (found["file"]["size_bytes"], found["file"]["form"]) == (size, report.form)
    assert (found["buffers"], found["records_by_kind"]) == (None, None)
    assert not {"session_name", "file_name", "buffer_size"} & set(found["header"])
    assert {event["header_kind"] for event in found["events"]} == {None}

    stored = collected(path, tmp_path)
    assert [entry.size_bytes for entry in Catalog(stored.folder).entries()] == [size]
    assert stored.one("SELECT os_build FROM v_trace") != "0.0.0"

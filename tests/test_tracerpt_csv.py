"""CSV that tracerpt made of a recording: the same sockets, operations, aborts and overlaps, and clear words for all that it cannot give."""

import csv
import io
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import EmptyTrace, FormatError
from collector.packages import traces_in
from collector.texts import form_of
from collector.texts.cells import Cells
from tests.build import Trace, afd, heap, system
from tests.build.imported import collect
from tests.build.tracerpt_csv import HEADER, tracerpt_csv
from tests.test_invariance import rewritten, sample_session
from tests.text_answers import SAME, a_trace, answers, answers_damage, collected


def csv_of(folder: Path, trace: Trace, **how: str | bool) -> str:
    return tracerpt_csv(trace.write(folder / "written.etl"), **how)  # type: ignore[arg-type]  # names of tracerpt_csv's own


def put(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "trace.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture(scope="module")
def sample_etl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewritten(tmp_path_factory.mktemp("csv") / "sample.etl", replace(sample_session(), lost_events=3))


def test_the_story_is_the_same_from_csv(sample_etl: Path, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    whole = collect(sample_etl, tmp_path / "etl")
    found = collected(put(tmp_path, tracerpt_csv(sample_etl)), tmp_path)
    wanted, given_ = answers(whole), answers(found)
    assert [view for view in SAME if wanted[view] != given_[view]] == []
    assert len(wanted["v_operations"]) > 1000
    about = "start_utc, end_ns, pointer_size, processors, os_build, events_lost"
    assert found.rows(f"SELECT {about} FROM v_trace") == whole.rows(f"SELECT {about} FROM v_trace")
    said = found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    stacks = whole.one("SELECT sum(count) FROM v_event_counts WHERE provider LIKE 'def2fe46%'")
    assert "read from CSV of tracerpt" in said
    assert f"Events of call stacks in it are left out: {stacks:,}." in said
    assert "how many buffers were lost" in said


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("pointer_size", "mark"), [(4, ";"), (8, "\t"), (8, ",")])
def test_any_encoding_and_mark_gives_the_same(encoding: str, pointer_size: int, mark: str, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    trace = a_trace(pointer_size)
    whole = collect(trace, tmp_path / "etl")
    text = csv_of(tmp_path, trace, mark=mark, is_padded=mark != ",", has_words=mark != "\t", has_accounts=pointer_size == 8)
    assert "SOCK_STREAM" in text or mark == "\t"
    assert answers(collected(put(tmp_path, text, encoding), tmp_path)) == answers(whole)


def test_texts_may_have_marks_and_quotes_inside(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    line = r'"C:\Program Files\a.exe" --names "x", --sum =1+1'
    trace = Trace().cpu(0, system.process_start(at_us=1, image="a.exe", command_line=line), afd.opened(at_us=10))
    whole = collect(trace, tmp_path / "etl")
    found = collected(put(tmp_path, csv_of(tmp_path, trace)), tmp_path)
    # a quote before a mark ends a text, as the tool does not double the quotes inside: here two values too many
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    simple = Trace().cpu(0, system.process_start(at_us=1, image="a.exe", command_line=line.replace('"x",', "x,")), afd.opened(at_us=10))
    (tmp_path / "simple").mkdir()
    found = collected(put(tmp_path, csv_of(tmp_path, simple)), tmp_path / "simple")
    assert found.one("SELECT command_line FROM v_processes") == line.replace('"x",', "x,")
    assert whole.one("SELECT command_line FROM v_processes") == line


@pytest.mark.parametrize("has_accounts", [False, True])
def test_the_user_of_a_process_may_be_a_name_or_left_out(has_accounts: bool, tmp_path: Path) -> None:
    text = csv_of(tmp_path, Trace().cpu(0, system.process_start(at_us=1, image="a.exe"), afd.opened(at_us=10)), has_accounts=has_accounts)
    assert ("AUTHORITY" in text) == has_accounts
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT image FROM v_processes") == "a.exe"
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


def test_the_pointer_size_is_inferred_where_the_session_does_not_say_it(tmp_path: Path) -> None:
    for size in (4, 8):
        folder = tmp_path / str(size)
        folder.mkdir()
        lines = csv_of(folder, a_trace(size)).split("\r\n")
        found = collected(put(folder, "\n".join([lines[0], *lines[2:]])), folder)
        assert found.one("SELECT pointer_size FROM v_trace") == size
        assert f"pointers have {size} bytes is inferred" in found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")


def test_providers_without_an_identity_are_counted(tmp_path: Path) -> None:
    text = csv_of(tmp_path, a_trace())
    row = text.split("\r\n")[3].replace("Microsoft-Windows-Winsock-AFD", "Contoso-=cmd|'/c calc'!A1")
    found = collected(put(tmp_path, text + f"{row}\r\n" * 3), tmp_path)
    assert "left out: 3 (Contoso" in found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


def test_heap_events_by_other_names_of_their_class(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    trace = Trace().cpu(0, heap.create(at_us=5), heap.alloc(at_us=30))
    text = csv_of(tmp_path, trace)
    assert "Heap," in text
    found = collected(put(tmp_path, text.replace("Heap,", "HeapTrace,")), tmp_path)
    assert answers(found) == answers(collect(trace, tmp_path / "etl"))


@pytest.mark.parametrize("cut", [0, 1, 3, 5, 6])
def test_a_cut_text_gives_what_is_before(cut: int, tmp_path: Path) -> None:
    lines = csv_of(tmp_path, a_trace()).split("\r\n")
    text = "\r\n".join(lines[: 3 + cut]) + "\r\n" + lines[3 + cut][:60]
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.report.is_limited


def damaged(text: str, *, pid: str = "", user_data: str = "", time: str = "", cell: tuple[int, str] | None = None) -> str:
    """The last row with other cells."""
    *lines, row, _ = text.split("\r\n")
    cells = row.split(",")
    if cell is not None:
        cells[cell[0]] = cell[1]
    cells[9], cells[16] = pid or cells[9], time or cells[16]
    rest = [user_data] if user_data else cells[19:]
    return "\r\n".join([*lines, ",".join([*cells[:19], *rest]), ""])


ODD: dict[str, dict[str, Any]] = {  # arguments of damaged
    "an event id that has no room": {"cell": (2, "99999")},
    "a version that has no room": {"cell": (3, "300")},
    "a level that has no room": {"cell": (5, "256")},
    "an opcode that has no room": {"cell": (6, "-1")},
    "a keyword that has no room": {"cell": (8, "0x1FFFFFFFFFFFFFFFF")},
    "a process that has no room": {"cell": (9, "0x100000000")},
    "a thread that has no room": {"cell": (10, "-2")},
    "a processor that no system has": {"cell": (11, "70000")},
    "a huge number": {"pid": "9" * 200_000},
    "a number of 40 digits as address": {"user_data": ", ".join(["0x" + "F" * 38] * 4)},
    "a huge time": {"time": "9" * 30},
    "a time before 1980": {"time": "100"},
    "more values than the event has": {"user_data": ", ".join(["1"] * 30)},
    "more values than any event has": {"user_data": ", ".join(["1"] * 5000)},
    "fewer values": {"user_data": "0x1"},
    "no numbers": {"user_data": "=cmd|'/c calc'!A1, , , "},
    "an open quote": {"user_data": '"' * 100_000},
    "zero bytes": {"user_data": "\0" * 1000},
}


@pytest.mark.parametrize("name", ODD)
def test_a_row_that_lies_is_left_out_and_counted(name: str, tmp_path: Path) -> None:
    found = collected(put(tmp_path, damaged(csv_of(tmp_path, a_trace()), **ODD[name])), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_sockets") == 1


HOSTILE = {
    "no events": (HEADER + "\n", EmptyTrace, "no event"),
    "rows of nothing": (HEADER + "\n" + ",\n" * 5000, EmptyTrace, r"none of the 5,000 .* than the header .* \(the first in line 2\)"),
    "columns that are missing": ("Event Name, Type, TID, Clock-Time, User Data\n1,2,3,4,5\n", FormatError, "lacks columns .*opcode"),
    "user data in the middle": (HEADER.replace("User Data", "User Data, IID") + "\n", FormatError, "lacks columns"),
    "a header without end": (HEADER + ", x" * 1_000_000, FormatError, "lacks columns"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_csv_ends_in_a_message(name: str, tmp_path: Path) -> None:
    text, error, words = HOSTILE[name]
    with pytest.raises(error, match=words) as caught:
        collected(put(tmp_path, text), tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_raw_times_are_refused_with_the_option_that_made_them(tmp_path: Path) -> None:
    text = re.sub(r"\b13\d{16}\b", "123456789", csv_of(tmp_path, a_trace()))
    with pytest.raises(EmptyTrace, match=r"none of the \d+ events .* raw counts.* \(the first in line \d\)\. .*without -rts"):
        collected(put(tmp_path, text), tmp_path)


@pytest.mark.parametrize(("mark", "time"), [(",", "1.33856E+17"), (",", "1,33856E+17"), (";", "1,33856E+17"), (",", '"1,33856E+17"')])
def test_times_that_a_spreadsheet_rounded_are_said_to_be_so(mark: str, time: str, tmp_path: Path) -> None:
    text = re.sub(r"\b13\d{16}\b", time, csv_of(tmp_path, a_trace(), mark=mark))
    with pytest.raises(EmptyTrace, match=r"none of the .* as a spreadsheet saves them .* no spreadsheet"):
        collected(put(tmp_path, text), tmp_path)


@pytest.mark.parametrize("mark", [",", ";"])
def test_cells_that_another_program_put_in_quotes_are_the_same(mark: str, sample_etl: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = tracerpt_csv(sample_etl, mark=mark, is_padded=False)
    # as such programs read it: quotes around a whole cell are no part of it, but those inside are, and are doubled
    rows = [Cells(mark, 1024).split(line) for line in plain.split("\r\n") if line]
    quoted = io.StringIO()
    csv.writer(quoted, delimiter=mark, quoting=csv.QUOTE_ALL).writerows(rows)
    assert quoted.getvalue().startswith(f'"Event Name"{mark}"Type"')
    found = collected(put(tmp_path, quoted.getvalue()), tmp_path)
    assert answers(found) == answers(collected(put(tmp_path / "plain", plain), tmp_path / "plain"))
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")
    assert found.one("SELECT events_lost FROM v_trace") == 3


def test_values_in_one_quoted_cell_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = csv_of(tmp_path, a_trace(), is_padded=False)
    rows = [line.split(",", 19) for line in plain.split("\r\n") if line]
    quoted = io.StringIO()
    csv.writer(quoted, quoting=csv.QUOTE_ALL).writerows(rows)
    found = answers(collected(put(tmp_path, quoted.getvalue()), tmp_path))
    assert found == answers(collected(put(tmp_path / "plain", plain), tmp_path / "plain"))


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = put(tmp_path, csv_of(tmp_path, a_trace()))
    with path.open("ab") as file:
        for _ in range(48):
            file.write(b"x" * (1 << 20))
        file.write(b"\r\n" + path.read_bytes().split(b"\r\n")[2])
    tracemalloc.start()
    try:
        (source,) = list(traces_in(path))
        with source:
            assert any(problem.count == 1 for problem in source.problems if problem.kind.name == "damaged_text")
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_other_csv_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert form_of(b"Event Name;Place\nparty;here\n") is None
    path = put(tmp_path, "name,type\na,b\n")
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 1
    assert "this is not an ETL file" in capsys.readouterr().err


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    answers_damage(folder / "damaged.csv", csv_of(folder, a_trace()).encode(), data)

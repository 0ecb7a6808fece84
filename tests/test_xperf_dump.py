"""Text of the xperf dumper: the sockets and processes that its rows tell, and clear words for all that they do not."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import EmptyTrace, FormatError, TraceError
from collector.etlwriter import EtlWriter
from collector.events.afd import AFD
from collector.packages import traces_in
from collector.raw import HeaderKind
from collector.texts import form_of
from tests.build import Trace, afd, system
from tests.build.imported import collect
from tests.build.xperf_dump import xperf_dump
from tests.test_invariance import sample_records, sample_session
from tests.text_answers import SAME, a_trace, answers, answers_damage, collected


def text_of(folder: Path, trace: Trace) -> str:
    return xperf_dump(trace.write(folder / "written.etl"))


def put(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "dump.txt"
    path.write_bytes(text.encode(encoding))
    return path


def sockets_and_processes(folder: Path) -> Path:
    """The socket and process events of the sample, at whole microseconds, as the text has them."""
    clock, entries = sample_records()
    step = clock.ticks_per_second // 1_000_000
    path = folder / "sockets.etl"
    with path.open("w+b") as out:
        writer = EtlWriter(out, replace(sample_session(), lost_events=3, lost_buffers=2))
        for entry in entries:
            ticks = clock.start_ticks + (entry.record.ticks - clock.start_ticks) // step * step
            if entry.record.provider == AFD or (entry.record.kind is not HeaderKind.EVENT64 and entry.record.opcode in (1, 2, 3, 4)):
                writer.add(replace(entry.record, ticks=ticks), entry.cpu)
        writer.close()
    return path


def test_the_sockets_of_the_story_are_the_same_from_a_dump(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    path = sockets_and_processes(tmp_path)
    whole = collect(path, tmp_path / "etl")
    found = collected(put(tmp_path, xperf_dump(path)), tmp_path)
    wanted, given_ = answers(whole), answers(found)
    assert [view for view in SAME if wanted[view] != given_[view]] == ["v_operations"]
    # operations are the same; the rule by which a completion found its request may be another, without the keywords
    columns = SAME["v_operations"].replace("match, ", "")
    assert sorted(map(repr, found.rows(f"SELECT {columns} FROM v_operations"))) == sorted(
        map(repr, whole.rows(f"SELECT {columns} FROM v_operations"))
    )
    assert len(set(wanted["v_operations"]) - set(given_["v_operations"])) < 10
    assert len(wanted["v_operations"]) > 1000
    assert len(wanted["v_overlaps"]) > 3
    about = "start_utc, pointer_size, os_build, events_lost, buffers_lost"
    assert found.rows(f"SELECT {about} FROM v_trace") == whole.rows(f"SELECT {about} FROM v_trace")
    said = found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    for words in ("read from text of the xperf dumper", "microseconds", "does not tell keywords", "not published, are left out: 1."):
        assert words in said


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pointer_size", [4, 8])
def test_any_encoding_gives_the_same(encoding: str, pointer_size: int, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    line = r'"C:\a b.exe" --names x, y, "z"'
    trace = Trace(pointer_size=pointer_size).cpu(
        0,
        system.process_start(at_us=1, image="a b.exe", command_line=line),
        afd.opened(at_us=10),
        afd.connected(at_us=50),
        afd.sent(at_us=100, length_bytes=512, buffer=0x1000, duration_us=240),
        system.process_end(at_us=900, image="a b.exe", command_line=line),
    )
    whole = collect(trace, tmp_path / "etl")
    text = text_of(tmp_path, trace).replace("\r\n", "\n" if pointer_size == 4 else "\r\n")
    assert answers(collected(put(tmp_path, text, encoding), tmp_path)) == answers(whole)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    lines = text_of(tmp_path, a_trace()).split("\r\n")
    for n, line in enumerate(lines):
        if "/AfdSend/" in line:  # the header and the rows of these events, their last two columns first
            *cells, one, other = line.split(",")
            lines[n] = ",".join([*cells[:9], one, other, *cells[9:]])
    found = collected(put(tmp_path, "\r\n".join(lines)), tmp_path)
    assert found.rows("SELECT bytes, status FROM v_operations WHERE kind = 'send'") == [(512, "0x0")]


def rows_of(text: str) -> int:
    return text.split("\r\n").index("EndHeader") + 1


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.9])
def test_a_text_that_is_cut_at_a_line_gives_what_is_before(share: float, tmp_path: Path) -> None:
    lines = text_of(tmp_path, a_trace()).split("\r\n")
    last = int(len(lines) * share)
    path = put(tmp_path, "\r\n".join([*lines[:last], lines[last][: len(lines[last]) // 2]]))
    if share < 0.8:
        with pytest.raises(EmptyTrace, match="no event"):
            collected(path, tmp_path)
    else:
        assert collected(path, tmp_path).one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1


SEND = "Microsoft-Windows-Winsock-AFD/AfdSend/win:Info"
DAMAGED: dict[str, Callable[[list[str]], list[str]]] = {
    "a value too many": lambda cells: [*cells, "1"],
    "a value too few": lambda cells: cells[:-1],
    "thousands of values": lambda cells: [*cells, *["1"] * 5000],
    "no process": lambda cells: [*cells[:2], " nobody", *cells[3:]],
    "no time": lambda cells: [cells[0], " now", *cells[2:]],
    "a huge time": lambda cells: [cells[0], "9" * 38, *cells[2:]],
    "a huge number": lambda cells: [*cells[:-1], "9" * 39],
    "a number that has no room": lambda cells: [*cells[:-1], "0x1FFFFFFFF"],
    "a formula": lambda cells: [*cells[:-1], "=cmd|'/c calc'!A1"],
    "a processor that no system has": lambda cells: [*cells[:4], " 70000", *cells[5:]],
    "a thread that has no room": lambda cells: [*cells[:3], " 4294967296", *cells[4:]],
    "a process that has no room": lambda cells: [*cells[:2], " a.exe (9999999999)", *cells[3:]],
    "a process below none": lambda cells: [*cells[:2], " a.exe (  -2)", *cells[3:]],
    "zero bytes": lambda cells: [*cells[:-1], "\0" * 50],
    "an open quote": lambda cells: [*cells[:-1], '"' * 10_000],
    "an event that the header lacks": lambda cells: [SEND.replace("win:Info", "win:Stop"), *cells[1:]],
    "a huge name": lambda cells: ["x" * 100_000, *cells[1:]],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_row_that_lies_is_left_out_and_counted(name: str, tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace())
    row = next(line for line in text.split("\r\n")[rows_of(text) :] if line.startswith(SEND))
    found = collected(put(tmp_path, text + ",".join(DAMAGED[name](row.split(","))) + "\r\n"), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_sockets") == 1


def test_a_process_row_that_is_cut_is_counted(tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace()) + "                P-Start,          5,          a.exe (  12),        1\r\n"
    assert collected(put(tmp_path, text), tmp_path).one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1


def test_events_that_are_not_known_are_counted(tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace())
    header = "Microsoft-Windows-Winsock-AFD/AfdNew/win:Info, TimeStamp, X\r\nCSwitch, TimeStamp, Y\r\nEndHeader"
    rows = "Microsoft-Windows-Winsock-AFD/AfdNew/win:Info, 5, 1\r\n" * 2 + "CSwitch, 5, 1\r\n" * 3 + "Stack, 5, 1, 1, 0x1, x\r\n" * 4
    found = collected(put(tmp_path, text.replace("EndHeader", header) + rows), tmp_path)
    said = found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    for words in (
        "Events of call stacks in it are left out: 4.",
        "names that are not known here are left out: 2.",
        "Other events are left out: 3.",
    ):
        assert words in said
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


HOSTILE: dict[str, tuple[Callable[[], str], type[TraceError], str]] = {
    "a header alone": (lambda: "BeginHeader\n", EmptyTrace, "no event"),
    "a header without end": (lambda: "BeginHeader\n" + "x, TimeStamp\n" * 30_000, EmptyTrace, "no event"),
    "a header of too many events": (
        lambda: "BeginHeader\n" + "".join(f"x{n}, y\n" for n in range(30_000)),
        FormatError,
        "more than 20,000",
    ),
    "a header of endless columns": (
        lambda: "BeginHeader\n" + "x" + ", y" * 900_000 + "\nEndHeader\n",
        EmptyTrace,
        "more than a million characters",
    ),
    "no line of the trace": (lambda: "BeginHeader\nEndHeader\nP-Start, 1\n", FormatError, "Trace Start: …"),
    "no start": (lambda: "BeginHeader\nEndHeader\nOS Version: 10.0.19041, Trace Start: 9999999999999999999\n", EmptyTrace, "no event"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_in_a_message(name: str, tmp_path: Path) -> None:
    text, error, words = HOSTILE[name]
    with pytest.raises(error, match=words) as caught:
        collected(put(tmp_path, text()), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = put(tmp_path, text_of(tmp_path, a_trace()))
    with path.open("ab") as file:
        for _ in range(32):
            file.write(b"x" * (1 << 20))
    tracemalloc.start()
    try:
        for source in traces_in(path):
            source.close()
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_other_text_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert form_of(b"EndHeader\n") is None
    path = put(tmp_path, "Begin\n")
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 1
    assert "xperf dumper can be read" in capsys.readouterr().err


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    answers_damage(folder / "damaged.txt", text_of(folder, a_trace()).encode(), data)

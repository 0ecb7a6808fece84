"""What holds for every text form: the whole story in it, numbers of any locale, pages and arrays as of a recording, damage anywhere."""

import re
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import collector
from collector.errors import CollectCancelled, TraceError
from collector.packages import traces_in
from collector.readers import reader_for
from collector.readers.problems import DAMAGED_TEXT
from collector.texts import event_log, transcript
from collector.texts import form as text_form
from tests.build import Trace, afd
from tests.build.answers import text_of
from tests.build.event_xml import event_xml
from tests.build.imported import Imported, collect
from tests.build.netsh_text import netsh_text
from tests.build.served import served
from tests.build.text_forms import TEXT_WRITERS, long_text
from tests.build.told import NUMBERS, Number
from tests.build.tracerpt_csv import tracerpt_csv
from tests.build.xperf_dump import xperf_dump
from tests.fuzz.targets import LIBRARY
from tests.test_invariance import rewritten, sample_session
from tests.text_answers import SAME, a_trace, collected


@pytest.fixture(params=list(TEXT_WRITERS))
def form(request: pytest.FixtureRequest) -> str:
    """Each form in turn; that of event logs where its library is installed."""
    if request.param == "event log":
        pytest.importorskip("evtx", exc_type=ImportError)
    return str(request.param)


def put(folder: Path, content: bytes) -> Path:
    path = folder / "told.txt"
    path.write_bytes(content)
    return path


def limits_of(found: Imported) -> str:
    """What the trust page says of the form."""
    return str(found.one("SELECT text || ' ' || effect FROM v_problems WHERE kind IN ('text_form', 'event_log_form')"))


# ---------------------------------------------------------------------------------------------------- the story


class Apart(NamedTuple):
    """What a form cannot say of the story: by view or column, the words of the trust page that name it."""

    words: Mapping[str, str]
    resolution: str = "Times have the resolution of the text, 100 ns at best."
    step_ns: int = 100


OF_HEAPS = ("v_allocations", "v_io_findings", "allocation", "allocation_offset", "buffer_class")
OF_PROCESSES = ("v_processes", "process")
APART = {
    "XML": Apart({}),
    "CSV of tracerpt": Apart({}),
    "event log": Apart(
        dict.fromkeys(OF_PROCESSES + OF_HEAPS, "neither processors nor processes nor heaps")
        | {"certainty": "not how many events were lost"},
        "its times have microseconds",
    ),
    "text of netsh": Apart(
        dict.fromkeys(OF_PROCESSES + OF_HEAPS, "processes have no names, and there are no heaps")
        | {"match": "completions are matched without them"},
    ),
    "text of xperf": Apart(
        dict.fromkeys(OF_HEAPS, "Heap events, whose columns are not published, are left out: ")
        | {"match": "the fast path and datagram sockets are inferred"},
        "Its times have microseconds.",
        step_ns=1000,
    ),
}


@pytest.fixture(scope="module")
def sample_etl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewritten(tmp_path_factory.mktemp("story") / "sample.etl", replace(sample_session(), lost_events=3))


@pytest.fixture(scope="module")
def whole(sample_etl: Path, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return collect(sample_etl, tmp_path_factory.mktemp("whole"))


def start_of(found: Imported) -> datetime:
    return datetime.fromisoformat(found.one("SELECT start_utc FROM v_trace"))


def moved(value: Any, column: str, by_ns: int, step_ns: int) -> Any:  # Any: a cell
    """A moment, or a link with one, on the clock of a trace that begins later and counts in steps."""
    if isinstance(value, int) and column.endswith("_ns"):
        return (value - by_ns) // step_ns * step_ns
    if isinstance(value, str) and column.rpartition("_")[2] in ("socket", "process"):
        name, _, moment = value.rpartition("@")
        return f"{name}@{moved(int(moment), 'since_ns', by_ns, step_ns)}"
    return value


def rows_of(found: Imported, view: str, columns: Iterable[str], by_ns: int = 0, step_ns: int = 1) -> list[str]:
    """Some columns of a view, of a trace that is moved on the clock."""
    names = list(columns)
    rows = found.rows(f"SELECT {', '.join(names)} FROM {view}")
    return sorted(repr([moved(value, name, by_ns, step_ns) for name, value in zip(names, row, strict=True)]) for row in rows)


def test_the_whole_story_is_the_same_but_for_what_is_said(form: str, sample_etl: Path, whole: Imported, tmp_path: Path) -> None:
    found = collected(put(tmp_path, TEXT_WRITERS[form](sample_etl)), tmp_path)
    words, resolution, step_ns = APART[form]
    by_ns = round((start_of(found) - start_of(whole)).total_seconds() * 1e9)

    def is_same(view: str, columns: Iterable[str]) -> bool:
        return rows_of(found, view, columns) == rows_of(whole, view, columns, by_ns, step_ns)

    other = set()
    for view, columns in SAME.items():
        names = columns.split(", ")
        same = [name for name in names if name not in words]
        if view in words:
            other |= set() if is_same(view, names) else {view}
        else:
            assert is_same(view, same), view
            other |= {name for name in names if name in words and not is_same(view, [*same, name])}
    assert other == set(words)
    said = limits_of(found)
    for sentence in (*words.values(), resolution):
        assert sentence in said


def without_column(text: str, column: str, mark: str = ",") -> str:
    """A table without one of its columns, in its first line and in all rows."""
    lines = text.split("\r\n")
    at = [cell.strip() for cell in lines[0].split(mark)].index(column)
    return "\r\n".join(mark.join(cell for n, cell in enumerate(line.split(mark)) if n != at) if line else "" for line in lines)


@pytest.mark.parametrize("column", ["TID", "Processor Number", "Keyword", "Activity ID"])
def test_a_column_that_csv_lacks_is_named(column: str, tmp_path: Path) -> None:
    etl = a_trace().write(tmp_path / "written.etl")
    found = collected(put(tmp_path, without_column(tracerpt_csv(etl), column).encode()), tmp_path)
    assert f"Columns that it lacks, and what they tell is read as 0: {column}." in limits_of(found)
    (tmp_path / "all").mkdir()
    assert "Columns" not in limits_of(collected(put(tmp_path, tracerpt_csv(etl).encode()), tmp_path / "all"))


def test_columns_that_socket_events_of_xperf_lack_are_named(tmp_path: Path) -> None:
    text = xperf_dump(a_trace().write(tmp_path / "written.etl"))
    assert "Columns" not in limits_of(collected(put(tmp_path, text.encode()), tmp_path))
    lines = text.split("\r\n")
    for n, line in enumerate(lines):
        if line.lstrip().startswith("Microsoft-Windows-Winsock-AFD/"):
            cells = line.split(",")
            lines[n] = ",".join([*cells[:3], *cells[5:]])
    (tmp_path / "fewer").mkdir()
    found = collected(put(tmp_path, "\r\n".join(lines).encode()), tmp_path / "fewer")
    assert "Columns that socket events lack, and what they tell is read as 0: ThreadID, CPU." in limits_of(found)
    assert found.rows("SELECT kind, bytes, posted_tid FROM v_operations WHERE kind = 'send'") == [("send", 512, 0)]


def test_xml_without_processors_says_so(tmp_path: Path) -> None:
    text = event_xml(a_trace().write(tmp_path / "written.etl"))
    assert "processor" not in limits_of(collected(put(tmp_path, text.encode()), tmp_path))
    bare = re.sub(r' ProcessorID="\d+"', "", text)
    (tmp_path / "bare").mkdir()
    said = limits_of(collected(put(tmp_path, bare.encode()), tmp_path / "bare"))
    assert f"Events that do not tell their processor, which is shown as 0: {text.count('ProcessorID')}." in said


# ---------------------------------------------------------------------------------------------------- numbers

GROUPED: Mapping[str, Callable[[Path, Number], str]] = {
    "XML": lambda path, number: event_xml(path, number=number),
    "CSV with semicolons": lambda path, number: tracerpt_csv(path, mark=";", number=number),
    "CSV with tabs": lambda path, number: tracerpt_csv(path, mark="\t", is_padded=False, number=number),
    "text of netsh": lambda path, number: netsh_text(path, number=number),
    "text of xperf": lambda path, number: xperf_dump(path, number=number),
}


# Rows of xperf are split at commas.
WRITTEN = [(kind, name) for kind in GROUPED for name in NUMBERS if kind != "text of xperf" or name not in ("commas", "lakhs")]


@pytest.mark.parametrize(("kind", "name"), WRITTEN)
def test_numbers_of_any_locale_are_read(kind: str, name: str, tmp_path: Path) -> None:
    number = NUMBERS[name]
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=1_234_567), afd.received(at_us=900, length_bytes=70_000))
    text = GROUPED[kind](trace.write(tmp_path / "written.etl"), number)
    assert number(1_234_567) in text
    found = collected(put(tmp_path, text.encode()), tmp_path)
    assert found.rows("SELECT kind, bytes FROM v_operations ORDER BY posted_ns") == [("send", 1_234_567), ("recv", 70_000)]
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


def with_losses(form: str, folder: Path, text: str) -> bytes:
    """A form whose session says that this many events were lost."""
    told = TEXT_WRITERS[form](a_trace().lose_events(87_654_321).write(folder / "lost.etl")).decode()
    assert told.count("87654321") == 1
    return told.replace("87654321", text).encode()


LOSSES: Mapping[str, int | None] = {"1,234": 1234, "1\u00a0234": 1234, "many": None, "1,2345": None, "-5": None}
# Values of CSV are apart by commas.
TOLD = [
    (kind, *loss)
    for kind in TEXT_WRITERS
    for loss in LOSSES.items()
    if kind != "event log" and (kind != "CSV of tracerpt" or "," not in loss[0])
]


@pytest.mark.parametrize(("form", "text", "count"), TOLD)
def test_losses_are_read_in_any_spelling_or_said_to_be_unread(form: str, text: str, count: int | None, tmp_path: Path) -> None:
    found = collected(put(tmp_path, with_losses(form, tmp_path, text)), tmp_path)
    assert found.one("SELECT events_lost FROM v_trace") == (count or 0)
    assert ("How many events were lost cannot be read from it" in limits_of(found)) == (count is None)


# ---------------------------------------------------------------------------------------------------- pages and arrays


def test_its_pages_and_arrays_are_those_of_any_trace(form: str, tmp_path: Path) -> None:
    path = put(tmp_path, TEXT_WRITERS[form](a_trace().write(tmp_path / "written.etl")))
    found = collected(path, tmp_path)
    with served(found.folder) as client:
        for page in ("", "/sockets", "/operations", "/processes", "/heap", "/events", "/aborts"):
            assert client.get(f"/t/{found.report.key}{page}", headers={"Accept": "text/html"}).status_code == 200, page
        trust = text_of(client.get(f"/t/{found.report.key}/trust", headers={"Accept": "text/html"}).text)
    assert limits_of(found).split(". ")[0] in trust
    assert "was read from" in trust
    assert "file header" not in trust, "a text has none"
    with collector.read_trace(path) as trace:
        assert trace["operations"].count == found.one("SELECT count(*) FROM v_operations") == 2
        assert trace["operations"]["bytes"].sum() == 512
        assert {"text_form", "event_log_form"} & set(trace["problems"]["kind"])


# ---------------------------------------------------------------------------------------------------- cut and long


def records_of(path: Path) -> tuple[int, bool]:
    """How many records a file gives, and whether it is said that some are missing."""
    try:
        (source,) = list(traces_in(path))
        with source:
            is_said = any(problem.kind is DAMAGED_TEXT for problem in source.problems)
            return sum(len(raw) for raw in reader_for(source).windows()), is_said
    except TraceError:
        return 0, True


def test_a_text_that_is_cut_at_any_byte_gives_what_is_before_and_says_so(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = TEXT_WRITERS[form](Trace().cpu(0, afd.opened(at_us=10)).write(tmp_path / "written.etl")).rstrip()
    content += b"" if form in ("XML", "event log") else b"\r\n"
    if form == "event log":
        monkeypatch.setattr(event_log, "_Library", lambda name: LIBRARY)
    whole, is_said = records_of(put(tmp_path, content))
    assert whole >= 2
    assert not is_said
    before = 0
    for cut in range(1, len(content), 997 if form == "event log" else 1):
        count, is_said = records_of(put(tmp_path, content[:cut]))
        assert before <= count <= whole, cut
        assert is_said or content[:cut].endswith(b"\n"), cut
        before = count


def test_a_last_value_that_is_cut_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    """`Status 0xC0000043` without its last digits is a number, too."""
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.send(at_us=50, enter_exit=1, status=0xC0000043))
    text = netsh_text(trace.write(tmp_path / "written.etl")).rstrip()
    found = collected(put(tmp_path, text[:-2].encode()), tmp_path)
    assert found.report.is_limited
    said = found.one("SELECT text FROM v_problems WHERE kind = 'damaged_text'")
    assert said.endswith("the reason: its last line has no end, so it may be cut.")


def test_reading_can_be_cancelled(form: str, tmp_path: Path) -> None:
    path = put(tmp_path, TEXT_WRITERS[form](a_trace().write(tmp_path / "written.etl")))
    with pytest.raises(CollectCancelled):
        list(traces_in(path, should_cancel=lambda: True))


MOST_BYTES_AN_EVENT = 60
EVENTS_AT_ONCE = 4
"""Of an opened socket and one send, entry and exit of each."""


@pytest.mark.parametrize("form", [name for name in TEXT_WRITERS if name != "event log"])
def test_a_longer_text_takes_only_a_few_bytes_an_event(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read to see the size of pointers, 4 MB, is more than these texts have."""
    monkeypatch.setattr(text_form, "_SAMPLE_BYTES", 64 << 10)
    monkeypatch.setattr(text_form, "PIECE_BYTES", 16 << 10)
    monkeypatch.setattr(transcript, "_BUFFER_BYTES", 16 << 10)
    monkeypatch.setattr(transcript, "_BETWEEN_LOOKS", 256)
    etl = Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512)).write(tmp_path / "written.etl")
    peaks = []
    for times in (100, 1_000):
        path = put(tmp_path, long_text(form, etl, events=EVENTS_AT_ONCE, times=times))
        tracemalloc.start()
        try:
            (source,) = list(traces_in(path))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        with source:
            assert sum(len(raw) for raw in reader_for(source).windows()) == EVENTS_AT_ONCE * times + 1
    assert peaks[1] - peaks[0] < MOST_BYTES_AN_EVENT * EVENTS_AT_ONCE * 900

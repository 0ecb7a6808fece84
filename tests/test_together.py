"""Several files of one recording as one trace: the same in any order, and refused with the reason when they do not belong together."""

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import main
from collector.clock import ClockKind
from collector.errors import CollectCancelled, NotTogether
from collector.etlwriter import Session
from collector.packages import traces_in
from collector.pipeline import import_trace, trace_key
from collector.readers import reader_for
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.together import MOST_GAP_S, one_trace
from tests.build import Trace, afd
from tests.build.imported import Imported, collect
from tests.build.packages import gzip_of, zip_of
from tests.build.text_forms import TEXT_WRITERS
from tests.test_invariance import assert_same, rewritten, sample_records, sample_session
from tests.test_joining import three, written

SECOND = 10_000_000


def as_one(files: list[Path], folder: Path) -> Imported:
    """Run the real pipeline over several files."""
    traces = TraceFolder(folder / "database")
    sources = [Source.open(file) for file in files]
    try:
        with one_trace(sources) as source:
            report = import_trace(source, traces)
    finally:
        for opened in sources:
            opened.close()
    return Imported(traces.trace_path(report.key), traces, report)


def booted() -> Session:
    """The sample's session, with a boot that does not follow from when it began."""
    session = sample_session()
    return replace(session, boot_filetime=session.clock.start_filetime - 7_000 * SECOND)


def refusal(first: Path, second: Path) -> str:
    with Source.open(first) as one, Source.open(second) as other, pytest.raises(NotTogether) as caught:
        one_trace([one, other])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def half(path: Path, cpu: int, session: Session | None = None) -> Path:
    return written(path, session or sample_session(), lambda e: e.cpu == cpu)


def test_three_files_are_the_trace_of_one_session(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    whole = collect(rewritten(tmp_path / "one" / "whole.etl", replace(sample_session(), lost_events=5, lost_buffers=1)), tmp_path / "one")
    joined = as_one(three(tmp_path), tmp_path)
    assert_same(joined, whole)
    assert joined.report.name == "heap.etl + kernel.etl + winsock.etl"


def test_the_parts_of_a_split_recording_are_the_whole(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    session = sample_session()
    whole = collect(rewritten(tmp_path / "one" / "whole.etl", session), tmp_path / "one")

    def part(path: Path, is_in: Callable[[int], bool]) -> Path:
        return written(path, session, lambda e: is_in(e.record.ticks))

    times = sorted(entry.record.ticks for entry in sample_records()[1])
    cuts = [times[len(times) // 3], times[2 * len(times) // 3]]
    parts: list[Callable[[int], bool]] = [lambda t: t < cuts[0], lambda t: cuts[0] <= t < cuts[1], lambda t: t >= cuts[1]]
    files = [part(tmp_path / f"part{n}.etl", is_in) for n, is_in in enumerate(parts)]
    assert_same(as_one(files, tmp_path), whole)


def test_the_identity_does_not_depend_on_the_order(tmp_path: Path) -> None:
    files = three(tmp_path)
    made = set()
    for seed in range(4):
        sources = [Source.open(file) for file in random.Random(seed).sample(files, 3)]
        with one_trace(sources) as joined:
            made.add((trace_key(joined), joined.name, joined.read_at(0, joined.size)))
        for source in sources:
            source.close()
    assert len(made) == 1
    assert made.pop()[0] not in {hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in files}


def test_files_that_do_not_belong_together_are_refused_with_the_reason(tmp_path: Path) -> None:
    plain = booted()
    clock = plain.clock
    first = half(tmp_path / "a.etl", 0, plain)

    for changes, words in (
        ({"pointer_size": 4}, "different machines: pointers have "),
        ({"os_build": plain.os_build + 1}, "different machines: Windows"),
        ({"processors": plain.processors + 2}, "processors"),
        ({"clock": replace(clock, ticks_per_second=3_000_000)}, "different clocks: "),
        ({"clock": replace(clock, kind=ClockKind.SYSTEM_TIME, ticks_per_second=SECOND)}, "different clocks: "),
        ({"boot_filetime": (plain.boot_filetime or 0) + 90 * SECOND}, "not of one time: the system was started 90.0 s apart"),
        ({"clock": replace(clock, start_filetime=clock.start_filetime + SECOND)}, "disagree by "),
    ):
        second = half(tmp_path / "b.etl", 1, replace(plain, **changes))
        message = refusal(first, second)
        assert words in message
        assert "a.etl" in message
        assert "b.etl" in message


def test_dates_may_disagree_by_little(tmp_path: Path) -> None:
    plain = booted()
    first = half(tmp_path / "a.etl", 0, plain)
    for apart, is_one in ((SECOND // 20, True), (SECOND // 20 + 1, False)):
        session = replace(plain, clock=replace(plain.clock, start_filetime=plain.clock.start_filetime + apart))
        second = half(tmp_path / "b.etl", 1, session)
        if is_one:
            with Source.open(first) as one, Source.open(second) as other, one_trace([one, other]) as joined:
                assert joined.size > 0
        else:
            assert "0.050 s" in refusal(first, second)


@pytest.mark.parametrize("gap_s", [MOST_GAP_S, MOST_GAP_S + 1])
def test_a_session_that_began_long_after_the_other_is_another_recording(gap_s: float, tmp_path: Path) -> None:
    plain = booted()
    clock = plain.clock
    begin = clock.start_filetime + int(gap_s * SECOND)
    early = replace(plain, header={"end_time": clock.start_filetime})
    late = replace(plain, clock=replace(clock, start_filetime=begin, start_ticks=clock.ticks_of(int(gap_s * 1e9))))
    first, second = half(tmp_path / "a.etl", 0, early), half(tmp_path / "b.etl", 1, late)
    if gap_s > MOST_GAP_S:
        assert "b.etl begins 61 s after a.etl ended: they are two recordings" in refusal(first, second)
    else:
        with Source.open(first) as one, Source.open(second) as other, one_trace([one, other]) as joined:
            assert joined.size > 0


def test_one_file_twice_is_refused(tmp_path: Path) -> None:
    first = half(tmp_path / "a.etl", 0)
    (tmp_path / "copy.etl").write_bytes(first.read_bytes())
    assert "copy.etl and a.etl are the same file" in refusal(first, tmp_path / "copy.etl")


def test_what_limits_one_of_the_files_is_said_of_the_trace(tmp_path: Path) -> None:
    circular = half(tmp_path / "circular.etl", 0, replace(sample_session(), maximum_buffers=12))
    cut = half(tmp_path / "cut.etl", 1)
    cut.write_bytes(cut.read_bytes()[: -sample_session().buffer_size])
    with Source.open(circular) as one:
        (overwritten,) = [problem.count for problem in reader_for(one).problems if problem.kind.name == "wrapped_file"]
    found = as_one([circular, cut], tmp_path)
    said = dict(found.rows("SELECT kind, text FROM v_problems"))
    assert said["wrapped_file"] == f"The file is circular and was full: its oldest buffers, {overwritten} of them, were overwritten."
    assert said["buffers_missing"].endswith(": 1 are missing.")
    assert found.report.is_limited


@pytest.mark.parametrize("form", TEXT_WRITERS)
def test_texts_are_refused_as_what_they_are(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They would be one trace of times that nothing holds against each other, and that does not say what it was read from."""
    if form == "event log":
        pytest.importorskip("evtx", exc_type=ImportError)
    files = []
    for n in range(2):
        trace = Trace().cpu(n, afd.opened(at_us=10 + n), afd.sent(at_us=100 + n, length_bytes=512))
        files.append(tmp_path / f"{n}.txt")
        files[n].write_bytes(TEXT_WRITERS[form](trace.write(tmp_path / f"{n}.etl")))
    database = tmp_path / "db"
    assert main(["collect", "--database", str(database), *map(str, files), "--as", "one"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"0\.txt is (XML|an event log|CSV of \w+|text of [\w ]+), not a recording: .* Collect it by itself", said)
    assert Catalog(TraceFolder(database)).entries() == []
    (text,) = list(traces_in(files[0]))
    with text, Source.open(tmp_path / "1.etl") as recording, pytest.raises(NotTogether, match=r"^0\.txt is "):
        one_trace([recording, text])


def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    with Source.open(half(tmp_path / "a.etl", 0)) as one, Source.open(half(tmp_path / "b.etl", 1)) as other:
        before = sorted(tmp_path.iterdir())
        with pytest.raises(CollectCancelled):
            one_trace([one, other], place=tmp_path, should_cancel=lambda: True)
        assert sorted(tmp_path.iterdir()) == before


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, winsock, heap = three(tmp_path)
    (tmp_path / "two.zip").write_bytes(zip_of({"kernel.etl": kernel.read_bytes(), "winsock.etl.gz": gzip_of(winsock.read_bytes())}))
    database = ["--database", str(tmp_path / "db")]
    assert main(["collect", *database, str(heap), str(winsock), str(kernel), "--as", "one", "--name", "all"]) == 3
    out, err = capsys.readouterr()
    assert out.split()[1] == "all:"
    assert "Events lost by the session: 5" in err
    assert main(["collect", *database, str(tmp_path / "two.zip"), str(heap), "--as", "one"]) == 3
    assert capsys.readouterr().out.split()[0] == out.split()[0]  # the same files, however they are packed
    assert len(Catalog(TraceFolder(tmp_path / "db")).entries()) == 1
    assert main(["collect", *database, str(heap), "--as", "one"]) == 2
    assert "--as one joins two files or more" in capsys.readouterr().err
    assert main(["collect", *database, "--watch", str(tmp_path), "--as", "one"]) == 2
    assert "--as one takes files that are finished" in capsys.readouterr().err
    assert main(["collect", *database, str(heap), str(heap), "--as", "one"]) == 1
    assert "are the same file" in capsys.readouterr().err

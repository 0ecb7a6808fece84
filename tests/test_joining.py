"""Sessions for the kernel, for Winsock and for heaps make one trace of their files, the same as if one session had recorded all."""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import CollectCancelled, FormatError, SourceError
from collector.etlwriter import Compression, EtlWriter, Session
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.events.system import STACK_WALK
from collector.joining import join_traces
from collector.raw import Reader
from collector.readers import reader_for
from collector.sample.machine import Logged
from collector.source import Source
from tests.build.imported import collect
from tests.test_invariance import assert_same, rewritten, sample_records, sample_session

OF = {"winsock": {AFD}, "heap": {HEAP, STACK_WALK}}


def written(path: Path, session: Session, wanted: Callable[[Logged], bool]) -> Path:
    """Some of the sample's records in a file."""
    with path.open("w+b") as out:
        writer = EtlWriter(out, session)
        for entry in sample_records()[1]:
            if wanted(entry):
                writer.add(entry.record, entry.cpu)
        writer.close()
    return path


def records_of(file: Path) -> list[tuple[int, int, bytes]]:
    """Ticks, processor and bytes of all records but the log file header."""
    found = []
    with Source.open(file) as source:
        for window in reader_for(source).windows():
            ends = (window.payload + window.payload_size).tolist()
            for ticks, cpu, start, end in zip(window.ticks.tolist(), window.cpu.tolist(), window.offset.tolist(), ends, strict=True):
                found.append((ticks, cpu, window.data[start:end].tobytes()))
    return found[1:]


def three(folder: Path) -> list[Path]:
    """The sample as three sessions record it, begun one after the other, with buffers of their own sizes."""
    plain = sample_session()
    clock = plain.clock
    later = replace(clock, start_ticks=clock.start_ticks + 5, start_filetime=clock.start_filetime + 5)
    others = OF["winsock"] | OF["heap"]
    return [
        written(folder / "kernel.etl", replace(plain, lost_events=2), lambda e: e.record.provider not in others),
        written(folder / "winsock.etl", replace(plain, clock=later, buffer_size=64 * 1024), lambda e: e.record.provider in OF["winsock"]),
        written(
            folder / "heap.etl",
            replace(plain, compression=Compression.XPRESS, lost_buffers=1, lost_events=3),
            lambda e: e.record.provider in OF["heap"],
        ),
    ]


def test_three_files_are_one_trace(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    whole = collect(rewritten(tmp_path / "one" / "whole.etl", replace(sample_session(), lost_events=5, lost_buffers=1)), tmp_path / "one")

    joined = join_traces(three(tmp_path), tmp_path / "joined.etl")

    assert joined.records == len(sample_records()[1])
    assert_same(collect(tmp_path / "joined.etl", tmp_path), whole)
    assert not list(tmp_path.glob("*.part"))


def test_the_header_is_that_of_all(tmp_path: Path) -> None:
    files = three(tmp_path)
    join_traces(files, tmp_path / "joined.etl")
    with Source.open(tmp_path / "joined.etl") as joined, Source.open(files[0]) as first:
        found, kernel = reader_for(joined).header, reader_for(first).header
    assert (found.clock, found.processors, found.os_version, found.boot_filetime) == (
        kernel.clock,
        kernel.processors,
        kernel.os_version,
        kernel.boot_filetime,
    )
    assert (found.events_lost, found.buffers_lost, found.is_merged, found.is_closed) == (5, 1, True, True)


def test_the_bytes_of_each_record_stay(tmp_path: Path) -> None:
    files = three(tmp_path)
    join_traces(files, tmp_path / "joined.etl")

    def payloads(file: Path) -> list[bytes]:
        with Source.open(file) as source:
            return [window.payload_bytes(row) for window in reader_for(source).windows() for row in range(len(window))][1:]

    assert sorted(payloads(tmp_path / "joined.etl")) == sorted(p for file in files for p in payloads(file))


def test_one_file_can_be_joined_alone(tmp_path: Path) -> None:
    file = rewritten(tmp_path / "plain.etl", sample_session())
    assert join_traces([file], tmp_path / "joined.etl").records == len(sample_records()[1])


def is_of(chosen: set[int], entry: Logged) -> bool:
    return id(entry) in chosen


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4), st.integers(0, 2**32), st.lists(st.sampled_from([16, 64, 256]), min_size=4, max_size=4))
def test_however_records_are_parted_they_come_together(tmp_path: Path, count: int, seed: int, sizes_kb: list[int]) -> None:
    """Any number of files, buffers of any size: all records of each processor in the order of their time."""
    entries = sample_records()[1][:3000]
    chance = random.Random(seed)
    owners = [chance.randrange(count) for _ in entries]
    files = []
    for n in range(count):
        mine = {id(entry) for entry, owner in zip(entries, owners, strict=True) if owner == n}
        session = replace(sample_session(), buffer_size=sizes_kb[n] * 1024)
        files.append(written(tmp_path / f"{n}.etl", session, partial(is_of, mine)))
    assert join_traces(files, tmp_path / "joined.etl").records == len(entries)
    found = records_of(tmp_path / "joined.etl")
    assert [record[:2] for record in found] == [(entry.ticks, entry.cpu) for entry in sorted(entries, key=lambda e: (e.ticks, e.cpu))]
    assert sorted(found) == sorted(record for file in files for record in records_of(file))


def lossy(path: Path, cpu: int, at: int | None) -> Path:
    """The records of one processor; after half of them events are lost, with a sign in the file or without."""
    entries = [entry for entry in sample_records()[1] if entry.cpu == cpu]
    with path.open("w+b") as out:
        writer = EtlWriter(out, replace(sample_session(), lost_events=0 if at is not None else 4))
        for n, entry in enumerate(entries):
            if n == at:
                writer.lose_events(4, cpu=cpu)
            writer.add(entry.record, entry.cpu)
        writer.close()
    return path


def read(path: Path) -> Reader:
    """A reader whose losses and problems are complete."""
    with Source.open(path) as source:
        reader = reader_for(source)
        for _ in reader.windows():
            pass
        return reader


def test_losses_keep_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.joining._BUFFER_BYTES", 64 << 10)  # so that there are several
    files = [lossy(tmp_path / "a.etl", 0, 1000), lossy(tmp_path / "b.etl", 1, 2000)]
    join_traces(files, tmp_path / "joined.etl")
    reader = read(tmp_path / "joined.etl")
    found = reader.losses
    assert not found.is_everywhere
    for file in files:
        for first, last in read(file).losses.spans:
            assert found.between(first, last)
    clock = sample_session().clock
    assert not found.between(clock.start_ticks, clock.start_ticks + 1)
    assert sum(last - first for first, last in found.spans) < (sample_records()[1][-1].ticks - clock.start_ticks) / 2
    assert [(problem.kind.name, problem.count) for problem in reader.problems if problem.kind.name.startswith("lost")] == [
        ("lost_events", 8)
    ]


def test_losses_without_a_place_stay_without(tmp_path: Path) -> None:
    files = [lossy(tmp_path / "a.etl", 0, 1000), lossy(tmp_path / "b.etl", 1, None)]
    joined = join_traces(files, tmp_path / "joined.etl")
    assert read(tmp_path / "joined.etl").losses.is_everywhere
    assert joined.is_limited


def test_recorded_files_keep_every_byte_and_their_order(shared_dir: Path, tmp_path: Path) -> None:
    """Files of many systems and makes, each joined alone: all records but the log file header, which is the joined file's own."""
    files = sorted((shared_dir / "traces" / "real").glob("*.etl"))
    assert len(files) > 10
    for file in files:
        join_traces([file], tmp_path / "joined.etl")
        assert records_of(tmp_path / "joined.etl") == records_of(file), file.name


def test_another_clock_is_refused(tmp_path: Path) -> None:
    clock = sample_session().clock
    first = written(tmp_path / "a.etl", sample_session(), lambda e: e.cpu == 0)
    for other in (replace(clock, ticks_per_second=3_000_000), replace(clock, start_filetime=clock.start_filetime + 36_000_000_000)):
        second = written(tmp_path / "b.etl", replace(sample_session(), clock=other), lambda e: e.cpu == 1)
        with pytest.raises(FormatError, match=r"b\.etl and a\.etl were recorded with different clocks"):
            join_traces([first, second], tmp_path / "joined.etl")
    assert not (tmp_path / "joined.etl").exists()


def test_nothing_is_left_half_written(tmp_path: Path) -> None:
    files = three(tmp_path)
    with pytest.raises(CollectCancelled):
        join_traces(files, tmp_path / "joined.etl", lambda: True)
    with pytest.raises(SourceError, match="no such file"):
        join_traces([*files, tmp_path / "none.etl"], tmp_path / "joined.etl")
    with pytest.raises(SourceError, match="cannot be written"):
        join_traces(files, tmp_path / "no folder" / "joined.etl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heap.etl", "kernel.etl", "winsock.etl"]


def test_a_folder_that_nothing_can_be_removed_from_is_told_by_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    files = three(tmp_path)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(SourceError, match=r"joined\.etl: cannot be written: No such file or directory"):
        join_traces(files, tmp_path / "no folder" / "joined.etl")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(file) for file in three(tmp_path)]
    target = tmp_path / "joined.etl"
    assert main(["join", *files, "--output", str(target)]) == 3
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "kernel.etl: Events lost by the session: 2. No buffer was free when they were written.",
        "heap.etl: Events lost by the session: 3. No buffer was free when they were written.",
        "heap.etl: Whole buffers lost by the session: 1. They could not be written in time.",
    ]
    assert out == f"Wrote {target} ({target.stat().st_size:,} bytes, {len(sample_records()[1]):,} records).\n"
    assert main(["join", *files, "--output", str(target)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["join", files[0], files[0], "--output", str(tmp_path / "other.etl")]) == 2
    assert "two files or more" in capsys.readouterr().err
    (tmp_path / "text.etl").write_text("not a trace", encoding="utf-8")
    assert main(["join", files[0], str(tmp_path / "text.etl"), "--output", str(tmp_path / "other.etl")]) == 1
    assert "text.etl" in capsys.readouterr().err
    assert not (tmp_path / "other.etl").exists()

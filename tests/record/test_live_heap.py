"""Heaps and sockets read in real time, each session by itself, on a Windows that is played: one trace, and no loss that is not said."""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from app.cli import main
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.events.system import STACK_WALK
from collector.record import guardian, live, readiness
from collector.record.backlog import HEAP_SHARE, Backlog, Copied
from collector.record.constants import Code
from collector.record.lag import LATE_SECONDS, Lag
from collector.record.live_file import HELD_SECONDS, LiveFile
from collector.record.losses import LossWatch
from collector.record.plan import Kind, Plan
from collector.store.catalog import Catalog, Entry
from collector.store.engine import TraceFolder
from collector.verbs import recording_live
from tests.build import Trace, afd, heap, system
from tests.build.events import Event
from tests.build.imported import collect
from tests.record.delivered import delivered, header_of, played_form
from tests.record.played import WINDOWS_11, Played
from tests.record.test_real_time import assert_same, written
from tests.record.test_record_cli import STOPS, start, wait_for

PID = 4321
RECORDING = "Recording. Ctrl+C ends it"


def kind_of(record: Copied) -> Kind:
    """The session in which Windows would log a record."""
    provider = record[0][24:40]
    if provider == AFD.bytes_le:
        return Kind.WINSOCK
    return Kind.HEAP if provider in (HEAP.bytes_le, STACK_WALK.bytes_le) else Kind.KERNEL


def a_story(place: Path, blocks: int = 2_000) -> Path:
    """A process that allocates much and sends now and then."""
    place.mkdir(exist_ok=True)
    events: list[Event] = [system.process_start(at_us=1), *afd.opened(at_us=10), heap.create(at_us=20)]
    for n in range(blocks):
        events.append(heap.alloc(at_us=100 + 10 * n, address=0x10000 + 64 * n, size=40))
        if n % 3:
            events.append(heap.free(at_us=104 + 10 * n, address=0x10000 + 64 * n))
        if not n % 20:
            events += afd.sent(at_us=106 + 10 * n, length_bytes=100 + n, buffer=0x1000 + n, duration_us=2)
    return Trace().cpu(0, *events).write(place / "story.etl")


def plays(played: Played, story: Path, place: Path) -> dict[Kind, list[Copied]]:
    """Let three sessions deliver the records of a file, each those that are its own."""
    parts: dict[Kind, list[Copied]] = {kind: [] for kind in Kind}
    for record in delivered(story):
        parts[kind_of(record)].append(record)
    for kind, records in parts.items():
        path = place / f"{kind}.records"
        path.write_bytes(played_form(iter(records)))
        played.records(path, bytes(header_of(story)), f"-{kind}")
    played.reading_waits_for_the_end()
    played.living(PID)
    return parts


@pytest.fixture
def machine(played: Played, library: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A Windows 11 with the toolkit."""
    monkeypatch.setattr(readiness, "this_machine", lambda: WINDOWS_11)
    monkeypatch.setattr(readiness, "find_toolkit", lambda *_, **__: library)
    monkeypatch.setattr(readiness, "Windows", lambda paths: played.windows)
    monkeypatch.setattr(guardian, "Guardian", lambda *_: nullcontext())
    return played


def record(tmp_path: Path, *words: str) -> int:
    place = ["--output", str(tmp_path), "--database", str(tmp_path / "db")]
    return main(["record", "--live", "--name", "x", "--duration", "1ms", "--pid", str(PID), *place, *words])


def entry_of(tmp_path: Path) -> Entry:
    (entry,) = Catalog(TraceFolder(tmp_path / "db")).entries()
    return entry


def lost_in(tmp_path: Path) -> dict[str, int]:
    """Problems of loss that the trace's page names."""
    entry = entry_of(tmp_path)
    folder = TraceFolder(tmp_path / "db")
    with folder.trace(entry.key).connect() as db:
        return dict(map(tuple, db.exec_driver_sql("select kind, count from v_problems where severity = 'data_loss'")))


@pytest.mark.shared
@pytest.mark.parametrize("name", ["story-mixed.etl", "story-32.etl"])
def test_three_sessions_at_speed_are_the_trace_of_one_file(machine: Played, shared_dir: Path, tmp_path: Path, name: str) -> None:
    story = shared_dir / "traces" / name
    parts = plays(machine, story, tmp_path)
    assert all(parts.values())

    assert record(tmp_path) == 0

    assert machine.running == 0
    assert machine.open_handles == 0
    assert_same(tmp_path / "x.etl", story, tmp_path, is_one_session=False)
    assert len(machine.named("OpenTraceW")) == len(machine.named("CloseTrace")) == 3


def test_the_heap_session_is_asked_to_deliver(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plays(machine, a_story(tmp_path / "story"), tmp_path)
    assert record(tmp_path) == 0
    (started,) = machine.named("StartHeapTrace")
    assert started.numbers("pids") == [PID]
    assert (started.properties.LogFileMode, started.properties.LogFileNameOffset) == (0x100, 0)
    assert (started.properties.EnableFlags, started.properties.Wnode.ClientContext) == (0, 1)
    assert machine.order[:4] == [
        "StartTraceW sockscope-x-kernel", "StartTraceW sockscope-x-winsock", "EnableTraceEx2", "StartHeapTrace sockscope-x-heap",
    ]  # fmt: skip
    assert [call for call in machine.order if "stop" in call] == STOPS
    err = capfd.readouterr().err
    assert "sockscope-x-heap: 128 buffers of 1,024 KB (128 MB of memory that cannot be paged out) → read in real time" in err
    assert "Heap tracing slows the traced process" in err
    assert entry_of(tmp_path).state == "complete"


def test_what_comes_too_fast_is_counted_and_told(
    machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = plays(machine, a_story(tmp_path / "story"), tmp_path)
    room = sum(200 + len(payload) for _, payload, _ in parts[Kind.WINSOCK] + parts[Kind.KERNEL])
    monkeypatch.setattr(live, "Backlog", lambda: Backlog(4 * room))

    assert record(tmp_path) == 3

    err = capfd.readouterr().err
    assert "sockscope-x-heap: " in err
    assert "events had no room" in err
    assert "Next time: --files, which keeps all of it in files, too; or one --pid, fewer --stacks." in err
    entry = entry_of(tmp_path)
    lost = lost_in(tmp_path)
    assert entry.events_lost == lost["lost_events"] > 0
    db = TraceFolder(tmp_path / "db").trace(entry.key)
    with db.connect() as connection:
        counts = dict(map(tuple, connection.exec_driver_sql("select provider, sum(count) from v_event_counts group by 1")))
    assert counts[str(AFD)] == len(parts[Kind.WINSOCK]), "sockets have room that heaps cannot take"
    assert counts[str(HEAP)] + lost["lost_events"] == sum(record[0][24:40] == HEAP.bytes_le for record in parts[Kind.HEAP])


def test_what_windows_loses_is_in_the_trace(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plays(machine, a_story(tmp_path / "story", 50), tmp_path)
    machine.lose(events=5, real_time=2)
    assert record(tmp_path) == 3
    err = capfd.readouterr().err
    assert "sockscope-x-heap lost 5 events (5 so far): its buffers were full. Next time: --heap-buffers 256x1024, or fewer --stacks." in err
    assert "sockscope-x-heap lost 2 buffers on the way to its reader (2 so far): it makes more events than can be read in real time." in err
    assert lost_in(tmp_path) == {"lost_events": 15, "lost_buffers": 6}, "of three sessions"


# ---------------------------------------------------------------------------------------------------- with files, too


def test_files_have_what_real_time_loses(
    machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = a_story(tmp_path / "story")
    plays(machine, story, tmp_path)
    machine.answer("CreateMergedTraceFile", Code.ERROR_SUCCESS)
    machine.file("/x.etl", story)
    for kind in Kind:
        machine.file(f"-{kind}.etl", story)
    machine.lose(real_time=4)
    monkeypatch.setattr(live, "Backlog", lambda: Backlog(20_000))

    assert record(tmp_path, "--files") == 0

    out, err = capfd.readouterr()
    assert "events had no room" in err
    assert "The files have all of it: only what is shown meanwhile lacks them." in err
    for start_call in (*machine.named("StartTraceW"), *machine.named("StartHeapTrace")):
        assert start_call.properties.LogFileMode & 0x101 == 0x101, "sequential file and real time"
        assert start_call.file.startswith(str(tmp_path / "x-"))
    assert f"{tmp_path / 'x.etl'}  " in out
    assert sorted(path.name for path in tmp_path.glob("*.etl")) == ["x.etl"]
    entry = entry_of(tmp_path)
    assert (entry.name, entry.state, lost_in(tmp_path)) == ("x.etl", "complete", {})
    (tmp_path / "whole").mkdir()
    assert entry.key == collect(story, tmp_path / "whole").report.key, "it is the trace of the files"


def test_files_that_cannot_be_joined_leave_what_was_shown(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plays(machine, a_story(tmp_path / "story", 50), tmp_path)
    assert record(tmp_path, "--files") == 0  # no session has written a file
    out, err = capfd.readouterr()
    assert "No session has written a file" in err
    assert "What was read in real time stays in its place." in err
    assert f"{tmp_path / 'x-live.etl'}  " in out
    assert entry_of(tmp_path).name == "x-live.etl"


def test_reading_that_fails_does_not_end_the_files(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    story = a_story(tmp_path / "story", 50)
    plays(machine, story, tmp_path)
    machine.file("/x.etl", story)
    machine.file("-winsock.etl", story)
    machine.answer("ProcessTrace", 998)
    assert record(tmp_path, "--files", "--duration", "2s") == 0
    err = capfd.readouterr().err
    assert "ended too early" in err
    assert "Recording goes on: the files have all of it." in err
    assert entry_of(tmp_path).name == "x.etl"


def test_files_without_live_are_wrong_usage(machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--files", "--output", str(tmp_path)]) == 2
    assert "--files goes with --live" in capsys.readouterr().err
    assert machine.order == []


# ---------------------------------------------------------------------------------------------------- errors, ways out


@pytest.mark.parametrize(
    ("call", "codes", "said"),
    [
        ("StartHeapTrace", [183], "one heap session runs at a time"),
        ("StartHeapTrace", [1004], "does not accept the kernel flags"),
        ("OpenTraceW", [0xFFFFFFFF, 0xFFFFFFFF, 5], "The session sockscope-x-heap cannot be read"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--files"]])
def test_a_start_that_fails_leaves_nothing(
    machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], call: str, codes: list[int], said: str, more: list[str]
) -> None:
    plays(machine, a_story(tmp_path / "story", 50), tmp_path)
    machine.answer(call, *codes)
    assert record(tmp_path, *more) == 1
    assert said in capfd.readouterr().err
    assert (machine.running, machine.open_handles) == (0, 0)
    assert len(machine.named("CloseTrace")) == 2
    assert list(tmp_path.glob("*.etl")) == []
    assert not any(thread.name == "live-file" for thread in threading.enumerate())


def test_a_process_that_is_not_there(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine.living(PID + 1)
    assert record(tmp_path) == 1
    assert f"There is no process {PID}." in capfd.readouterr().err
    assert machine.order == []


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "--stop"])
def test_every_end_from_outside_is_in_order(library: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    story = a_story(tmp_path / "story")
    plays(Played(library, folder), story, tmp_path)
    script: dict[str, list[list[object]]] = {"living": [[PID]], "reading_waits_for_the_end": [[]]}
    script["records"] = [[str(tmp_path / f"{kind}.records"), bytes(header_of(story)).hex(), f"-{kind}"] for kind in Kind]
    place = ["--output", str(tmp_path), "--database", str(tmp_path / "db")]
    with start(library, folder, script, "record", "--live", "--name", "x", "--pid", str(PID), *place) as process:
        wait_for(process, RECORDING)
        if name == "--stop":
            with start(library, folder, {}, "record", "--list") as other:
                assert "sockscope-x-heap  read in real time" in other.communicate(timeout=60)[0]
            with start(library, folder, {}, "record", "--stop", "x") as other:
                out, err = other.communicate(timeout=60)
            assert out == "Stopped x: sockscope-x-kernel, sockscope-x-winsock, sockscope-x-heap\n", err
        else:
            process.send_signal(signal.Signals[name])
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith(f"{tmp_path / 'x.etl'}  ")
    after = Played(library, folder)
    assert after.running == 0
    assert [call for call in after.order if "stop" in call][:3] == STOPS
    assert_same(tmp_path / "x.etl", story, tmp_path, is_one_session=False)
    assert entry_of(tmp_path).state == "complete"


def test_one_that_is_killed_leaves_a_trace_of_what_there_was(library: Path, tmp_path: Path) -> None:
    """Its sessions are stopped by the second process, and what follows its file ends with it."""
    folder = tmp_path / "windows"
    folder.mkdir()
    story = a_story(tmp_path / "story")
    plays(Played(library, folder), story, tmp_path)
    script: dict[str, list[list[object]]] = {"living": [[PID]], "reading_waits_for_the_end": [[]]}
    script["records"] = [[str(tmp_path / f"{kind}.records"), bytes(header_of(story)).hex(), f"-{kind}"] for kind in Kind]
    place = ["--output", str(tmp_path), "--database", str(tmp_path / "db")]
    with start(library, folder, script, "record", "--live", "--name", "x", "--pid", str(PID), *place) as process:
        wait_for(process, "followed as live-")
        process.kill()
        process.communicate(timeout=60)  # the others hold its output: they end then
    assert Played(library, folder).running == 0
    assert (entry_of(tmp_path).name, entry_of(tmp_path).state) == ("x.etl", "interrupted")


def test_a_size_ends_it(machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_live, "_MIB", 10_000)
    plays(machine, a_story(tmp_path / "story", 50), tmp_path)
    assert record(tmp_path, "--size-limit", "1", "--duration", "60s") == 0
    assert "The file has 1 MB." in capfd.readouterr().err


def full_disk(self: LiveFile, *_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("more", [[], ["--files"]])
def test_a_disk_that_is_full(
    machine: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """What was written of a live recording alone is kept, and said to be no more; files go on, and become the only trace."""
    story = a_story(tmp_path / "story", 50)
    plays(machine, story, tmp_path)
    machine.file("/x.etl", story)
    machine.file("-winsock.etl", story)
    monkeypatch.setattr(LiveFile, "_write", full_disk)

    assert record(tmp_path, "--duration", "4s", *more) == (0 if more else 3)

    err = capfd.readouterr().err
    assert "writing failed (No space left on device)" in err
    assert ("Recording goes on: the files have all of it." if more else "the session has not ended; what it had written") in err
    assert "Traceback" not in err
    assert machine.running == 0
    assert (entry_of(tmp_path).name, entry_of(tmp_path).state) == ("x.etl", "complete" if more else "interrupted")


# ---------------------------------------------------------------------------------------------------- order, room, pace


@pytest.mark.parametrize("first", [Kind.HEAP, Kind.WINSOCK])
def test_a_session_that_hands_on_later_is_put_in_its_place(tmp_path: Path, first: Kind) -> None:
    """All of one session comes before any of the other, within the time that records are held back."""
    story = a_story(tmp_path / "story", 300)
    ours = [record for record in delivered(story) if kind_of(record) in (first, Kind.KERNEL)]
    others = [record for record in delivered(story) if kind_of(record) not in (first, Kind.KERNEL)]
    done = written(tmp_path / "live.etl", header_of(story), [ours, others, [], [], [], []], each=HELD_SECONDS - 0.1)
    assert_same(done.path, story, tmp_path)


def a_record(ticks: int) -> Copied:
    head = bytearray(84)
    head[16:24] = ticks.to_bytes(8, "little")
    return bytes(head), b"", ()


def ticks_of(records: list[Copied]) -> Iterator[tuple[int, bool]]:
    """Time stamps, and whether they are of marks of a loss."""
    for head, _, _ in records:
        yield int.from_bytes(head[16:24], "little"), bool(head[45])


def test_a_gap_lasts_until_there_is_much_room_again() -> None:
    backlog = Backlog(1_000)
    lane = backlog.lane()
    for n in range(20):
        lane.put(a_record(n), 100)
    assert list(ticks_of(backlog.take(4))) == [(n, False) for n in range(4)]
    lane.put(a_record(20), 100)  # 600 of 1,000 wait: the gap goes on
    assert lane.dropped == 11
    assert len(backlog.take(2)) == 2
    lane.put(a_record(21), 100)
    assert list(ticks_of(backlog.take())) == [
        *((n, False) for n in range(6, 10)), (10, True), (20, True), (21, False),
    ]  # fmt: skip
    assert backlog.dropped == 11
    backlog.end()
    assert backlog.take() == []


def test_a_heap_leaves_room_for_others() -> None:
    backlog = Backlog(1_000)
    heaps, sockets = backlog.lane(HEAP_SHARE), backlog.lane()
    for n in range(50):
        heaps.put(a_record(n), 40)
    before = heaps.dropped
    assert before > 0
    for n in range(5):
        sockets.put(a_record(n), 40)
    assert (sockets.dropped, heaps.dropped) == (0, before)


def test_reading_that_falls_behind_is_told_once_and_again_when_it_doubles() -> None:
    lag = Lag(10)
    told = []
    for second in range(60):
        lag.see([a_record(second * 5)], float(second))  # half as fast as time
        told.append(lag.news())
    assert [seconds for seconds in told if seconds] == [LATE_SECONDS, 2 * LATE_SECONDS, 4 * LATE_SECONDS]
    lag.see([], 61.0)
    assert (lag.seconds, lag.news()) == (0.0, 0.0)
    lag.see([a_record(0)], 62.0)
    assert lag.news() == 62.0
    words = LossWatch(Plan("x", Path(), heap=True, is_live=True)).behind(62.0)
    assert words.startswith("What is read now happened 62 s ago")


def test_a_session_with_steady_delay_is_not_late() -> None:
    lag = Lag(10)
    for second in range(60):
        lag.see([a_record(second * 10), a_record(second * 10 + 10)], second + 1.0)
        assert lag.seconds <= 1.0
        assert not lag.news()

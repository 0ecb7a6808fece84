"""A recording from start to stop: the order of calls, what is said, and that nothing is left on any way out."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from collector.errors import RecordError
from collector.record.constants import HeapEvent
from collector.record.plan import Kind, Plan
from collector.record.programs import Program, check_exists
from collector.record.recorder import Recorder
from collector.record.rights import is_elevated, missing_privileges
from tests.record.played import Played

ALL = ["sockscope-x-kernel", "sockscope-x-winsock", "sockscope-x-heap"]
STARTS = ["StartTraceW sockscope-x-kernel", "StartTraceW sockscope-x-winsock", "EnableTraceEx2", "StartHeapTrace sockscope-x-heap"]
STOPS = [f"ControlTraceW stop {name}" for name in reversed(ALL)]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan("x", tmp_path, heap=True, pids=(7,))


def start_all(recorder: Recorder, pids: Sequence[int] = (7,)) -> None:
    for kind in recorder.plan.kinds:
        recorder.start(kind, pids if kind is Kind.HEAP else ())


def start_and_watch(recorder: Recorder, ends: Callable[[], str]) -> None:
    start_all(recorder)
    recorder.watch(ends)


def test_started_in_order_and_stopped_in_the_opposite_one(played: Played, plan: Plan) -> None:
    played.living(7)
    lines: list[str] = []
    with Recorder(played.windows, plan, lines.append, interval_s=0) as recorder:
        start_all(recorder)
        assert recorder.watch(lambda: "enough") == "enough"
    assert played.order == STARTS + STOPS
    assert (played.running, played.open_handles) == (0, 0)
    clocks = {call.properties.Wnode.ClientContext for call in played.calls if "Start" in call.name}
    assert clocks == {1}  # one clock for all
    assert lines[-1].startswith("sockscope-x-heap: 128 buffers of 1,024 KB (128 MB of memory that cannot be paged out)")


def test_stacks_and_files_of_the_plan(played: Played, plan: Plan) -> None:
    played.living(7)
    with Recorder(played.windows, plan, lambda _: None) as recorder:
        start_all(recorder)
    starts = [call for call in played.calls if "Start" in call.name]
    assert [call.file for call in starts] == [str(plan.folder / f"x-{kind}.etl") for kind in ("kernel", "winsock", "heap")]
    heap = starts[-1]
    assert [heap.data("stack_ids")[at] for at in range(16, 96, 24)] == [*plan.stacks]
    assert heap.numbers("pids") == [7]


@pytest.mark.parametrize("failing", range(3), ids=["kernel", "winsock", "heap"])
def test_what_was_started_is_stopped_when_the_next_fails(played: Played, plan: Plan, failing: int) -> None:
    played.living(7)
    if failing == 2:
        played.answer("StartHeapTrace", 183)
    else:
        played.answer("StartTraceW", *[0xFFFFFFFF] * failing, 5)
    with pytest.raises(RecordError, match=ALL[failing]), Recorder(played.windows, plan, lambda _: None) as recorder:
        start_all(recorder)
    assert [call for call in played.order if "stop" in call] == STOPS[3 - failing :]
    assert played.running == 0


def test_a_session_of_the_same_name_is_left_alone(played: Played, plan: Plan) -> None:
    """It is another's: what could not be started is not stopped."""
    played.living(7)
    with Recorder(played.windows, plan, lambda _: None) as other:
        other.start(Kind.KERNEL)
        with pytest.raises(RecordError, match="of this name runs already"), Recorder(played.windows, plan, lambda _: None) as recorder:
            start_all(recorder)
        assert played.running == 1


def test_an_interrupt_while_a_session_starts_leaves_none(played: Played, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the start in Windows and our knowing of it."""
    start = played.windows.bind("StartTraceW")

    def interrupted(*arguments: object) -> int:
        start(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setitem(played.windows._bound, "StartTraceW", interrupted)
    with pytest.raises(KeyboardInterrupt), Recorder(played.windows, plan, lambda _: None) as recorder:
        recorder.start(Kind.KERNEL)
    assert played.order == [STARTS[0], STOPS[2]]
    assert played.running == 0


def test_an_interrupt_while_stopping_stops_the_rest_first(played: Played, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    played.living(7)
    control = played.windows.bind("ControlTraceW")
    interrupts = [True]

    def interrupted(*arguments: object) -> object:
        if arguments[3] == 1 and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return control(*arguments)

    recorder = Recorder(played.windows, plan, lambda _: None)
    start_all(recorder)
    monkeypatch.setitem(played.windows._bound, "ControlTraceW", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recorder.stop()
    assert [call for call in played.order if "stop" in call] == STOPS
    assert played.running == 0


def test_one_that_cannot_be_stopped_keeps_none_of_the_others(played: Played, plan: Plan) -> None:
    played.living(7)
    played.answer("Stop", 5)
    with (
        pytest.raises(RecordError, match="sockscope-x-heap could not be stopped"),
        Recorder(played.windows, plan, lambda _: None) as recorder,
    ):
        start_all(recorder)
    assert [call for call in played.order if "stop" in call] == STOPS
    assert played.running == 1


def test_an_error_inside_stops_all(played: Played, plan: Plan) -> None:
    def fail() -> str:
        assert played.running == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Recorder(played.windows, replace(plan, kernel=False, heap=False), lambda _: None) as recorder:
        start_and_watch(recorder, fail)
    assert played.running == 0


@pytest.mark.parametrize("event", [2, 5, 6], ids=["close", "logoff", "shutdown"])
def test_the_end_of_the_console_stops_all_from_its_own_thread(played: Played, plan: Plan, event: int) -> None:
    played.living(7)
    answers: list[int] = []
    with Recorder(played.windows, plan, lambda _: None, interval_s=0) as recorder:
        start_all(recorder)
        thread = threading.Thread(target=lambda: answers.append(played.console(event)))
        thread.start()
        reason = recorder.watch(lambda: None)
        thread.join()
        assert played.running == 0
    assert answers == [1]
    assert "is over" in reason
    assert played.console(event) == -1  # the handler is taken away again


def test_control_c_is_left_to_python(played: Played, plan: Plan) -> None:
    with Recorder(played.windows, plan, lambda _: None) as recorder:
        recorder.start(Kind.WINSOCK)
        assert (played.console(0), played.console(1)) == (0, 0)
        assert played.running == 1


def test_losses_are_told_when_they_happen_with_what_to_enlarge(played: Played, plan: Plan) -> None:
    played.living(7)
    lines: list[str] = []
    with Recorder(played.windows, plan, lines.append, interval_s=0) as recorder:
        recorder.start(Kind.HEAP, [7])
        del lines[:]
        played.lose()
        played.lose(events=1)  # at the first question of all, which asked for the sizes, nothing was lost
        played.lose(events=1)
        played.lose(events=1001, buffers=2)
        played.lose(events=1001, buffers=2, real_time=3)
        asked = iter([None] * 5)
        recorder.watch(lambda: next(asked, "enough"))
        assert recorder.losses.total() == 1006
    assert lines == [
        "sockscope-x-heap lost 1 event (1 so far): its buffers were full. Next time: --heap-buffers 256x1024, or fewer --stacks.",
        "sockscope-x-heap lost 1,000 events (1,001 so far): its buffers were full. Next time: --heap-buffers 256x1024, or fewer --stacks.",
        "sockscope-x-heap lost 2 buffers (2 so far): the disk was too slow, or is full. Next time: --output on a faster local disk.",
        "sockscope-x-heap lost 3 buffers on the way to its reader (3 so far): it makes more events than can be "
        "read in real time. Next time: --files, which keeps all of it in files, too; or one --pid, fewer --stacks.",
    ]


def test_losses_of_the_last_moment_are_told_at_the_stop(played: Played, plan: Plan) -> None:
    lines: list[str] = []
    played.lose()
    played.lose(events=5)
    with Recorder(played.windows, plan, lines.append) as recorder:
        recorder.start(Kind.WINSOCK)
    assert lines[-1].startswith("sockscope-x-winsock lost 5 events (5 so far)")
    assert "--winsock-buffers 128-512x1024." in lines[-1]


def test_a_session_that_is_full_or_stopped_ends_the_recording(played: Played, tmp_path: Path) -> None:
    plan = Plan("x", tmp_path, size_limit_mb=64)
    played.sessions_end_after(3)
    with Recorder(played.windows, plan, lambda _: None, interval_s=0) as recorder:
        start_all(recorder)
        reason = recorder.watch(lambda: None)
    assert reason == "The session sockscope-x-kernel is over: it was stopped from elsewhere or its file is full (limit 64 MB)."
    assert played.running == 0


def test_a_duration_ends_it(played: Played, tmp_path: Path) -> None:
    with Recorder(played.windows, Plan("x", tmp_path, duration_s=0.01), lambda _: None, interval_s=0) as recorder:
        recorder.start(Kind.WINSOCK)
        assert recorder.watch(lambda: None) == "0.01 s are over."


def test_what_windows_made_of_the_sizes_is_told(played: Played, tmp_path: Path) -> None:
    from collector.record.buffers import Buffers

    plan = Plan("x", tmp_path, buffers={Kind.WINSOCK: Buffers(64, 2, 4)})
    lines: list[str] = []
    with Recorder(played.windows, plan, lines.append) as recorder:
        recorder.start(Kind.WINSOCK)
    assert lines[-1] == "Windows made 8 buffers of 64 KB of it."


def test_a_circle_is_not_for_the_kernel(played: Played, tmp_path: Path) -> None:
    """Its records of the beginning name all processes."""
    plan = Plan("x", tmp_path, heap=True, pids=(7,), size_limit_mb=9, is_circular=True)
    played.living(7)
    with Recorder(played.windows, plan, lambda _: None) as recorder:
        start_all(recorder)
    starts = [call.properties for call in played.calls if "Start" in call.name]
    assert [(start.LogFileMode & 3, start.MaximumFileSize) for start in starts] == [(1, 0), (2, 9), (2, 9)]


def test_new_files_are_for_sockets_alone(played: Played, tmp_path: Path) -> None:
    """The documentation rules them out for the kernel, and does not say that a heap session may have them."""
    plan = Plan("x", tmp_path, heap=True, pids=(7,), rotate_mb=9)
    played.living(7)
    lines: list[str] = []
    with Recorder(played.windows, plan, lines.append) as recorder:
        start_all(recorder)
    starts = [call for call in played.calls if "Start" in call.name]
    assert [(s.properties.LogFileMode & 0xF, s.properties.MaximumFileSize) for s in starts] == [(1, 0), (8, 9), (1, 0)]
    assert [Path(start.file).name for start in starts] == ["x-kernel.etl", "x-winsock-%d.etl", "x-heap.etl"]
    assert lines[1].endswith(f"{tmp_path / 'x-winsock-1.etl'}, and a new file each 9 MB")


def test_a_process_must_exist(played: Played, plan: Plan) -> None:
    with pytest.raises(RecordError, match="There is no process 7"), Recorder(played.windows, plan, lambda _: None) as recorder:
        start_all(recorder)
    assert not played.named("StartHeapTrace")
    assert (played.running, played.open_handles) == (0, 0)
    played.answer("OpenProcess", 5)
    check_exists(played.windows, 9)  # access denied: it is there


def test_privileges_are_asked_for_and_their_lack_is_told(played: Played, plan: Plan) -> None:
    played.living(7)
    played.answer("AdjustTokenPrivileges", 1300)
    lines: list[str] = []
    with Recorder(played.windows, plan, lines.append) as recorder:
        recorder.start(Kind.HEAP, [7])
    assert lines[0].startswith("This user lacks SeSystemProfilePrivilege")
    assert [call.text("name") for call in played.named("LookupPrivilegeValueW")] == ["SeSystemProfilePrivilege", "SeDebugPrivilege"]
    (first, _) = played.named("AdjustTokenPrivileges")
    assert first.data("wanted") == bytes.fromhex("01000000 18000000 00000000 02000000")  # one, its number, enabled
    assert played.named("OpenProcessToken")[0].arguments["access"] == 0x28
    assert played.open_handles == 0


def test_without_stacks_profiling_is_not_asked_for(played: Played, tmp_path: Path) -> None:
    played.living(7)
    with Recorder(played.windows, Plan("x", tmp_path, heap=True, stacks=()), lambda _: None) as recorder:
        recorder.start(Kind.HEAP, [7])
    assert [call.text("name") for call in played.named("LookupPrivilegeValueW")] == ["SeDebugPrivilege"]


def test_elevation(played: Played) -> None:
    assert is_elevated(played.windows)
    played.elevated(False)
    assert not is_elevated(played.windows)
    played.answer("GetTokenInformation", 5)
    assert is_elevated(played.windows)  # unknown: the calls will tell
    played.answer("OpenProcessToken", 5, 5)
    assert is_elevated(played.windows)
    assert missing_privileges(played.windows, "SeDebugPrivilege") == ["SeDebugPrivilege"]
    assert played.open_handles == 0


# ---------------------------------------------------------------------------------------------------- programs


def test_a_program_is_begun_suspended_and_resumed(played: Played) -> None:
    with Program(played.windows, [r"C:\a b\app.exe", "x y", 'say "hi"', ""]) as program:
        assert (program.pid, played.suspended, program.has_ended) == (4242, 1, False)
        program.resume()
        assert played.suspended == 0
        while not program.has_ended:
            pass
        assert program.exit_code == 0
    create = played.named("CreateProcessW")[0]
    assert create.text("line") == r'"C:\a b\app.exe" "x y" "say \"hi\"" ""'
    assert (create.arguments["flags"], create.arguments["inherit"], create.text("application")) == (4, 0, None)
    assert create.data("startup") == (104).to_bytes(8, "little") + bytes(96)
    assert played.named("TerminateProcess") == []
    assert played.open_handles == 0


def test_a_program_is_never_left_suspended(played: Played) -> None:
    with pytest.raises(ZeroDivisionError), Program(played.windows, ["app.exe"]):
        raise ZeroDivisionError
    assert [call.short for call in played.calls][1:] == ["TerminateProcess", "CloseHandle", "CloseHandle"]
    assert (played.suspended, played.open_handles) == (0, 0)


def test_a_program_that_cannot_be_resumed_is_ended(played: Played) -> None:
    played.answer("ResumeThread", 5)
    with pytest.raises(RecordError, match=r"app\.exe could not be resumed"), Program(played.windows, ["app.exe"]) as program:
        program.resume()
    assert len(played.named("TerminateProcess")) == 1
    assert (played.suspended, played.open_handles) == (0, 0)


@pytest.mark.parametrize(
    ("code", "words"), [(2, "not found"), (193, "no program for this processor"), (740, "as administrator"), (5, "denied")]
)
def test_a_program_that_cannot_be_started(played: Played, code: int, words: str) -> None:
    played.answer("CreateProcessW", code)
    with pytest.raises(RecordError, match=words):
        Program(played.windows, ["app.exe"])
    assert played.open_handles == 0


def test_the_heap_session_stands_between_begin_and_resume(played: Played, tmp_path: Path) -> None:
    plan = Plan("x", tmp_path, heap=True, stacks=(HeapEvent.ALLOC,))
    with Recorder(played.windows, plan, lambda _: None) as recorder, Program(played.windows, ["app.exe"]) as program:
        recorder.start(Kind.HEAP, [program.pid])
        program.resume()
    assert played.order == ["CreateProcessW", "StartHeapTrace sockscope-x-heap", "ResumeThread", STOPS[0]]
    assert played.named("StartHeapTrace")[0].numbers("pids") == [4242]

"""`sockscope record` and `sockscope launch` as a user runs them, on a Windows that is played: files, links, exit status, every way out."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import main
from collector.record import readiness
from collector.record.readiness import Machine
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build.imported import collect
from tests.record.played import WINDOWS_11, Played
from tests.test_invariance import contents, rewritten, sample_session
from tests.test_joining import three
from tests.test_sending import TOKEN, dashboard

STOPS = [f"ControlTraceW stop sockscope-x-{kind}" for kind in ("heap", "winsock", "kernel")]
LINUX = Machine("linux", (0, 0), 8, False)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the three sessions write: the sample, in parts."""
    return three(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def recorded(machine: Played, parts: list[Path]) -> Played:
    """A machine whose sessions write the sample."""
    for part in parts:
        machine.file(f"-{part.name}", part)
    return machine


def record(tmp_path: Path, *words: str) -> int:
    return main(["record", "--name", "x", "--output", str(tmp_path), "--duration", "1ms", *words])


def test_a_recording_becomes_a_trace_with_a_link(recorded: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.living(1234)
    recorded.answer("CreateMergedTraceFile", 5)

    assert record(tmp_path, "--pid", "1234", "--collect", "--database", str(tmp_path / "db")) == 3  # the sample's parts have losses

    out, err = capsys.readouterr()
    assert f"{tmp_path / 'x.etl'}  " in out
    assert "http://127.0.0.1:8350/t/" in out
    assert "Heap tracing slows the traced process" in err
    assert "could not merge the files (ERROR_ACCESS_DENIED (5)); sockscope joins them itself" in err
    assert "sockscope record --stop x" in err
    assert sorted(path.name for path in tmp_path.glob("*.etl")) == ["x.etl"]
    (tmp_path / "whole").mkdir()
    whole = rewritten(tmp_path / "whole" / "whole.etl", replace(sample_session(), lost_events=5, lost_buffers=1))
    assert contents(collect(tmp_path / "x.etl", tmp_path)) == contents(collect(whole, tmp_path / "whole"))


def test_the_toolkit_merges_where_it_can(recorded: Played, tmp_path: Path, parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    recorded.file(f"{os.sep}x.etl", parts[0])
    assert record(tmp_path) == 0
    (merge,) = recorded.named("CreateMergedTraceFile")
    assert merge.text("merged") == str(tmp_path / "x.etl")
    assert [merge.text("file0"), merge.text("file1")] == [str(tmp_path / "x-kernel.etl"), str(tmp_path / "x-winsock.etl")]
    assert (merge.arguments["count"], merge.arguments["flags"]) == (2, 7)
    assert (tmp_path / "x.etl").read_bytes() == parts[0].read_bytes()
    assert "sockscope collect" in capsys.readouterr().err


def test_losses_while_recording_make_it_3(recorded: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.lose(events=7)
    assert record(tmp_path, "--no-kernel") == 3
    assert "sockscope-x-winsock lost 7 events" in capsys.readouterr().err


def test_options_reach_windows(recorded: Played, tmp_path: Path) -> None:
    words = [
        "--level",
        "4",
        "--keywords",
        "winsock,transport",
        "--winsock-buffers",
        "8-16x64",
        "--size-limit",
        "100",
        "--circular",
        "--flush",
        "2",
    ]
    assert record(tmp_path, "--no-kernel", *words) == 0
    start, enable = recorded.named("StartTraceW")[0].properties, recorded.named("EnableTraceEx2")[0]
    assert (start.BufferSize, start.MinimumBuffers, start.MaximumBuffers, start.MaximumFileSize, start.LogFileMode) == (64, 8, 16, 100, 2)
    assert start.FlushTimer == 2
    assert (enable.arguments["level"], enable.arguments["any"]) == (4, 12)


def test_options_of_a_heap_reach_windows(recorded: Played, tmp_path: Path) -> None:
    recorded.living(7)
    words = ["--pid", "7", "--stacks", "alloc,free", "--heap-buffers", "100-200x512", "--size-limit", "100", "--circular", "--flush", "2"]
    assert record(tmp_path, "--no-kernel", "--no-winsock", *words) == 0
    (start,) = recorded.named("StartHeapTrace")
    assert start.numbers("pids") == [7]
    assert [start.data("stack_ids")[at] for at in range(16, 48, 24)] == [0x21, 0x24]
    assert start.arguments["stack_id_count"] == 2
    sizes = start.properties
    assert (sizes.BufferSize, sizes.MinimumBuffers, sizes.MaximumBuffers, sizes.FlushTimer) == (512, 100, 200, 2)
    assert (sizes.MaximumFileSize, sizes.LogFileMode) == (100, 2)


def test_a_process_that_is_not_there_is_told_before_anything_starts(
    machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.living(1)
    assert record(tmp_path, "--pid", "1", "--pid", "2") == 1
    assert "There is no process 2." in capsys.readouterr().err
    assert (machine.order, machine.open_handles) == ([], 0)


def test_nothing_written_is_nothing_recorded(machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path) == 1
    assert "No session has written a file" in capsys.readouterr().err
    assert machine.running == 0


def test_parts_that_cannot_be_joined_are_kept(machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"no trace" * 100)
    machine.file("-kernel.etl", broken)
    machine.file("-winsock.etl", broken)
    assert record(tmp_path) == 1
    err = capsys.readouterr().err
    assert "What was recorded is still in" in err
    assert "not an ETL file" in err
    assert (tmp_path / "x-kernel.etl").exists()
    assert not (tmp_path / "x.etl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--no-winsock", "--no-kernel"], "Nothing is to be recorded"),
        (["--output", "/nowhere"], "is no folder"),
        (["--circular"], "--circular needs a --size-limit"),
        (["--rotate", "0"], "is no size in MB"),
        (["--rotate", "5", "--size-limit", "9"], "choose one"),
        ([f"--pid={pid}" for pid in range(1, 7)], "6 processes are too many"),
        (["--pid", "0"], "is no process id"),
        (["--pid", "x"], "is no process id"),
        (["--duration=-1s"], "is no duration"),
        (["--duration", "soon"], "is no duration"),
        (["--size-limit", "0"], "is no size in MB"),
        (["--flush", "0"], "is no time in seconds"),
        (["--winsock-buffers", "lots"], "are no buffers"),
        (["--heap-buffers", "1x1024"], "not possible"),
        (["--stacks", "all"], "cannot have stacks"),
        (["--keywords", "x"], "are no keywords"),
        (["--name", "../x"], "is no name"),
        (["--change", "x"], "--change needs --pid"),
        (["--change", "", "--pid", "1"], "--change: '' is no name of a recording"),
        (["--stop", " "], "--stop: ' ' is no name of a recording"),
        (["--to", ""], "'' is no address of a dashboard"),
    ],
)
def test_wrong_usage(machine: Played, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path, *words) == 2
    assert said in capsys.readouterr().err
    assert machine.order == []


# ---------------------------------------------------------------------------------------------------- reasons why not


def reasons(played: Played, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """Make the machine one that cannot record."""
    match reason:
        case "system":
            monkeypatch.setattr(readiness, "this_machine", lambda: LINUX)
        case "age":
            monkeypatch.setattr(readiness, "this_machine", lambda: replace(WINDOWS_11, version=(6, 1)))
        case "python":
            monkeypatch.setattr(readiness, "this_machine", lambda: replace(WINDOWS_11, pointer_size=4))
        case "toolkit":
            monkeypatch.undo()
            monkeypatch.setattr(readiness, "this_machine", lambda: WINDOWS_11)
        case "rights":
            played.elevated(False)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("system", "on Windows only"),
        ("age", "too old"),
        ("python", "32-bit Python"),
        ("toolkit", "was not found"),
        ("rights", "needs an administrator"),
    ],
)
@pytest.mark.parametrize("verb", ["record", "launch"])
def test_a_machine_that_cannot_says_why_and_what_else_does(
    machine: Played,
    tmp_path: Path,
    verb: str,
    reason: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reasons(machine, monkeypatch, reason)
    words = ["--pid", "1234"] if verb == "record" else ["--heap", "--winsock", "app.exe", "--port", "1"]
    assert main([verb, "--name", "x", "--output", str(tmp_path), *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    for tool in ("logman start sockets", "xperf -start HeapSession -heap", "netsh trace start", "wpr -HeapTracingConfig"):
        assert tool in err
    assert ("-Pids 1234 " if verb == "record" else '-PidNewProcess "app.exe --port 1" ') in err
    assert machine.order == []


# ---------------------------------------------------------------------------------------------------- commands on every system


def test_commands_are_printed_on_every_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--pid", "12", "--pid", "13", "--stacks", "alloc", "--heap-buffers", "200x512", "--size-limit", "500", "--circular"]
    assert main(["record", "--name", "x", "--print-commands", "--duration", "30s", "--level", "4", "--keywords", "0xc", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.strip() for line in out.splitlines()]
    assert [line for line in lines if line.startswith(("logman", "xperf", "timeout"))][:9] == [
        r"xperf -on PROC_THREAD+LOADER -f C:\traces\x-kernel.etl",
        r"logman start sockets -ets -p Microsoft-Windows-Winsock-AFD 0xc 4 -o C:\traces\x-winsock.etl "
        r"-bs 1024 -nb 64 256 -f bincirc -max 500",
        r"xperf -start HeapSession -heap -Pids 12 13 -stackwalk HeapAlloc -BufferSize 512 -MinBuffers 200 -MaxBuffers 200 "
        r"-MaxFile 500 -FileMode Circular -f C:\traces\x-heap.etl",
        "timeout /t 30",
        "xperf -stop HeapSession",
        "logman stop sockets -ets",
        "xperf -stop",
        r"xperf -merge C:\traces\x-kernel.etl C:\traces\x-winsock.etl C:\traces\x-heap.etl C:\traces\x.etl",
        "timeout /t 30",
    ]
    assert (
        r"netsh trace start provider=Microsoft-Windows-Winsock-AFD keywords=0xc level=4 capture=no report=disabled "
        r"tracefile=C:\traces\x-winsock.etl maxsize=500 filemode=circular"
    ) in lines


@pytest.mark.skipif(sys.platform == "win32", reason="there the folder is made absolute")
@pytest.mark.parametrize("words", [["record", "--pid", "12"], ["launch", "--heap"]], ids=["record", "launch"])
def test_commands_name_the_folder_that_was_given(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program = ["a.exe"] if words[0] == "launch" else []
    assert main([*words, "--name", "x", "--print-commands", "--output", r"D:\t", *program]) == 0
    out = capsys.readouterr().out
    assert r" -f D:\t\x-kernel.etl" in out
    assert r" D:\t\x.etl" in out
    assert r"C:\traces" not in out


@pytest.mark.parametrize("words", [["--live"], ["--live", "--files"], []])
def test_commands_say_that_they_show_nothing_live(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--name", "x", "--print-commands", *words]) == 0
    assert ("--live has no equivalent" in capsys.readouterr().out) == bool(words)


def test_commands_for_a_program_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "--print-commands", "--name", "x", r"C:\my app\a.exe", "-v"]) == 0
    out = capsys.readouterr().out
    assert r'-PidNewProcess "\"C:\my app\a.exe\" -v"' in out
    assert "wpr -HeapTracingConfig a.exe enable" in out


def test_commands_for_new_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--name", "x", "--print-commands", "--rotate", "500"]) == 0
    out = capsys.readouterr().out
    assert r' -o "C:\traces\x-winsock-%d.etl" -bs 1024 -nb 64 256 -mode newfile -max 500' in out
    assert r"xperf -merge C:\traces\x-kernel.etl C:\traces\x-winsock-1.etl C:\traces\x.etl" in out
    assert "%d becomes 1, 2, 3, …" in out
    assert "netsh" not in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--no-winsock", "--no-kernel"], "Nothing is to be recorded"),
        (["--no-winsock", "--rotate", "500", "--pid", "5"], "--rotate is for the file of sockets"),
        (["--rotate", "5", "--circular"], "--circular needs a --size-limit"),
        (["--rotate", "5", "--size-limit", "9"], "--rotate begins a new file at its size"),
        (["--rotate", "5", "--live"], "--live writes one file"),
        (["--files"], "--files goes with --live"),
        (["--to", "ftp://x"], "ftp://x"),
        ([word for pid in "12345" for word in ("--pid", pid)], "5 processes are too many"),
    ],
)
def test_commands_are_printed_for_what_can_be_recorded_alone(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for more in ([], ["--print-commands"]):
        assert main(["record", "--name", "x", *words, *more]) == 2
        said.append(capsys.readouterr())
    assert said[0] == said[1]
    assert said[1].out == ""
    assert says in said[1].err


@pytest.mark.parametrize("words", [["--stop", "x"], ["--list"], ["--change", "x", "--pid", "1"]])
def test_commands_are_for_a_new_recording(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--print-commands", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "sockscope record: --print-commands is for a new recording: leave --list, --stop and --change out.\n")


def test_commands_for_a_program_are_checked_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "--print-commands", "--circular", "a.exe"]) == 2
    assert "--circular needs a --size-limit" in capsys.readouterr().err


def test_a_flush_is_for_logman_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--print-commands", "--flush", "3"]) == 0
    assert " -bs 1024 -nb 64 256 -ft 3\n" in capsys.readouterr().out


def test_only_full_buffers_are_written_unless_asked_for(recorded: Played, tmp_path: Path) -> None:
    """A buffer takes its whole size in the file: flushing a quiet session each second would fill the disk."""
    assert record(tmp_path) == 0
    assert {call.properties.FlushTimer for call in recorded.named("StartTraceW")} == {0}


@pytest.mark.parametrize("words", [[], ["--"]])
@pytest.mark.parametrize("arguments", [["--name", "y", "--help"], ["--", "-x"], ["x", "--", "y"], []])
def test_what_follows_the_program_is_the_programs(capsys: pytest.CaptureFixture[str], words: list[str], arguments: list[str]) -> None:
    assert main(["launch", "--print-commands", "--heap", *words, "app.exe", *arguments]) == 0
    assert f'-PidNewProcess "{" ".join(["app.exe", *arguments])}"' in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--heap"], ["--"]])
def test_a_launch_of_nothing(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["launch", *words]) == 2
    assert "name a program" in capsys.readouterr().err


def test_stacks_none_asks_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--print-commands", "--pid", "1", "--stacks", "none", "--no-winsock", "--no-kernel"]) == 0
    out = capsys.readouterr().out
    assert "-stackwalk" not in out
    assert "logman" not in out
    assert "PROC_THREAD" not in out
    assert "-merge" not in out


# ---------------------------------------------------------------------------------------------------- list, stop, change, left-overs


@pytest.fixture
def left_over(machine: Played, library: Path, tmp_path: Path) -> Played:
    """Two recordings of which nobody knows any more."""
    from collector.record.plan import Kind, Plan
    from collector.record.sessions import start_heap, start_kernel, start_winsock

    old, older = Plan("old", tmp_path), Plan("older", tmp_path)
    start_kernel(machine.windows, old.session(Kind.KERNEL))
    start_winsock(machine.windows, old.session(Kind.WINSOCK), level=5, keywords=0)
    start_heap(machine.windows, older.session(Kind.HEAP), [5], [])
    return machine


def test_what_runs_is_listed(left_over: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_over.lose(events=1234, buffers=5)
    assert main(["record", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["old", "sockscope-old-kernel"],
        ["old", "sockscope-old-winsock"],
        ["older", "sockscope-older-heap"],
    ]
    assert lines[0].endswith("buffers written, 1,234 events and 5 buffers lost")
    assert main(["record", "--stop", "all"]) == 0
    capsys.readouterr()
    assert main(["record", "--list"]) == 0
    assert capsys.readouterr() == ("", "No recording runs.\n")


def test_a_named_stop_stops_that_one_in_order(left_over: Played, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--stop", "old"]) == 0
    assert [call for call in left_over.order if "stop" in call] == [
        "ControlTraceW stop sockscope-old-winsock",
        "ControlTraceW stop sockscope-old-kernel",
    ]
    assert left_over.running == 1
    assert capsys.readouterr().out.startswith("Stopped old: ")
    assert main(["record", "--stop", "old"]) == 1
    assert "There is no recording named old. Those that run: older." in capsys.readouterr().err


def test_a_change_takes_the_place_of_what_was(left_over: Played, capsys: pytest.CaptureFixture[str]) -> None:
    left_over.living(5, 6)
    assert main(["record", "--change", "older", "--pid", "5", "--pid", "6", "--stacks", "free"]) == 0
    (update,) = left_over.named("UpdateHeapTrace")
    assert (update.numbers("pids"), update.data("stack_ids")[16]) == ([5, 6], 0x24)
    said = capsys.readouterr()
    assert "older now records the heap of 5, 6." in said.out
    assert "Heap tracing slows the traced process" in said.err
    assert main(["record", "--change", "old", "--pid", "5"]) == 1
    assert "No session sockscope-old-heap runs" in capsys.readouterr().err
    assert main(["record", "--change", "older", "--pid", "7"]) == 1
    assert "There is no process 7" in capsys.readouterr().err


def test_a_change_to_many_processes_has_to_be_forced(left_over: Played, capsys: pytest.CaptureFixture[str]) -> None:
    pids = [5, 6, 7, 8, 9]
    left_over.living(*pids)
    words = ["record", "--change", "older", *(f"--pid={pid}" for pid in pids)]
    assert main(words) == 2
    assert "5 processes are too many" in capsys.readouterr().err
    assert left_over.named("UpdateHeapTrace") == []
    assert main([*words, "--force"]) == 0
    assert main(words[:-1]) == 0
    assert [update.numbers("pids") for update in left_over.named("UpdateHeapTrace")] == [pids, pids[:-1]]


def test_leftovers_are_told_and_go_on(left_over: Played, tmp_path: Path, parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    left_over.file("-winsock.etl", parts[1])
    assert record(tmp_path, "--no-kernel") == 0
    err = capsys.readouterr().err
    assert "Sessions of a recording named old run: sockscope-old-kernel, sockscope-old-winsock." in err
    assert "sockscope record --stop old; sockscope record --stop older" in err
    assert left_over.running == 3


def test_leftovers_are_stopped_when_asked_for(left_over: Played, tmp_path: Path, parts: list[Path]) -> None:
    left_over.file("-winsock.etl", parts[1])
    assert record(tmp_path, "--no-kernel", "--stop-leftovers") == 0
    assert left_over.running == 0


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("\n", 3), ("", 3)])
def test_somebody_at_a_terminal_is_asked(
    left_over: Played, tmp_path: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    left_over.file("-winsock.etl", parts[1])
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert record(tmp_path, "--no-kernel") == 0
    assert left_over.running == left


def test_who_may_not_list_sessions_may_still_record(
    left_over: Played, tmp_path: Path, parts: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    left_over.answer("QueryAllTracesW", 5)
    left_over.file("-winsock.etl", parts[1])
    assert record(tmp_path, "--no-kernel") == 0
    assert "cannot be listed" in capsys.readouterr().err


def test_a_recording_of_the_same_name_is_not_disturbed(left_over: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--name", "old", "--output", str(tmp_path)]) == 1
    assert "sockscope record --stop old" in capsys.readouterr().err
    assert left_over.running == 3


# ---------------------------------------------------------------------------------------------------- launch


def test_a_program_is_launched_recorded_and_collected(recorded: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.process(pid=4711, waits=2, exit_code=5)
    words = ["--name", "x", "--output", str(tmp_path), "--database", str(tmp_path / "db"), "--heap", "--winsock"]
    assert main(["launch", *words, "app.exe", "--port", "80"]) == 3  # the sample's parts have losses
    assert recorded.order == [
        "StartTraceW sockscope-x-kernel",
        "StartTraceW sockscope-x-winsock",
        "EnableTraceEx2",
        "CreateProcessW",
        "StartHeapTrace sockscope-x-heap",
        "ResumeThread",
        "ControlTraceW stop sockscope-x-heap",
        "ControlTraceW stop sockscope-x-winsock",
        "ControlTraceW stop sockscope-x-kernel",
    ]
    out, err = capsys.readouterr()
    assert recorded.named("StartHeapTrace")[0].numbers("pids") == [4711]
    assert "app.exe runs as process 4711, with the rights of this prompt" in err
    assert "Heap tracing slows the program and writes much." in err
    assert "app.exe ended with exit code 5." in err
    assert "http://127.0.0.1:8350/t/" in out
    assert (recorded.running, recorded.open_handles, recorded.suspended) == (0, 0, 0)


def test_a_launch_of_sockets_alone_has_no_heap_session(recorded: Played, tmp_path: Path) -> None:
    assert main(["launch", "--name", "x", "--output", str(tmp_path), "--winsock", "--no-collect", "app.exe"]) == 0
    assert recorded.named("StartHeapTrace") == []
    assert (tmp_path / "x.etl").exists()


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("StartTraceW", 5, "could not be started"),
        ("CreateProcessW", 2, "app.exe could not be started"),
        ("StartHeapTrace", 183, "one heap session runs at a time"),
        ("ResumeThread", 5, "could not be resumed"),
    ],
)
def test_a_launch_that_fails_leaves_nothing(
    machine: Played, tmp_path: Path, call: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.answer(call, code)
    assert main(["launch", "--name", "x", "--output", str(tmp_path), "app.exe"]) == 1
    assert said in capsys.readouterr().err
    assert (machine.running, machine.open_handles, machine.suspended) == (0, 0, 0)
    begun = machine.named("CreateProcessW")
    was_begun = bool(begun) and begun[0].returned == 0
    assert len(machine.named("TerminateProcess")) == int(was_begun)


# ---------------------------------------------------------------------------------------------------- ways out of a process


@contextmanager
def start(
    library: Path, folder: Path, script: dict[str, list[list[object]]], *words: str, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A command line in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "tests.record.driver", str(library), str(folder), json.dumps(script), *words]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PLAYED_FOLDER": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()  # nothing where it has ended


def wait_for(process: subprocess.Popen[str], words: str) -> str:
    """Read its progress up to a line."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"{words!r} was not said: {''.join(lines)}")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_recording_in_order(library: Path, tmp_path: Path, parts: list[Path], name: str) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    script: dict[str, list[list[object]]] = {"living": [[7]], "answer": [["CreateMergedTraceFile", 5]]}
    script["file"] = [[f"-{part.name}", str(part)] for part in parts]
    with start(library, folder, script, "record", "--name", "x", "--output", str(tmp_path), "--pid", "7") as process:
        wait_for(process, "Recording. Ctrl+C ends it")
        process.send_signal(signal.Signals[name])
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.startswith(f"{tmp_path / 'x.etl'}  ")
    after = Played(library, folder)
    assert after.running == 0
    assert [call for call in after.order if "stop" in call] == STOPS


def test_the_sessions_of_a_recording_that_is_killed_are_stopped(library: Path, tmp_path: Path) -> None:
    """By a second process that waits for that."""
    folder = tmp_path / "windows"
    folder.mkdir()
    with start(library, folder, {"living": [[7]]}, "record", "--name", "x", "--output", str(tmp_path), "--pid", "7") as process:
        wait_for(process, "Recording. Ctrl+C ends it")
        process.kill()
        process.communicate(timeout=60)  # the other process holds its output: it ends then
    after = Played(library, folder)
    assert after.running == 0
    assert [call for call in after.order if "stop" in call] == STOPS


LAUNCH = ("launch", "--name", "x", "--heap", "--winsock")


@pytest.mark.parametrize("call", ["StartHeapTrace", "ResumeThread"])
def test_a_launch_that_is_killed_leaves_no_suspended_program(library: Path, tmp_path: Path, call: str) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    with start(library, folder, {}, *LAUNCH, "--output", str(tmp_path), "app.exe", PLAYED_KILLED_IN=call) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    after = Played(library, folder)
    assert (after.running, after.suspended) == (0, 0)
    assert len(after.named("TerminateProcess")) == 1
    assert [call for call in after.order if "stop" in call] == STOPS


def test_ctrl_c_ends_the_recording_of_a_launched_program_and_not_the_program(library: Path, tmp_path: Path, parts: list[Path]) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    script: dict[str, list[list[object]]] = {"endless": [[]], "answer": [["CreateMergedTraceFile", 5]]}
    script["file"] = [[f"-{part.name}", str(part)] for part in parts]
    words = [*LAUNCH, "--output", str(tmp_path), "--database", str(tmp_path / "db"), "app.exe"]
    with start(library, folder, script, *words) as process:
        wait_for(process, "app.exe runs as process 4242")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err  # the sample's parts have losses
    assert "Ending; the program may go on." in err
    assert "http://127.0.0.1:8350/t/" in out
    assert [entry.name for entry in Catalog(TraceFolder(tmp_path / "db")).entries()] == ["x.etl"]
    after = Played(library, folder)
    assert (after.running, after.suspended) == (0, 0)
    assert [call for call in after.order if "stop" in call] == STOPS
    assert after.named("TerminateProcess") == []


def test_what_is_left_when_both_are_killed_is_found_by_the_next(library: Path, tmp_path: Path, parts: list[Path]) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    words = ("record", "--output", str(tmp_path), "--duration", "1ms", "--no-kernel")
    with start(library, folder, {}, *words, "--name", "killed", PLAYED_CRASH="1") as process:
        process.communicate(timeout=60)
    assert process.returncode == 9
    assert Played(library, folder).running == 1
    script: dict[str, list[list[object]]] = {"file": [["-winsock.etl", str(parts[1])]]}
    with start(library, folder, script, *words, "--name", "next", "--stop-leftovers") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Sessions of a recording named killed run: sockscope-killed-winsock." in err
    assert "Stopped killed." in err
    assert Played(library, folder).running == 0


def test_a_stop_from_another_prompt_ends_the_recording(library: Path, tmp_path: Path, parts: list[Path]) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    script: dict[str, list[list[object]]] = {"file": [["-winsock.etl", str(parts[1])]]}
    with start(library, folder, script, "record", "--name", "x", "--output", str(tmp_path), "--no-kernel") as process:
        wait_for(process, "Recording. Ctrl+C ends it")
        with start(library, folder, {}, "record", "--stop", "x") as other:
            out, err = other.communicate(timeout=60)
        assert out.startswith("Stopped x: "), err
        said, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "The session sockscope-x-winsock is over: it was stopped from elsewhere." in err
    assert said.startswith(f"{tmp_path / 'x.etl'}  ")


def test_a_recording_is_sent_to_a_dashboard_elsewhere(recorded: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dashboard(tmp_path / "elsewhere") as base:
        assert record(tmp_path, "--to", base, "--token", TOKEN) in (0, 3)
        out = capsys.readouterr().out.splitlines()
        assert len(out) == 2
        key = out[1][:12]
        assert out[1].endswith(f"{base}/t/{key}")
    assert [entry.key for entry in Catalog(TraceFolder(tmp_path / "elsewhere")).entries()] == [key]

    with dashboard(tmp_path / "elsewhere") as base:
        assert record(tmp_path, "--to", base, "--token", "w" * 20, "--name", "y") == 1
    said = capsys.readouterr()
    assert "none of this server's tokens" in said.err
    assert "It stays here. To send it later: sockscope send" in said.err


def test_an_odd_address_is_refused_before_anything_is_recorded(machine: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path, "--to", "nowhere") == 2
    assert "is no address of a dashboard" in capsys.readouterr().err
    assert list(tmp_path.glob("*.etl")) == []

"""sockscope record: sockets and heaps of running programs, on Windows, until Ctrl+C, a time, a size, or a stop from elsewhere."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import list2cmdline
from typing import TYPE_CHECKING

from collector.errors import RecordError
from collector.limits import parse_moment
from collector.plain import say
from collector.verbs.arguments import Verbs, checked, new_verb
from collector.verbs.recording_arguments import (
    add_recording,
    collect_and_link,
    exit_status,
    guarded,
    megabytes,
    plan_of,
    print_commands,
    ready,
    tell,
)
from collector.verbs.recording_live import record_live, wrong_with_live
from collector.verbs.recording_pieces import PieceSender
from collector.verbs.send import add_target, send_files, target_of

if TYPE_CHECKING:
    from collector.dashboard import Target
    from collector.record.calls import Windows
    from collector.record.plan import Plan

__all__ = ["add", "run"]

_MOST_PID = 0xFFFF_FFFF
_SLOWS = "Heap tracing slows the traced process and writes much. Blocks that were allocated before are unknown."

EXAMPLE = r"""example:
  sockscope record --name hang --duration 60s --collect
      records the sockets of all programs for a minute, into hang.etl, and collects it
  sockscope record --name leak --pid 1234 --output D:\traces
      records sockets, and the heap of process 1234 with call stacks, until Ctrl+C or, from another prompt, sockscope record --stop leak
  sockscope record --live --duration 10min
      shows the sockets while they are recorded
  sockscope record --live --files --pid 1234
      shows sockets and a heap while they are recorded; files have what comes too fast to be shown at once
  sockscope record --name hang --duration 60s --to https://traces.example:8350/ --token SECRET
      sends the trace to a dashboard elsewhere afterwards
  sockscope record --name week --rotate 500 --to https://traces.example:8350/ --token SECRET
      begins a new file of sockets each 500 MB, and sends those that are finished while it records
  sockscope record --pid 1234 --print-commands
      prints the commands of Windows's own tools for that; works on every system

Needs an administrator, and for heaps the Windows Performance Toolkit. Sessions are stopped however this ends, also when it is killed.

exit status: 0 complete; 3 recorded, but events were lost; 1 nothing recorded; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "record", "record sockets and heaps of running programs (Windows)", EXAMPLE)
    what = parser.add_argument_group("what is recorded")
    what.add_argument(
        "--pid", action="append", default=[], type=checked(_pid), help="record the heap of this process, too; may be repeated"
    )
    what.add_argument("--no-winsock", action="store_true", help="no socket events")
    what.add_argument("--no-kernel", action="store_true", help="no processes, threads and modules: what is recorded stays without names")
    what.add_argument("--duration", type=checked(_seconds), metavar="TIME", help="end after this time, such as 90s or 5min")
    what.add_argument(
        "--rotate",
        type=checked(megabytes),
        default=0,
        metavar="MB",
        help="begin a new file of sockets whenever one has this size; with --to, finished ones are sent at once",
    )
    what.add_argument("--force", action="store_true", help="record the heaps of many processes at once")
    what.add_argument("--live", action="store_true", help="read in real time, and show the trace while it is recorded")
    what.add_argument(
        "--files",
        action="store_true",
        help="with --live: write files of the sessions, too, which become the trace: heaps make more than can be read live",
    )
    what.add_argument("--collect", action="store_true", help="collect the trace into the database afterwards, and print its address")
    instead = parser.add_argument_group("in place of recording").add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="show the sessions of recordings that run, and what they have lost")
    instead.add_argument("--stop", type=checked(_running), metavar="NAME", help="stop the recording of that name, or all")
    instead.add_argument(
        "--change",
        type=checked(_running),
        metavar="NAME",
        help="let a running recording trace the heaps and stacks of this command line instead",
    )
    add_recording(parser)
    add_target(parser, is_required=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Record until something ends it. Raises TraceError."""
    plan = plan_of(args, winsock=not args.no_winsock, heap=bool(args.pid), pids=args.pid)
    plan = replace(plan, is_live=args.live, keeps_files=args.live and args.files, rotate_mb=args.rotate)
    is_control = args.list or args.stop or args.change
    if is_control and not args.print_commands:
        return _control(args, plan)
    from collector.record.readiness import check_choices, check_plan

    wrong = "--print-commands is for a new recording: leave --list, --stop and --change out." if is_control else wrong_with_live(args)
    if wrong:
        say(f"sockscope record: {wrong}", file=sys.stderr)
        return 2
    try:
        (check_choices if args.print_commands else check_plan)(plan, is_forced=args.force)
        target = target_of(args) if args.to is not None else None
    except ValueError as error:
        say(f"sockscope record: {error}", file=sys.stderr)
        return 2
    if args.print_commands:
        print_commands(args, plan)
        return 0
    if args.live:
        windows = ready(args, plan)
        _prepare(plan, windows)
        file, status = record_live(args, plan, windows, should_cancel)
        return _sent([file], target) or status
    return _record(args, plan, ready(args, plan), should_cancel, target)


def _sent(files: Sequence[Path], target: "Target | None") -> int:
    """Send what was recorded, where that is wanted; 1 when some of it did not arrive."""
    if target is None:
        return 0
    for n, file in enumerate(files):
        if send_files([str(file)], target, lambda: False):
            left = list2cmdline(map(str, files[n:]))
            tell(f"It stays here. To send it later: sockscope send {left} --to {target.address}")
            return 1
    return 0


def _prepare(plan: "Plan", windows: "Windows") -> None:
    """What is looked at and said before the first session. Raises RecordError for a process that is not there."""
    from collector.record.programs import check_exists

    for pid in plan.pids:  # they are looked for again when their session is started
        check_exists(windows, pid)
    if plan.heap:
        tell(_SLOWS)


def _record(args: argparse.Namespace, plan: "Plan", windows: "Windows", should_cancel: Callable[[], bool], target: "Target | None") -> int:
    from collector.record.plan import Kind
    from collector.record.results import files_of, put_together

    _prepare(plan, windows)
    with PieceSender(plan, target if plan.rotate_mb else None) as sender, guarded(windows, plan) as (recorder, _):
        for kind in plan.kinds:
            recorder.start(kind, plan.pids if kind is Kind.HEAP else ())
        tell(f"Recording. Ctrl+C ends it, or from another prompt: sockscope record --stop {plan.name}")
        tell(recorder.watch(lambda: "Ending." if should_cancel() else None))
    files = files_of(plan) if plan.rotate_mb else [put_together(plan, windows, tell, lambda: False)]
    for file in files:
        say(f"{file}  {file.stat().st_size:,} bytes")
    is_complete = not recorder.losses.total()
    names = list2cmdline(map(str, files))
    if args.collect:
        is_complete = collect_and_link(args, files, lambda: False) and is_complete
    elif target is None:
        tell(f"To look at it: sockscope collect {names}{' --as one' if len(files) > 1 else ''}")
    if _sent(sender.left(files), target):
        return 1
    if target is not None and len(files) > 1:
        tell(
            f"Each file is a trace there. To have all as one, with the names of processes: sockscope join {names} --output {plan.joined}, "
            f"and sockscope send {plan.joined} --to {target.address}"
        )
    return exit_status(is_complete=is_complete)


def _control(args: argparse.Namespace, plan: "Plan") -> int:
    """List, stop or change what runs. Raises RecordError."""
    from collector.record.plan import PREFIX, Kind
    from collector.record.readiness import check_heaps, leftovers, open_windows, this_machine
    from collector.record.recorder import prepare_heap
    from collector.record.sessions import change_heap, stop_named

    if args.change and not args.pid:
        say("sockscope record: --change needs --pid, once for each process that is to be traced from now on.", file=sys.stderr)
        return 2
    try:
        check_heaps(plan, is_forced=args.force)
    except ValueError as error:
        say(f"sockscope record: {error}", file=sys.stderr)
        return 2
    needed = plan if args.change else replace(plan, heap=False)
    windows = open_windows(this_machine(), needed, args.kernel_trace_control, os.environ)
    if args.change:
        prepare_heap(windows, plan.pids, plan.stacks, tell)
        tell(_SLOWS)
        change_heap(windows, f"{PREFIX}{args.change}-{Kind.HEAP}", plan.pids, plan.stacks)
        say(f"{args.change} now records the heap of {', '.join(map(str, plan.pids))}.")
        return 0
    found = leftovers(windows)
    if args.list:
        for name, sessions in found.items():
            for s in sessions:
                lost = f"{s.events_lost:,} events and {s.log_buffers_lost + s.real_time_buffers_lost:,} buffers lost"
                say(f"{name}  {s.name}  {s.file or 'read in real time'}  {s.buffers_written:,} buffers written, {lost}")
        if not found:
            tell("No recording runs.")
        return 0
    wanted = found if args.stop == "all" else {name: sessions for name, sessions in found.items() if name == args.stop}
    if not wanted:
        running = f"Those that run: {', '.join(found)}." if found else "None runs."
        raise RecordError(f"There is no recording named {args.stop}. {running}")
    for name, sessions in wanted.items():
        for s in sorted(sessions, key=lambda s: list(Kind).index(Kind(s.name.rpartition("-")[2])), reverse=True):
            stop_named(windows, s.name)
        say(f"Stopped {name}: {', '.join(s.file or s.name for s in sessions)}")
    return 0


def _pid(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _MOST_PID:
        raise ValueError(f"{text!r} is no process id: a whole number, as the task manager shows it")
    return int(text)


def _running(text: str) -> str:
    if not text.strip():
        raise ValueError(f"{text!r} is no name of a recording: sockscope record --list shows those that run")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text) if text.isascii() and text.isdigit() else parse_moment(text) / 1e9
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ValueError(f"{text!r} is no duration: write it with its unit, such as 90s or 5min")
    return seconds

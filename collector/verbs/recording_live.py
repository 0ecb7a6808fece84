"""`sockscope record --live`: sessions read in real time, shown while they are recorded."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import TraceError
from collector.plain import say
from collector.verbs.arguments import folder_of
from collector.verbs.recording_arguments import collect_and_link, exit_status, guarded, tell

if TYPE_CHECKING:
    from collector.record.calls import Windows
    from collector.record.live import LiveReading
    from collector.record.plan import Plan

__all__ = ["record_live", "wrong_with_live"]

_MIB = 1 << 20
_STORED = (0, 3)
_NOT_STORED = 1


def wrong_with_live(args: argparse.Namespace) -> str:
    """What does not go together with --live and --files; empty where nothing is wrong."""
    if args.files and not args.live:
        return "--files goes with --live: without it, files are all that is written."
    if args.live and args.circular:
        return "--live keeps all events, and --circular the newest: choose one."
    if args.live and args.rotate:
        return "--live writes one file, which is shown while it grows: leave --rotate out."
    if args.live and args.collect:
        return "--live collects while it records: leave --collect out."
    return ""


def record_live(args: argparse.Namespace, plan: "Plan", windows: "Windows", should_cancel: Callable[[], bool]) -> tuple[Path, int]:
    """Record and show until something ends it; the file that was written, and the exit status. Raises TraceError."""
    from collector.record.live import LiveReading
    from collector.record.losses import LossWatch
    from collector.record.plan import Kind

    folder = folder_of(args)
    folder.make()
    losses = LossWatch(plan)
    with LiveReading(windows, plan, losses) as reading, ExitStack() as stack:
        with guarded(windows, plan, losses) as (recorder, _):
            for kind in plan.kinds:
                recorder.start(kind, plan.pids if kind is Kind.HEAP else ())
                reading.read(kind)
            reading.is_wanted = True
            follower = stack.enter_context(_follower(plan, folder.root))
            tell(f"Recording. Ctrl+C ends it, or from another prompt: sockscope record --stop {plan.name}")
            tell(recorder.watch(_Ends(plan, reading, should_cancel)))
        file = _put_together(plan, windows) if plan.keeps_files else plan.shown
    for line in reading.last_news:
        tell(line)
    say(f"{file}  {file.stat().st_size:,} bytes", flush=True)
    if not reading.is_finished:
        _ask_to_end(follower)  # the file will never say that its session has ended
    is_complete = not losses.total() and (plan.keeps_files or not (reading.lost or reading.trouble))
    status = _ended(follower)
    if file != plan.shown:
        plan.shown.unlink(missing_ok=True)
        if status not in _STORED:
            return file, exit_status(is_complete=collect_and_link(args, [file], lambda: False) and is_complete)
    if status not in _STORED:
        tell(f"The trace is not in the database. To collect it: sockscope collect {file}")
        return file, _NOT_STORED
    return file, max(status, exit_status(is_complete=is_complete))


class _Ends:
    """Whether a live recording is to end, asked again and again; tells meanwhile how reading goes."""

    def __init__(self, plan: "Plan", reading: "LiveReading", should_cancel: Callable[[], bool]) -> None:
        self._plan, self._reading, self._should_cancel = plan, reading, should_cancel
        self._is_told = False

    def __call__(self) -> str | None:
        plan, trouble = self._plan, self._reading.trouble
        for line in self._reading.news():
            tell(line)
        if trouble and not plan.keeps_files:
            return trouble
        if trouble and not self._is_told:
            self._is_told = True
            tell(f"{trouble} Recording goes on: the files have all of it.")
        if plan.size_limit_mb and not plan.keeps_files and plan.shown.stat().st_size >= plan.size_limit_mb * _MIB:
            return f"The file has {plan.size_limit_mb:,} MB."
        return "Ending." if self._should_cancel() else None


def _put_together(plan: "Plan", windows: "Windows") -> Path:
    """The trace that the sessions' own files make; where they make none, the file that was shown."""
    from collector.record.results import put_together

    try:
        return put_together(plan, windows, tell, lambda: False)
    except TraceError as error:
        tell(f"{error} What was read in real time stays in its place.")
        return plan.shown


def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
    """Have a follower store what is there."""
    if sys.platform == "win32":
        process.send_signal(signal.CTRL_BREAK_EVENT)
    else:
        process.terminate()


@contextmanager
def _follower(plan: "Plan", root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of its own that collects the file while it grows: here it would keep records from being taken.

    It ends when the file says that the session has ended; should this process be killed, at once with what is there. When the block ends by
    an error, it is ended with it.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "collector.cli",
        "collect",
        "--follow",
        "--while-stdin",
        "--database",
        str(root),
        *(["--whole", str(plan.joined)] if plan.keeps_files else []),
        "--",
        str(plan.shown),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        start_new_session=True,  # Ctrl+C is for the recorder
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    try:
        yield process
    except BaseException:
        process.kill()
        _ended(process)
        raise


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait until a follower has ended; its exit status."""
    status = process.wait()
    if process.stdin is not None:
        process.stdin.close()  # not before: it would end at that
    return status

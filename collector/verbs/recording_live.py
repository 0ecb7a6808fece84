"""`sockscope record --live`: sessions read in real time, shown while they are recorded."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from collector.plain import say
from collector.verbs.arguments import folder_of
from collector.verbs.recording_arguments import exit_status, guarded, tell

if TYPE_CHECKING:
    from collector.record.calls import Windows
    from collector.record.plan import Plan

__all__ = ["record_live", "wrong_with_live"]

_MIB = 1 << 20
_NOT_STORED = 1


def wrong_with_live(args: argparse.Namespace) -> str:
    """What does not go together with --live; empty where nothing is wrong."""
    if args.pid:
        return "--live is for sockets: heaps make more events than can be read in real time. Record them into files, without --live."
    if args.circular:
        return "--live keeps all events, and --circular the newest: choose one."
    if args.collect:
        return "--live collects while it records: leave --collect out."
    return ""


def record_live(args: argparse.Namespace, plan: "Plan", windows: "Windows", should_cancel: Callable[[], bool]) -> tuple[Path, int]:
    """Record and show until something ends it; the file that was written, and the exit status. Raises TraceError."""
    from collector.record.live import LiveReading

    folder = folder_of(args)
    folder.make()
    file = plan.joined

    def ends() -> str | None:
        if reading.trouble:
            return reading.trouble
        if plan.size_limit_mb and file.stat().st_size >= plan.size_limit_mb * _MIB:
            return f"The file has {plan.size_limit_mb:,} MB."
        return "Ending." if should_cancel() else None

    with LiveReading(windows, file, plan.name) as reading, guarded(windows, plan) as recorder:
        for kind in plan.kinds:
            recorder.start(kind)
            reading.read(plan.session_name(kind))
        with _follower(file, folder.root) as follower:
            tell(f"Recording. Ctrl+C ends it, or from another prompt: sockscope record --stop {plan.name}")
            tell(recorder.watch(ends))
    if reading.lost:
        tell(f"{reading.lost:,} events were delivered and had no room or could not be written: record into files, without --live.")
    say(f"{file}  {file.stat().st_size:,} bytes", flush=True)
    status = follower.wait()
    if status not in (0, 3):
        tell(f"The trace is not in the database. To collect it: sockscope collect {file}")
        return file, _NOT_STORED
    return file, max(status, exit_status(is_complete=not recorder.losses.total() and not reading.lost and not reading.trouble))


@contextmanager
def _follower(file: Path, root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of its own that collects the file while it grows: here it would keep records from being taken.

    It ends when the file says that the session has ended; should this process be killed, some minutes later. When the block ends by an
    error, it is ended with it.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "collector.cli",
        "collect",
        "--follow",
        "--idle",
        "10min",
        "--database",
        str(root),
        "--",
        str(file),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        start_new_session=True,  # Ctrl+C is for the recorder
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    try:
        yield process
    except BaseException:
        process.kill()
        process.wait()
        raise

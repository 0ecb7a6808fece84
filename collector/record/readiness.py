"""Whether this machine can record, asked before the first session is started, with one clear sentence for each reason why not."""

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from collector.errors import RecordError
from collector.record.calls import FUNCTIONS, MissingCall, MissingLibrary, Windows
from collector.record.plan import MOST_PIDS, Kind, Plan, recording_of
from collector.record.rights import is_elevated
from collector.record.sessions import Counters, running
from collector.record.toolkit import find_toolkit

__all__ = ["Machine", "check_choices", "check_heaps", "check_plan", "check_rights", "leftovers", "open_windows", "this_machine"]

_OLDEST = (6, 2)
_LOADING = {
    126: "it, or a library beside it that it needs, is missing (error 126); install the toolkit anew",
    193: "it is for another processor than this Python (error 193)",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What of a machine decides whether it can record."""

    platform: str
    version: tuple[int, int]
    """Of Windows; (6, 2) is Windows 8."""
    pointer_size: int
    is_64_bit_windows: bool


def this_machine() -> Machine:
    """The machine that this runs on."""
    version = (0, 0)
    if sys.platform == "win32":
        found = sys.getwindowsversion()
        version = (found.major, found.minor)
    is_64_bit = "64" in os.environ.get("PROCESSOR_ARCHITEW6432", os.environ.get("PROCESSOR_ARCHITECTURE", ""))
    return Machine(sys.platform, version, ctypes.sizeof(ctypes.c_void_p), is_64_bit)


def open_windows(machine: Machine, plan: Plan, named: str | None, environ: Mapping[str, str]) -> Windows:
    """The system's functions, as far as the plan needs them; the toolkit's also where it is only of use, for merging.

    Args:
        named: where the user says that KernelTraceControl.dll is.

    Raises: RecordError for another system, an old one, a 32-bit Python where a heap is wanted, a toolkit that is not there.
    """
    if machine.platform != "win32":
        raise RecordError("Windows programs can be recorded on Windows only, and this is another system.")
    if machine.version < _OLDEST:
        raise RecordError("This Windows is too old: sessions for the kernel beside those of others need Windows 8 or later.")
    wants_heap = Kind.HEAP in plan.kinds
    if wants_heap and machine.pointer_size == 4 and machine.is_64_bit_windows:
        raise RecordError(
            "This is a 32-bit Python on a 64-bit Windows: it cannot load the toolkit's library, which starts heap sessions. "
            "Install a 64-bit Python, and sockscope in it; 32-bit programs can be traced from there, too."
        )
    paths = {}
    try:
        paths["KernelTraceControl"] = str(find_toolkit(named, environ, pointer_size=machine.pointer_size))
    except RecordError:
        if named or wants_heap:
            raise
    windows = Windows(paths)
    try:
        for function in FUNCTIONS.values():  # before the first session, so that none is started in vain
            if function.library != "KernelTraceControl" or wants_heap:
                windows.bind(function.name)
    except MissingCall as error:
        is_toolkit = FUNCTIONS[error.name].library == "KernelTraceControl"
        what = "of another toolkit, or too old" if is_toolkit else "of a Windows that is too old"
        raise RecordError(f"{error.path} has no function {error.name}: it is {what}.") from error
    except MissingLibrary as error:
        raise RecordError(f"{error.path} cannot be loaded: {_LOADING.get(error.code, str(error))}.") from error
    return windows


def check_plan(plan: Plan, *, is_forced: bool) -> None:
    """Raises ValueError for what cannot go well here: choices that do not go together, no folder, a file that is there."""
    check_choices(plan, is_forced=is_forced)
    if not plan.folder.is_dir():
        raise ValueError(f"{plan.folder} is no folder. Windows makes none for a session: make it first, or name another --output.")
    if plan.rotate_mb and "%" in str(plan.folder):  # Windows takes the whole path as a pattern
        raise ValueError(f"{plan.folder} has a % in its name, which --rotate cannot have: name another --output.")
    there = [*(path for path in (plan.joined, plan.shown) if path.exists()), *plan.files()]
    if there:
        raise ValueError(f"{there[0]} is there already: choose another --name or --output, or move it away.")


def check_choices(plan: Plan, *, is_forced: bool) -> None:
    """Raises ValueError for what cannot go well on any machine: no session, too many heaps, an endless circle."""
    if not plan.kinds:
        raise ValueError("Nothing is to be recorded: name processes with --pid, or leave out --no-winsock or --no-kernel.")
    if plan.is_circular and not plan.size_limit_mb:
        raise ValueError("--circular needs a --size-limit: the file that is written round and round.")
    check_heaps(plan, is_forced=is_forced)
    if plan.rotate_mb and not plan.winsock:
        raise ValueError("--rotate is for the file of sockets, which --no-winsock leaves out.")
    if plan.rotate_mb and (plan.is_circular or plan.size_limit_mb):
        raise ValueError(
            "--rotate begins a new file at its size, --size-limit ends the recording there, --circular goes round: choose one."
        )


def check_heaps(plan: Plan, *, is_forced: bool) -> None:
    """Raises ValueError for the heaps of more processes than a machine bears."""
    if len(plan.pids) > MOST_PIDS and not is_forced:
        raise ValueError(
            f"{len(plan.pids)} processes are too many: heap tracing slows each of them and writes very many events. "
            f"Name one or two, at most {MOST_PIDS}, or add --force."
        )


def check_rights(windows: Windows, plan: Plan) -> None:
    """Raises RecordError when the plan has a session that needs an administrator, and this is none."""
    needy = [kind for kind in plan.kinds if kind is not Kind.WINSOCK]
    if needy and not is_elevated(windows):
        kinds = " and ".join(needy)
        alone = " Members of the group Performance Log Users may record Winsock alone: --no-kernel." if Kind.HEAP not in needy else ""
        raise RecordError(
            f"Recording the {kinds} needs an administrator: start the prompt by “Run as administrator” and run this again there.{alone}"
        )


def leftovers(windows: Windows) -> dict[str, list[Counters]]:
    """Our sessions that run, by the name of their recording: of one that runs in another console, or left over by one that was killed.

    Raises RecordError.
    """
    found: dict[str, list[Counters]] = {}
    for counters in running(windows):
        if (name := recording_of(counters.name)) is not None:
            found.setdefault(name, []).append(counters)
    return found

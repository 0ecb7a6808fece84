"""A program that is begun suspended, so that its heap is traced from the first call; and whether a process exists."""

import ctypes
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from collector.errors import RecordError
from collector.record.calls import Windows, wide
from collector.record.constants import Code, Misc
from collector.record.failures import failure
from collector.record.structures import PROCESS_INFORMATION, STARTUPINFOW

if TYPE_CHECKING:
    from collector.record.guardian import Guardian

__all__ = ["Program", "check_exists", "end_process"]

_KILLED = 1
"""The exit code of a program that was ended before it ran."""
_RESUME_FAILED = 0xFFFF_FFFF


class Program:
    """A process of which we hold the handles, suspended until `resume`.

    As a context it is never left suspended: a program that was not resumed is terminated at the end, and its handles are closed. One that
    runs goes on. The guardian, where there is one, sees to it should this process be killed meanwhile.
    """

    def __init__(self, windows: Windows, words: Sequence[str], guardian: "Guardian | None" = None) -> None:
        """Begin a program. Raises RecordError."""
        self._windows = windows
        self._guardian = guardian
        self.name = words[0]
        self._is_suspended = False
        startup = STARTUPINFOW()
        startup.cb = ctypes.sizeof(STARTUPINFOW)
        self._information = PROCESS_INFORMATION()
        line = ctypes.create_string_buffer(wide(subprocess.list2cmdline(words)))  # CreateProcessW may write into it
        is_begun = windows.CreateProcessW(
            None, line, None, None, 0, Misc.CREATE_SUSPENDED, None, None, ctypes.byref(startup), ctypes.byref(self._information)
        )
        if not is_begun:
            raise failure("CreateProcessW", windows.last_error(), f"{self.name} could not be started")
        self._is_suspended = True
        self.pid = int(self._information.dwProcessId)
        if guardian is not None:
            guardian.hold(self.pid)

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._is_suspended:
                self._windows.TerminateProcess(self._information.hProcess, _KILLED)
                self._release()
        finally:
            self._windows.CloseHandle(self._information.hThread)
            self._windows.CloseHandle(self._information.hProcess)

    def resume(self) -> None:
        """Let it run. Raises RecordError."""
        if self._windows.ResumeThread(self._information.hThread) == _RESUME_FAILED:
            raise failure("ResumeThread", self._windows.last_error(), f"{self.name} could not be resumed; it was ended")
        self._is_suspended = False
        self._release()

    def _release(self) -> None:
        if self._guardian is not None:
            self._guardian.release()

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return bool(self._windows.WaitForSingleObject(self._information.hProcess, 0) == Misc.WAIT_OBJECT_0)

    @property
    def exit_code(self) -> int:
        """What it ended with; of a running one 259."""
        code = ctypes.c_uint32()
        self._windows.GetExitCodeProcess(self._information.hProcess, ctypes.byref(code))
        return code.value


def check_exists(windows: Windows, pid: int) -> None:
    """Raises RecordError when there is no such process; one that may not be opened exists."""
    handle = windows.OpenProcess(Misc.PROCESS_QUERY_LIMITED_INFORMATION, 0, pid)
    if handle:
        windows.CloseHandle(handle)
    elif windows.last_error() == Code.ERROR_INVALID_PARAMETER:
        raise RecordError(
            f"There is no process {pid}. A heap can be traced only of a process that runs: start the program first, "
            "or let `sockscope launch --heap PROGRAM` start it."
        )


def end_process(windows: Windows, pid: int) -> None:
    """End a process that nobody will resume; one that is gone needs nothing, and of another nobody is left to tell."""
    handle = windows.OpenProcess(Misc.PROCESS_TERMINATE, 0, pid)
    if handle:
        windows.TerminateProcess(handle, _KILLED)
        windows.CloseHandle(handle)

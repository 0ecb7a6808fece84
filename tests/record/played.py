"""The libraries that play Windows, built with the system's compiler, and what they were asked."""

import ctypes
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collector.record.calls import Windows
from collector.record.readiness import Machine
from collector.record.structures import EVENT_TRACE_PROPERTIES

__all__ = ["WINDOWS_11", "Call", "Played", "build"]

WINDOWS_11 = Machine("win32", (10, 0), 8, True)
SOURCE = Path(__file__).with_name("windows.c")
_CHANGES = {"StartTraceW", "StartHeapTrace", "UpdateHeapTrace", "EnableTraceEx2", "CreateProcessW", "ResumeThread", "TerminateProcess"}


def build(folder: Path) -> Path:
    """Compile the library; skips the test where there is no compiler, or where the real Windows is."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no C compiler that builds the libraries that play Windows")
    library = folder / "windows.so"
    words = [compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*words, "-o", str(library), str(SOURCE)], check=True)
    return library


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the library saw it; bytes in hex, as they were in memory."""

    name: str
    arguments: dict[str, Any]  # Any: numbers, texts in hex, None

    @property
    def returned(self) -> int:
        return int(self.arguments["returned"])

    def data(self, key: str) -> bytes:
        return bytes.fromhex(self.arguments[key])

    def text(self, key: str) -> str | None:
        """A string argument; None for a null pointer."""
        value = self.arguments[key]
        return None if value is None else bytes.fromhex(value).decode("utf-16-le")

    def numbers(self, key: str) -> list[int]:
        """An array of 32-bit numbers."""
        data = self.data(key)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]

    @property
    def properties(self) -> EVENT_TRACE_PROPERTIES:
        """The structure at the start of the properties, as it was passed."""
        return EVENT_TRACE_PROPERTIES.from_buffer_copy(self.data("properties"))

    @property
    def file(self) -> str:
        """The name of the file in the properties."""
        data, at = self.data("properties"), self.properties.LogFileNameOffset
        return data[at:].decode("utf-16-le").split("\0")[0] if at else ""

    @property
    def short(self) -> str:
        """`ControlTraceW stop sockscope-x-heap`: what the order of calls is compared by."""
        words = [self.name]
        if "control" in self.arguments:
            words.append(("query", "stop", "update", "flush")[self.arguments["control"]])
        if self.arguments.get("name"):
            words.append(self.text("name") or "")
        return " ".join(words)


class Played:
    """Windows, as the tests want it. A second object for the same folder sees the sessions that the first left."""

    def __init__(self, library: Path, folder: Path, *, has_toolkit: bool = True) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.play_answer.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
        self._library.play_handle.argtypes = self._library.play_open_handle.argtypes = [ctypes.c_uint64]
        self._log = folder / "calls.jsonl"
        self._library.play_reset(str(folder / "sessions").encode(), str(self._log).encode())
        paths = {"advapi32": str(library), "kernel32": str(library)}
        if has_toolkit:
            paths["KernelTraceControl"] = str(library)
        self.windows = Windows(paths)

    def answer(self, call: str, *codes: int) -> None:
        """What a function returns next, in turn, then as usual; ControlTraceW is asked as Query, Stop, Update, Flush."""
        for code in codes:
            self._library.play_answer(call.encode(), code)

    def lose(self, *, events: int = 0, buffers: int = 0, real_time: int = 0) -> None:
        """The counters of the next query of each session; the last stay."""
        self._library.play_loss(events, buffers, real_time)

    def give_handle(self, handle: int) -> None:
        """The handle of every session to come."""
        self._library.play_handle(handle)

    def give_reading_handle(self, handle: int) -> None:
        """What OpenTraceW returns from now on, also where it fails."""
        self._library.play_open_handle(handle)

    def process(self, *, pid: int = 4242, waits: int = 3, exit_code: int = 0) -> None:
        """The process that is begun next: it ends after so many questions whether it has."""
        self._library.play_process(pid, waits, exit_code)

    def endless(self) -> None:
        """The process that is begun next does not end by itself."""
        self.process(waits=1 << 30)

    def living(self, *pids: int) -> None:
        """Processes that exist."""
        for pid in pids:
            self._library.play_living(pid)

    def elevated(self, value: bool) -> None:
        self._library.play_elevated(int(value))

    def sessions_end_after(self, queries: int) -> None:
        """Every session ends by itself when it was asked so many times."""
        self._library.play_session_ends_after(queries)

    def file(self, suffix: str, path: Path) -> None:
        """What a session writes whose file's name ends so.

        One that begins new files has begun another each time that it is asked how it does, as long as there is one for its number; when it
        is stopped it has begun them all.
        """
        self._library.play_file(suffix.encode(), str(path).encode())

    def records(self, path: Path, header: bytes, suffix: str = "") -> None:
        """What ProcessTrace delivers of sessions whose names end so, as `tests.record.delivered` writes it, and the TRACE_LOGFILE_HEADER
        of OpenTraceW.
        """
        self._library.play_records(suffix.encode(), str(path).encode(), header)

    def reading_waits_for_the_end(self) -> None:
        """ProcessTrace returns only when its session was stopped, as on Windows."""
        self._library.play_wait_for_the_end()

    def console(self, event: int) -> int:
        """What the console handler answers to an event; -1 where there is none."""
        return int(self._library.play_console(event))

    @property
    def open_handles(self) -> int:
        return int(self._library.played_handles())

    @property
    def suspended(self) -> int:
        """Processes that were begun suspended and are still."""
        return int(self._library.played_suspended())

    @property
    def running(self) -> int:
        """Sessions that run."""
        return int(self._library.played_running())

    @property
    def calls(self) -> list[Call]:
        """All calls so far, in order."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [Call(fields.pop("call"), fields) for fields in map(json.loads, lines)]

    def named(self, name: str) -> list[Call]:
        """The calls of one function."""
        return [call for call in self.calls if call.name == name]

    @property
    def order(self) -> list[str]:
        """Calls that change sessions or processes, in order."""
        changes = {
            "StartTraceW",
            "StartHeapTrace",
            "UpdateHeapTrace",
            "EnableTraceEx2",
            "CreateProcessW",
            "ResumeThread",
            "TerminateProcess",
        }
        return [call.short for call in self.calls if call.name in changes or call.short.startswith("ControlTraceW stop")]

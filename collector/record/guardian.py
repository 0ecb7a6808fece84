"""A second process that stops the sessions of a recording when the first is killed: Windows itself keeps them running.

It waits for its standard input, which the recorder holds open. When the recorder says that all is over, or when it never began, nothing is
done; when the pipe ends without a word, the recorder is gone and its sessions are stopped. A program that the recorder had begun and not
yet resumed is ended then: suspended it would stay for ever, and what it would do without being recorded nobody has asked for.
Only who kills both leaves something behind.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import BinaryIO

from collector.errors import RecordError
from collector.record.calls import Windows
from collector.record.programs import end_process
from collector.record.sessions import stop_named

__all__ = ["Guardian", "main"]

_OVER = b"over\n"
_SUSPENDED = b"suspended "
_RESUMED = b"resumed\n"
_END_SECONDS = 10


class Guardian:
    """The second process, as the first sees it: a context around the life of the sessions.

    Args:
        names: the sessions in the order in which they are to be stopped.
        libraries: files of the system's libraries, as `Windows` takes them.
    """

    def __init__(self, names: Sequence[str], libraries: Mapping[str, str]) -> None:
        self._command = [sys.executable, "-P", "-m", "collector.record.guardian", json.dumps(dict(libraries)), *names]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Guardian":
        # A console of its own, or a session: Ctrl+C and the end of the console are for the recorder alone.
        flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
        with contextlib.suppress(OSError):  # a machine that has no room for it can still record
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                creationflags=flags,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            )
        return self

    def hold(self, pid: int) -> None:
        """A process has been begun suspended: it must not stay so without us."""
        self._say(b"%s%d\n" % (_SUSPENDED, pid))

    def release(self) -> None:
        """The process runs, or is gone."""
        self._say(_RESUMED)

    def _say(self, word: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):  # it is gone: the recorder can do without
            self._process.stdin.write(word)
            self._process.stdin.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """All sessions are stopped, or the user was told which are not."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(_OVER, timeout=_END_SECONDS)
        except (subprocess.TimeoutExpired, OSError):  # it hangs, or is gone already: there is nothing left for it to do
            process.kill()
            process.wait()


def guard(stream: BinaryIO, windows: Windows, names: Sequence[str]) -> list[str]:
    """Wait for the end of the recorder; returns the sessions that were stopped in its place."""
    suspended = 0
    while (line := stream.readline()).endswith(b"\n"):
        if line == _OVER:
            return []
        suspended = int(line.removeprefix(_SUSPENDED)) if line.startswith(_SUSPENDED) else 0
    if suspended:
        end_process(windows, suspended)
    stopped = []
    for name in names:
        try:
            if stop_named(windows, name) is not None:
                stopped.append(name)
        except RecordError:
            continue  # the others still can be; nobody is left to tell
    return stopped


def main(argv: Sequence[str]) -> int:
    """`python -m collector.record.guardian LIBRARIES NAME…`, begun by the recorder alone."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)
    guard(sys.stdin.buffer, Windows(json.loads(argv[0])), argv[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

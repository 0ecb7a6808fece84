"""A command line of sockscope in a process of its own, on the Windows that is played: `driver.py LIBRARY FOLDER SCRIPT WORD…`.

SCRIPT is JSON: lists of arguments for methods of `Played`, by their name; bytes in hex.
"""

import json
import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from app.cli import main
from collector.record import readiness
from tests.record.played import WINDOWS_11, Played

__all__ = ["run"]


def run(library: Path, folder: Path, script: dict[str, list[list[object]]], words: list[str]) -> int:
    """Run one command line."""
    played = Played(library, folder)
    for method, calls in script.items():
        for arguments in calls:
            if method == "records":
                path, header, suffix = map(str, arguments)
                played.records(Path(path), bytes.fromhex(header), suffix)
            else:
                getattr(played, method)(*arguments)
    if killed_in := os.environ.get("PLAYED_KILLED_IN"):  # at the moment at which it makes this call
        played.windows._bound[killed_in] = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    for name, value in (  # in place of loading the real ones
        ("this_machine", lambda: WINDOWS_11),
        ("find_toolkit", lambda *_, **__: library),
        ("Windows", lambda _: played.windows),
    ):
        setattr(readiness, name, value)
    return main(words)


if __name__ == "__main__":
    # As from a prompt: what began the tests may ignore these (nohup, the background of a shell), and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if os.environ.get("PLAYED_CRASH"):  # end at once, without any way out and with nobody beside, when the recording runs
        import collector.record.guardian
        import collector.record.recorder

        collector.record.guardian.Guardian = lambda *_: nullcontext()  # type: ignore[assignment,misc]  # as if it were killed, too
        collector.record.recorder.Recorder.watch = lambda *_: os._exit(9)  # type: ignore[method-assign]
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]))

"""The process that puts rows into a trace's file while the collector decodes and models the next: reads them from stdin.

It ends when stdin ends, so it never outlives its collector. A file that was not finished is of no use to anybody: the collector removes
it, or the next one does.
"""

import json
import pickle
import signal
import sqlite3
import sys
from typing import IO

from collector.store.bulk import Inserter, connected
from collector.store.frames import FINISHED, plain_tuples, read_frame

__all__ = ["main"]


def main() -> int:
    """The first frame says what to write to; then frames of rows; `FINISHED` closes the file, which one line on stdout confirms.

    That line is `{}`, or `{"code": …, "text": …}` with the error of SQLite, or `{"failed": …}` for what only our own fault can cause.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the collector, which ends this process
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)
    try:
        is_finished = _fill(sys.stdin.buffer)
        answer: dict[str, object] = {}
    except sqlite3.Error as error:
        answer = {"code": getattr(error, "sqlite_errorcode", 0), "text": str(error)}
    except (EOFError, KeyboardInterrupt):
        return 1
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    else:
        if not is_finished:
            return 1
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 1 if answer else 0


def _fill(stream: IO[bytes]) -> bool:
    """Insert frame by frame; returns whether the last one was there."""
    begin = read_frame(stream)
    if begin is None:
        return False
    # pickle reads what the collector, our parent, wrote a moment ago, never a file.
    target = pickle.loads(begin[0])
    connection = connected(target["path"], page_limit=target["page_limit"])
    try:
        inserter = Inserter(connection, target["widths"])
        while (frame := read_frame(stream)) is not None:
            if frame[0] == FINISHED:
                return True
            inserter.insert(plain_tuples(pickle.loads(frame[0], buffers=frame[1:])))
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())

"""The process that puts rows into a trace's file while the collector decodes and models the next: reads them from stdin.

It counts them, too, and at the end makes indexes. It ends when stdin ends, so it never outlives its collector. A file that was not finished
is of no use to anybody: the collector removes it, or the next one does.
"""

import json
import os
import pickle
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from collector.memory import give_back
from collector.model.block import count_of
from collector.room import is_full
from collector.store.bulk import PRAGMA_TO_APPEND, PRAGMAS_TO_INDEX, Inserter, connected
from collector.store.counter import INDEXED, Counter, Ending, counter_named
from collector.store.frames import FINISHED, RowsAside, plain_tuples, read_frame

__all__ = ["main"]


def main() -> int:
    """The first frame says what to write to; then frames of rows; `FINISHED` ends them, which a line on stdout confirms.

    That line, the last, is `{"counted": …}` with the number of rows of each table that a counter made, or `{"code": …, "text": …}` with the
    error of SQLite, or `{"full": true}` where temporary files have no room, or `{"failed": …}` for what only our own fault can cause.
    `{"reached": INDEXED}` may come before it; then the process goes on when it is told to, by a byte.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the collector, which ends this process
    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)
    answer: dict[str, object]
    try:
        counted = _fill(sys.stdin.buffer)
        if counted is None:
            return 1
        answer = {"counted": counted}
    except sqlite3.Error as error:
        answer = {"code": getattr(error, "sqlite_errorcode", 0), "text": str(error)}
    except (EOFError, KeyboardInterrupt):
        return 1
    except Exception as error:
        is_out_of_room = isinstance(error, OSError) and is_full(error)
        answer = {"full": True} if is_out_of_room else {"failed": f"{type(error).__name__}: {error}"}
    _say(answer)
    os._exit(0 if "counted" in answer else 1)  # the thread that waits for the end of stdin would hold up a regular end


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _fill(stream: IO[bytes]) -> dict[str, int] | None:
    """Insert frame by frame; returns what was counted, None where the last frame never came."""
    begin = read_frame(stream)
    if begin is None:
        return None
    # pickle reads what the collector, our parent, wrote a moment ago, never a file.
    target = pickle.loads(begin[0])
    connection = connected(target["path"], page_limit=target["page_limit"])
    connection.execute(f"PRAGMA {PRAGMA_TO_APPEND}")
    module, name = target["counter"] or ("", "")
    counter = counter_named(module, name, target["columns"]) if module else None
    try:
        inserter = Inserter(connection, {table: len(names) for table, names in target["columns"].items()})
        while (frame := read_frame(stream)) is not None:
            if frame[0] == FINISHED:
                is_told = threading.Event()
                threading.Thread(target=_end_with, args=(stream, is_told), daemon=True).start()
                ending = pickle.loads(frame[1])
                return _end(connection, inserter, counter, ending, is_told) if ending is not None else {}
            rows = plain_tuples(pickle.loads(frame[0], buffers=frame[1:]))
            inserter.insert(rows)
            if counter is not None:
                counter.take(rows)
        return None
    finally:
        if counter is not None:
            counter.close()
        connection.close()


def _end_with(stream: IO[bytes], is_told: threading.Event) -> None:
    """End this process when the collector is gone; it keeps the stream open until it has the answer. A byte tells to go on."""
    while stream.read(1):
        is_told.set()
    os._exit(1)


def _end(
    connection: sqlite3.Connection, inserter: Inserter, counter: Counter | None, ending: Ending, is_told: threading.Event
) -> dict[str, int]:
    """Make indexes and the rows of the counter at the same time; then, once told to, insert those. Gives how many there are of each table.

    Before that the collector opens the file: it reads what is complete while this process inserts, and cannot open what changes its size.
    """
    counted: dict[str, int] = {}
    with ThreadPoolExecutor(1) as threads, RowsAside() as aside:
        statements = (*(f"PRAGMA {pragma}" for pragma in PRAGMAS_TO_INDEX), *ending.indexes)
        indexing = threads.submit(_execute, connection, statements)
        give_back()
        for rows in counter.finish(first_ns=ending.first_ns) if counter is not None else ():
            for table, lines in rows.items():
                counted[table] = counted.get(table, 0) + count_of(lines)
            aside.put(rows)
        indexing.result()
        _say({"reached": INDEXED})
        is_told.wait()
        for rows in aside.taken():
            inserter.insert(rows)
    return counted


def _execute(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


if __name__ == "__main__":
    sys.exit(main())

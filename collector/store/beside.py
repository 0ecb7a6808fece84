"""The collector's side of the process that inserts rows: hands them over, keeps no more than a bounded number of bytes waiting."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pickle import dumps
from typing import Any

from collector.errors import CollectCancelled, StoreError, StoreFull, TraceError
from collector.model.block import Block, Row
from collector.room import advice_on_temporary_files
from collector.store import dialects
from collector.store.counter import Ending, MakeCounter, name_of
from collector.store.frames import FINISHED, Part, rows_frame, write_frame

__all__ = ["Beside"]

WAITING_BYTES = 16 << 20
"""Rows that wait to be handed over, in bytes; the collector waits for the process when there are more."""
_LOOK_SECONDS = 0.1


class Beside:
    """A process that inserts rows into one file; everything that goes wrong there is raised here, by the next call.

    Once `should_cancel` says so, a call that waits raises CollectCancelled. There, a counter of the class `counter` takes all rows.
    """

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, tuple[str, ...]],
        *,
        should_cancel: Callable[[], bool] | None = None,
        page_limit: int | None = None,
        counter: MakeCounter | None = None,
    ) -> None:
        self._path = path
        self._should_cancel = should_cancel
        self._frames: deque[list[Part]] = deque()
        self._waiting = 0
        self._answer: dict[str, Any] | None = None  # parsed JSON, written by `inserting`
        self._reached: set[str] = set()
        self._is_ended = False
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "collector.store.inserting"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        target = {"path": str(path), "columns": dict(columns), "page_limit": page_limit, "counter": counter and name_of(counter)}
        self._put([dumps(target)])
        self._hand_over = threading.Thread(target=self._run, name="rows to the writing process", daemon=True)
        self._hand_over.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def write(self, rows: Mapping[str, Sequence[Row | Block]]) -> None:
        """Hand rows over; they are in the file after `finish`. Raises StoreFull, StoreError, CollectCancelled."""
        frame = rows_frame(rows)
        with self._changed:
            while self._waiting > WAITING_BYTES and self._answer is None:
                self._changed.wait(_LOOK_SECONDS)
                self._look()
        if self._answer is not None:
            raise self._error()
        self._put(frame)

    def end(self, ending: Ending | None = None) -> None:
        """Say that no more rows come; with an ending, the process also makes indexes and inserts the rows of the counter."""
        if not self._is_ended:
            self._is_ended = True
            self._put([FINISHED, dumps(ending)])

    def reach(self, phase: str) -> None:
        """Wait until the process has reached a phase of the ending. Raises StoreFull, StoreError, CollectCancelled."""
        with self._changed:
            while phase not in self._reached and self._answer is None:
                self._changed.wait(_LOOK_SECONDS)
                self._look()
            if phase not in self._reached:
                raise self._error()

    def go_on(self) -> None:
        """Let the process insert the rows of the counter, after it has reached `INDEXED`; what became of it, `finish` says."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended
            stdin.write(b"\n")
            stdin.flush()

    def finish(self) -> dict[str, int]:
        """Wait until all rows are in the file and the process has let go of it; gives how many rows of each table the counter made.

        Raises StoreFull, StoreError, CollectCancelled.
        """
        self.end()
        while self._hand_over.is_alive():
            self._hand_over.join(_LOOK_SECONDS)
            self._look()
        self._process.wait()
        answer = self._answer or {}
        if "counted" not in answer:
            raise self._error()
        counted: dict[str, int] = answer["counted"]
        return counted

    def kill(self) -> None:
        """End the process, whatever it is doing; it has let go of the file afterwards."""
        self._process.kill()
        self._process.wait()
        with self._changed:
            self._frames.clear()
            self._frames.append([FINISHED])
            self._changed.notify_all()
        self._hand_over.join()

    def _look(self) -> None:
        if self._should_cancel is not None and self._should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")

    def _put(self, frame: list[Part]) -> None:
        with self._changed:
            self._frames.append(frame)
            self._waiting += sum(len(part) for part in frame)
            self._changed.notify_all()

    def _run(self) -> None:
        """The thread that writes to the process, which takes as long as that inserts; at the end, what the process says of it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(OSError):  # it has ended: what it said is read below
            while True:
                with self._changed:
                    while not self._frames:
                        self._changed.wait()
                    frame = self._frames.popleft()
                write_frame(stdin, frame)
                with self._changed:
                    self._waiting -= sum(len(part) for part in frame)
                    self._changed.notify_all()
                if frame[0] == FINISHED:
                    stdin.flush()
                    break
        while True:  # meanwhile stdin stays open: its end says that there is no collector any more
            line = stdout.readline()
            answer: dict[str, Any] = json.loads(line) if line else {"ended": True}
            if "reached" not in answer:
                break
            with self._changed:
                self._reached.add(answer["reached"])
                self._changed.notify_all()
        stdout.close()
        with contextlib.suppress(OSError):
            stdin.close()
        with self._changed:
            self._answer = answer
            self._changed.notify_all()

    def _error(self) -> TraceError:
        answer = self._answer or {}
        if "code" in answer:
            error = dialects.error_of(answer["code"], answer["text"], self._path)
            return error or StoreError(f"{self._path}: the trace cannot be written ({answer['text']}). Nothing was stored.")
        if "full" in answer:
            return StoreFull(advice_on_temporary_files())
        if "failed" in answer:
            return StoreError(f"{self._path}: writing the trace failed ({answer['failed']}). Nothing was stored.")
        return StoreError(
            f"{self._path}: the process that writes the trace was ended (exit status {self._process.wait()}). Nothing was stored; "
            "see that memory is left, and collect the file again."
        )

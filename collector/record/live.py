"""Sessions that are read in real time, each by a thread of its own, into one file that grows."""

import threading
from pathlib import Path
from types import TracebackType

from collector.errors import RecordError
from collector.record.calls import Windows
from collector.record.consumer import Backlog, Consumer
from collector.record.live_file import LiveFile

__all__ = ["LiveReading"]

_LOOK_SECONDS = 0.25
_END_SECONDS = 30.0
"""After a session was stopped ProcessTrace may need seconds to return."""


class LiveReading:
    """A context around the life of the sessions: it is left after they were stopped, and then the file is finished."""

    def __init__(self, windows: Windows, path: Path, name: str) -> None:
        self.path = path
        self.trouble = ""
        """Why no more can be written or read, in a sentence; empty while all is well."""
        self.lost = 0
        """Records that were delivered and are not in the file; known at the end."""
        self._windows, self._name = windows, name
        self._backlog = Backlog()
        self._consumers: list[Consumer] = []
        self._threads: list[threading.Thread] = []
        self._file: LiveFile | None = None
        self._over = threading.Event()
        self._writing: threading.Thread | None = None

    def __enter__(self) -> "LiveReading":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._finish()

    def read(self, session: str) -> None:
        """Begin to read a session that runs. Raises RecordError."""
        consumer = Consumer(self._windows, session, self._backlog)
        header = consumer.open()
        self._consumers.append(consumer)
        if self._file is None:
            try:
                self._file = LiveFile(self.path, self._name, header)
            except OSError as error:
                raise RecordError(f"{self.path}: this file cannot be written ({error.strerror}).") from error
            self._writing = threading.Thread(target=self._write, args=(self._file,), name="live-file", daemon=True)
            self._writing.start()
        thread = threading.Thread(target=self._run, args=(consumer,), name=session, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, consumer: Consumer) -> None:
        try:
            consumer.run()
        except RecordError as error:
            self.trouble = self.trouble or str(error)

    def _write(self, file: LiveFile) -> None:
        """Bring records to the file until all is over; after a fault they are thrown away, so that nobody waits."""
        is_last = False
        while not is_last:
            is_last = self._over.wait(_LOOK_SECONDS)
            records = self._backlog.drain()
            if self.trouble:
                self.lost += len(records)
                continue
            try:
                file.take(records)
            except OSError as error:
                self.trouble = f"{self.path}: writing failed ({error.strerror}). What is there up to now stays."
                self.lost += len(records)

    def _finish(self) -> None:
        """The sessions were stopped: wait for what they still deliver, and finish the file."""
        for consumer in self._consumers:
            try:
                consumer.close()
            except RecordError as error:
                self.trouble = self.trouble or str(error)
        for thread in self._threads:
            thread.join(_END_SECONDS)
            if thread.is_alive():
                self.trouble = self.trouble or f"Reading the session {thread.name} did not end."
        self._over.set()
        if self._writing is None or self._file is None:
            return
        self._writing.join()
        self.lost += self._backlog.dropped + self._file.unwritable + sum(consumer.failed for consumer in self._consumers)
        try:
            self._file.close(self.lost)
        except OSError as error:
            self.trouble = self.trouble or f"{self.path}: writing failed ({error.strerror}). What is there up to now stays."

"""Sessions that are read in real time, each by a thread of its own, into one file that grows."""

import threading
import time
from collections.abc import Sequence
from types import TracebackType

from collector.errors import RecordError
from collector.record.backlog import HEAP_SHARE, MOST_TAKEN, Backlog, Copied, Lane
from collector.record.calls import Windows
from collector.record.consumer import Consumer
from collector.record.lag import Lag
from collector.record.live_file import LiveFile
from collector.record.losses import LossWatch
from collector.record.plan import Kind, Plan

__all__ = ["LiveReading"]

_LOOK_SECONDS = 0.25
_TELL_SECONDS = 1.0
_END_SECONDS = 30.0
"""After a session was stopped ProcessTrace may need seconds to return."""


class LiveReading:
    """A context around the life of the sessions: it is left after they were stopped, and then the file is finished.

    Args:
        losses: told what had no room; tells what Windows has lost before.
    """

    def __init__(self, windows: Windows, plan: Plan, losses: LossWatch) -> None:
        self.path = plan.shown
        self.trouble = ""
        """Why no more can be written or read, in a sentence; empty while all is well."""
        self.is_wanted = False
        """Whether the file is to stay: the recording has begun."""
        self.is_finished = False
        """Whether the file is written to its end, and says that the session has ended."""
        self.last_news: list[str] = []
        """What the user should know when all is over."""
        self._windows, self._plan, self._losses = windows, plan, losses
        self._backlog = Backlog()
        self._lag = Lag()
        self._consumers: list[Consumer] = []
        self._lanes: dict[Kind, Lane] = {}
        self._threads: list[threading.Thread] = []
        self._file: LiveFile | None = None
        self._thrown = 0
        self._is_broken = False
        self._told = 0.0
        self._over = threading.Event()
        self._writing: threading.Thread | None = None

    def __enter__(self) -> "LiveReading":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._finish()
        if not self.is_wanted and self._file is not None:
            self.path.unlink(missing_ok=True)

    @property
    def lost(self) -> int:
        """Records that were delivered and are not in the file."""
        unwritable = self._file.unwritable if self._file is not None else 0
        return self._thrown + self._backlog.dropped + unwritable + sum(consumer.failed for consumer in self._consumers)

    def read(self, kind: Kind) -> None:
        """Begin to read a session that runs. Raises RecordError."""
        session = self._plan.session_name(kind)
        lane = self._lanes[kind] = self._backlog.lane(HEAP_SHARE if kind is Kind.HEAP else 1.0)
        consumer = Consumer(self._windows, session, lane)
        header = consumer.open()
        self._consumers.append(consumer)
        if self._file is None:
            try:
                self._file = LiveFile(self.path, self._plan.name, header)
            except OSError as error:
                raise RecordError(f"{self.path}: this file cannot be written ({error.strerror}).") from error
            self._lag.ticks_per_second = header.PerfFreq
            self._writing = threading.Thread(target=self._write, args=(self._file,), name="live-file", daemon=True)
            self._writing.start()
        thread = threading.Thread(target=self._run, args=(consumer,), name=session, daemon=True)
        self._threads.append(thread)
        thread.start()

    def news(self) -> list[str]:
        """What the user should know of how reading goes and was not told yet; once a second at most, however often it is asked for."""
        if (now := time.monotonic()) - self._told < _TELL_SECONDS:
            return []
        self._told = now
        lines = self._unread()
        seconds = self._lag.news()
        return [*lines, self._losses.behind(seconds)] if seconds else lines

    def _unread(self) -> list[str]:
        return [line for kind, lane in self._lanes.items() for line in self._losses.unread(kind, lane.dropped)]

    def _run(self, consumer: Consumer) -> None:
        try:
            consumer.run()
        except RecordError as error:
            self.trouble = self.trouble or str(error)

    def _write(self, file: LiveFile) -> None:
        """Bring records to the file until all is over; after a fault they are thrown away, so that nobody waits."""
        while True:
            is_over = self._over.is_set()
            if is_over:
                self._backlog.end()
            records = self._backlog.take()
            self._lag.see(records, time.monotonic())
            self._bring(file, records)
            if len(records) < MOST_TAKEN:
                if is_over:
                    return
                self._over.wait(_LOOK_SECONDS)

    def _bring(self, file: LiveFile, records: Sequence[Copied]) -> None:
        if self._is_broken:
            self._thrown += len(records)
            return
        try:
            file.take(records)
            file.lose(*self._missing)
        except OSError as error:
            self._break(error)
            self._thrown += len(records)

    @property
    def _missing(self) -> tuple[int, int]:
        """Events and buffers that are not in the file, wherever they were lost."""
        events, buffers = self._losses.in_real_time()
        return events + self.lost, buffers

    def _break(self, error: OSError) -> None:
        self._is_broken = True
        self.trouble = self.trouble or f"{self.path}: writing failed ({error.strerror}). What is there up to now stays."

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
        self.last_news = self._unread()
        if (other := self.lost - self._backlog.dropped) > 0:
            self.last_news.append(f"{other:,} records were delivered and could not be written.")
        try:
            try:
                self._file.lose(*self._missing)
            finally:
                self._file.close()
            self.is_finished = not self._is_broken
        except OSError as error:
            self._break(error)

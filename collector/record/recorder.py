"""One recording from its start to its end: sessions in order, watched while they run, stopped on every way out."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType

from collector.errors import RecordError
from collector.record.calls import Windows
from collector.record.constants import HeapEvent, Misc
from collector.record.losses import LossWatch
from collector.record.plan import Kind, Plan
from collector.record.programs import check_exists
from collector.record.rights import DEBUG, PROFILE, missing_privileges
from collector.record.sessions import Session, start_heap, start_kernel, start_winsock, stop_named
from collector.record.structures import CONSOLE_HANDLER

__all__ = ["Recorder", "prepare_heap"]

_POLL_S = 0.1
_QUERY_S = 1.0
_CLOSING = (Misc.CTRL_CLOSE_EVENT, Misc.CTRL_LOGOFF_EVENT, Misc.CTRL_SHUTDOWN_EVENT)


class Recorder:
    """A recording; use it as a context, which stops what was started, whatever happens.

    Args:
        say: gets a line for what the user should know while it runs.
        losses: told how they do; where others ask it, too.
        interval_s: how often sessions are asked how they do.
    """

    def __init__(
        self, windows: Windows, plan: Plan, say: Callable[[str], None], losses: LossWatch | None = None, *, interval_s: float = _QUERY_S
    ) -> None:
        self.plan = plan
        self.losses = losses or LossWatch(plan)
        self._windows = windows
        self._say = say
        self._interval_s = interval_s
        self._sessions: dict[Kind, Session] = {}
        self._begun: list[Kind] = []  # what has to be stopped: also a session whose start was interrupted
        self._handler = CONSOLE_HANDLER(self._on_console)  # kept: Windows calls it until it is removed

    def __enter__(self) -> "Recorder":
        self._windows.SetConsoleCtrlHandler(self._handler, 1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop()
        finally:
            self._windows.SetConsoleCtrlHandler(self._handler, 0)

    def start(self, kind: Kind, pids: Sequence[int] = ()) -> None:
        """Start one session, and say how large it is. Raises RecordError."""
        self._begun.append(kind)
        try:
            session = self._start(kind, pids)
        except Exception:  # it does not run, and one of that name may be another's; an interrupt says nothing of it
            self._begun.remove(kind)
            raise
        self._sessions[kind] = session
        self._say_size(kind, session)

    def _start(self, kind: Kind, pids: Sequence[int]) -> Session:
        plan = self.plan.session(kind)
        match kind:
            case Kind.KERNEL:
                return start_kernel(self._windows, plan)
            case Kind.WINSOCK:
                return start_winsock(self._windows, plan, level=self.plan.level, keywords=self.plan.keywords)
            case Kind.HEAP:
                prepare_heap(self._windows, pids, self.plan.stacks, self._say)
                return start_heap(self._windows, plan, pids, self.plan.stacks)

    def _say_size(self, kind: Kind, session: Session) -> None:
        asked = self.plan.buffers[kind]
        self._say(f"{session.plan.name}: {asked.words} → {' and '.join(self._ways(session))}")
        if asked.advice:
            self._say(asked.advice)
        made = session.query()
        if made is not None and (made.buffer_kb, made.buffers) != (asked.kb, asked.least) and made.buffers:
            self._say(f"Windows made {made.buffers:,} buffers of {made.buffer_kb:,} KB of it.")

    def _ways(self, session: Session) -> list[str]:
        """Where its events go."""
        file = session.plan.file
        if file and session.plan.is_rotating:
            file = f"{file.replace('%d', '1')}, and a new file each {session.plan.size_limit_mb:,} MB"
        return [way for way in (file, "read in real time" if session.plan.is_real_time else None) if way]

    def watch(self, ends: Callable[[], str | None]) -> str:
        """Wait until the recording is to end, telling of losses as they happen; returns why it ended.

        Args:
            ends: asked often; a sentence when the recording is to end.
        """
        began = asked_at = time.monotonic()
        while True:
            if reason := ends():
                return reason
            now = time.monotonic()
            if self.plan.duration_s is not None and now - began >= self.plan.duration_s:
                return f"{self.plan.duration_s:g} s are over."
            if now - asked_at >= self._interval_s:
                asked_at = now
                if reason := self._ask():
                    return reason
            time.sleep(min(_POLL_S, self._interval_s))

    def _ask(self) -> str:
        """Ask all sessions how they do; the sentence says which of them is over."""
        for kind, session in self._sessions.items():
            counters = session.query()
            if counters is None:
                limit = f" or its file is full (limit {self.plan.size_limit_mb:,} MB)" if self.plan.size_limit_mb else ""
                return f"The session {session.plan.name} is over: it was stopped from elsewhere{limit}."
            for line in self.losses.lines(kind, counters):
                self._say(line)
        return ""

    def stop(self) -> None:
        """Stop all sessions, the last one first; a session that cannot be stopped does not keep the others from it.

        Raises: RecordError for what could not be stopped; KeyboardInterrupt when one came meanwhile, after all was stopped.
        """
        failures: list[str] = []
        interrupt: KeyboardInterrupt | None = None
        while self._begun:
            kind = self._begun[-1]
            try:
                counters = stop_named(self._windows, self.plan.session_name(kind))
                for line in self.losses.lines(kind, counters) if counters is not None else ():
                    self._say(line)
            except KeyboardInterrupt as error:
                interrupt = error
                continue  # once more: it may not have been stopped
            except RecordError as error:
                failures.append(str(error))
            self._begun.pop()
        if interrupt is not None:
            raise interrupt
        if failures:
            raise RecordError(" ".join(failures))

    def _on_console(self, event: int) -> int:
        """The console closes, the user logs off, or Windows ends: this process has some seconds. Ctrl+C is left to Python.

        Called in a thread of its own; a session that the main thread stops meanwhile is not there any more, which is fine.
        """
        if event not in _CLOSING:
            return 0
        for kind in reversed(self._begun):
            try:
                stop_named(self._windows, self.plan.session_name(kind))
            except RecordError:
                continue  # nobody is left to tell
        return 1


def prepare_heap(windows: Windows, pids: Sequence[int], stacks: Sequence[HeapEvent], say: Callable[[str], None]) -> None:
    """What has to be before heaps are traced: the processes, and privileges, whose lack is said. Raises RecordError."""
    for pid in pids:
        check_exists(windows, pid)
    for name in missing_privileges(windows, *([PROFILE] if stacks else []), DEBUG):
        say(f"This user lacks {name}: call stacks or processes of other users may be missing in the trace.")

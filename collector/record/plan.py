"""What a user wants recorded: which sessions, of which processes, into which files, for how long."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from collector.record.buffers import HEAP_BUFFERS, KERNEL_BUFFERS, WINSOCK_BUFFERS, Buffers
from collector.record.constants import HeapEvent, Keyword, Level

__all__ = ["MOST_PIDS", "PREFIX", "Kind", "Plan", "SessionPlan", "parse_keywords", "parse_name", "parse_stacks", "recording_of"]

PREFIX = "sockscope-"
"""Begins the names of all our sessions, so that left-overs can be told from those of others."""

MOST_PIDS = 4
"""Heaps at a time: each makes very many events."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_NO_STACKS = "none"


class Kind(StrEnum):
    """The sessions of a recording, in the order in which they are started; they are stopped in the opposite one."""

    KERNEL = "kernel"
    WINSOCK = "winsock"
    HEAP = "heap"


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What all kinds of sessions have in common."""

    name: str
    file: str | None
    """None: no file, for real time alone."""
    buffers: Buffers
    size_limit_mb: int = 0
    """0: none. A circular file needs one."""
    is_circular: bool = False
    is_rotating: bool = False
    """A file that has its limit is ended and the next one begun; `file` has a %d in the place of their number, which counts from 1."""
    is_real_time: bool = False
    flush_s: int = 0
    """How often buffers are written that are not full, each as large as a full one; 0: never to a file, each second to a reader."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One recording. `pids` may be empty with `heap`, where the process is still to be begun."""

    name: str
    folder: Path
    kernel: bool = True
    winsock: bool = True
    heap: bool = False
    pids: tuple[int, ...] = ()
    stacks: tuple[HeapEvent, ...] = (HeapEvent.ALLOC, HeapEvent.REALLOC, HeapEvent.FREE, HeapEvent.CREATE)
    level: int = Level.VERBOSE
    keywords: int = 0
    """0: all."""
    buffers: dict[Kind, Buffers] = field(
        default_factory=lambda: {Kind.KERNEL: KERNEL_BUFFERS, Kind.WINSOCK: WINSOCK_BUFFERS, Kind.HEAP: HEAP_BUFFERS}
    )
    size_limit_mb: int = 0
    is_circular: bool = False
    rotate_mb: int = 0
    """The Winsock session begins a new file whenever one has this size; 0: one file, however large. The documentation of the mode rules it
    out for the kernel's sessions and does not speak of heaps: these have one file each."""
    is_live: bool = False
    """Read in real time."""
    keeps_files: bool = False
    """With `is_live`: the sessions write files, too, which become the trace; what real time loses is missing only while it is shown."""
    duration_s: float | None = None
    flush_s: int = 0
    """As in SessionPlan."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The sessions that it needs, in their order."""
        wanted = {Kind.KERNEL: self.kernel, Kind.WINSOCK: self.winsock, Kind.HEAP: self.heap}
        return tuple(kind for kind in Kind if wanted[kind])

    def session(self, kind: Kind) -> SessionPlan:
        """What a session is started with."""
        # The kernel's records name the processes and modules; a circle would lose those of the beginning, and they are few.
        is_whole = self.is_circular and kind is Kind.KERNEL
        is_rotating = self._rotates(kind)
        return SessionPlan(
            name=self.session_name(kind),
            file=None if self.is_live and not self.keeps_files else str(self.file(kind)),
            is_real_time=self.is_live,
            buffers=self.buffers[kind],
            size_limit_mb=self.rotate_mb if is_rotating else 0 if is_whole else self.size_limit_mb,
            is_circular=self.is_circular and not is_whole,
            is_rotating=is_rotating,
            flush_s=self.flush_s,
        )

    def session_name(self, kind: Kind) -> str:
        """The name of a session, as other tools show it."""
        return f"{PREFIX}{self.name}-{kind}"

    def _rotates(self, kind: Kind) -> bool:
        return bool(self.rotate_mb) and kind is Kind.WINSOCK

    def file(self, kind: Kind) -> Path:
        """The file of one session; where it begins new ones, with a %d in the place of their number."""
        return self.folder / f"{self.name}-{kind}{'-%d' if self._rotates(kind) else ''}.etl"

    def files(self) -> list[Path]:
        """The files of all sessions that are there, each session's in the order in which they were begun."""
        return [file for kind in self.kinds for file in (self.pieces() if self._rotates(kind) else [self.file(kind)]) if file.exists()]

    def pieces(self) -> list[Path]:
        """The files that a Winsock session has begun by now, one after the other."""
        form = re.compile(re.escape(f"{self.name}-{Kind.WINSOCK}-") + r"([0-9]+)\.etl")
        found = [(int(match[1]), path) for path in self.folder.iterdir() if (match := form.fullmatch(path.name))]
        return [path for _, path in sorted(found)]

    @property
    def joined(self) -> Path:
        """The file in which they are put together."""
        return self.folder / f"{self.name}.etl"

    @property
    def shown(self) -> Path:
        """The file into which is written what is read in real time; beside files of the sessions it is for the moment only."""
        return self.folder / f"{self.name}-live.etl" if self.keeps_files else self.joined


def recording_of(session: str) -> str | None:
    """The name of the recording to which a session belongs; None for a session of others."""
    stem, _, kind = session.removeprefix(PREFIX).rpartition("-")
    return stem if session.startswith(PREFIX) and stem and kind in set(Kind) else None


def parse_name(text: str) -> str:
    """A name for sessions and files. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name for a recording: letters, digits, and between them . _ -, at most 64")
    return text


def parse_stacks(text: str) -> tuple[HeapEvent, ...]:
    """`alloc,realloc,free`, or `none`. Raises ValueError."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if words == [_NO_STACKS]:
        return ()
    names = {event.name.lower(): event for event in HeapEvent}
    unknown = [word for word in words if word not in names]
    if unknown or not words:
        raise ValueError(f"{', '.join(unknown) or 'nothing'} cannot have stacks: choose from {', '.join(names)}, or {_NO_STACKS}")
    return tuple(event for event in HeapEvent if event.name.lower() in words)


def parse_keywords(text: str) -> int:
    """A mask such as `0x0c`, or names such as `winsock,transport`; `all` is 0. Raises ValueError."""
    names = {keyword.name.lower().replace("_", "-"): keyword for keyword in Keyword if keyword.name}
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if words == ["all"]:
        return 0
    if words and all(word in names for word in words):
        return sum({names[word] for word in words})
    try:
        mask = int(text, 0)
    except ValueError as error:
        raise ValueError(f"{text!r} are no keywords: a mask such as 0x0c, all, or names of {', '.join(names)}") from error
    if not 0 < mask < 1 << 64:
        raise ValueError(f"{text!r} is no mask of keywords: 1 to 0xffffffffffffffff, or all")
    return mask

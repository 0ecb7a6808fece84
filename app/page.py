"""What every page has: a title, one sentence that says what is shown, its place among the others, and the trust in its trace."""

from dataclasses import dataclass, field
from typing import ClassVar

__all__ = ["Crumb", "NoteLine", "NotesPart", "Page", "ProblemLine", "TraceHead"]


@dataclass(frozen=True, slots=True)
class ProblemLine:
    """One way in which the data of a trace is limited."""

    kind: str
    severity: str
    count: int
    first_ns: int | None
    last_ns: int | None
    place: str | None
    text: str
    effect: str | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class TraceHead:
    """What each page of a trace says about it. `losses` are the losses and damages in the time range that the page shows."""

    key: str
    name: str
    state: str
    start_utc: str | None
    end_ns: int | None
    losses: tuple[ProblemLine, ...]
    problems: int
    version: str = field(default="", metadata={"json": False})
    """Which state of its file this is."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way to a page."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class NoteLine:
    """One note. `object` is the link of what it is about below /t/KEY, empty for the trace itself; `t_ns` a moment of it."""

    object: str
    t_ns: int | None
    author: str | None
    text: str
    created_utc: str
    n: int = field(metadata={"json": False})

    @property
    def about(self) -> str:
        """What it is about, in words."""
        kind, _, rest = self.object.partition("/")
        if not kind:
            return "the trace"
        first, _, second = rest.partition("/")
        if kind == "sockets" and second:
            return f"{second.partition(':')[0]} of socket {first}"
        return f"allocation {second}" if kind == "heap" else f"{'socket' if kind == 'sockets' else 'process'} {first}"

    @property
    def link(self) -> str:
        """Link of the place below /t/KEY."""
        if self.t_ns is not None and self.object.startswith("sockets/") and self.object.count("/") == 1:
            return f"{self.object}?from={self.t_ns - 1_000_000}&to={self.t_ns + 1_000_000}#notes"
        return f"{self.object}#notes"


@dataclass(frozen=True, slots=True)
class NotesPart:
    """The notes of a page's object, or with `total` the newest of a whole trace. `trouble` says why they cannot be read.

    `number` is how many the object has: more than the `rows` where they are the first of very many.
    """

    object: str
    rows: tuple[NoteLine, ...]
    trouble: str = ""
    total: int | None = None
    number: int | None = None

    @property
    def cut(self) -> str:
        """Says that not all notes of the object are here; empty where they are."""
        shown, number = len(self.rows), self.number or 0
        return f"These are the first {shown:,} of {number:,} notes." if number > shown else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The base of all pages.

    `section` is the entry of the navigation that is lit, `canonical` the path under which others find the page's object where the request's
    own path need not be that. `addresses` are socket addresses that stand outside of its tables. `within` is the key of the trace to which
    a search from here keeps, for pages of no trace. `has_report` says that the page also comes as one file that needs no server.
    """

    has_report: ClassVar[bool] = False

    title: str
    sentence: str
    trace: TraceHead | None = None
    crumbs: tuple[Crumb, ...] = field(default=(), metadata={"json": False})
    section: str = field(default="", metadata={"json": False})
    query: str = field(default="", metadata={"json": False})
    within: str = field(default="", metadata={"json": False})
    canonical: str = field(default="", metadata={"json": False})
    addresses: tuple[str, ...] = field(default=(), metadata={"json": False})
    notes: NotesPart | None = None

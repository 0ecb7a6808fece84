"""What every page has: a title, one sentence that says what is shown, its place among the others, and the trust in its trace."""

from dataclasses import dataclass, field

__all__ = ["Crumb", "Page", "ProblemLine", "TraceHead"]


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


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way to a page."""

    text: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The base of all pages. `section` is the entry of the navigation that is lit."""

    title: str
    sentence: str
    trace: TraceHead | None = None
    crumbs: tuple[Crumb, ...] = field(default=(), metadata={"json": False})
    section: str = field(default="", metadata={"json": False})
    query: str = field(default="", metadata={"json": False})

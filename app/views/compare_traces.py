"""Two traces side by side, such as a good and a bad run of one program: what differs comes first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from app import format as fmt
from app.deps import Catalog, meant_by
from app.errors import BadRequest, Choice, NotFound, OtherName, SeveralFit
from app.filters import Condition, parse_conditions
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries import catalog
from app.queries import compare_traces as queries
from app.render import render
from app.urls import with_query
from app.views.described import described
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["CompareLine", "ComparePage", "router"]

router = APIRouter()

_K = TypeVar("_K")

CHOICES = 100
STACKS_SHOWN = 30


@dataclass(frozen=True, slots=True)
class CompareLine:
    """One number in both traces; None where it is not known. The links are paths below /t/KEY/ of the trace to what was counted."""

    what: str
    a: int | None
    b: int | None
    difference: int | None
    unit: str
    a_link: str | None
    b_link: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two traces."""

    key: str
    name: str
    start_utc: str | None
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage(Page):
    """Two traces, or with one of them missing the choice of it."""

    a: Compared | None
    b: Compared | None
    process: str
    choices: tuple[Crumb, ...] = field(metadata={"json": False})
    facts: tuple[str, ...] = ()
    totals: Listing | None = None
    findings: Listing | None = None
    errors: Listing | None = None
    aborts: Listing | None = None
    operations: Listing | None = None
    latencies: Listing | None = None
    held: Listing | None = None


_TOTALS: dict[str, tuple[str, str, str | None]] = {
    "sockets": ("Sockets", "count", "sockets?unused="),
    "bytes_sent": ("Bytes sent", "bytes", "sockets?sort=-bytes_sent"),
    "bytes_received": ("Bytes received", "bytes", "sockets?sort=-bytes_received"),
    "errors": ("Failed operations, would-block answers left out", "count", "errors"),
    "failed_binds": ("Failed binds", "count", "ports"),
    "open_at_end": ("Sockets open at the end", "count", "sockets?state=open_at_end"),
    "ports": ("Local ports, of each process", "count", "ports"),
    "held_bytes": ("Heap held at the end", "bytes", "allocations?state=live"),
    "held_count": ("Blocks held at the end", "count", "allocations?state=live"),
    "allocations": ("Allocations", "count", "allocations"),
    "allocated_bytes": ("Bytes allocated, by the counters of the heap", "bytes", None),
}
_PARAMETERS = (
    ("a", "Key of the first trace, such as the good run.", "fd96715a3a6d"),
    ("b", "Key of the second trace, such as the bad run.", "0123456789ab"),
    ("process", "Only this process, in both: its name, a part of it, or its id.", "client.exe"),
)


@router.get(
    "/compare",
    name="compare_traces",
    summary="Two traces compared",
    response_class=HTMLResponse,
    openapi_extra={
        "parameters": [
            *(
                {"name": name, "in": "query", "required": False, "description": words, "schema": {"type": "string"}, "example": example}
                for name, words, example in _PARAMETERS
            ),
            *described("table")["parameters"],
        ]
    },
)
def compare_traces(request: Request, db: Catalog) -> Response:
    """Sockets, operations, errors, aborts, latencies, held memory and findings of two traces, what differs first."""
    keys = [request.query_params.get(name, "").strip().lower() for name in ("a", "b")]
    conditions = parse_conditions((queries.PROCESS,), {"process": request.query_params.get("process", "")})
    process = conditions.items[0] if conditions.items else None
    if keys[0] and keys[0] == keys[1]:
        raise BadRequest(f"a={keys[0]} and b={keys[1]}: this is one trace; choose two.")
    latest = [one for one in catalog.latest(db, CHOICES) if one.state in ("complete", "live")] if db is not None else []
    named = {one.key: one for one in latest}
    canonical: dict[str, str] = {}
    for side, key in zip(("a", "b"), keys, strict=True):
        if key and key not in named:
            found = catalog.entry(db, key) if db is not None else None
            if found is None:
                canonical[side] = _key_meant(request, db, side, key)
            else:
                named[key] = found
    if canonical:
        raise OtherName({}, canonical)
    sides = [_compared(named[key]) if key else None for key in keys]
    parts: dict[str, Any] = {}  # Any: the tables of the page by their names
    facts: tuple[str, ...] = ()
    if all(keys):
        facts, parts = _parts(request, keys, process)
    names = [f"{one.name}" for one in sides if one is not None]
    sentence = f"{names[0]} (A) and {names[1]} (B)" if len(names) == 2 else "Choose two traces, such as a good and a bad run of one program"
    page = ComparePage(
        title="Two traces",
        sentence=f"{sentence}{', ' + process.in_words() if process else ''}.",
        crumbs=(Crumb("traces", request.app.state.urls("traces")),),
        a=sides[0],
        b=sides[1],
        process=process.text if process else "",
        choices=tuple(Crumb(_choice(one), one.key) for one in named.values()),
        facts=facts,
        **parts,
    )
    return render(request, "compare_traces.html", page)


def _key_meant(request: Request, db: Connection | None, side: str, key: str) -> str:
    """The key of the trace that a shortened one or that of a live trace stands for. Raises SeveralFit, NotFound."""
    meant = meant_by(db, key) if db is not None else []
    if not meant:
        raise NotFound(f"Trace {key[:40]} is not in this database.", ways=(Crumb("all traces", request.app.state.urls("traces")),))
    if len(meant) > 1:
        choices = tuple(Choice(f"{one.label or one.name} ({one.key})", query={side: one.key}) for one in meant)
        raise SeveralFit(f"{side}={key[:40]} stands for {len(meant)} traces.", choices)
    return meant[0].key


def _compared(entry: catalog.EntryRow) -> Compared:
    return Compared(entry.key, entry.label or entry.name, entry.start_utc, entry.end_ns)


def _choice(entry: catalog.EntryRow) -> str:
    return f"{entry.label or entry.name}, {fmt.iso_utc(entry.start_utc)} ({entry.key})"


def _parts(request: Request, keys: list[str], process: Condition | None) -> tuple[tuple[str, ...], dict[str, Listing]]:
    """What is to be said beside the numbers, and the tables. Raises NotFound for a trace whose file is gone."""
    folder: TraceStore = request.app.state.folder
    for key in keys:
        if not folder.has_trace(key):
            raise NotFound(f"The file of trace {key} is not in this database, so it cannot be compared. Collect the trace again.")
    try:
        with folder.trace(keys[0]).connect() as one, folder.trace(keys[1]).connect() as other:
            a, b = queries.side_of(one, process), queries.side_of(other, process)
            held = _held(
                a, b, lambda hashes: queries.held_by_hash(one, process, hashes), lambda hashes: queries.held_by_hash(other, process, hashes)
            )
    except StoreError as error:
        raise BadRequest(f"These traces cannot be compared now: {error}") from error
    query = request.query_params
    here = request.app.state.urls("compare_traces", {name: query[name] for name in ("a", "b", "process") if query.get(name)})
    lines, absent = _Lines(process), (a.absent, b.absent)
    tables = {
        "totals": [lines.line(words, a.totals[name], b.totals[name], unit, link) for name, (words, unit, link) in _TOTALS.items()],
        "findings": lines.findings(a, b),
        "errors": lines.of(a.errors, b.errors, fmt.status, lambda v: f"errors?status={v & 0xFFFFFFFF:#x}", absent=absent),
        "aborts": lines.of(a.aborts, b.aborts, _reason, lambda v: f"aborts?reason={v[0]}", absent=absent),
        "operations": lines.of(
            a.operations,
            b.operations,
            lambda v: f"{v[0]}, {v[1].replace('_', ' ')}",
            lambda v: f"operations?kind={v[0]}&outcome={v[1]}",
            absent=absent,
        ),
        "latencies": lines.of(
            a.latencies,
            b.latencies,
            lambda v: f"{v[0]}: {v[1]} of 100 took at most",
            lambda v: f"operations?kind={v[0]}&outcome=completed&sort=-latency_ns",
            unit="duration",
        ),
        "held": held,
    }
    columns = (
        Column("what", "What", keeps=True), Column("a", "A", "compared_a"), Column("b", "B", "compared_b"),
        Column("difference", "B against A", "compared", keeps=True),
    )  # fmt: skip
    made = {name: plain_listing(name, here, columns, sorted(rows, key=_rank), CompareLine) for name, rows in tables.items()}
    return tuple(_facts(a, b, process)), made


def _facts(a: queries.Side, b: queries.Side, process: Condition | None) -> Iterable[str]:
    for name, side in (("A", a), ("B", b)):
        if side.part:
            yield f"Only a part of {name} was stored: {side.part}. Its numbers are those of this part; what lies outside is unknown."
        if side.has_losses:
            yield f"Records of {name} were lost or damaged: its numbers may be too small."
        if process is not None and not side.processes:
            yield f"{name} has no process “{process.text}”."
        if side.is_sampled:
            yield f"Latencies of {name} are those of {fmt.thin(queries.SAMPLE)} operations picked at random."
    yield "Unknown is what a trace did not record or store: it may have happened all the same."
    if process is not None:
        yield "How many operations ended how is summed for whole traces only: it is not known of one process."


def _rank(line: CompareLine) -> tuple[int, float]:
    """What differs first, that which differs most by its share before; then what is known of one side alone, then what is alike."""
    if line.difference is None:
        return (3 if line.a is None and line.b is None else 1, 0.0)
    return (0, -abs(line.difference) / max(line.a or 0, line.b or 0, 1)) if line.difference else (2, 0.0)


def _number_of(side: Mapping[_K, int] | None, key: _K, absent: int | None) -> int | None:
    """A number of one trace; what a trace that recorded the kind does not have is `absent`."""
    return None if side is None else side.get(key, absent)


class _Lines:
    """Lines whose links keep to the process that is compared."""

    def __init__(self, process: Condition | None) -> None:
        self._query = {"process": process.text} if process is not None else {}

    def line(
        self, what: str, a: int | None, b: int | None, unit: str, link: str | None, *, a_link: str | None = None, b_link: str | None = None
    ) -> CompareLine:
        there = with_query(link, self._query) if link and self._query else link
        difference = None if a is None or b is None else b - a
        return CompareLine(what, a, b, difference, unit, a_link or there, b_link or there)

    def of(
        self,
        a: Mapping[_K, int] | None,
        b: Mapping[_K, int] | None,
        words: Callable[[_K], str],
        link: Callable[[_K], str],
        *,
        unit: str = "count",
        absent: tuple[int | None, int | None] = (None, None),
    ) -> list[CompareLine]:
        keys = dict.fromkeys([*(a or {}), *(b or {})])
        return [self.line(words(key), _number_of(a, key, absent[0]), _number_of(b, key, absent[1]), unit, link(key)) for key in keys]

    def findings(self, a: queries.Side, b: queries.Side) -> list[CompareLine]:
        return [
            self.line(
                kind.replace("_", " "),
                a.findings_of(kind),
                b.findings_of(kind),
                "count",
                None,
                a_link=a.findings.get(kind, (0, None))[1],
                b_link=b.findings.get(kind, (0, None))[1],
            )
            for kind in dict.fromkeys([*a.findings, *b.findings])
        ]


def _bytes_of(known: Mapping[str, queries.Held], stack: str) -> int:
    return known[stack].bytes if stack in known else 0


def _reason(reason: tuple[int, str | None]) -> str:
    number, name = reason
    return f"{number} {(name or '').replace('_', ' ')}".strip()


_Ask = Callable[[list[str]], dict[str, queries.Held]]


def _held(a: queries.Side, b: queries.Side, ask_a: _Ask, ask_b: _Ask) -> list[CompareLine]:
    """The stacks whose held memory differs most; each is asked for in both traces."""
    sides = [dict(a.held or {}), dict(b.held or {})]
    if a.held is not None and b.held is not None:
        sides[0] |= ask_a([one for one in sides[1] if one not in sides[0]])
        sides[1] |= ask_b([one for one in sides[0] if one not in sides[1]])
    lines = []
    for stack in dict.fromkeys([*sides[0], *sides[1]]):
        found = [
            None if side.held is None else known[stack].bytes if stack in known else side.absent
            for side, known in ((a, sides[0]), (b, sides[1]))
        ]
        callers = next(known[stack].callers for known in sides if stack in known) or stack[:12]
        links = [f"stacks/{stack}" if stack in known else None for known in sides]
        difference = None if found[0] is None or found[1] is None else found[1] - found[0]
        lines.append(CompareLine(callers, found[0], found[1], difference, "bytes", links[0], links[1]))
    return sorted(lines, key=lambda one: (-abs(one.difference or 0), -(one.b or one.a or 0), one.what))[:STACKS_SHOWN]

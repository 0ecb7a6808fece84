"""Findings on memory: buffers used twice or freed too early, errors of the heap, and memory that is still held."""

from collections.abc import Iterator

from sqlalchemy import case, distinct, func, select

from collector import words
from collector.model.finding import CERTAIN, HIGH, LOW, MAX_PER_RULE, MEDIUM, POSSIBLE, About, Finding, counted, said, sized, span
from collector.store.tables import (
    allocation,
    heap_anomaly,
    io_finding,
    operation,
    overlap,
    owner,
    process,
    socket_event,
    stack,
    stack_ref,
)

__all__ = ["buffer_overlaps", "buffers_deregistered", "frees_in_flight", "heap_errors", "held_growth"]

_SUSPECT = words.CERTAINTIES.index("possible")

_PAIRS = {
    "send->send": (
        "posted a send from memory that another send still used",
        "Often intended, and harmless while the content stays the same.",
    ),
    "recv->recv": (
        "posted a receive into memory that another receive still used",
        "The later data wins, and the program may read a mixture.",
    ),
    "recv->send": ("posted a send from memory that a receive still filled", "The program may send bytes that are being changed."),
    "send->recv": ("posted a receive into memory that a send still used", "Incoming data may overwrite bytes that are not sent yet."),
}
_BUFFERS = {
    "freed_in_flight": (HIGH, "freed memory under {} in flight", "Received data is written into freed memory, or foreign bytes are sent."),
    "reused_in_flight": (
        HIGH,
        "reused freed memory under {} in flight",
        "A new block lies where the request still works: corruption is likely.",
    ),
    "shrunk_in_flight": (HIGH, "shrank the memory under {} in flight", "The request reaches past the end of the block."),
    "overruns_block": (HIGH, "posted {} past the end of a heap block", "The request reaches into what lies behind the block."),
    "posted_after_free": (
        HIGH,
        "posted {} on memory that was already freed",
        "The request works on memory that belongs to nobody, or to another block.",
    ),
}
_BUFFER_STEPS = {
    "overruns_block": "Next: see the stack of the post, and the size that was allocated there.",
    "shrunk_in_flight": "Next: compare the stack of the post with that of the reallocation; shrink after the completion.",
    "posted_after_free": "Next: compare the stack of the free with that of the post, and see who still keeps the address.",
}
_HEAP_ERRORS = {
    "double_free": "freed {} a second time",
    "free_wrong_heap": "freed {} through another heap than it came from",
    "free_never_allocated": "freed {} that was never allocated",
    "free_after_destroy": "freed {} of a heap that was destroyed",
}
QUARTERS = 4
MIN_HELD_BLOCKS = 5
MUCH_HELD_BYTES = 10_000_000
DEREGISTERED = 4011
"""A buffer of registered I/O is taken away; the event counts the references to it."""


def buffer_overlaps(about: About) -> Iterator[Finding]:
    """Q10: one user buffer in two requests at once, by process and kind of pair."""
    v, w, f = overlap.c, owner.c, operation.c
    query = (
        select(
            w.process_n,
            v.pair,
            v.severity,
            func.count().label("times"),
            func.sum(case((v.certainty == CERTAIN, 1), else_=0)).label("certain"),
            func.min(v.t_ns).label("t_ns"),
            func.min(f.socket_n).label("socket_n"),
            func.count(distinct(f.socket_n)).label("sockets"),
            func.max(v.hi - v.lo).label("most"),
        )
        .join_from(overlap, operation, (f.trace_id == v.trace_id) & (f.n == v.second_n))
        .outerjoin(owner, (w.trace_id == v.trace_id) & (w.n == v.owner_n))
        .group_by(w.process_n, v.pair, v.severity)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        did, means = _PAIRS.get(row.pair, ("used one buffer twice", ""))
        sure = CERTAIN if row.certain == row.times else POSSIBLE
        yield Finding(
            "buffer_overlap",
            LOW if row.severity == "low" else HIGH,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            f"{about.process(row.process_n).label} {did}" + (f", {row.times:,} times" if row.times > 1 else ""),
            said(
                f"{sized(row.most)} {'are' if row.most != 1 else 'is'} shared, at {span(row.t_ns)}."
                if row.times == 1
                else f"Up to {sized(row.most)} {'are' if row.most != 1 else 'is'} shared, first at {span(row.t_ns)}.",
                means,
                _sure(row.certain, row.times, "of chained buffers only the first is known, or an end is"),
                "Next: give each request a buffer of its own until it completes.",
            ),
            sure,
            about.link("overlaps", process_n=row.process_n, pair=row.pair, severity=row.severity),
            "Q10",
        )


def frees_in_flight(about: About) -> Iterator[Finding]:
    """Q11: heap blocks and socket requests in each other's way, by process and kind."""
    i = io_finding.c
    query = (
        select(
            i.process_n,
            i.kind,
            func.count().label("times"),
            func.sum(case((i.certainty == CERTAIN, 1), else_=0)).label("certain"),
            func.min(i.t_ns).label("t_ns"),
            func.min(i.socket_n).label("socket_n"),
            func.count(distinct(i.socket_n)).label("sockets"),
            func.max(i.by_bytes).label("past"),
        )
        .group_by(i.process_n, i.kind)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        severity, did, means = _BUFFERS.get(row.kind, (MEDIUM, f"({row.kind}) {{}}", ""))
        sure = CERTAIN if row.certain == row.times else POSSIBLE
        yield Finding(
            row.kind,
            severity,
            row.times,
            row.process_n,
            row.socket_n if row.sockets == 1 else None,
            row.t_ns,
            f"{about.process(row.process_n).label} {did.format(counted(row.times, 'request'))}",
            said(
                f"First at {span(row.t_ns)}.",
                means,
                f"{'' if row.times == 1 else 'Up to '}{sized(row.past)} {'lies' if row.past == 1 else 'lie'} past the end."
                if row.past
                else None,
                _sure(row.certain, row.times, "records were lost, or the socket was closed before"),
                _BUFFER_STEPS.get(row.kind, "Next: compare the stack of the free with that of the post; free after the completion."),
            ),
            sure,
            about.link("in-flight-frees", process_n=row.process_n, kind=row.kind),
            "Q11",
        )


def _sure(certain: int, times: int, why_not: str) -> str:
    if certain == times:
        return "Certain: all of it was recorded."
    return f"Possible: {why_not}." if not certain else f"Certain for {certain:,} of {times:,}, possible for the rest: {why_not}."


def heap_errors(about: About) -> Iterator[Finding]:
    """Frees that the heap must refuse: twice, through the wrong heap, of nothing."""
    a = heap_anomaly.c
    query = (
        select(a.process_n, a.kind, func.count().label("times"), func.min(a.t_ns).label("t_ns"))
        .where(a.kind.in_(tuple(_HEAP_ERRORS)))
        .group_by(a.process_n, a.kind)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        did = _HEAP_ERRORS[row.kind].format(counted(row.times, "block"))
        yield Finding(
            row.kind,
            HIGH,
            row.times,
            row.process_n,
            None,
            row.t_ns,
            f"{about.process(row.process_n).label} {did}",
            said(
                f"First at {span(row.t_ns)}.",
                about.doubt("what went before was recorded", "an allocation may be among them"),
                "Next: see the stacks of the frees.",
            ),
            about.certainty(),
            f"heap/{about.process(row.process_n).link}#anomalies-part",
            None,
        )


def held_growth(about: About) -> Iterator[Finding]:
    """Q02: call stacks whose blocks are allocated in every quarter of the trace and mostly never freed."""
    a, r, k, p = allocation.c, stack_ref.c, stack.c, process.c
    first, last = about.connection.execute(select(func.min(a.first_ns), func.max(a.first_ns))).one()
    if first is None or last <= first:
        return
    until = max(about.end_ns, last)
    quarter = (a.first_ns - first) * QUARTERS / (until - first + 1)
    in_quarter = [func.sum(case(((quarter >= q) & (quarter < q + 1), 1), else_=0)).label(f"q{q}") for q in range(QUARTERS)]
    of_stack = (
        select(a.process_n, r.stack_n, func.count().label("times"))
        .join_from(allocation, stack_ref, (r.trace_id == a.trace_id) & (r.ref == a.owner_stack_ref))
        .join(process, (p.trace_id == a.trace_id) & (p.n == a.process_n))
        .where(a.start_ns.is_not(None), p.end_ns.is_(None))
        .group_by(a.process_n, r.stack_n)
        .having(func.count() >= MIN_HELD_BLOCKS)
    )
    # Held blocks are few in most traces; all blocks are counted, which takes far longer, only where some of those grow.
    held = of_stack.where(a.end_ns.is_(None)).add_columns(
        func.sum(a.size).label("bytes"), func.min(a.first_ns).label("t_ns"), func.max(a.trust).label("trust"), *in_quarter
    )
    growing = [row for row in about.rows(held) if all(getattr(row, f"q{q}") > 0 for q in range(QUARTERS))]
    if not growing:
        return
    opened = {(row.process_n, row.stack_n): row.times for row in about.rows(of_stack)}
    growing = [row for row in growing if row.times * 2 > opened[row.process_n, row.stack_n]]
    growing.sort(key=lambda row: -int(row.bytes))
    for row in growing[:MAX_PER_RULE]:
        name = about.connection.execute(select(k.hash).where(k.trace_id == 1, k.n == row.stack_n)).scalar()
        by_quarter = ", ".join(f"{getattr(row, f'q{q}'):,}" for q in range(QUARTERS))
        suspect = row.trust == _SUSPECT
        all_blocks = opened[row.process_n, row.stack_n]
        yield Finding(
            "held_growth",
            HIGH if row.bytes >= MUCH_HELD_BYTES else MEDIUM,
            row.times,
            row.process_n,
            None,
            row.t_ns,
            f"{about.process(row.process_n).label} still holds {sized(row.bytes)} in {counted(row.times, 'block')} of one call stack",
            said(
                f"It allocated {counted(all_blocks, 'block')} there, and {_freed(all_blocks - row.times)}.",
                f"Still held by quarter of the trace: {by_quarter}.",
                "Possible: events were lost, and frees may be among them."
                if suspect
                else "Possible: it grows steadily, but a cache does too.",
                "Next: see the stack, and whether these blocks are meant to stay.",
            ),
            POSSIBLE,
            f"heap/{about.process(row.process_n).link}/growth?from={first}&to={until + 1}" + (f"&stack={name}" if name else ""),
            "Q02",
        )


def _freed(count: int) -> str:
    return "none was freed" if not count else f"{count:,} {'was' if count == 1 else 'were'} freed"


def buffers_deregistered(about: About) -> Iterator[Finding]:
    """Q11: registered I/O buffers taken away while requests still referred to them."""
    e, p = socket_event.c, process.c
    references = func.json_extract(e.fields, "$.references")
    # These events name no process; the call runs in the caller's thread, so the header does.
    caller = (
        select(p.n).where(p.trace_id == e.trace_id, p.pid == e.pid, p.first_ns <= e.t_ns).order_by(p.first_ns.desc()).limit(1)
    ).scalar_subquery()
    query = (
        select(
            caller.label("process_n"),
            e.pid,
            func.count().label("times"),
            func.min(e.t_ns).label("t_ns"),
            func.max(e.t_ns).label("last_ns"),
            func.max(references).label("most"),
        )
        .where(e.event == DEREGISTERED, references > 0)
        .group_by("process_n", e.pid)
        .order_by(func.count().desc())
        .limit(MAX_PER_RULE)
    )
    for row in about.rows(query):
        span_of = {"from": row.t_ns, "to": row.last_ns}  # one process id has one process after the other
        yield Finding(
            "buffer_deregistered_in_use",
            HIGH,
            row.times,
            row.process_n,
            None,
            row.t_ns,
            f"{about.process(row.process_n).label} deregistered {counted(row.times, 'buffer')} of registered I/O in use",
            said(
                f"{'' if row.times == 1 else 'Up to '}{counted(row.most, 'request')} still referred to "
                f"{'the buffer, at' if row.times == 1 else 'a buffer, first at'} {span(row.t_ns)}.",
                "Certain: the driver counted the references. Next: deregister after the last completion.",
            ),
            CERTAIN,
            about.link("events", event=DEREGISTERED, header_pid=row.pid, references=1, **span_of),
            "Q11",
        )

"""Leak or fragmentation: what held and committed memory of a heap say together, in one sentence with its doubt."""

from collections.abc import Sequence
from dataclasses import dataclass

from app import format as fmt
from app.queries.heap_fill import FillPoint

__all__ = ["FillAnswer", "fill_answer"]

_NOTEWORTHY = 64 * 1024
"""Growth of committed memory below this, or below a tenth of it, is none: a heap grows in steps."""

_MOSTLY, _HARDLY = 70, 30  # percent of the growth of committed memory

_SPARSE = 50  # percent filled
_BIG = 1 << 20


@dataclass(frozen=True, slots=True)
class FillAnswer:
    """`verdict` is one of unknown, held, fragmented, both, neither; never certain, so `doubt` says why."""

    verdict: str
    text: str
    doubt: str


def fill_answer(points: Sequence[FillPoint], *, create_seen: bool) -> FillAnswer:
    """What the points of one heap say; `create_seen` says that all its blocks are known."""
    if not points:
        return FillAnswer(
            "unknown",
            "It cannot be said: up to the end of this range the allocator reported no size of this heap, to compare held memory with.",
            "A heap reports its size when it grows, when it shrinks, and in snapshots.",
        )
    first, last = points[0], points[-1]
    committed, held = last.committed - first.committed, last.held_bytes - first.held_bytes
    span = f"from {fmt.time(first.t_ns)} to {fmt.time(last.t_ns)}"
    grew = f"{span} committed memory grew by {fmt.bytes_text(committed)} to {fmt.bytes_text(last.committed)}"
    free = "" if last.free_space is None else f"; the allocator reports {fmt.bytes_text(last.free_space)} of free space"
    doubt = _doubt(last, create_seen=create_seen)
    if committed < max(_NOTEWORTHY, first.committed // 10):
        fullest = max(points, key=lambda point: point.held_bytes - point.committed)
        if fullest.held_bytes > fullest.committed:
            return FillAnswer("unknown", _outgrown(fullest), doubt)
        return FillAnswer("neither", _steady(points, span, free), doubt)
    part = 100 * held // committed
    kept = (
        f"held memory by {fmt.bytes_text(held)}"
        if held > 0
        else f"held memory fell by {fmt.bytes_text(-held)}"
        if held < 0
        else "held memory not at all"
    )
    share = f", {part} % of that" if held > 0 else ""
    if part >= _MOSTLY:
        return FillAnswer("held", f"Memory that is still held, rather than fragmentation: {grew}, {kept}{share}{free}.", doubt)
    if part <= _HARDLY:
        lead = "Fragmentation, or memory kept after a peak, rather than memory that is still held"
        return FillAnswer("fragmented", f"{lead}: {grew}, {kept}{share}{free}.", doubt)
    return FillAnswer("both", f"Some of both: {grew}, {kept}{share}{free}.", doubt)


def _outgrown(point: FillPoint) -> str:
    """The sentence for a heap whose blocks have no room in the size that it reported."""
    return (
        f"It cannot be said: at {fmt.time(point.t_ns)} known blocks held {fmt.bytes_text(point.held_bytes)}, more than the "
        f"{fmt.bytes_text(point.committed)} that the allocator reported last. The heap grew without a report, or large blocks lie outside "
        "of its segments."
    )


def _steady(points: Sequence[FillPoint], span: str, free: str) -> str:
    """The sentence for a heap that does not grow."""
    first, last = points[0], points[-1]
    moved = last.committed - first.committed
    how = "stays at" if not moved else "fell to" if moved < 0 else "hardly grew, to"
    text = f"Neither: {span} committed memory {how} {fmt.bytes_text(last.committed)}"
    if last.filled_percent is None:
        return f"{text}{free}."
    text += f", of which the known blocks fill {last.filled_percent} %"
    most = max(points, key=lambda point: point.held_bytes)
    if last.filled_percent < _SPARSE and last.committed >= _BIG and most.held_bytes > 2 * max(last.held_bytes, 0):
        text += f"; they filled {most.filled_percent} % at {fmt.time(most.t_ns)}, so it may be kept from that peak"
    return f"{text}{free}."


def _doubt(last: FillPoint, *, create_seen: bool) -> str:
    reasons = ["committed memory is what the heap reported when it last grew, shrank or was looked at"]
    if not create_seen:
        reasons.append("blocks from before the trace are unknown, and so is what their frees made room for")
    if last.held_bytes > last.committed:
        reasons.append("more is held than committed, so large blocks lie outside of the heap's segments")
    reasons.append("blocks count with the size asked for, without what the allocator adds")
    return "Possible, not certain: " + "; ".join(reasons) + "."

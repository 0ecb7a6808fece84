"""Pages that show a range of the trace's time: what the URL asks for, and the links to other ranges."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request

from app import format as fmt
from app.deps import OpenTrace
from app.errors import BadRequest
from app.filters import parse_time
from app.urls import with_query

__all__ = ["RangePart", "asked_moment", "asked_range", "half_open", "range_part", "taints", "whole_trace"]


@dataclass(frozen=True, slots=True)
class RangePart:
    """The range of time that a page shows, and the links to others."""

    from_ns: int
    to_ns: int
    is_whole: bool
    whole_href: str
    wider_href: str
    narrower_href: str
    earlier_href: str
    later_href: str
    kept: Mapping[str, str]

    @property
    def ends(self) -> tuple[str, str]:
        """Its two ends as cells of a table say them: without the word UTC, which stands above."""
        first, last = (text.removesuffix(" UTC") for text in fmt.range_ends(self.from_ns, self.to_ns))
        return first, last


def asked_range(request: Request, whole: tuple[int, int], *, what: str = "trace") -> tuple[int, int]:
    """The range of the query string, the whole where it names none. `what` is whose time the whole is. Raises BadRequest."""
    ends = []
    given = [request.query_params.get(key, "").strip() for key in ("from", "to")]
    for key, text, otherwise in zip(("from", "to"), given, whole, strict=True):
        try:
            ends.append(parse_time(text) if text else otherwise)
        except ValueError as error:
            raise BadRequest(f"{key}={text}: {error}") from error
    if ends[0] >= ends[1] and not all(given):
        lasts = f"The {what} lasts from {fmt.since_start(whole[0])} to {fmt.since_start(whole[1])}"
        asked = f"from={given[0]} begins after its end" if given[0] else f"to={given[1]} ends before it begins"
        raise BadRequest(f"{lasts}, and {asked}: name a time within it.")
    if ends[0] >= ends[1]:
        raise BadRequest(f"from={ends[0]} is not before to={ends[1]}: give a range that runs forward.")
    return ends[0], ends[1]


def asked_moment(request: Request, key: str) -> int | None:
    """A moment of the query string, None where it names none. Raises BadRequest."""
    text = request.query_params.get(key, "").strip()
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise BadRequest(f"{key}={text}: {error}") from error


def range_part(path: str, query: Mapping[str, str], shown: tuple[int, int], whole: tuple[int, int]) -> RangePart:
    """The range that a page at `path` shows, with the links to its neighbours; other parts of the query stay."""
    kept = {key: value for key, value in query.items() if key not in ("from", "to", "after")}
    from_ns, to_ns = shown
    width = to_ns - from_ns

    def to(first: int, last: int) -> str:
        return with_query(path, kept | {"from": str(first), "to": str(max(last, first + 1))})

    return RangePart(
        from_ns=from_ns,
        to_ns=to_ns,
        is_whole=shown == whole,
        whole_href=with_query(path, kept),
        wider_href=to(from_ns - width // 2, to_ns + width // 2),
        narrower_href=to(from_ns + width // 4, to_ns - width // 4),
        earlier_href=to(from_ns - width // 2, to_ns - width // 2),
        later_href=to(from_ns + width // 2, to_ns + width // 2),
        kept=kept,
    )


def half_open(shown: tuple[int, int], whole: tuple[int, int]) -> tuple[int, int]:
    """The window [t0, t1) of a range: up to the end of the trace its last record belongs to it."""
    return shown[0], shown[1] + (shown[1] == whole[1])


def taints(trace: OpenTrace) -> list[tuple[int | None, int | None, str]]:
    """Where in time data was lost: (first_ns, last_ns, words); losses without a time are said by the banner alone."""
    return [(loss.first_ns, loss.last_ns, loss.text) for loss in trace.head.losses if loss.first_ns is not None]


def whole_trace(trace: OpenTrace) -> tuple[int, int]:
    """The time of a whole trace."""
    return 0, max(trace.head.end_ns or 1, 1)

"""What pages that are no lists read from their query string, for the API's description: one row a parameter, the same words everywhere."""

from typing import Any

__all__ = ["PARAMETERS", "described"]

PARAMETERS = {
    "from": (
        "Start of the time range: nanoseconds since the trace's time 0, or a number with a unit. Without it: from the beginning.",
        "1.5s",
    ),
    "to": ("End of the time range, as `from`. Without it: to the end.", "2s"),
    "heap": ("Only this heap of the process, `0xHEAP@NS`.", "0x1e0000@0"),
    "kind": ("Only records of this kind; may be given several times.", "abort"),
    "text": ("Only records that have this text in one of their fields.", "WSAECONNRESET"),
    "after": ("Position that the `next` link of the page before has.", "1500000000"),
    "selected": ("The record to mark.", "1500000000"),
    "end": ("`other` for the other end of a local connection.", "other"),
    "measure": ("What the widths mean: `bytes` or `count`.", "bytes"),
    "what": ("Memory `held` at the end of the range, or all that was `allocated` in it.", "held"),
    "at": ("One moment instead of a range: what is held then.", "1.5s"),
    "a": ("The earlier moment.", "1s"),
    "b": ("The later moment.", "2s"),
    "min_age": ("Leave out blocks that are younger than this at the end.", "10s"),
    "stack": ("The stack to mark, by its hash.", "aaaabbbbccccdddd"),
    "within": ("Time before and after the moment, a second without it.", "50ms"),
    "format": ("The form of the answer; without it the Accept header decides.", "json"),
}
"""The description and an example of each."""


def described(*names: str) -> dict[str, Any]:  # Any: a piece of OpenAPI
    """The parameters of a page by their names, for `openapi_extra`."""
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": PARAMETERS[name][0],
                "schema": {"type": "string"},
                "example": PARAMETERS[name][1],
            }
            for name in names
        ]
    }

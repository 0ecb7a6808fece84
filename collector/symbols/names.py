"""How a place in a program reads as the name of a stack frame: `Pool<Block &,64>::grow+0x1c [pool.cpp:17]`."""

import re
from collections.abc import Sequence

from collector.symbols.reading import Place

__all__ = ["frame_name"]

MAX_FUNCTION = 1_000
"""Names of templates of templates go on for pages; their beginnings tell them apart."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUALIFIERS = re.compile(r"(?<=\))(?: (?:const|volatile|&&?))+$")
_DECORATED = re.compile(rf"\?(\?[01])?({_NAME}(?:@{_NAME})*)@@[A-Z]")


def frame_name(places: Sequence[Place], offset: int) -> str | None:
    """The name of a frame: function, distance from its start, and source line.

    An inlined call has no frame of its own, so it stands in the brackets: `fill+0x17 [pool.cpp:28 → round_up pool.cpp:23]`.

    Args:
        places: those at the frame, innermost inlined call first.
        offset: of the frame itself, in the image.

    Returns: None where nothing is known.
    """
    if not places or not (function := _function(places[-1].function)):
        return None
    sources = [_source(places[-1]), *(f"{_function(place.function)} {_source(place)}".rstrip() for place in reversed(places[:-1]))]
    if len(sources) > 3:
        sources[1:-1] = ["…"]
    source = " → ".join(filter(None, sources))
    return f"{function}+{offset - places[-1].start:#x}" + (f" [{source}]" if source else "")


def _function(name: str) -> str:
    """A function without parameters, in characters that can be shown."""
    name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name.strip())
    name = _without_parameters(_undecorated(name))
    return name if len(name) <= MAX_FUNCTION else name[: MAX_FUNCTION - 1] + "…"


def _undecorated(name: str) -> str:
    """`?send@Socket@net@@QEAA…` is net::Socket::send. Names with templates, operators or back references stay as the linker wrote them."""
    match = _DECORATED.match(name)
    if match is None:
        return name
    parts = match[2].split("@")[::-1]
    if match[1]:  # constructor, destructor: the class stands for the function
        parts.append(("~" if match[1] == "?1" else "") + parts[-1])
    return "::".join(parts)


def _without_parameters(name: str) -> str:
    """What stands before the last pair of parentheses, where that ends the name but for `const` and its like."""
    name = _QUALIFIERS.sub("", name)
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return name if name[:at].endswith("operator") or not at else name[:at]
    return name


def _source(place: Place) -> str:
    if not place.file or not place.line:
        return ""
    file = place.file.replace("/", "\\").rpartition("\\")[2]
    return f"{''.join(c for c in file if c.isprintable())}:{place.line}"

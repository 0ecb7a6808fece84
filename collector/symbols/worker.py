"""The process that has the symbol library inside: reads requests from stdin and answers them on stdout, a JSON line each.

A damaged file can make the library ask for more memory than there is, which ends its process; so it is never the collector's own.
"""

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from symbolic.debuginfo import Object

__all__ = ["main"]


def main() -> int:
    """Answer until stdin ends.

    The first line says whether the library works: `{"ready": true}` or `{"error": …}`. Then `{"path": …}` is answered by
    `{"ids": […]}`, the ids of the symbol files inside; `{"path": …, "id": …, "offsets": […]}` by `{"places": […]}`, for each offset a
    list of [function, its start, file, line], innermost inlined call first; and either by `{"error": …}` for a file that cannot be read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the collector, which ends this process with its stdin
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever the library prints is no answer
    try:
        from symbolic.exceptions import SymbolicError
    except (ImportError, OSError) as error:
        _answer(answers, {"error": str(error)})
        return 1
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object]
        try:
            answer = _places(request) if "id" in request else {"ids": [pdb.debug_id for pdb in _pdbs(request["path"])]}
        except (SymbolicError, OSError, UnicodeError) as error:
            answer = {"error": _reason(error)}
        _answer(answers, answer)
    return 0


def _answer(answers: TextIO, answer: dict[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _reason(error: Exception) -> str:
    """The library's message without the stack of its code."""
    lines = str(getattr(error, "message", error)).splitlines() or [""]
    return lines[0] if not lines[0].startswith("symbolic panicked") else "its content contradicts itself"


def _pdbs(path: str) -> "list[Object]":
    """The symbol files inside a file: one for a PDB, none for others that the library reads."""
    from symbolic.debuginfo import Archive

    return [found for found in Archive.open(os.fsencode(path)).iter_objects() if found.file_format == "pdb"]


def _places(request: dict[str, Any]) -> dict[str, object]:  # Any: parsed JSON, written by `reading`
    for pdb in _pdbs(request["path"]):
        if pdb.debug_id == request["id"]:
            table = pdb.make_symcache()
            found = [table.lookup(offset) for offset in request["offsets"]]
            return {"places": [[[p.symbol, p.sym_addr, p.full_path, p.line] for p in places] for places in found]}
    return {"error": "it was replaced by another one while it was read"}


if __name__ == "__main__":
    sys.exit(main())

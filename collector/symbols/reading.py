"""Asks the process that reads symbol files, and starts another one when a file has ended it."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collector.errors import SymbolsError
from collector.symbols.identity import PdbId

__all__ = ["PdbError", "Place", "Reader"]

_ENDED = "reading it ended the library's process"


class PdbError(Exception):
    """A file that is no readable symbol file; the message is the reason."""


class Place(NamedTuple):
    """One function at an offset. `start` is its first offset (meaningless for an inlined call); `line` is 0 where it is not known."""

    function: str
    start: int
    file: str | None
    line: int


class Reader:
    """The process that has the library inside; a context manager. Raises SymbolsError when the library is missing or does not work."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        if importlib.util.find_spec("symbolic") is None:
            raise SymbolsError('Symbol files are read by the package "symbolic", which is missing. Run: pip install "sockscope[symbols]"')
        self._start()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):  # what it was asked last was never read
                process.communicate()

    def id_of(self, path: Path) -> PdbId:
        """The identity of a symbol file. Raises PdbError."""
        for text in self._ask({"path": str(path)})["ids"]:
            if (found := PdbId.of_library(text)) is not None:
                return found
        raise PdbError("it is no symbol file of a Windows image")

    def places(self, path: Path, pdb: PdbId, offsets: Sequence[int]) -> list[list[Place]]:
        """What is at offsets from the image's start: for each the inlined calls, innermost first, then their function; empty for nothing.

        Raises PdbError, also when the file is another one by now.
        """
        text = f"{pdb.guid}-{pdb.age:x}" if pdb.age else str(pdb.guid)
        answer = self._ask({"path": str(path), "id": text, "offsets": list(offsets)})
        return [[Place(*place) for place in places] for places in answer["places"]]

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:  # Any: parsed JSON, written by `worker`
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except OSError:
            self.close()  # it has ended since the last answer, which says nothing of this file
            process = self._start()
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        answer = self._answer(process)
        if "error" in answer:
            raise PdbError(answer["error"])
        return answer

    def _answer(self, process: "subprocess.Popen[str]") -> dict[str, Any]:  # Any: parsed JSON, written by `worker`
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.endswith("\n"):
            self.close()
            return {"error": _ENDED}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> "subprocess.Popen[str]":
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "collector.symbols.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="ascii",
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        answer = self._answer(process)
        if "ready" not in answer:
            self.close()
            raise SymbolsError(f'The package "symbolic", which reads symbol files, does not work here ({answer["error"]}).')
        return process

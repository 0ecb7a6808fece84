"""Watches a folder into which traces are dropped: says which file has come to rest and was not taken yet."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from collector.errors import SourceError, TraceError
from collector.packages import SUFFIXES
from collector.readers.etl_growing import GrowingFile
from collector.source import Source

__all__ = ["LOOK_SECONDS", "SETTLE_SECONDS", "UNFINISHED_TIMES", "settled_files"]

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 3.0
"""A file that has not changed for so long is taken."""
UNFINISHED_TIMES = 10
"""A file whose session has not ended is waited for so many times as long: it may only be quiet."""


@dataclass(slots=True)
class _Seen:
    """A file as it was at the last look."""

    sign: tuple[int, int, int]
    since: float
    is_taken: bool = False


def settled_files(
    place: Path,
    should_stop: Callable[[], bool],
    *,
    settle_seconds: float = SETTLE_SECONDS,
    on_trouble: Callable[[str], None] = lambda sentence: None,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Path]:
    """The .etl files and packages of a folder, each once it has come to rest and again when it has changed since.

    Without end, until `should_stop`.
    What is in a folder below is left alone. The folder may go away and come back; `on_trouble` is told once each time.

    Raises: SourceError where there is no such folder at the beginning.
    """
    if not place.is_dir():
        raise SourceError(f"{place}: there is no such folder to watch.")
    seen: dict[str, _Seen] = {}
    trouble = ""
    while not should_stop():
        try:
            signs = _signs(place)
        except OSError as error:
            said = f"{place}: this folder cannot be looked at ({error.strerror}); it is tried again."
            if said != trouble:
                trouble = said
                on_trouble(said)
            signs = {}
        else:
            trouble = ""
            seen = {name: one for name, one in seen.items() if name in signs}
        for name, sign in signs.items():
            known = seen.get(name)
            if known is None or known.sign != sign:
                seen[name] = _Seen(sign, now())
            elif not known.is_taken and now() - known.since >= settle_seconds * _patience(place / name):
                known.is_taken = True
                yield place / name
                if should_stop():
                    return
        wait(LOOK_SECONDS)


def _signs(place: Path) -> dict[str, tuple[int, int, int]]:
    """What tells that a file has changed, of each .etl file and package, by name in order."""
    found = {}
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.lower().endswith((".etl", *SUFFIXES)):
                continue
            try:
                state = entry.stat() if os.name != "nt" else Path(entry.path).stat()  # what a folder of Windows says of a file is old
            except OSError:  # gone, or not ours to see: the next look tells
                continue
            if stat.S_ISREG(state.st_mode):
                found[entry.name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return dict(sorted(found.items()))


def _patience(path: Path) -> int:
    """How many times the usual rest a file needs: more while its session has not ended, for it may only be quiet."""
    try:
        with Source.open(path) as source:
            return 1 if GrowingFile().look(source).is_ended else UNFINISHED_TIMES
    except TraceError:  # no trace: whoever takes it says why
        return 1

"""Files of one recording as one trace, without a joined file to keep: the kernel's, Winsock's and a heap's, or the parts of a split one.

Stricter than `sockscope join`, where a user may know better: what cannot be of one recording is refused, with the numbers.
"""

import hashlib
import io
import os
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

from collector.clock import FILETIME_PER_SECOND
from collector.errors import CollectCancelled, NotTogether, Severity, SourceError
from collector.joining import seconds_apart, write_joined
from collector.raw import TraceHeader
from collector.readers import reader_for
from collector.readers.problems import BUFFERS_MISSING, WRAPPED_FILE, ProblemLog
from collector.source import Source, nameless_file

__all__ = ["MOST_APART_S", "MOST_GAP_S", "one_trace"]

MOST_APART_S = 0.05
"""How far the dates of two sessions may disagree with their counters: a date is read some milliseconds beside the counter."""
MOST_BOOTS_APART_S = 2.0
"""The moment of the boot is corrected with the clock."""
_UNWRITTEN = (WRAPPED_FILE, BUFFERS_MISSING)
"""What a joined file has no place for, besides damage: it has other buffers than the files that it was made of."""
MOST_GAP_S = 60.0
"""How long after the end of all others a session may begin: the parts of a split recording follow each other at once."""


def one_trace(sources: Sequence[Source], *, place: Path | None = None, should_cancel: Callable[[], bool] = lambda: False) -> Source:
    """All records of several files as one trace, open; its identity is that of the files, in whatever order they are named.

    Raises: SourceError, FormatError for a file that cannot be read; NotTogether for files that are not of one recording; CollectCancelled.
    """

    def look() -> None:
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")

    by_digest: dict[str, Source] = {}
    for source in sources:
        if source.told_by:
            raise NotTogether(
                f"{source.name} is {source.told_by[0]}, not a recording: it does not tell enough of its machine and its clock to be joined "
                "with other files. Collect it by itself, or name the .etl file that it was made of."
            )
        digest = source.sha256(look)
        if digest in by_digest:
            raise NotTogether(f"{source.name} and {by_digest[digest].name} are the same file: name each file once.")
        by_digest[digest] = source
    digests = sorted(by_digest)
    ordered = [by_digest[digest] for digest in digests]
    names = [source.name for source in ordered]
    readers = [reader_for(source) for source in ordered]
    check_together({name: reader.header for name, reader in zip(names, readers, strict=True)})
    title = " + ".join(source.name for source in sorted(ordered, key=lambda source: source.name))
    try:
        file = nameless_file(place)
    except OSError as error:
        raise SourceError(f"{title}: cannot be joined: {error.strerror or error}.") from error
    try:
        buffered = io.BufferedRandom(file)
        joined = write_joined(names, readers, buffered, should_cancel)
        buffered.detach()
        size = file.seek(0, os.SEEK_END)
    except OSError as error:
        file.close()
        raise SourceError(f"{title}: cannot be joined: {error.strerror or error}.") from error
    except BaseException:
        file.close()
        raise
    identity = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    kept = ProblemLog()
    for _, problem in joined.problems:
        if problem.kind.severity == Severity.DAMAGE or problem.kind in _UNWRITTEN:
            kept.merge(problem)
    return Source(file, sources[0].path, size, name=title, digest=identity, problems=kept.problems())


def check_together(headers: dict[str, TraceHeader]) -> None:
    """Hold what files say of their sessions against each other, by name. Raises NotTogether."""
    for (first, one), (second, other) in combinations(headers.items(), 2):
        pair = f"{first} and {second}"
        if found := _machines(one, other):
            raise NotTogether(f"{pair} were recorded on different machines: {found}. Collect each by itself.")
        if found := _clocks(one, other):
            raise NotTogether(f"{pair} were recorded with different clocks: {found}. Record with one clock, or collect each by itself.")
        if found := _boots(one, other):
            raise NotTogether(f"{pair} are not of one time: {found}. Collect each by itself.")
        apart = seconds_apart(one.clock, other.clock)
        if abs(apart) > MOST_APART_S:
            raise NotTogether(
                f"{pair} do not fit each other: their dates and their counters disagree by {apart:,.3f} s, and of one machine's sessions "
                f"by at most {MOST_APART_S:g} s. They are of different machines or boots, or the system's time was set between them. If "
                "you know that they belong together, join them first: sockscope join FILE FILE --output ALL.etl"
            )
    _check_gaps(headers)


def _machines(one: TraceHeader, other: TraceHeader) -> str:
    for words, a, b in (
        ("pointers have {} and {} bytes", one.pointer_size, other.pointer_size),
        ("Windows {} and {}", one.os_version, other.os_version),
        ("{} and {} processors", one.processors, other.processors),
    ):
        if a != b:
            return words.format(a, b)
    return ""


def _clocks(one: TraceHeader, other: TraceHeader) -> str:
    a, b = one.clock, other.clock
    if a.kind != b.kind:
        return f"{a.kind.name.lower()} and {b.kind.name.lower()}".replace("_", " ")
    if a.ticks_per_second != b.ticks_per_second:
        return f"{a.ticks_per_second:,} and {b.ticks_per_second:,} ticks a second"
    return ""


def _boots(one: TraceHeader, other: TraceHeader) -> str:
    if not (one.boot_filetime and other.boot_filetime):
        return ""
    apart = abs(one.boot_filetime - other.boot_filetime) / FILETIME_PER_SECOND
    return f"the system was started {apart:,.1f} s apart" if apart > MOST_BOOTS_APART_S else ""


def _check_gaps(headers: dict[str, TraceHeader]) -> None:
    """Raises NotTogether where one session begins long after all before it have ended; an end that is not known is no reason."""
    begun = sorted(headers.items(), key=lambda item: item[1].clock.start_filetime)
    last_name, last = begun[0][0], begun[0][1].end_filetime
    for name, header in begun[1:]:
        if not (last and header.clock.start_filetime):
            return
        gap = (header.clock.start_filetime - last) / FILETIME_PER_SECOND
        if gap > MOST_GAP_S:
            raise NotTogether(f"{name} begins {gap:,.0f} s after {last_name} ended: they are two recordings. Collect each by itself.")
        if not header.end_filetime:
            return
        if header.end_filetime > last:
            last_name, last = name, header.end_filetime

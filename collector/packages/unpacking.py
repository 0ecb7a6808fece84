"""From a file that a user names to the traces in it: itself, or what is in the package that it is.

Only what begins as an ETL file or as a text that a tool makes of one is unpacked, into files without a name that the system deletes when
they are closed. The names of the files inside are shown and never used as paths.
"""

import io
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from collector.errors import CollectCancelled, FormatError, PackageError, Problem, SourceError
from collector.packages.archives import members_of_7z, members_of_cabinet
from collector.packages.members import Broken, Encrypted, Member, PackedBytes
from collector.packages.zips import members_of_gzip, members_of_zip
from collector.plain import plain_line
from collector.readers.etl import is_etl
from collector.readers.problems import DAMAGED_PACKAGE
from collector.room import Room
from collector.source import Source, nameless_file
from collector.texts import form_of, trace_of_text

__all__ = ["SUFFIXES", "traces_in"]

SUFFIXES = (".zip", ".diagsession", ".gz", ".cab", ".7z")
"""How names of packages end; what counts are their first bytes."""

_SNIFF_BYTES = 512
_MOST_DEEP = 3
_MOST_TIMES, _LEAST_LIMIT = 250, 1 << 30  # buffers that are nearly empty pack to a hundredth
_SNAPSHOT = "heapstate"
"""How names of heap snapshots in a .diagsession end."""
_NAMES_SHOWN = 5
_NAME_LENGTH = 80


class Kind(NamedTuple):
    """One kind of package: its first bytes, what it is called, its reader."""

    start: bytes
    words: str
    members: Callable[[PackedBytes, str], Iterator[Member]]


KINDS = (
    Kind(b"PK\x03\x04", "zip archive", members_of_zip),
    Kind(b"PK\x05\x06", "zip archive", members_of_zip),
    Kind(b"\x1f\x8b", "gzip file", members_of_gzip),
    Kind(b"MSCF", "cabinet file", members_of_cabinet),
    Kind(b"7z\xbc\xaf\x27\x1c", "7z archive", members_of_7z),
)


@dataclass(slots=True)
class _Unpacking:
    """What all packages inside of one file share: how much may come out of it, where it goes, what else was met."""

    name: str
    most_bytes: int
    place: Path | None
    room: Room
    should_cancel: Callable[[], bool]
    too_much: str = "far more than traces pack to"
    done: int = 0
    found: int = 0
    others: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)

    def count(self, size: int) -> None:
        """Take note of bytes that came out. Raises CollectCancelled; PackageError where it is too much."""
        if self.should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        self.done += size
        if self.done > self.most_bytes:
            raise PackageError(
                f"{self.name}: more than {self.most_bytes:,} bytes come out of this package, {self.too_much}. "
                "If it is sound, unpack it where it lies and collect the .etl file inside."
            )
        if needed := self.room.lacking(self.done):
            raise PackageError(f"{self.name}: there is no room to unpack it: {needed:,} bytes must be left on the disk. Free some.")

    def about_snapshots(self) -> str:
        """What is left out of a package of Visual Studio with heap snapshots; empty for one without."""
        if not self.snapshots:
            return ""
        many = len(self.snapshots) > 1
        names = f"{', '.join(self.snapshots[:_NAMES_SHOWN])}{', …' if len(self.snapshots) > _NAMES_SHOWN else ''}"
        what, verb = ("Heap snapshots", "are") if many else ("A heap snapshot", "is")
        return (
            f"{what} of Visual Studio ({names}) {verb} left out: there is no description of such files. "
            "What is shown of heaps comes from the heap events in the traces alone."
        )

    def nothing(self, words: str) -> PackageError:
        """That there is no trace in a package of some kind, and what was there instead."""
        parts = [f"{self.name}: there is no trace in this {words}."]
        if self.others:
            more = len(self.others) - _NAMES_SHOWN
            parts.append(f"It holds {', '.join(self.others[:_NAMES_SHOWN])}{f' and {more:,} more' if more > 0 else ''}.")
        parts += self.faults[:_NAMES_SHOWN]
        parts += [note] if (note := self.about_snapshots()) else []
        if not self.faults:
            parts.append("Name an .etl file, or a package with one inside.")
        return PackageError(" ".join(parts))


def traces_in(
    path: str | Path,
    *,
    place: Path | None = None,
    should_cancel: Callable[[], bool] = lambda: False,
    on_fault: Callable[[str], None] = lambda sentence: None,
    on_note: Callable[[str], None] = lambda sentence: None,
    most_bytes: int | None = None,
) -> Generator[Source, None, None]:
    """Each trace of a file that a user names, open; the caller closes it. What is no package is given as it is.

    Args:
        place: a folder in which to unpack; the system's for such files where there is none.
        on_fault: told at the end, in a sentence each, what could not be read beside the traces that were found.
        on_note: told at the end, in a sentence each, what of a package is no trace but might be missed.
        most_bytes: how much may come out of a package, where that is less than 250 times its size, or 1 GB for a small one.

    Raises: SourceError, EmptyTrace as `Source.open`; PackageError for a package without a trace, or of which too much comes out;
    CollectCancelled.
    """
    source = Source.open(path)
    kind = _kind_of(source.read_at(0, _SNIFF_BYTES))
    if kind is None:
        yield _read(source, place, should_cancel)
        return
    with source:
        limit = max(_LEAST_LIMIT, _MOST_TIMES * source.size)
        job = _Unpacking(source.name, limit, place, Room(place, at_once=True), should_cancel)
        if most_bytes is not None and most_bytes < limit:
            job.most_bytes, job.too_much = most_bytes, "more than is taken here"
        yield from _unpacked(source, kind, job, depth=1)
        if not job.found:
            raise job.nothing(kind.words)
        for fault in job.faults:
            on_fault(f"{source.name}: {fault}")
        if note := job.about_snapshots():
            on_note(f"{source.name}: {note}")


def _read(source: Source, place: Path | None, should_cancel: Callable[[], bool]) -> Source:
    """The trace that a text is, or what was given."""
    form = form_of(source.read_at(0, _SNIFF_BYTES))
    if form is None:
        return source
    with source:
        return trace_of_text(form, source, place, should_cancel)


def _kind_of(start: bytes) -> Kind | None:
    return next((kind for kind in KINDS if start.startswith(kind.start)), None)


def _unpacked(package: Source, kind: Kind, job: _Unpacking, *, depth: int) -> Generator[Source, None, None]:
    try:
        for member in kind.members(PackedBytes(package), package.name):
            yield from _traces_of(member, package, job, depth)
    except Encrypted:
        job.faults.append(f"This {kind.words} is encrypted: unpack it with its password and name the .etl file inside.")
    except Broken as fault:
        job.faults.append(f"This {kind.words} cannot be read: {fault}.")


def _traces_of(member: Member, package: Source, job: _Unpacking, depth: int) -> Generator[Source, None, None]:
    name = _shown(member.name)
    with closing(_counted(member.pieces, job)) as pieces:
        start = b""
        try:
            while len(start) < _SNIFF_BYTES and (piece := next(pieces, b"")):
                start += piece
        except Encrypted:
            job.faults.append(f"{name} is encrypted: unpack it with its password and name the .etl file.")
            return
        except Broken as fault:
            job.faults.append(f"{name} cannot be unpacked: {fault}.")
            return
        kind = None if is_etl(start) else _kind_of(start)
        is_snapshot = name.lower().endswith(_SNAPSHOT) and not is_etl(start)
        if is_snapshot or (kind is None and not is_etl(start) and form_of(start[:_SNIFF_BYTES]) is None):
            (job.snapshots if is_snapshot else job.others).append(name)
            if member.is_on_the_way:
                _pass(pieces)  # here, where it is counted and can be cancelled
            return
        if kind is not None and depth == _MOST_DEEP:
            job.faults.append(f"{name} is a package in a package {_MOST_DEEP} deep: unpack it and name the .etl file inside.")
            return
        source = _copied(chain((start,), pieces), name if kind else f"{name} (in {job.name})", package.path, job.place)
    if kind is None:
        try:
            source = _read(source, job.place, job.should_cancel)
        except FormatError as error:
            job.faults.append(str(error))
            return
        job.found += 1
        yield source
        return
    with source:
        yield from _unpacked(source, kind, job, depth=depth + 1)
        job.faults += [f"{name} is damaged: {problem.details['found']}." for problem in source.problems]


def _pass(pieces: Iterator[bytes]) -> None:
    with suppress(Broken):  # what is damaged is no trace; the library says whether it can go on
        for _ in pieces:
            pass


def _counted(pieces: Iterator[bytes], job: _Unpacking) -> Generator[bytes, None, None]:
    for piece in pieces:
        job.count(len(piece))
        yield piece


def _copied(pieces: Iterator[bytes], name: str, path: Path, place: Path | None) -> Source:
    """Bytes in a file that nobody else sees; it knows where they end too soon. Raises SourceError, CollectCancelled, PackageError."""
    problems = []
    try:
        file = nameless_file(place)
    except OSError as error:
        raise SourceError(f"{name}: cannot be unpacked: {error.strerror or error}.") from error
    try:
        try:
            for piece in pieces:
                _write(file, piece)
        except Broken as fault:
            problems.append(Problem(DAMAGED_PACKAGE, details={"found": str(fault)}))
        size = file.seek(0, os.SEEK_END)
    except OSError as error:
        file.close()
        raise SourceError(f"{name}: cannot be unpacked: {error.strerror or error}.") from error
    except BaseException:
        file.close()
        raise
    return Source(file, path, size, name=name, problems=problems)


def _write(file: io.FileIO, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) :]


def _shown(name: str) -> str:
    """The last part of a name, cut to what fits a message, in one line."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2] or "a file without a name"
    return plain_line(last if len(last) <= _NAME_LENGTH else f"{last[:_NAME_LENGTH]}…")

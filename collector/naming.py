"""Gives the stack frames of a trace the names of their functions, from the symbol files of their modules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, tuple_, update
from sqlalchemy import Row as RowOf

from collector.errors import CollectCancelled
from collector.store import locks
from collector.store.engine import TraceFolder
from collector.store.tables import module, stack_frame
from collector.store.writer import amended
from collector.symbols import Builds, LoadedImage, PdbError, PdbId, Symbols, frame_name

__all__ = ["Naming", "find_names", "name_trace", "write_names"]

_CHUNK = 20_000
_SHOWN = 8
_UNSIGNED = (1 << 64) - 1

_Spot = tuple[int, bool]
"""Offset in the image, and whether the frame is the innermost of its stack."""


@dataclass(slots=True)
class Naming:
    """Names found for a trace's frames, and what there is to say about them."""

    frames: int = 0
    """Frames that lie in a module."""
    named: int = 0
    """Frames for which there is a name, from these files or from others before."""
    changed: int = 0
    """Frames whose name is to be written."""
    files: int = 0
    """Symbol files that were used."""
    lines: list[str] = field(default_factory=list)
    """One for each thing that a user should know."""
    names: dict[PdbId, dict[_Spot, str]] = field(default_factory=dict)
    builds: Builds = field(default_factory=lambda: Builds(()))

    def summary(self) -> str:
        """One line for the user."""
        files = f"{self.files:,} symbol {'file' if self.files == 1 else 'files'}"
        return f"{self.named:,} of {self.frames:,} frames have a name; {files} used, {self.changed:,} names new"

    def name_of(self, frame: RowOf[Any]) -> str | None:  # Any: a row of `_frames`
        """The name of a frame; None unless all builds that can be at its address agree on one."""
        found = {self.names.get(pdb, {}).get(_spot(frame)) if pdb else None for pdb in _builds_at(self.builds, frame)}
        return found.pop() if len(found) == 1 else None


def name_trace(folder: TraceFolder, key: str, symbols: Symbols, should_cancel: Callable[[], bool]) -> Naming:
    """Write names into a finished trace, on a copy that takes its place; a trace without new names is left alone.

    Names that it has and these symbol files do not know stay. Raises StoreError and what is below it, CollectCancelled.
    """
    with locks.held(folder.lock_path(key), f"Trace {key} is being changed by another collector. Try again when that is done."):
        with folder.trace(key).connect() as connection:
            naming = find_names(connection, symbols, should_cancel)
        if naming.changed:
            with amended(folder, key, should_cancel) as connection:
                write_names(connection, naming, should_cancel)
    return naming


def find_names(connection: Connection, symbols: Symbols, should_cancel: Callable[[], bool]) -> Naming:
    """Look the frames of a trace up; in memory are the distinct places in modules, and one symbol file at a time.

    Raises CollectCancelled.
    """
    builds = Builds(_images(connection))
    naming = Naming(builds=builds)
    asked: dict[PdbId, set[_Spot]] = {}
    mixed, unknown = set[str](), set[str]()
    for rows in _frames(connection, should_cancel):
        for row in rows:
            found = _builds_at(builds, row)
            for pdb in found:
                if pdb is not None:
                    asked.setdefault(pdb, set()).add(_spot(row))
            if len(found) > 1:
                mixed.add(row.module)
            elif None in found or not found:
                unknown.add(row.module)
    if not builds.pdb_names:
        naming.lines.append(
            "this trace does not say which symbol files its modules have. Merging writes that down: xperf -merge, or wpr -stop; "
            "do it on the machine where the trace was recorded."
        )
    else:
        if unknown:
            naming.lines.append(f"the trace does not say which symbol files these modules have: {_some(unknown)}.")
        _look_up(naming, {pdb: asked[pdb] for pdb in sorted(asked, key=str)}, symbols, should_cancel)
    for rows in _frames(connection, should_cancel):
        naming.frames += len(rows)
        for row in rows:
            name = naming.name_of(row)
            naming.named += (name or row.symbol) is not None
            naming.changed += name not in (None, row.symbol)
    if mixed:
        naming.lines.append(f"several builds of a module lay at one address; frames on which they disagree have no name: {_some(mixed)}.")
    return naming


def write_names(connection: Connection, naming: Naming, should_cancel: Callable[[], bool]) -> None:
    """Write what `find_names` found in this trace, and commit. Raises CollectCancelled, StoreFull, StoreError."""
    c = stack_frame.c
    statement = (
        update(stack_frame)
        .where(c.trace_id == 1, c.stack_n == bindparam("at_stack"), c.frame == bindparam("at_frame"))
        .values(symbol=bindparam("name"))
    )
    for rows in _frames(connection, should_cancel):
        named = ((row, naming.name_of(row)) for row in rows)
        changes = [{"at_stack": row.stack_n, "at_frame": row.frame, "name": name} for row, name in named if name not in (None, row.symbol)]
        if changes:
            connection.execute(statement, changes)
    connection.commit()


def _look_up(naming: Naming, asked: dict[PdbId, set[_Spot]], symbols: Symbols, should_cancel: Callable[[], bool]) -> None:
    found = symbols.find({pdb: naming.builds.pdb_names[pdb] for pdb in asked}, should_cancel)
    naming.lines += found.lines
    if found.missing:
        missing = _some(f"{name} ({pdb})" for pdb, name in found.missing.items())
        naming.lines.append(f"no symbol file was found for {missing}.")
    for pdb, path in found.paths.items():
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        spots = sorted(asked[pdb])
        try:
            # A return address points behind its call, which may be the last of its function, line or inlined call.
            places = symbols.places(path, pdb, [offset if is_innermost else max(offset - 1, 0) for offset, is_innermost in spots])
        except PdbError as error:
            naming.lines.append(f"{path}: this symbol file cannot be read ({error}); it was skipped.")
            continue
        naming.files += 1
        named = ((spot, frame_name(there, spot[0])) for spot, there in zip(spots, places, strict=True))
        naming.names[pdb] = {spot: name for spot, name in named if name is not None}


def _frames(connection: Connection, should_cancel: Callable[[], bool]) -> Iterator[Sequence[RowOf[Any]]]:  # Any: columns below
    """The frames that lie in modules, in pieces."""
    c = stack_frame.c
    question: Select[Any] = select(c.stack_n, c.frame, c.address, c.module, c.offset, c.symbol).where(c.trace_id == 1)
    question = question.order_by(c.stack_n, c.frame).limit(_CHUNK)
    after = (-1, -1)
    while True:
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        rows = connection.execute(question.where(tuple_(c.stack_n, c.frame) > after)).all()
        if not rows:
            return
        after = rows[-1].stack_n, rows[-1].frame
        yield [row for row in rows if row.module is not None and row.offset is not None]


def _images(connection: Connection) -> Iterator[LoadedImage]:
    c = module.c
    rows = connection.execute(
        select(c.file, c.base, c.size_bytes, c.timestamp, c.pdb_guid, c.pdb_age, c.pdb_name).where(c.trace_id == 1).order_by(c.n)
    )
    for row in rows:
        pdb = PdbId.parsed(row.pdb_guid, row.pdb_age)
        yield LoadedImage(row.file, row.base & _UNSIGNED, row.size_bytes & _UNSIGNED, row.timestamp, pdb, row.pdb_name)


def _builds_at(builds: Builds, frame: RowOf[Any]) -> frozenset[PdbId | None]:  # Any: a row of `_frames`
    return builds.at(frame.module, (frame.address & _UNSIGNED) - (frame.frame > 0))


def _spot(frame: RowOf[Any]) -> _Spot:  # Any: a row of `_frames`
    return frame.offset, frame.frame == 0


def _some(words: Iterator[str] | set[str]) -> str:
    """The first of many in alphabetical order, and how many there are besides."""
    known = sorted(words)
    shown = ", ".join(known[:_SHOWN])
    return shown if len(known) <= _SHOWN else f"{shown} and {len(known) - _SHOWN:,} more"

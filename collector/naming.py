"""Gives the stack frames of a trace the names of their functions, from the symbol files of their modules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection, Select, bindparam, select, tuple_, update

from collector.errors import CollectCancelled
from collector.store.stores import TraceStore
from collector.store.tables import THIS_TRACE, module, stack_frame
from collector.store.writer import amended
from collector.symbols import Builds, LoadedImage, PdbError, PdbId, Symbols, frame_name

__all__ = ["Naming", "find_names", "name_trace", "write_names"]

_CHUNK = 20_000
_SHOWN = 8
_UNSIGNED = (1 << 64) - 1

_Frame: TypeAlias = tuple[int, int, int, str, int, str | None]
"""Stack, place in it (0: innermost), address, module, offset in it, name so far."""
_Spot: TypeAlias = tuple[str, int, int, bool]
"""Module, address and offset of a frame, and whether it is innermost: what its name depends on."""
_Offset: TypeAlias = tuple[int, bool]


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
    names: dict[_Spot, str] = field(default_factory=dict)

    def summary(self) -> str:
        """One line for the user."""
        files = f"{self.files:,} symbol {'file' if self.files == 1 else 'files'}"
        return f"{self.named:,} of {self.frames:,} frames have a name; {files} used, {self.changed:,} names new"

    def new_name(self, frame: _Frame) -> str | None:
        """The name to write for a frame; None where there is none or it is there already."""
        _, place, address, module_name, offset, symbol = frame
        name = self.names.get((module_name, address, offset, place == 0))
        return None if name == symbol else name


def name_trace(folder: TraceStore, key: str, symbols: Symbols, should_cancel: Callable[[], bool]) -> Naming:
    """Write names into a finished trace, on a copy that takes its place; a trace without new names is left alone.

    Names that it has and these symbol files do not know stay. Raises StoreError and what is below it, CollectCancelled.
    """
    with folder.collecting(key, f"Trace {key} is being changed by another collector. Try again when that is done."):
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
    builds, naming = Builds(_images(connection)), Naming()
    spots: dict[_Spot, frozenset[PdbId | None]] = {}
    for frames in _frames(connection, should_cancel):
        for _, place, address, module_name, offset, _ in frames:
            spot = module_name, address, offset, place == 0
            if spot not in spots:
                spots[spot] = builds.at(module_name, (address & _UNSIGNED) - (place > 0))
    if builds.pdb_names:
        _look_up(naming, builds, spots, symbols, should_cancel)
    else:
        naming.lines.append(
            "this trace does not say which symbol files its modules have. Merging writes that down: xperf -merge, or wpr -stop; "
            "do it on the machine where the trace was recorded."
        )
    for frames in _frames(connection, should_cancel):
        naming.frames += len(frames)
        for frame in frames:
            name = naming.new_name(frame)
            naming.changed += name is not None
            naming.named += (name or frame[-1]) is not None
    return naming


def write_names(connection: Connection, naming: Naming, should_cancel: Callable[[], bool]) -> None:
    """Write what `find_names` found in this trace, and commit. Raises CollectCancelled, StoreFull, StoreError."""
    c = stack_frame.c
    statement = (
        update(stack_frame)
        .where(c.trace_id == 1, c.stack_n == bindparam("at_stack"), c.frame == bindparam("at_frame"))
        .values(symbol=bindparam("name"))
    )
    for frames in _frames(connection, should_cancel):
        named = ((frame[0], frame[1], naming.new_name(frame)) for frame in frames)
        changes = [{"at_stack": stack, "at_frame": place, "name": name} for stack, place, name in named if name is not None]
        if changes:
            connection.execute(statement, changes)
    connection.commit()


def _look_up(
    naming: Naming, builds: Builds, spots: dict[_Spot, frozenset[PdbId | None]], symbols: Symbols, should_cancel: Callable[[], bool]
) -> None:
    """Names of spots, whose builds are given; one only where all builds that can be there agree."""
    asked: dict[PdbId, set[_Offset]] = {}
    unknown, mixed = set[str](), set[str]()
    for (module_name, _, offset, is_innermost), found in spots.items():
        if len(found) > 1:
            mixed.add(module_name)
        elif not found or None in found:
            unknown.add(module_name)
        for pdb in found:
            if pdb is not None:
                asked.setdefault(pdb, set()).add((offset, is_innermost))
    if unknown:
        naming.lines.append(f"the trace does not say which symbol files these modules have: {_some(unknown)}.")
    if mixed:
        naming.lines.append(f"several builds of a module lay at one address; frames on which they disagree have no name: {_some(mixed)}.")
    texts = _ask(naming, {pdb: builds.pdb_names[pdb] for pdb in sorted(asked, key=str)}, asked, symbols, should_cancel)
    for spot, found in spots.items():
        agreed = {texts.get(pdb, {}).get(spot[2:]) if pdb else None for pdb in found}
        if len(agreed) == 1 and (name := agreed.pop()) is not None:
            naming.names[spot] = name


def _ask(
    naming: Naming, wanted: dict[PdbId, str], asked: dict[PdbId, set[_Offset]], symbols: Symbols, should_cancel: Callable[[], bool]
) -> dict[PdbId, dict[_Offset, str]]:
    """Names by build and offset, from the symbol files that there are."""
    found = symbols.find(wanted, should_cancel)
    naming.lines += found.lines
    if found.missing:
        missing = _some({f"{name} ({pdb})" for pdb, name in found.missing.items()})
        naming.lines.append(f"no symbol file was found for {missing}.")
    texts: dict[PdbId, dict[_Offset, str]] = {}
    for pdb, path in found.paths.items():
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        offsets = sorted(asked[pdb])
        try:
            # A return address points behind its call, which may be the last of its function, line or inlined call.
            places = symbols.places(path, pdb, [offset if is_innermost else max(offset - 1, 0) for offset, is_innermost in offsets])
        except PdbError as error:
            naming.lines.append(f"{path}: this symbol file cannot be read ({error}); it was skipped.")
            continue
        naming.files += 1
        named = ((offset, frame_name(there, offset[0])) for offset, there in zip(offsets, places, strict=True))
        texts[pdb] = {offset: name for offset, name in named if name is not None}
    return texts


def _frames(connection: Connection, should_cancel: Callable[[], bool]) -> Iterator[list[_Frame]]:
    """The frames that lie in modules, in pieces: a reader's statement must not run for long.

    Takes the driver's tuples, as a row object for each frame would cost more than the query.
    """
    c = stack_frame.c
    question: Select[Any] = select(c.stack_n, c.frame, c.address, c.module, c.offset, c.symbol)  # Any: see _Frame
    question = question.where(c.trace_id == THIS_TRACE).order_by(c.stack_n, c.frame).limit(_CHUNK)
    after = (-1, -1)
    while True:
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        cursor = connection.execute(question.where(tuple_(c.stack_n, c.frame) > after)).cursor
        assert cursor is not None, "a query has a result"
        rows: Sequence[_Frame] = cursor.fetchall()
        if not rows:
            return
        after = rows[-1][:2]
        yield [row for row in rows if row[3] is not None and row[4] is not None]


def _images(connection: Connection) -> Iterator[LoadedImage]:
    c = module.c
    rows = connection.execute(
        select(c.file, c.base, c.size_bytes, c.timestamp, c.pdb_guid, c.pdb_age, c.pdb_name).where(c.trace_id == THIS_TRACE).order_by(c.n)
    )
    for row in rows:
        pdb = PdbId.parsed(row.pdb_guid, row.pdb_age)
        yield LoadedImage(row.file, row.base & _UNSIGNED, row.size_bytes & _UNSIGNED, row.timestamp, pdb, row.pdb_name)


def _some(words: set[str]) -> str:
    """The first of many in alphabetical order, and how many there are besides."""
    shown = ", ".join(sorted(words)[:_SHOWN])
    return shown if len(words) <= _SHOWN else f"{shown} and {len(words) - _SHOWN:,} more"

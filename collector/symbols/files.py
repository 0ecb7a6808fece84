"""Finds the symbol files of images in folders: a flat one, a tree, or a symbol store (`name.pdb/ID/name.pdb`)."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.errors import CollectCancelled, SymbolsError
from collector.symbols.identity import PdbId
from collector.symbols.reading import PdbError, Place, Reader

__all__ = ["Found", "Symbols"]

_SHOWN = 5


@dataclass(slots=True)
class Found:
    """Symbol files by identity, and a line for each thing that a user should know about the others."""

    paths: dict[PdbId, Path] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    missing: dict[PdbId, str] = field(default_factory=dict)
    """Those of which there is no file of any id, by name."""


class Symbols:
    """The symbol files in folders; a context manager.

    Raises SymbolsError for a folder that is not there, and when the library is missing.
    """

    def __init__(self, folders: Iterable[str | Path]) -> None:
        given = [Path(folder) for folder in folders]
        self._paths = sorted({path for folder in given for path in _symbol_files(folder)})
        self._asked_for = frozenset(given)
        self._known: dict[Path, PdbId | str] = {}
        """Identity of each file looked into, or the reason why there is none."""
        self._reader = Reader()

    def __enter__(self) -> "Symbols":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def find(self, wanted: Mapping[PdbId, str], should_cancel: Callable[[], bool]) -> Found:
        """Find files by their identity alone, whatever they are called; those with the right names are looked at first.

        Args:
            wanted: names as images give them, for messages.

        Raises: CollectCancelled.
        """
        found, left = Found(), dict(wanted)
        names = {_key(name) for name in wanted.values()}
        others: dict[str, list[tuple[Path, PdbId]]] = {}
        for path in sorted(self._paths, key=lambda path: _key(path.name) not in names):
            if not left:
                break
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was stored.")
            own = self._identity(path, left)
            if isinstance(own, PdbId):
                others.setdefault(_key(path.name), []).append((path, own))
                if left.pop(own, None) is not None:
                    found.paths[own] = path
            elif _key(path.name) in names or path in self._asked_for:
                found.lines.append(f"{path}: this symbol file cannot be read ({own}); it was skipped.")
        for pdb, name in left.items():
            if same := others.get(_key(name)):
                found.lines.append(_another(name, pdb, same))
            else:
                found.missing[pdb] = name
        return found

    def places(self, path: Path, pdb: PdbId, offsets: Sequence[int]) -> list[list[Place]]:
        """What is at offsets from the image's start; see `Reader.places`. Raises PdbError."""
        return self._reader.places(path, pdb, offsets)

    def _identity(self, path: Path, wanted: Mapping[PdbId, str]) -> PdbId | str:
        """The identity that a file says it has; a symbol store's folder is believed when it says that the file is none of those wanted."""
        if path not in self._known:
            stored = PdbId.of_store(path.parent.name) if _key(path.parent.parent.name) == _key(path.name) else None
            if stored is not None and stored not in wanted:
                return stored
            try:
                self._known[path] = self._reader.id_of(path)
            except PdbError as error:
                self._known[path] = str(error)
        return self._known[path]


def _symbol_files(folder: Path) -> list[Path]:
    """All files of a folder and those below it that are called .pdb; also a single file. Links to folders are not followed."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise SymbolsError(f"{folder}: there is no such folder of symbol files.")
    found = []
    for root, _, names in os.walk(folder):
        found += [Path(root, name) for name in names if name.lower().endswith(".pdb")]
    return found


def _key(name: str) -> str:
    """File names compare as on Windows, and images may name their symbol file with the folders of the machine that built them."""
    return name.replace("/", "\\").rpartition("\\")[2].lower()


def _another(name: str, pdb: PdbId, same: list[tuple[Path, PdbId]]) -> str:
    """One line on files of the right name and the wrong identity."""
    if len(same) == 1:
        ((path, own),) = same
        return f"found {path} but its id {own} is not the trace's {pdb}; it was not used."
    ids = ", ".join(str(own) for _, own in same[:_SHOWN]) + (", …" if len(same) > _SHOWN else "")
    return f"found {len(same):,} files called {_key(name)} but none has the trace's id {pdb} (theirs: {ids})."

"""Which build of a module a stack frame lies in: stacks name modules by file name, and a trace can have several files of one name."""

from collections.abc import Iterable
from dataclasses import dataclass

from collector.symbols.identity import PdbId

__all__ = ["Builds", "LoadedImage"]


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """An image as it was loaded somewhere; `base` is unsigned, `pdb` None where the trace does not say it."""

    file: str
    base: int
    size: int
    timestamp: int | None
    pdb: PdbId | None
    pdb_name: str | None


class Builds:
    """All images of a trace."""

    def __init__(self, images: Iterable[LoadedImage]) -> None:
        images = list(images)
        told: dict[tuple[str, int, int | None], set[PdbId]] = {}
        for image in images:
            if image.pdb is not None:
                told.setdefault(_file(image), set()).add(image.pdb)
        self._spans: dict[str, set[tuple[int, int, PdbId | None]]] = {}
        self.pdb_names: dict[PdbId, str] = {}
        """What the images call their symbol files."""
        for image in images:
            same_file = told.get(_file(image), set())
            pdb = image.pdb or (next(iter(same_file)) if len(same_file) == 1 else None)
            name = image.file.replace("/", "\\").rpartition("\\")[2].lower()
            self._spans.setdefault(name, set()).add((image.base, image.base + image.size, pdb))
            if image.pdb is not None:
                self.pdb_names.setdefault(image.pdb, image.pdb_name or name)
        self._only = {name: ids for name, spans in self._spans.items() if len(ids := frozenset(pdb for _, _, pdb in spans)) == 1}

    def at(self, module: str, address: int) -> frozenset[PdbId | None]:
        """Identities of the images called `module` that lie at an address; None in it for an image whose identity is not known.

        An address and not a process: equal stacks of several processes are one, and its addresses are those of the first.
        """
        name = module.lower()
        if (only := self._only.get(name)) is not None:
            return only
        return frozenset(pdb for lo, hi, pdb in self._spans.get(name, ()) if lo <= address < hi)


def _file(image: LoadedImage) -> tuple[str, int, int | None]:
    """What is the same for the same file in another process: its identity may be told once."""
    return image.file.lower(), image.size, image.timestamp

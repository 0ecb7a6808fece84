"""Images loaded into processes and the kernel, with the identity of their symbol files."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from collector.model.process_events import numbers_of, texts_of
from collector.model.rows import Lines, rows_of, signed
from collector.model.threads import Owner
from collector.schema import DecodedBatch, EventColumns

__all__ = ["Module", "Modules"]

_KERNEL = -1
_IMAGE_EVENTS = ("ImageLoad", "ImageDCStart", "ImageUnload", "ImageDCEnd")
_IDENTITY_EVENTS = ("ImageId", "DbgIdRsds")


@dataclass(slots=True, eq=False)
class Module:
    """One image in one process (-1: the kernel), for one stretch of time.

    `loaded_*` is None for "before the trace", `unloaded_*` for "never". `file` is the NT path, with a drive letter once the trace has told
    which volume is which.
    """

    process_n: int
    base: int
    size: int
    file: str
    loaded_seq: int | None = None
    loaded_ticks: int | None = None
    loaded_ns: int | None = None
    unloaded_seq: int | None = None
    unloaded_ticks: int | None = None
    unloaded_ns: int | None = None
    timestamp: int | None = None
    pdb_name: str | None = None
    pdb_guid: UUID | None = None
    pdb_age: int | None = None

    def holds(self, address: int) -> bool:
        return self.base <= address < self.base + self.size


@dataclass(frozen=True, slots=True)
class _Image:
    event: str
    seq: int
    ticks: int
    ns: int
    pid: int
    base: int
    size: int
    timestamp: int
    file: str


@dataclass(slots=True)
class _Identity:
    """What the merge found out about an image; its records stand before the image event of the same time."""

    ticks: int
    timestamp: int = 0
    pdb_name: str | None = None
    pdb_guid: UUID | None = None
    pdb_age: int | None = None


class Modules:
    """The modules of all processes, in the order in which they were met."""

    def __init__(self) -> None:
        self._all: list[Module] = []
        self._by_process: dict[int, list[Module]] = {}
        self._at: dict[tuple[int, int], Module] = {}
        """The latest module at (process, base)."""
        self._by_pid: dict[tuple[int, int], list[Module]] = {}
        self._identities: dict[tuple[int, int], list[_Identity]] = {}
        """Those that no image event has taken yet, by (process id, base)."""
        self._volumes: dict[str, str] = {}

    def of(self, n: int) -> Sequence[Module]:
        """The modules of a process, or of the kernel."""
        return self._by_process.get(n, ())

    def advance(self, batch: DecodedBatch, owner: Owner) -> None:
        """Take in a window. Loops over image events (4 µs each; some thousand a process)."""
        for name in _IDENTITY_EVENTS:
            columns = batch.get(name)
            if columns is not None:
                self._take_identities(batch, columns)
        images: list[_Image] = []
        for name in _IMAGE_EVENTS:
            columns = batch.get(name)
            if columns is not None:
                images += _images(batch, columns)
        for image in sorted(images, key=lambda image: image.seq):
            self._apply(image, owner)
        volumes = batch.get("VolumeMapping")
        if volumes is not None:
            self._volumes.update(zip(volumes.texts("nt_path"), volumes.texts("dos_path"), strict=True))

    def finish(self) -> None:
        """Join the identities that stand alone, and give files the letters of their volumes."""
        for key, identities in self._identities.items():
            candidates = [module for module in self._by_pid.get(key, ()) if module.pdb_name is None]
            if len(candidates) == 1:
                _identify(candidates[0], identities[-1])
        self._identities = {}
        prefixes = sorted(((nt.rstrip("\\") + "\\", dos.rstrip("\\") + "\\") for nt, dos in self._volumes.items() if nt), key=len)
        for module in self._all:
            for nt, dos in prefixes:
                if module.file.lower().startswith(nt.lower()):
                    module.file = dos + module.file[len(nt) :]
                    break

    def rows(self) -> Lines:
        """Rows of the table `module`."""
        modules = self._all
        return rows_of(
            "module",
            {
                "n": list(range(len(modules))),
                "process_n": [None if m.process_n == _KERNEL else m.process_n for m in modules],
                "base": [signed(m.base) for m in modules],
                "size_bytes": [signed(m.size) for m in modules],
                "file": [m.file for m in modules],
                "loaded_ns": [m.loaded_ns for m in modules],
                "unloaded_ns": [m.unloaded_ns for m in modules],
                "timestamp": [m.timestamp for m in modules],
                "pdb_name": [m.pdb_name for m in modules],
                "pdb_guid": [None if m.pdb_guid is None else str(m.pdb_guid) for m in modules],
                "pdb_age": [m.pdb_age for m in modules],
            },
            count=len(modules),
        )

    def _apply(self, image: _Image, owner: Owner) -> None:
        is_late = image.event == "ImageUnload"
        is_sight = image.event in ("ImageLoad", "ImageDCStart")
        n = owner(image.pid, image.seq, image.ns, is_late=is_late, is_sight=is_sight) if image.pid else _KERNEL
        last = self._at.get((n, image.base))
        is_there = last is not None and last.unloaded_seq is None
        is_same = is_there and last is not None and last.size == image.size and last.file.lower() == image.file.lower()
        if is_there and last is not None and (image.event == "ImageLoad" or not is_same):
            _unload(last, image)  # its own unload was lost
        if image.event == "ImageLoad" or not is_same or last is None:
            module = self._open(image, n, last)
        else:
            module = last
        if image.event == "ImageUnload":
            _unload(module, image)
        module.timestamp = module.timestamp or image.timestamp or None
        self._give_identity(image, module)

    def _open(self, image: _Image, n: int, last: Module | None) -> Module:
        module = Module(n, image.base, image.size, image.file)
        if image.event == "ImageLoad":
            module.loaded_seq, module.loaded_ticks, module.loaded_ns = image.seq, image.ticks, image.ns
        elif last is not None:  # at the earliest when the one before was gone
            module.loaded_seq, module.loaded_ticks, module.loaded_ns = last.unloaded_seq, last.unloaded_ticks, last.unloaded_ns
        self._all.append(module)
        self._by_process.setdefault(n, []).append(module)
        self._by_pid.setdefault((image.pid, image.base), []).append(module)
        self._at[n, image.base] = module
        return module

    def _take_identities(self, batch: DecodedBatch, columns: EventColumns) -> None:
        number, text = numbers_of(columns), texts_of(columns)
        bases, pids, timestamps, ages = number("image_base"), number("process_id"), number("time_date_stamp"), number("age")
        names = text("pdb_name")
        guids = columns.numbers("guid") if "guid" in columns.fields else np.zeros((len(columns), 16), dtype=np.uint8)
        for i, row in enumerate(columns.rows.tolist()):
            ticks = int(batch.raw.ticks[row])
            waiting = self._identities.setdefault((pids[i] or 0, bases[i] or 0), [])
            identity = next((known for known in waiting if known.ticks == ticks), None)
            if identity is None:
                identity = _Identity(ticks)
                waiting.append(identity)
            identity.timestamp = timestamps[i] or identity.timestamp
            if columns.name == "DbgIdRsds":
                identity.pdb_name, identity.pdb_age = names[i], ages[i]
                identity.pdb_guid = UUID(bytes_le=guids[i].tobytes())

    def _give_identity(self, image: _Image, module: Module) -> None:
        key = image.pid, image.base
        waiting = self._identities.get(key, [])
        for identity in waiting:
            # An identity stands before its image, at the same time (etl-format S11); one that comes later is for the next image here.
            same_file = identity.timestamp and identity.timestamp == image.timestamp and identity.ticks <= image.ticks
            if identity.ticks == image.ticks or same_file:
                _identify(module, identity)
                waiting.remove(identity)
                break
        if not waiting:
            self._identities.pop(key, None)


def _images(batch: DecodedBatch, columns: EventColumns) -> list[_Image]:
    raw = batch.raw
    number, files = numbers_of(columns), texts_of(columns)("file_name")
    bases, sizes, pids, timestamps = number("image_base"), number("image_size"), number("process_id"), number("time_date_stamp")
    return [
        _Image(
            columns.name,
            raw.first_seq + row,
            int(raw.ticks[row]),
            int(batch.ns[row]),
            owner,
            bases[i] or 0,
            sizes[i] or 0,
            timestamps[i] or 0,
            files[i],
        )
        for i, row in enumerate(columns.rows.tolist())
        if (owner := _pid(pids[i], int(raw.pid[row]))) >= 0
    ]


def _pid(told: int | None, of_header: int) -> int:
    """Process id of an image event; version 0 has only that of the header, -1 where there is none."""
    return of_header if told is None else told


def _unload(module: Module, image: _Image) -> None:
    module.unloaded_seq, module.unloaded_ticks, module.unloaded_ns = image.seq, image.ticks, image.ns


def _identify(module: Module, identity: _Identity) -> None:
    module.timestamp = module.timestamp or identity.timestamp or None
    if identity.pdb_name is not None:
        module.pdb_name, module.pdb_guid, module.pdb_age = identity.pdb_name, identity.pdb_guid, identity.pdb_age

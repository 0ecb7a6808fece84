"""Raw records to one set of columns per event name, for all records of a window at once."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.embedded import METADATA, EmbeddedLayouts
from collector.events import NEIGHBOURS, OWN_PROVIDERS, SCHEMAS
from collector.layout import layout_of
from collector.layout_fields import select
from collector.raw import Forms, HeaderKind, RawEvents, TraceHeader
from collector.schema import Column, DecodedBatch, EventColumns, EventKey, EventSchema, Ragged, SchemaTable

__all__ = ["Decoder", "Tally", "VersionKey"]

Bools: TypeAlias = NDArray[np.bool_]
Int16s: TypeAlias = NDArray[np.int16]
Int64s: TypeAlias = NDArray[np.int64]

VersionKey: TypeAlias = tuple[EventKey, int]
"""An event and the version in its header."""

_Group: TypeAlias = tuple[tuple[int, int, int], Int64s]
"""Slot, version and pointer size, and the rows of the records that have them, ascending."""

_FOREIGN, _UNKNOWN, _METADATA, _FIRST_KEY = 0, 1, 2, 3
_CLASSIC_NUMBERS, _EVENT_IDS = 256, 65536


@dataclass(slots=True)
class Tally:
    """How often something was met, and where; times are raw clock ticks."""

    count: int
    first_ticks: int
    last_ticks: int
    place: str
    """The first one, in the words of the file."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Records of one event name that share a layout."""

    rows: Int64s
    fields: dict[str, Column]
    missing: dict[str, Bools]


class Decoder:
    """Decodes the windows of one trace, in their order.

    It learns the layouts that the trace brings along, and counts what did not fit: `damaged` payloads too short for their layout or of
    another size than it allows, `newer` ones of a version above all that we have, `trailing` ones longer than their layout,
    `unknown` ones of our own providers without any layout, `passed_over` events that merely help and fit no layout that is sure.
    """

    def __init__(self, schemas: SchemaTable = SCHEMAS, header: TraceHeader | None = None, *, own: Iterable[UUID] = OWN_PROVIDERS) -> None:
        self.header = header
        self.damaged: dict[VersionKey, Tally] = {}
        self.newer: dict[VersionKey, Tally] = {}
        self.trailing: dict[VersionKey, Tally] = {}
        self.unknown: dict[VersionKey, Tally] = {}
        self.passed_over: dict[VersionKey, Tally] = {}
        self.embedded = EmbeddedLayouts(frozenset(s.name for layouts in schemas.values() for s in layouts))
        self._schemas = schemas
        self._keys = list(schemas)
        self._own = frozenset(own)
        self._slots: list[Int16s] = []
        self._slot_table: Int16s = np.zeros(0, dtype=np.int16)
        self._bases: Int64s = np.zeros((0, 2), dtype=np.int64)

    def decode(self, raw: RawEvents, clock: Clock) -> DecodedBatch:
        """Decode one window; the columns are copies, only `raw` itself refers to the reader's memory."""
        slots = self._slots_of(raw.forms, raw.providers)
        groups = _groups_of(raw, slots)
        self._learn(raw, _sorted([rows for (slot, _, _), rows in groups if slot == _METADATA]))
        out = _Window(raw)
        for slot, by_version in itertools.groupby((g for g in groups if g[0][0] >= _FIRST_KEY), key=lambda group: group[0][0]):
            self._decode_key(out, self._keys[slot - _FIRST_KEY], list(by_version))
        self._decode_unknown(out, _sorted([rows for (slot, _, _), rows in groups if slot == _UNKNOWN]))
        known: Bools = (slots >= _METADATA).take(raw.form)
        described, damaged = _sorted(out.described), _sorted(out.damaged)
        known[described] = True
        for rows in out.passed_over:
            known[rows] = False
        return DecodedBatch(
            raw=raw,
            ns=clock.ns(raw.ticks),
            events={name: _merge(name, parts) for name, parts in out.parts.items()},
            unknown=_sorted(out.unknown),
            damaged=damaged,
            newer=_sorted(out.newer),
            known=known,
            described=np.setdiff1d(described, damaged, assume_unique=True) if described.size else described,
        )

    # ------------------------------------------------------------------------------------------------ which event

    def _slots_of(self, forms: Forms, providers: list[UUID]) -> Int16s:
        """What records of each form are: foreign, unknown, metadata, or a key of the schemas; int16, one a form."""
        if len(providers) > len(self._bases):
            self._add_providers(providers)
        slots = np.zeros(len(forms), dtype=np.int16)
        if slots.size:
            is_event = (forms.kind == HeaderKind.EVENT64) | (forms.kind == HeaderKind.EVENT32)
            bases = self._bases[forms.provider, is_event.view(np.int8)]
            bases[forms.kind == HeaderKind.MESSAGE] = -1
            ours = np.flatnonzero(bases >= 0)
            numbers = np.where(is_event[ours], forms.event_id[ours], forms.opcode[ours])
            slots[ours] = self._slot_table[bases[ours] + numbers]
        return slots

    def _add_providers(self, providers: list[UUID]) -> None:
        """Give each new provider its stretch of the table from event number to slot; foreign ones have none (-1)."""
        bases = self._bases.tolist()
        for provider in providers[len(bases) :]:
            bases.append([self._stretch(provider, is_classic=True), self._stretch(provider, is_classic=False)])
        self._bases = np.array(bases, dtype=np.int64).reshape(-1, 2)
        self._slot_table = np.concatenate(self._slots) if self._slots else np.zeros(0, dtype=np.int16)

    def _stretch(self, provider: UUID, *, is_classic: bool) -> int:
        keys = [(i, key) for i, key in enumerate(self._keys) if key.provider == provider and key.is_classic == is_classic]
        is_metadata = provider == METADATA and is_classic
        if not keys and provider not in self._own and not is_metadata:
            return -1
        stretch = np.full(_CLASSIC_NUMBERS if is_classic else _EVENT_IDS, _UNKNOWN if provider in self._own else _FOREIGN, dtype=np.int16)
        for i, key in keys:
            stretch[key.number] = i + _FIRST_KEY
        if is_metadata:
            stretch[[32, 33]] = _METADATA
        base = sum(s.size for s in self._slots)
        self._slots.append(stretch)
        return base

    # ------------------------------------------------------------------------------------------------ which layout

    def _learn(self, raw: RawEvents, rows: Int64s) -> None:
        """Take in the layouts that stand in the window (some hundred a file)."""
        for row in rows.tolist():
            self.embedded.learn(int(raw.opcode[row]), raw.payload_bytes(row))

    def _decode_key(self, out: "_Window", key: EventKey, groups: list[_Group]) -> None:
        """Decode the records of one event, which come by version and pointer size."""
        layouts = self._schemas[key]
        highest = max((v for s in layouts for v in s.versions), default=None)
        for version, same in itertools.groupby(groups, key=lambda group: group[0][1]):
            sized = [(pointer_size, rows) for (_, _, pointer_size), rows in same]
            is_newer = highest is not None and version > highest
            is_neighbour = key in NEIGHBOURS
            if (is_newer or is_neighbour) and (described := self.embedded.layout(key, version, like=layouts[-1])):
                self._read(out, key, version, (described,), sized)
                continue
            fitting = _layouts_for(layouts, version)
            if is_neighbour and (not fitting or self.embedded.layout(key, version)):  # the trace knows better what it is
                self._pass_over(out, key, version, _sorted([rows for _, rows in sized]))
                continue
            if not fitting:
                self._count(self.unknown, out.raw, key, version, rows := _sorted([rows for _, rows in sized]))
                out.unknown.append(rows)
                continue
            if is_newer:
                self._count(self.newer, out.raw, key, version, rows := _sorted([rows for _, rows in sized]))
                out.newer.append(rows)
            self._read(out, key, version, fitting, sized)

    def _decode_unknown(self, out: "_Window", rows: Int64s) -> None:
        """Events of our providers that we have no layout for: by the file's own, or kept raw."""
        for (key, version), group in _identities(out.raw, rows):
            described = self.embedded.layout(key, version)
            if described is None:
                self._count(self.unknown, out.raw, key, version, group)
                out.unknown.append(group)
            else:
                out.described.append(group)
                self._read(out, key, version, (described,), _split(group, out.raw.pointer_size[group]))

    def _read(self, out: "_Window", key: EventKey, version: int, layouts: tuple[EventSchema, ...], sized: list[tuple[int, Int64s]]) -> None:
        """Read records of one event and version, by pointer size; several layouts are exact ones, told apart by the payload's size."""
        raw = out.raw
        for pointer_size, left in sized:
            for schema in layouts:
                reading = layout_of(schema, 4 if pointer_size == 4 else 8).read(
                    raw.data,
                    raw.payload[left],
                    raw.payload_size[left].astype(np.int64),
                    exactly=schema.is_exact and (version in schema.versions),
                )
                good = left[reading.fits] if not reading.fits.all() else left
                if good.size:
                    out.parts.setdefault(schema.name, []).append(_Part(good, reading.fields, reading.missing))
                if reading.longer.size:
                    self._count(self.trailing, raw, key, version, left[reading.longer])
                left = left[~reading.fits]
                if not left.size:
                    break
            else:
                if key in NEIGHBOURS:
                    self._pass_over(out, key, version, left)
                    continue
                self._count(self.damaged, raw, key, version, left)
                out.damaged.append(left)

    def _pass_over(self, out: "_Window", key: EventKey, version: int, rows: Int64s) -> None:
        """Leave out events that no layout fits and that nothing depends on."""
        self._count(self.passed_over, out.raw, key, version, rows)
        out.passed_over.append(rows)

    def _count(self, tallies: dict[VersionKey, Tally], raw: RawEvents, key: EventKey, version: int, rows: Int64s) -> None:
        first, last = int(raw.ticks[rows[0]]), int(raw.ticks[rows[-1]])
        known = tallies.get((key, version))
        if known is None:
            tallies[key, version] = Tally(int(rows.size), first, last, raw.place(int(rows[0])))
        else:
            known.count += int(rows.size)
            known.last_ticks = last


class _Window:
    """What decoding has found so far in one window."""

    def __init__(self, raw: RawEvents) -> None:
        self.raw = raw
        self.parts: dict[str, list[_Part]] = {}
        self.unknown: list[Int64s] = []
        self.described: list[Int64s] = []
        self.damaged: list[Int64s] = []
        self.newer: list[Int64s] = []
        self.passed_over: list[Int64s] = []
        """Of events that help, those without a layout that is sure."""


def _groups_of(raw: RawEvents, slots: Int16s) -> list[_Group]:
    """Rows of all but foreign records by (slot, version, pointer size), in the order of these; each in the window's order."""
    forms = raw.forms
    keys = np.stack([slots, forms.version, forms.pointer_size], axis=1).astype(np.int64)
    keys[slots < _FIRST_KEY, 1:] = 0  # what is no event of ours needs no telling apart
    distinct, group_of_form = np.unique(keys, axis=0, return_inverse=True)
    # Sorting numbers of 16 bits goes by counting, which is several times as quick.
    numbers = group_of_form.reshape(-1).astype(np.int16 if len(distinct) < 1 << 15 else np.int32)
    group = numbers.take(raw.form)
    ours = np.flatnonzero((slots != _FOREIGN).take(raw.form)) if (slots == _FOREIGN).any() else None
    chosen = group if ours is None else group[ours]
    order = np.argsort(chosen, kind="stable")
    counts = np.bincount(chosen, minlength=len(distinct))
    rows = order if ours is None else ours[order]
    ends = np.cumsum(counts).tolist()
    return [
        ((int(slot), int(version), int(pointer_size)), rows[end - count : end])
        for (slot, version, pointer_size), count, end in zip(distinct.tolist(), counts.tolist(), ends, strict=True)
        if count
    ]


def _layouts_for(layouts: tuple[EventSchema, ...], version: int) -> tuple[EventSchema, ...]:
    """Layouts of a version; without one, those of the highest version below it; empty where all are above."""
    below = [v for s in layouts for v in s.versions if v <= version]
    chosen = max(below, default=None)
    return tuple(s for s in layouts if not s.versions or chosen in s.versions)


def _split(rows: Int64s, values: NDArray[np.generic]) -> list[tuple[int, Int64s]]:
    """Rows by the value that each has; nearly always it is one value."""
    numbers = values.astype(np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return [(low, rows)]
    return [(int(value), rows[numbers == value]) for value in np.unique(numbers).tolist()]


def _identities(raw: RawEvents, rows: Int64s) -> list[tuple[VersionKey, Int64s]]:
    """Rows by event and version, each in their order."""
    if not rows.size:
        return []
    is_event = (raw.kind[rows] == HeaderKind.EVENT64) | (raw.kind[rows] == HeaderKind.EVENT32)
    numbers = np.where(is_event, raw.event_id[rows], raw.opcode[rows])
    table = np.stack([raw.provider[rows], is_event, numbers, raw.version[rows]], axis=1).astype(np.int64)
    kinds, which = np.unique(table, axis=0, return_inverse=True)
    found = []
    for i, (provider, event, number, version) in enumerate(kinds.tolist()):
        key = EventKey(raw.providers[provider], not event, number)
        found.append(((key, version), rows[which.reshape(-1) == i]))
    return found


def _sorted(groups: list[Int64s]) -> Int64s:
    if len(groups) == 1:
        return groups[0]
    return np.sort(np.concatenate(groups)) if groups else np.zeros(0, dtype=np.int64)


def _merge(name: str, parts: list[_Part]) -> EventColumns:
    """One set of columns from parts of different version, pointer size or key; fields that a part lacks are missing there."""
    if len(parts) == 1:
        return EventColumns(name, parts[0].rows, parts[0].fields, parts[0].missing)
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    names = list(dict.fromkeys(name for part in parts for name in part.fields))
    fields: dict[str, Column] = {}
    missing: dict[str, Bools] = {}
    for field_name in names:
        fields[field_name] = select(_joined(field_name, parts), order)
        absent = np.concatenate([_absent(field_name, part) for part in parts])
        if absent.any():
            missing[field_name] = absent[order]
    return EventColumns(name, rows[order], fields, missing)


def _absent(name: str, part: _Part) -> Bools:
    if name not in part.fields:
        return np.ones(part.rows.size, dtype=np.bool_)
    return part.missing.get(name, np.zeros(part.rows.size, dtype=np.bool_))


def _joined(name: str, parts: list[_Part]) -> Column:
    """One field of all parts, one part behind the other; zero, '' or empty where a part lacks it."""
    columns = [(part.fields.get(name), part.rows.size) for part in parts]
    present = [column for column, _ in columns if column is not None]
    if isinstance(present[0], list):
        return [text for column, count in columns for text in (column if isinstance(column, list) else [""] * count)]
    if isinstance(present[0], Ragged):
        ragged = [c if isinstance(c, Ragged) else Ragged(np.zeros(0, np.uint64), np.zeros(n + 1, np.int64)) for c, n in columns]
        counts = np.concatenate([np.diff(r.starts) for r in ragged])
        starts = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        return Ragged(np.concatenate([r.values for r in ragged]), starts)
    arrays = [column for column in present if isinstance(column, np.ndarray)]
    dtype = np.result_type(*arrays)
    width = max((a.shape[1] for a in arrays if a.ndim == 2), default=0)
    total = sum(count for _, count in columns)
    joined = np.zeros((total, width) if width else (total,), dtype=dtype)
    at = 0
    for column, count in columns:
        if isinstance(column, np.ndarray):
            if width:
                joined[at : at + count, : column.shape[1]] = column
            else:
                joined[at : at + count] = column
        at += count
    return joined

"""Forms of record headers: all that a header says but size, time, ids, keyword and activity, as one small number a record.

A trace has some dozen forms, so kind, provider, event, version and the place of the user data are read once a form and looked up for
each record. Layouts: etl-format S4.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from collector.raw import Forms, HeaderKind, Int32s, Int64s, UInt8s, UInt64s
from collector.readers.etl_headers import HeaderColumns, header_columns
from collector.readers.etl_losses import MARKER_OPCODES
from collector.readers.etl_providers import LOST_EVENT, NO_PROVIDER, Providers
from collector.readers.etl_walk import (
    COMPACT,
    DATA_BLOCK,
    EVENT,
    FULL,
    INSTANCE,
    PERFINFO,
    SYSTEM,
    Walk,
    gather,
    is_uniform,
    message_layout,
    record_codes,
)

__all__ = ["MAX_FORMS", "FormTable"]

Bools = NDArray[np.bool_]

MAX_FORMS = 1 << 16
"""Real traces have some dozen, those of many trace messages some thousand."""

_EVENT_FLAGS, _MESSAGE_FLAGS = 0xC0, 0x90
_PLACE_BITS = 16
_SPREADS = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))

# Tables by the upper half of a record's first dword: type byte, then flags byte.
_KEPT = np.full(1 << 16, 0x0000_0000_FFFF_0000, np.uint64)
"""The bits of a record's first word that belong to its form: not those of its size, and none of what nobody documents."""
_HAS_GUID = np.zeros(1 << 16, np.bool_)
"""Whether a GUID stands at byte 24."""
_IS_EVENT = np.zeros(1 << 16, np.bool_)

for _kind in (*SYSTEM, *COMPACT, *PERFINFO):
    _KEPT[_EVENT_FLAGS << 8 | _kind] = 0xFFFF_0000_FFFF_FFFF
for _kind in (*FULL, *INSTANCE, *EVENT):
    _KEPT[_EVENT_FLAGS << 8 | _kind] = 0xFFFF_FFFF_FFFF_0000
    _HAS_GUID[_EVENT_FLAGS << 8 | _kind] = True
for _kind in EVENT:
    _IS_EVENT[_EVENT_FLAGS << 8 | _kind] = True
_KEPT[_MESSAGE_FLAGS << 8 : (_MESSAGE_FLAGS + 1) << 8] = 0xFFFF_FFFF_FFFF_0000
# The type byte of these means something else, or nothing.
_KEPT[DATA_BLOCK << 8 : (DATA_BLOCK + 1) << 8] = 0x0000_0000_FF00_0000

_PLAIN_IDS = np.zeros(256, np.bool_)
_PLAIN_IDS[[*SYSTEM, *COMPACT, *FULL, *INSTANCE, *EVENT]] = True
_ITEMS_FLAG = np.uint64(1 << 32)
_NO_KEY = np.uint64((1 << 64) - 1)
"""No record has it as its first word, of which _KEPT takes a part away."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """What tells one form from another, uint64 (n,): the first word without the size, the GUID, the event's descriptor."""

    first: UInt64s
    guid_low: UInt64s
    guid_high: UInt64s
    descriptor: UInt64s

    def at(self, rows: Int64s) -> "_Keys":
        return _Keys(*(column[rows] for column in self.columns))

    @property
    def columns(self) -> tuple[UInt64s, UInt64s, UInt64s, UInt64s]:
        return self.first, self.guid_low, self.guid_high, self.descriptor

    def hashes(self) -> UInt64s:
        """64 mixed bits of each."""
        mixed = self.first * _SPREADS[0]
        mixed ^= self.guid_low * _SPREADS[1]
        mixed ^= self.guid_high * _SPREADS[3]
        mixed ^= self.descriptor * _SPREADS[2]
        mixed *= _SPREADS[0]
        return mixed

    def equal(self, other: "_Keys") -> Bools:
        same: Bools = self.first == other.first
        for mine, theirs in zip(self.columns[1:], other.columns[1:], strict=True):
            same &= mine == theirs
        return same


_NONE = np.zeros(0, np.uint64)


class FormTable:
    """The forms of one file, numbered at first sight; columns of equal length besides those of `forms`.

    Beyond MAX_FORMS, records of further ones share one form for each layout of their header, which says neither provider nor event:
    so neither memory nor the time of a window grows with what a file makes up.
    """

    fixed: Int64s
    """Bytes of the header without extended items."""
    has_items: Bools
    """Whether extended items may follow the header."""
    has_plain_ids: Bools
    """Whether thread and process id stand in the second word."""
    is_event: Bools
    is_message: Bools
    is_marker: Bools
    """Whether the record says that something was lost."""
    is_nameless: Bools
    """Whether the record's provider got no number of its own."""
    is_beyond: Bools
    """Whether the form stands for all those beyond MAX_FORMS."""

    def __init__(self, providers: Providers, file_pointer_size: int) -> None:
        self.providers: Final = providers
        self.file_pointer_size: Final = file_pointer_size
        self._keys = _Keys(_NONE, _NONE, _NONE, _NONE)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._beyond: dict[tuple[int, ...], int] = {}
        self._places = np.zeros((2, 1 << _PLACE_BITS), np.int32)
        none = np.zeros(0, np.int32)
        self.forms = Forms(none.astype(np.uint8), none.astype(np.uint8), none, none, none.astype(np.uint8), none, none.astype(np.uint8))
        self.fixed = none.astype(np.int64)
        self.has_items = self.has_plain_ids = self.is_event = self.is_message = self.is_marker = self.is_nameless = none.astype(np.bool_)
        self.is_beyond = none.astype(np.bool_)

    def __len__(self) -> int:
        return len(self.forms)

    def of(self, data: UInt8s, found: Walk) -> Int32s:
        """The form of each record, int32 (n,); new forms are learned."""
        if not found.positions.size:
            return np.zeros(0, np.int32)
        keys = _keys_of(data, found)
        hashes = keys.hashes()
        if not len(self):
            self._learn(data, found, keys, np.zeros(1, np.int64))
        form: Int32s = self._places[0].take(_place(hashes, 0))
        missed = np.flatnonzero(~self._has(form, keys))
        if missed.size:
            # Those that another form has pushed out of their first place are in their second one, nearly always.
            second = self._places[1].take(_place(hashes[missed], 1))
            form[missed] = second
            missed = missed[~self._has(second, keys.at(missed))]
        if missed.size:
            _, first, inverse = np.unique(np.stack(keys.at(missed).columns, axis=1), axis=0, return_index=True, return_inverse=True)
            form[missed] = self._learn(data, found, keys, missed[first])[inverse.reshape(-1)]
        return form

    def _has(self, form: Int32s, keys: _Keys) -> Bools:
        """Whether these are the forms that have these keys."""
        return _Keys(*(column.take(form) for column in self._keys.columns)).equal(keys)

    def _learn(self, data: UInt8s, found: Walk, keys: _Keys, rows: Int64s) -> Int32s:
        """Numbers for the forms of some records, each a different form; what they say is read when they are new."""
        listed = list(zip(*(column[rows].tolist() for column in keys.columns), strict=True))
        numbers = np.array([self._numbers.get(key, -1) for key in listed], np.int32)
        new = np.flatnonzero(numbers < 0)
        room = max(0, MAX_FORMS - len(self._numbers))
        if (own := new[:room]).size:
            numbers[own] = np.arange(len(self), len(self) + own.size, dtype=np.int32)
            self._numbers.update(zip((listed[i] for i in own.tolist()), numbers[own].tolist(), strict=True))
            added = keys.at(rows[own])
            for which, places in enumerate(self._places):
                places[_place(added.hashes(), which)] = numbers[own]
            self._add(added, self._headers(data, found, rows[own]), found.first[rows[own]], is_beyond=False)
        if (beyond := new[room:]).size:
            numbers[beyond] = self._learn_beyond(self._headers(data, found, rows[beyond]), found.first[rows[beyond]])
        return numbers

    def _learn_beyond(self, headers: HeaderColumns, first: UInt64s) -> Int32s:
        """The shared form of each of some headers: by what says where the parts of a record are."""
        has_items = _is_event(headers.kind) & ((first & _ITEMS_FLAG) != 0)
        layouts = np.stack([headers.kind, headers.pointer_size, headers.fixed, has_items], axis=1).astype(np.int64)
        distinct, at, which = np.unique(layouts, axis=0, return_index=True, return_inverse=True)
        listed = [tuple(layout) for layout in distinct.tolist()]
        if (new := np.array([i for i, layout in enumerate(listed) if layout not in self._beyond], np.int64)).size:
            self._beyond.update((listed[i], len(self) + n) for n, i in enumerate(new.tolist()))
            key = np.full(new.size, _NO_KEY)
            self._add(_Keys(key, key, key, key), _nameless(headers, at[new]), first[at[new]], is_beyond=True)
        numbers = np.array([self._beyond[layout] for layout in listed], np.int32)
        return numbers[which.reshape(-1)]

    def _headers(self, data: UInt8s, found: Walk, rows: Int64s) -> HeaderColumns:
        return header_columns(data, found.positions[rows], file_pointer_size=self.file_pointer_size)

    def _add(self, keys: _Keys, new: HeaderColumns, first: UInt64s, *, is_beyond: bool) -> None:
        """Take in what the headers of new forms say."""
        self._keys = _Keys(*(np.append(*both) for both in zip(self._keys.columns, keys.columns, strict=True)))
        old, provider = self.forms, self.providers.of(new)
        self.forms = Forms(
            np.append(old.kind, new.kind),
            np.append(old.pointer_size, new.pointer_size),
            np.append(old.provider, provider),
            np.append(old.event_id, new.event_id),
            np.append(old.opcode, new.opcode),
            np.append(old.version, new.version),
            np.append(old.level, new.level),
        )
        is_event = _is_event(new.kind)
        is_marker = (provider == self.providers.find(LOST_EVENT)) & np.isin(new.opcode, MARKER_OPCODES)
        has_guid = (new.group == -1) & ((new.guid_low | new.guid_high) != 0)
        self.fixed = np.append(self.fixed, new.fixed)
        self.has_items = np.append(self.has_items, is_event & ((first & _ITEMS_FLAG) != 0))
        self.has_plain_ids = np.append(self.has_plain_ids, _PLAIN_IDS[new.kind])
        self.is_event = np.append(self.is_event, is_event)
        self.is_message = np.append(self.is_message, new.kind == HeaderKind.MESSAGE)
        self.is_marker = np.append(self.is_marker, is_marker)
        self.is_nameless = np.append(self.is_nameless, has_guid & (provider == self.providers.find(NO_PROVIDER)))
        self.is_beyond = np.append(self.is_beyond, np.full(new.kind.size, is_beyond))


def _is_event(kind: UInt8s) -> Bools:
    is_event: Bools = (kind == HeaderKind.EVENT64) | (kind == HeaderKind.EVENT32)
    return is_event


def _nameless(headers: HeaderColumns, rows: Int64s) -> HeaderColumns:
    """Some headers without what tells events apart."""
    some = HeaderColumns(**{field.name: getattr(headers, field.name)[rows] for field in fields(HeaderColumns)})
    nothing = np.zeros(rows.size, np.int32)
    return replace(
        some,
        event_id=nothing,
        opcode=nothing.astype(np.uint8),
        version=nothing,
        level=nothing.astype(np.uint8),
        group=nothing - 2,
        guid_low=nothing.astype(np.uint64),
        guid_high=nothing.astype(np.uint64),
    )


def _place(hashes: UInt64s, which: int) -> Int64s:
    """Where a quick table would have forms of these hashes: 16 of their bits, other ones in the second table."""
    shifted = hashes >> np.uint64(64 - _PLACE_BITS * (which + 1))
    places: Int64s = (shifted & np.uint64((1 << _PLACE_BITS) - 1) if which else shifted).view(np.int64)
    return places


def _keys_of(data: UInt8s, found: Walk) -> _Keys:
    words = data.view(np.uint64)
    at = found.positions >> 3
    code = record_codes(found.first)
    if is_uniform(code) and _IS_EVENT[code[0]]:
        return _Keys(found.first & _KEPT[code[0]], words.take(at + 3), words.take(at + 4), words.take(at + 5))
    first = found.first & _KEPT.take(code)
    has_guid, is_event = _HAS_GUID.take(code), _IS_EVENT.take(code)
    guid_low, guid_high, descriptor = np.zeros((3, at.size), np.uint64)
    rows = np.flatnonzero(has_guid)
    guid_low[rows], guid_high[rows] = words.take(at[rows] + 3), words.take(at[rows] + 4)
    rows = np.flatnonzero(is_event)
    descriptor[rows] = words.take(at[rows] + 5)
    rows = np.flatnonzero((code >> 8) == _MESSAGE_FLAGS)
    if rows.size:
        layout = message_layout((first[rows] >> np.uint64(48)).view(np.int64))
        is_short = layout.payload > found.sizes[rows]
        descriptor[rows] = is_short  # its parts cannot be read
        named = np.flatnonzero((layout.guid >= 0) & ~is_short)
        guid = gather(data, found.positions[rows[named]] + layout.guid[named], 16).view(np.uint64)
        guid_low[rows[named]], guid_high[rows[named]] = guid[:, 0], guid[:, 1]
    return _Keys(first, guid_low, guid_high, descriptor)

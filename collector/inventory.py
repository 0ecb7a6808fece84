"""What is in a trace: all its records counted by identity, those of foreign providers too."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np

from collector.clock import Clock
from collector.model.rows import Lines, rows_of
from collector.provider_names import ProviderNames
from collector.raw import Forms, HeaderKind, Int64s, RawEvents, UInt64s
from collector.schema import DecodedBatch

__all__ = ["EventCount", "Inventory", "kind_name"]

_NUMBERED = (HeaderKind.EVENT32, HeaderKind.EVENT64, HeaderKind.MESSAGE)
"""Kinds whose identity is a number; that of the others is the opcode."""
_NAMES = {kind.value: kind.name for kind in HeaderKind}
_SLOT_BITS = 16
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, bits well mixed: Fibonacci hashing
_INT64 = np.iinfo(np.int64)


def kind_name(kind: int) -> str:
    """The name of a header kind; those that nobody documents are named by their number."""
    return _NAMES.get(kind, f"KIND_{kind}")


@dataclass(frozen=True, slots=True)
class EventCount:
    """All records of one identity."""

    provider: UUID
    provider_name: str | None
    header_kind: str
    event_id: int | None
    """None for classic records, whose identity is the opcode."""
    opcode: int
    version: int
    event_name: str | None
    count: int
    known: int
    """How many of them have a layout."""
    damaged: int
    first_ticks: int
    last_ticks: int


class Inventory:
    """Counts records by (provider, header kind, event id, opcode, version), window by window; some 10 ns a record."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._identities = _Identities()
        self._names = ProviderNames()
        self._providers: list[UUID] = []
        self._event_names: dict[int, str] = {}
        self._count = np.zeros(0, np.int64)
        self._known = np.zeros(0, np.int64)
        self._damaged = np.zeros(0, np.int64)
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)

    def add(self, batch: DecodedBatch) -> None:
        """Count a decoded window."""
        codes = self.add_raw(batch.raw)
        self._known += np.bincount(codes[batch.known], minlength=self._count.size)
        self._damaged += np.bincount(codes[batch.damaged], minlength=self._count.size)
        for name, columns in batch.events.items():
            for code in np.flatnonzero(np.bincount(codes[columns.rows], minlength=1)).tolist():
                self._event_names.setdefault(code, name)

    def add_raw(self, raw: RawEvents) -> Int64s:
        """Count a window that nobody decodes; gives the identity number of each row, int64 (n,)."""
        self._names.learn(raw)
        self._providers = raw.providers
        codes: Int64s = self._identities.of(raw.forms).take(raw.form)
        new = len(self._identities) - self._count.size
        if new:
            nothing = np.zeros(new, np.int64)
            self._count = np.append(self._count, nothing)
            self._known = np.append(self._known, nothing)
            self._damaged = np.append(self._damaged, nothing)
            self._first = np.append(self._first, nothing + _INT64.max)
            self._last = np.append(self._last, nothing + _INT64.min)
        count = np.bincount(codes, minlength=self._count.size)
        present = np.flatnonzero(count)
        self._count += count
        # Ticks ascend within a window, and of several values for one place the last one stays.
        edge = np.empty(self._count.size, np.int64)
        edge[codes[::-1]] = raw.ticks[::-1]
        self._first[present] = np.minimum(self._first[present], edge[present])
        edge[codes] = raw.ticks
        self._last[present] = np.maximum(self._last[present], edge[present])
        return codes

    def counts(self) -> list[EventCount]:
        """All identities, the most frequent first; equal ones by provider and number."""
        found = [
            EventCount(
                provider=self._providers[identity.provider],
                provider_name=self._names[self._providers[identity.provider]],
                header_kind=kind_name(identity.kind),
                event_id=identity.event_id,
                opcode=identity.opcode,
                version=identity.version,
                event_name=self._event_names.get(code),
                count=int(self._count[code]),
                known=int(self._known[code]),
                damaged=int(self._damaged[code]),
                first_ticks=int(self._first[code]),
                last_ticks=int(self._last[code]),
            )
            for code, identity in enumerate(self._identities.all())
            if self._count[code]  # a form may be known before its first record is counted
        ]
        return sorted(found, key=lambda c: (-c.count, str(c.provider), c.event_id or 0, c.opcode, c.version, c.header_kind))

    def rows(self) -> Lines:
        """Rows of the table event_count, numbered from 1 in the order of `counts`."""
        counts = self.counts()
        return rows_of(
            "event_count",
            {
                "n": range(1, len(counts) + 1),
                "provider": [str(c.provider) for c in counts],
                "provider_name": [c.provider_name for c in counts],
                "event_id": [c.event_id for c in counts],
                "opcode": [c.opcode for c in counts],
                "version": [c.version for c in counts],
                "header_kind": [c.header_kind for c in counts],
                "event_name": [c.event_name for c in counts],
                "count": [c.count for c in counts],
                "known": [c.known > 0 for c in counts],
                "damaged": [c.damaged for c in counts],
                "first_ns": [self._clock.ns_of(c.first_ticks) for c in counts],
                "last_ns": [self._clock.ns_of(c.last_ticks) for c in counts],
            },
            count=len(counts),
        )


@dataclass(frozen=True, slots=True)
class _Identity:
    provider: int
    kind: int
    event_id: int | None
    opcode: int
    version: int


class _Identities:
    """Small numbers for identities, given at first sight.

    An identity is packed into 64 bits: provider 24, kind 8, then 16 and 8 bits around the opcode that hold event id and version
    (one byte) of EVENT records, message number of messages, and the version (two bytes) of classic ones. A table of 2^16 places,
    asked by a hash, knows the number of most; the few that share their place with another are searched.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        self._numbers: dict[int, int] = {}
        self._places = np.zeros(1 << _SLOT_BITS, np.int64)

    def __len__(self) -> int:
        return self._keys.size

    def of(self, forms: Forms) -> Int64s:
        """Identity number of each form of header."""
        keys = _packed(forms)
        if not keys.size:
            return np.zeros(0, np.int64)
        place = (keys * _SPREAD) >> np.uint64(64 - _SLOT_BITS)
        if not self._keys.size:
            self._learn(keys[:1])
        codes: Int64s = self._places[place]
        missed = np.flatnonzero(self._keys[codes] != keys)
        if missed.size:
            unique, inverse = np.unique(keys[missed], return_inverse=True)
            codes[missed] = self._learn(unique)[inverse]
        return codes

    def all(self) -> list[_Identity]:
        """Every identity, by number."""
        return [_unpacked(key) for key in self._keys.tolist()]

    def _learn(self, keys: UInt64s) -> Int64s:
        """Numbers of distinct keys; new ones are given, and get their place in the table."""
        numbers = [self._numbers.setdefault(key, len(self._numbers)) for key in keys.tolist()]
        fresh = [number >= self._keys.size for number in numbers]
        self._keys = np.append(self._keys, keys[fresh])
        found = np.array(numbers, np.int64)
        self._places[((keys * _SPREAD) >> np.uint64(64 - _SLOT_BITS))[fresh]] = found[fresh]
        return found


def _packed(forms: Forms) -> UInt64s:
    has_number = np.isin(forms.kind, _NUMBERED)
    version = forms.version.astype(np.uint64)
    number = np.where(has_number, forms.event_id.astype(np.uint64), version & 0xFFFF)
    key: UInt64s = forms.provider.astype(np.uint64) << np.uint64(40) | forms.kind.astype(np.uint64) << np.uint64(32)
    key |= number << np.uint64(16) | forms.opcode.astype(np.uint64) << np.uint64(8)
    return key | np.where(has_number, version & np.uint64(0xFF), np.uint64(0))


def _unpacked(key: int) -> _Identity:
    kind, number, opcode, rest = key >> 32 & 0xFF, key >> 16 & 0xFFFF, key >> 8 & 0xFF, key & 0xFF
    has_number = kind in _NUMBERED
    return _Identity(key >> 40, kind, number if has_number else None, opcode, rest if has_number else number)

"""The extended items of EVENT records: stacks, related activities, security ids.

Layout: etl-format S7. Items stand between header and user data; `RawEvents.extended` is where they start. The reader has checked
that each chain lies inside its record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from collector.raw import Int64s, ItemType, RawEvents, UInt64s
from collector.schema import Ragged

__all__ = ["Item", "Items", "Stacks", "find_items", "guid_of", "items_of", "related_activities", "sids", "stack_keys", "stacks"]

_ITEM_HEADER_BYTES = 8
_SID_FIXED_BYTES = 8


@dataclass(frozen=True, slots=True)
class Items:
    """All extended items of a window, each of the three int64 (m,), in the order of (row, place in the record)."""

    rows: Int64s
    """Row of the window."""
    types: Int64s
    starts: Int64s
    """Start of the item's data in `RawEvents.data`, a multiple of 8."""
    sizes: Int64s
    """Bytes of data, without padding."""

    def of_type(self, *types: int) -> "Items":
        """Only the items of some types."""
        chosen = np.isin(self.types, types)
        return Items(self.rows[chosen], self.types[chosen], self.starts[chosen], self.sizes[chosen])


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stack items of a window; a row has one, or rarely two."""

    rows: Int64s
    match_ids: UInt64s
    """0 when the stack is whole; else the user part follows in an event that names the same number."""
    frames: Ragged
    """Addresses, innermost first; uint64."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item, for whoever looks at a single record."""

    type: int
    data: bytes


def find_items(raw: RawEvents, rows: Int64s | None = None) -> Items:
    """All items of some rows (of all, when none are given).

    One vector step moves over one item of every record, so the cost follows the longest chain, not the number of records.
    """
    chosen = np.flatnonzero(raw.extended >= 0) if rows is None else rows[raw.extended[rows] >= 0]
    words = _words(raw)
    cursor, end = raw.extended[chosen], raw.payload[chosen]
    found: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []
    while chosen.size:
        word = words[cursor >> 3].astype(np.int64)
        size = ((word & 0xFFFF) + 7) & ~7
        found.append((chosen, (word >> 16) & 0xFFFF, cursor + _ITEM_HEADER_BYTES, (word >> 48) & 0xFFFF))
        cursor = cursor + size
        goes_on = (((word >> 32) & 1) == 1) & (cursor < end) & (size > 0)
        chosen, cursor, end = chosen[goes_on], cursor[goes_on], end[goes_on]
    if not found:
        nothing = np.zeros(0, np.int64)
        return Items(nothing, nothing, nothing, nothing)
    row, type_, start, size = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return Items(row[order], type_[order], start[order], size[order])


def stacks(raw: RawEvents, items: Items | None = None) -> Stacks:
    """The stack items (types 5 and 6) of a window; `items` are those of `find_items`, where they are at hand already."""
    found = (items or find_items(raw)).of_type(ItemType.STACK32, ItemType.STACK64)
    found = _at_least(found, 8)
    match_ids = _words(raw)[found.starts >> 3]
    width = np.where(found.types == ItemType.STACK32, 4, 8)
    counts = (found.sizes - 8) // width
    edges = np.concatenate(([0], np.cumsum(counts)))
    # Byte offset of every frame: start of its stack's addresses, plus its place in the stack.
    place = np.arange(edges[-1]) - np.repeat(edges[:-1], counts)
    at = np.repeat(found.starts + 8, counts) + place * np.repeat(width, counts)
    is_narrow = np.repeat(width == 4, counts)
    values = _words(raw)[at >> 3]
    if is_narrow.any():
        halves = raw.data[: raw.data.size & ~7].view(np.uint32)
        values = np.where(is_narrow, halves[at >> 2].astype(np.uint64), values)
    return Stacks(found.rows, match_ids, Ragged(values, edges.astype(np.int64)))


def stack_keys(raw: RawEvents, items: Items | None = None) -> tuple[Int64s, UInt64s, UInt64s]:
    """Stack key items (types 17 and 18): rows, match ids and keys, each of shape (m,)."""
    found = _at_least((items or find_items(raw)).of_type(ItemType.STACK_KEY32, ItemType.STACK_KEY64), 12)
    words = _words(raw)
    keys = words[(found.starts >> 3) + 1]
    is_narrow = (found.types == ItemType.STACK_KEY32) | (found.sizes < 16)
    return found.rows, words[found.starts >> 3], np.where(is_narrow, keys & np.uint64(0xFFFFFFFF), keys)


def related_activities(raw: RawEvents, items: Items | None = None) -> tuple[Int64s, UInt64s]:
    """Related activity items: rows (m,), and the two halves of each GUID as they stand on disk, uint64 (m, 2)."""
    found = _at_least((items or find_items(raw)).of_type(ItemType.RELATED_ACTIVITY), 16)
    words = _words(raw)
    return found.rows, np.stack((words[found.starts >> 3], words[(found.starts >> 3) + 1]), axis=1)


def sids(raw: RawEvents, items: Items | None = None) -> Iterator[tuple[int, str]]:
    """Security ids by row, as text; one Python step each, since they are few and each provider asks for them."""
    found = _at_least((items or find_items(raw)).of_type(ItemType.SID), _SID_FIXED_BYTES)
    for row, start, size in zip(found.rows.tolist(), found.starts.tolist(), found.sizes.tolist(), strict=True):
        text = _sid_text(raw.data[start : start + size].tobytes())
        if text is not None:
            yield row, text


def items_of(raw: RawEvents, row: int) -> Iterator[Item]:
    """The items of one record, copied."""
    found = find_items(raw, np.array([row]))
    for type_, start, size in zip(found.types.tolist(), found.starts.tolist(), found.sizes.tolist(), strict=True):
        yield Item(type_, raw.data[start : start + size].tobytes())


def guid_of(item: Item) -> UUID | None:
    """The GUID that an item holds; None where it is too short for one."""
    return UUID(bytes_le=item.data[:16]) if len(item.data) >= 16 else None


def _sid_text(sid: bytes) -> str | None:
    """S-1-5-18; None for bytes that are no security id."""
    revision, count = sid[0], sid[1]
    if len(sid) < _SID_FIXED_BYTES + 4 * count:
        return None
    authority = int.from_bytes(sid[2:8], "big")
    parts = (int.from_bytes(sid[at : at + 4], "little") for at in range(_SID_FIXED_BYTES, _SID_FIXED_BYTES + 4 * count, 4))
    return "-".join(("S", str(revision), str(authority), *map(str, parts)))


def _at_least(items: Items, size: int) -> Items:
    """Only the items with enough data."""
    if (items.sizes >= size).all():
        return items
    chosen = items.sizes >= size
    return Items(items.rows[chosen], items.types[chosen], items.starts[chosen], items.sizes[chosen])


def _words(raw: RawEvents) -> UInt64s:
    """The window's bytes as 64-bit words."""
    return raw.data[: raw.data.size & ~7].view(np.uint64)

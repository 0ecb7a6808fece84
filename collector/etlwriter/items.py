"""Extended data items of modern event headers: stacks, identities and keys that stand between header and payload.

On disk an item is a header of 8 bytes (u16 size of the item rounded up to 8, u16 type, u16 linkage, u16 size of its data), then data
and padding. Seen in recorded files for types 1, 6, 11 and 12; the others follow the public headers.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from collector.raw import ItemType

__all__ = [
    "Item",
    "items_bytes",
    "process_start_key",
    "provider_traits",
    "qpc_delta",
    "related_activity",
    "stack_key",
    "stack_trace",
    "terminal_session",
    "user_sid",
]


@dataclass(frozen=True, slots=True)
class Item:
    """One item; `type` may be any number, `data` at most 65,535 bytes."""

    type: int
    data: bytes


def items_bytes(items: Sequence[Item]) -> bytes:
    """All items of a record, linked, each padded to 8 bytes; empty for no items."""
    parts = []
    for i, item in enumerate(items):
        size = (8 + len(item.data) + 7) & ~7
        linkage = 1 if i + 1 < len(items) else 0
        parts.append(struct.pack("<HHHH", size & 0xFFFF, item.type, linkage, len(item.data)) + item.data)
        parts.append(bytes(size - 8 - len(item.data)))
    return b"".join(parts)


def stack_trace(frames: Sequence[int], *, pointer_size: int = 8, match_id: int = 0) -> Item:
    """Return addresses, innermost first. A match id says that the user part follows in a record of its own."""
    kind, code = (ItemType.STACK64, "Q") if pointer_size == 8 else (ItemType.STACK32, "I")
    return Item(kind, struct.pack(f"<Q{len(frames)}{code}", match_id, *frames))


def stack_key(key: int, *, pointer_size: int = 8, match_id: int = 0) -> Item:
    """A stack by key; four-byte keys are padded to eight."""
    kind = ItemType.STACK_KEY64 if pointer_size == 8 else ItemType.STACK_KEY32
    return Item(kind, struct.pack("<QQ", match_id, key))


def related_activity(activity: UUID) -> Item:
    return Item(ItemType.RELATED_ACTIVITY, activity.bytes_le)


def user_sid(*authorities: int, authority: int = 5) -> Item:
    """The SID S-1-authority-authorities…"""
    head = bytes((1, len(authorities))) + authority.to_bytes(6, "big")
    return Item(ItemType.SID, head + struct.pack(f"<{len(authorities)}I", *authorities))


def terminal_session(session: int) -> Item:
    return Item(ItemType.TERMINAL_SESSION, struct.pack("<I", session))


def process_start_key(key: int) -> Item:
    return Item(ItemType.PROCESS_START_KEY, struct.pack("<Q", key))


def qpc_delta(ticks: int) -> Item:
    return Item(ItemType.QPC_DELTA, struct.pack("<q", ticks))


def provider_traits(name: str) -> Item:
    """A provider's name as self-describing events carry it, without group."""
    text = name.encode() + b"\0"
    return Item(ItemType.PROVIDER_TRAITS, struct.pack("<H", 2 + len(text)) + text)

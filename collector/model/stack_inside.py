"""Stacks that stand inside manifest records, as extended items: whole, in two parts, or by key."""

from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from collector.extended import find_items, stack_keys, stacks
from collector.model.stack_pieces import PieceKind, Pieces
from collector.schema import DecodedBatch

__all__ = ["LATE_USER_PART", "InsideStacks"]

Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

LATE_USER_PART = (UUID("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"), 18)
"""Microsoft-Windows-Kernel-EventTracing, and the event that brings the user part of a stack whose item has a match number."""


class InsideStacks:
    """The stack items of the current window, and the user parts that are still to come."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._late: dict[int, int] = {}
        """Pieces of user parts by match number."""
        self._waiting: dict[int, int] = {}
        """Placeholders for user parts by match number."""
        self._rows: Int64s = np.zeros(0, dtype=np.int64)
        self._frames: Int64s = self._rows
        self._matches: list[tuple[Int64s, UInt64s]] = []
        self.key_rows: Int64s = self._rows
        """Rows whose item is a key, ascending; the keys beside them in `keys`."""
        self.keys: UInt64s = np.zeros(0, dtype=np.uint64)

    def advance(self, batch: DecodedBatch) -> None:
        """Take in the items of a window, of records that we read."""
        raw = batch.raw
        self._take_late_parts(batch)
        items = find_items(raw, np.flatnonzero(batch.known & (raw.extended >= 0)))
        whole = stacks(raw, items)
        self._rows, self._frames = whole.rows, self._pieces.intern(whole.frames, raw.pointer_size[whole.rows])
        self.key_rows, key_matches, self.keys = stack_keys(raw, items)
        self._matches = [(whole.rows, whole.match_ids), (self.key_rows, key_matches)]

    def parts(self, key_pieces: Int64s) -> tuple[Int64s, Int64s]:
        """Rows and the pieces of their stacks, ascending by row; a row may have several.

        Args:
            key_pieces: what each of `keys` stands for.
        """
        rows, pieces = [self._rows, self.key_rows], [self._frames, key_pieces]
        for matched, match_ids in self._matches:
            late = np.flatnonzero(match_ids)
            rows.append(matched[late])
            pieces.append(np.array([self._user_part(match_id) for match_id in match_ids[late].tolist()], dtype=np.int64))
        row, piece = np.concatenate(rows), np.concatenate(pieces)
        order = np.argsort(row, kind="stable")
        return row[order], piece[order]

    def finish(self) -> None:
        """Join the user parts with what waits for them."""
        for match_id, placeholder in self._waiting.items():
            if match_id in self._late:
                self._pieces.resolve(placeholder, self._late[match_id])

    def _take_late_parts(self, batch: DecodedBatch) -> None:
        raw = batch.raw
        provider, event = LATE_USER_PART
        if provider not in raw.providers:
            return
        rows = np.flatnonzero((raw.provider == raw.providers.index(provider)) & (raw.event_id == event) & (raw.extended >= 0))
        found = stacks(raw, find_items(raw, rows))
        pieces = self._pieces.intern(found.frames, raw.pointer_size[found.rows])
        self._late |= zip(found.match_ids.tolist(), pieces.tolist(), strict=True)

    def _user_part(self, match_id: int) -> int:
        piece = self._waiting.get(match_id)
        if piece is None:
            piece = self._waiting[match_id] = self._pieces.placeholder(PieceKind.USER)
        return piece

"""Pieces of call stacks, each kept once: lists of frames, and keys that stand for frames which the trace tells later.

A key is defined when it leaves the cache or when the session ends, thus after the records that use it, and is used again for other
stacks. A use is bound to the first definition of its kind at or after its own time.
"""

from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.schema import Ragged

__all__ = ["KERNEL_32", "KERNEL_64", "PieceKind", "Pieces", "flat_rows"]

Bools: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]
UInt8s: TypeAlias = NDArray[np.uint8]
UInt64s: TypeAlias = NDArray[np.uint64]

KERNEL_64 = 0xFFFF800000000000
KERNEL_32 = 0x80000000
"""The lowest kernel addresses of 64- and 32-bit Windows."""

_UNDEFINED = -1
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))


class PieceKind(IntEnum):
    """Which part of a stack a key stands for."""

    KERNEL = 0
    USER = 1
    ANY = 2


class Pieces:
    """All pieces of one trace; a piece is a small number."""

    def __init__(self) -> None:
        self._frames: list[bytes | None] = []
        """Addresses as little-endian uint64, None for a use of a key."""
        self._target: list[int] = []
        """For a use of a key the piece that it stands for."""
        self._is_narrow: list[bool] = []
        self._kinds: dict[int, PieceKind] = {}
        """Of the uses of keys."""
        self._known: dict[tuple[bool, bytes], int] = {}
        self._open: dict[tuple[int, PieceKind], int] = {}
        """The piece of the uses that wait for a definition, by key and kind."""
        self._last: dict[tuple[int, PieceKind], tuple[int, int]] = {}
        """Time and piece of the latest definition."""
        self._created: dict[tuple[int, PieceKind], int] = {}
        self._uses: dict[int, int] = {}
        """Records by use."""
        self._recent: tuple[UInt64s, Int64s] = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        """Keys and times of the definitions of the last window that had any."""

    def __len__(self) -> int:
        return len(self._frames)

    def intern(self, rows: Ragged, pointer_sizes: UInt8s) -> Int64s:
        """The piece of each row of frames; int64, shape (n,). Equal rows of a window are compared, not only hashed."""
        pieces = np.empty(len(rows), dtype=np.int64)
        for is_narrow in (False, True):
            where = np.flatnonzero((pointer_sizes == 4) == is_narrow)
            if where.size:
                pieces[where] = self._intern(rows, where, is_narrow)
        return pieces

    def define(self, keys: UInt64s, ticks: Int64s, pieces: Int64s, created: Bools, uses: tuple[UInt64s, Int64s, Int64s]) -> Int64s:
        """Follow the definitions and uses of one window in their order.

        Args:
            keys, ticks, pieces: of each definition, ascending in time.
            created: definitions that begin a key; the others end it.
            uses: key, ticks and PieceKind of each use, ascending in time.

        Returns: the piece of each use; int64, shape (number of uses,).
        """
        use_keys, use_ticks, use_kinds = uses
        result = np.empty(use_keys.size, dtype=np.int64)
        # Close to a definition, each use is looked at alone: keys defined in this window, or at its first tick in the one before.
        is_close = np.isin(use_keys, keys)
        if use_keys.size:
            is_close |= np.isin(use_keys, self._recent[0][self._recent[1] >= use_ticks[0]])
        for kind in PieceKind:
            far = np.flatnonzero((use_kinds == kind) & ~is_close)
            if far.size:
                own, first, which = np.unique(use_keys[far], return_index=True, return_inverse=True)
                found = [self._use(int(key), kind, int(use_ticks[far[at]])) for key, at in zip(own.tolist(), first.tolist(), strict=True)]
                result[far] = np.array(found, dtype=np.int64)[which]
                self._count(found, np.bincount(which, minlength=own.size))
        near = np.flatnonzero(is_close).tolist()
        steps = [(int(use_ticks[i]), 0, i) for i in near] + [(int(t), 1, i) for i, t in enumerate(ticks.tolist())]
        for when, is_definition, i in sorted(steps):  # a use of the very tick of a definition comes first: it is defined by it
            if is_definition:
                self._define(int(keys[i]), when, int(pieces[i]), is_created=bool(created[i]))
            else:
                result[i] = self._use(int(use_keys[i]), PieceKind(int(use_kinds[i])), when)
                self._uses[int(result[i])] = self._uses.get(int(result[i]), 0) + 1
        if keys.size:
            self._recent = keys, ticks
        return result

    def frames(self, piece: int) -> tuple[UInt64s, bool, bool]:
        """Addresses of a piece, innermost first; whether each is known; and whether they are of a 32-bit system."""
        target = piece
        if self._frames[piece] is None:
            target = self._target[piece]
        frames = self._frames[target] if target >= 0 else None
        if frames is None:
            return np.zeros(0, dtype=np.uint64), False, self._is_narrow[piece]
        return np.frombuffer(frames, dtype="<u8"), True, self._is_narrow[target]

    def undefined_uses(self) -> int:
        """Records whose key has no definition."""
        return sum(count for piece, count in self._uses.items() if self._frames[piece] is None and self._target[piece] == _UNDEFINED)

    def parts(self, piece: int) -> frozenset[PieceKind]:
        """Which parts of a stack a piece holds."""
        if self._frames[piece] is None:
            return frozenset({self._kinds.get(piece, PieceKind.ANY)})
        frames, _, is_narrow = self.frames(piece)
        kernel = frames >= np.uint64(KERNEL_32 if is_narrow else KERNEL_64)
        return frozenset(kind for kind, some in ((PieceKind.KERNEL, kernel.any()), (PieceKind.USER, not kernel.all())) if some)

    def placeholder(self, kind: PieceKind) -> int:
        """A new piece that `resolve` fills."""
        piece = self._add(None, is_narrow=False)
        self._kinds[piece] = kind
        return piece

    def resolve(self, placeholder: int, piece: int) -> None:
        """Say what a placeholder stands for."""
        self._target[placeholder] = piece

    # ------------------------------------------------------------------------------------------------ keys

    def _use(self, key: int, kind: PieceKind, ticks: int) -> int:
        last = self._last.get((key, kind))
        if last is not None and last[0] >= ticks:
            return last[1]
        piece = self._open.get((key, kind))
        if piece is None:
            piece = self._open[key, kind] = self.placeholder(kind)
            self._target[piece] = self._created.get((key, kind), _UNDEFINED)
        return piece

    def _define(self, key: int, ticks: int, piece: int, *, is_created: bool) -> None:
        for kind in (self._kind_of(piece), PieceKind.ANY):
            if is_created:
                self._created[key, kind] = piece
                continue
            self._last[key, kind] = ticks, piece
            self._created.pop((key, kind), None)
            waiting = self._open.pop((key, kind), None)
            if waiting is not None:
                self._target[waiting] = piece

    def _kind_of(self, piece: int) -> PieceKind:
        """A cached stack is of the kind of its last frame."""
        frames = self._frames[piece] or b""
        last = int.from_bytes(frames[-8:], "little")
        return PieceKind.KERNEL if last >= (KERNEL_32 if self._is_narrow[piece] else KERNEL_64) else PieceKind.USER

    def _count(self, pieces: list[int], counts: Int64s) -> None:
        for piece, count in zip(pieces, counts.tolist(), strict=True):
            self._uses[piece] = self._uses.get(piece, 0) + count

    # ------------------------------------------------------------------------------------------------ frames

    def _add(self, frames: bytes | None, *, is_narrow: bool) -> int:
        self._frames.append(frames)
        self._target.append(_UNDEFINED)
        self._is_narrow.append(is_narrow)
        return len(self._frames) - 1

    def _one(self, frames: bytes, *, is_narrow: bool) -> int:
        piece = self._known.get((is_narrow, frames))
        if piece is None:
            piece = self._known[is_narrow, frames] = self._add(frames, is_narrow=is_narrow)
        return piece

    def _intern(self, rows: Ragged, where: Int64s, is_narrow: bool) -> Int64s:
        counts = np.diff(rows.starts)[where]
        values = rows.values[flat_rows(rows.starts[where], counts)]
        starts = np.cumsum(counts) - counts
        hashes = _hash_rows(values, starts, counts)
        order = np.argsort(hashes)
        is_new = np.ones(order.size, dtype=np.bool_)
        is_new[1:] = hashes[order][1:] != hashes[order][:-1]
        heads = order[is_new]
        head_of = np.empty(order.size, dtype=np.int64)
        head_of[order] = heads[np.cumsum(is_new) - 1]
        pieces = np.empty(order.size, dtype=np.int64)
        for row in heads.tolist():  # distinct stacks of the window, 0.5 µs each
            pieces[row] = self._one(values[starts[row] : starts[row] + counts[row]].astype("<u8").tobytes(), is_narrow=is_narrow)
        pieces = pieces[head_of]
        for row in _unequal(values, starts, counts, head_of).tolist():  # another stack with the same hash
            pieces[row] = self._one(values[starts[row] : starts[row] + counts[row]].astype("<u8").tobytes(), is_narrow=is_narrow)
        return pieces


def flat_rows(starts: Int64s, counts: Int64s, stride: int = 1) -> Int64s:
    """Place of every element of rows that begin at `starts`, `stride` apart, one row behind the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before * stride, counts) + np.arange(int(counts.sum()), dtype=np.int64) * stride


def _hash_rows(values: UInt64s, starts: Int64s, counts: Int64s) -> UInt64s:
    """A hash of each row that depends on the order in it; uint64, shape (n,)."""
    hashes = counts.astype(np.uint64) * _FACTORS[1]
    full = np.flatnonzero(counts)
    if full.size:
        position = (np.arange(values.size, dtype=np.int64) - np.repeat(starts, counts)).astype(np.uint64)
        mixed = (values + position * _FACTORS[0]) * _FACTORS[1]
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _FACTORS[0]
        hashes[full] += np.add.reduceat(mixed, starts[full])
    return hashes


def _unequal(values: UInt64s, starts: Int64s, counts: Int64s, other: Int64s) -> Int64s:
    """Rows that differ from the row beside them."""
    differs = counts != counts[other]
    same = np.flatnonzero(~differs & (other != np.arange(other.size)) & (counts > 0))
    if same.size:
        equal = values[flat_rows(starts[same], counts[same])] == values[flat_rows(starts[other[same]], counts[same])]
        first = np.cumsum(counts[same]) - counts[same]
        differs[same] = ~np.logical_and.reduceat(equal, first)
    return np.flatnonzero(differs)

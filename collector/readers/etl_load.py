"""From buffers of the file to records with a time: reading, expanding, walking, and mending what is damaged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.errors import SourceError
from collector.raw import Int64s, UInt8s
from collector.readers.etl_buffers import HEADER_BYTES, Compression, expand
from collector.readers.etl_index import BufferIndex
from collector.readers.etl_losses import MARKER_OPCODES, LossSigns
from collector.readers.etl_order import BufferOrder
from collector.readers.etl_providers import LOST_EVENT
from collector.readers.etl_walk import PAD_BYTES, record_ticks, walk
from collector.readers.problems import DAMAGED_RECORD, DAMAGED_TIME, DECOMPRESSION_FAILED, DISORDER, ProblemLog
from collector.source import Source

__all__ = ["BufferLoader", "OpenBuffer"]

_LOST_LOW, _LOST_HIGH = np.frombuffer(LOST_EVENT.bytes_le, np.uint64)


@dataclass(slots=True, eq=False)
class OpenBuffer:
    """A loaded buffer with records that no window has had yet."""

    number: int
    """Index of the buffer in the file."""
    rank: int
    cpu: int
    data: UInt8s
    """Bytes of the expanded buffer from `data_at` on, up to its end of records."""
    data_at: int
    offsets: Int64s
    """Starts of its records in the expanded buffer, in the order of `ticks`."""
    ticks: Int64s
    is_sorted: bool
    """Whether `offsets` ascend, as they do unless time stamps went back."""
    taken: int = 0
    """Records that windows have had."""
    is_shared: bool = True
    """Whether its arrays are parts of those of all buffers loaded with it."""

    def keep_rest(self) -> None:
        """Let go of shared memory, and of records that were taken once they are most of the buffer."""
        if not self.is_shared and 2 * self.taken < self.ticks.size:
            return
        low = int(self.offsets[self.taken :].min())
        self.data = self.data[low - self.data_at :].copy()
        self.data_at = low
        self.offsets = self.offsets[self.taken :].copy()
        self.ticks = self.ticks[self.taken :].copy()
        self.taken = 0
        self.is_shared = False


class BufferLoader:
    """Loads buffers of one file."""

    def __init__(
        self,
        source: Source,
        index: BufferIndex,
        order: BufferOrder,
        method: Compression,
        *,
        limits: tuple[int, int],
        signs: LossSigns,
        log: ProblemLog,
    ) -> None:
        """`limits` are the first and last time stamp that can be right."""
        self._source = source
        self._index = index
        self._order = order
        self._method = method
        self._limits = limits
        self._signs = signs
        self._log = log

    def load(self, numbers: Int64s) -> list[OpenBuffer]:
        """Read, expand and walk some buffers, given by their index in the file. Raises SourceError."""
        index = self._index
        room = (index.filled[numbers] + 7) & ~7
        bases = np.concatenate(([0], np.cumsum(room)))
        data = np.zeros(int(bases[-1]) + PAD_BYTES, np.uint8)
        ends = bases[:-1].copy()
        for i, number in enumerate(numbers.tolist()):
            expanded = self._expanded(number)
            start = int(bases[i]) + HEADER_BYTES
            data[start : start + len(expanded)] = np.frombuffer(expanded, np.uint8)
            ends[i] = start + len(expanded)
        found = walk(data, bases[:-1] + HEADER_BYTES, ends)
        edges = np.searchsorted(found.positions, bases)
        ticks, is_sorted = self._times(data, found.positions, edges, numbers)
        opened = []
        for i, number in enumerate(numbers.tolist()):
            rows = slice(int(edges[i]), int(edges[i + 1]))
            base = int(bases[i])
            buffer = OpenBuffer(
                number=number,
                rank=int(self._order.rank[number]),
                cpu=int(index.cpu[number]),
                data=data[base : int(bases[i + 1])],
                data_at=0,
                offsets=found.positions[rows] - base,
                ticks=ticks[rows],
                is_sorted=True,
            )
            if not is_sorted[i]:
                self._sort(buffer)
            self._judge(buffer, stop=int(found.stops[i]) - base, end=int(ends[i]) - base)
            opened.append(buffer)
        return opened

    def _expanded(self, number: int) -> bytes:
        """The bytes of a buffer behind its header, up to its end of records, or to where damage ends them."""
        index = self._index
        offset, size, filled = int(index.offset[number]), int(index.size[number]), int(index.filled[number])
        wanted = (size if index.is_packed[number] else filled) - HEADER_BYTES
        packed = self._source.read_at(offset + HEADER_BYTES, wanted)
        if len(packed) < wanted:
            raise SourceError(
                f"{self._source.name}: the file became shorter while it was being read: buffer {number:,} at byte {offset:,} is gone. "
                "Stop what writes it, and collect it again."
            )
        if not index.is_packed[number]:
            return packed
        expanded = expand(packed, filled - HEADER_BYTES, self._method)
        if len(expanded) < filled - HEADER_BYTES and not index.is_clamped[number]:
            place = f"buffer {number:,} at byte {offset:,}"
            found = f"{place} gives {len(expanded):,} of {filled - HEADER_BYTES:,} bytes"
            start = int(self._order.start[number])
            self._log.add(DECOMPRESSION_FAILED, first_ticks=start, place=place, found=found)
        return expanded

    def _times(self, data: UInt8s, positions: Int64s, edges: Int64s, numbers: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Time stamps of all records, int64; and for each buffer whether they never go back.

        A record without one takes that of the record before it in its buffer; so does one whose own cannot be right. None is earlier
        than the start of its buffer: windows before that were handed out already.
        """
        ticks, is_timed = record_ticks(data, positions)
        low, high = self._limits
        is_absurd = is_timed & ((ticks < low) | (ticks > high))
        if is_absurd.any():
            is_timed &= ~is_absurd
            at = int(np.flatnonzero(is_absurd)[0])
            place = f"buffer {int(numbers[int(np.searchsorted(edges, at, 'right')) - 1]):,}"
            self._log.add(DAMAGED_TIME, count=int(np.count_nonzero(is_absurd)), place=place)
        owner: Int64s = np.repeat(np.arange(numbers.size), np.diff(edges))
        if not is_timed.all():
            ticks = self._filled(ticks, is_timed, edges, owner, numbers)
        is_sorted = np.ones(numbers.size, np.bool_)
        falls = (ticks[1:] < ticks[:-1]) & (owner[1:] == owner[:-1])
        if falls.any():
            rows = np.flatnonzero(falls) + 1
            is_sorted[owner[rows]] = False
            place = f"buffer {int(numbers[owner[rows[0]]]):,}"
            self._log.add(
                DISORDER, count=int(rows.size), first_ticks=int(ticks[rows].min()), last_ticks=int(ticks[rows].max()), place=place
            )
        return np.maximum(ticks, self._order.start[numbers][owner]), is_sorted

    def _filled(self, ticks: Int64s, is_timed: NDArray[np.bool_], edges: Int64s, owner: Int64s, numbers: Int64s) -> Int64s:
        """Give untimed records the time of the one before them, at the start of a buffer that of the first timed one."""
        rows = np.arange(ticks.size)
        before = np.maximum.accumulate(np.where(is_timed, rows, -1))
        after = np.minimum.accumulate(np.where(is_timed, rows, ticks.size)[::-1])[::-1]
        has_before = before >= edges[owner]
        has_after = after < edges[owner + 1]
        start = self._order.start[numbers][owner]
        filled = np.where(has_after, ticks[np.minimum(after, ticks.size - 1)], start)
        return np.where(has_before, ticks[np.maximum(before, 0)], filled)

    def _sort(self, buffer: OpenBuffer) -> None:
        """Order the records of a buffer whose time stamps go back."""
        order = np.argsort(buffer.ticks, kind="stable")
        buffer.ticks, buffer.offsets = buffer.ticks[order], buffer.offsets[order]
        buffer.is_sorted = False

    def _judge(self, buffer: OpenBuffer, *, stop: int, end: int) -> None:
        """Note what is missing in a buffer: bytes that are no record, and losses that its flags tell of."""
        index, number = self._index, buffer.number
        start = int(self._order.start[number])
        first = int(buffer.ticks[0]) if buffer.ticks.size else start
        last = int(buffer.ticks[-1]) if buffer.ticks.size else start
        if stop + 8 <= end and not index.is_clamped[number]:
            place = f"buffer {number:,}, offset {stop:,}"
            marker = int.from_bytes(buffer.data[stop : stop + 4].tobytes(), "little")
            self._log.add(DAMAGED_RECORD, first_ticks=last, place=place, found=f"{place} begins with 0x{marker:08x}", skipped=end - stop)
        if end < index.filled[number] or stop + 8 <= end:
            self._signs.damage(last, int(self._order.following[number]))
        if index.has_lost_events[number] or index.has_lost_buffers[number]:
            self._signs.flagged(
                first,
                last,
                has_events=bool(index.has_lost_events[number]),
                has_buffers=bool(index.has_lost_buffers[number]),
                markers=_marker_ticks(buffer),
            )


def _marker_ticks(buffer: OpenBuffer) -> Int64s:
    """Time stamps of the marker records of lost events and buffers in one buffer."""
    words = np.frombuffer(buffer.data.tobytes() + bytes(PAD_BYTES), np.uint64)
    at = (buffer.offsets - buffer.data_at) >> 3
    opcode = (words[at] >> 32) & 0xFF
    is_marker = (words[at + 3] == _LOST_LOW) & (words[at + 4] == _LOST_HIGH) & np.isin(opcode, MARKER_OPCODES)
    marked: Int64s = buffer.ticks[is_marker]
    return marked

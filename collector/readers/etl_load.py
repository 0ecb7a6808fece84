"""From buffers of the file to records with a time: reading, expanding, walking, and mending what is damaged."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collector.errors import SourceError
from collector.raw import Int32s, Int64s, UInt8s
from collector.readers.etl_buffers import HEADER_BYTES, Compression, expand
from collector.readers.etl_forms import FormTable
from collector.readers.etl_index import BufferIndex
from collector.readers.etl_losses import LossSigns
from collector.readers.etl_order import BufferOrder
from collector.readers.etl_walk import PAD_BYTES, record_ticks, walk
from collector.readers.problems import DAMAGED_RECORD, DAMAGED_TIME, DECOMPRESSION_FAILED, DISORDER, ProblemLog
from collector.source import Source

__all__ = ["BufferLoader", "Loaded"]

Bools = NDArray[np.bool_]

_PIECE_BYTES = 1 << 20  # read and walked at once: small enough to stay in the processor's cache in between
_GAP_BYTES = 16 << 10  # unused bytes between two buffers that are read along rather than skipped


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """Some buffers, expanded and walked; the records of each stand in the order of their time."""

    data: UInt8s
    """The expanded buffers, behind as many bytes as were asked for, with PAD_BYTES zeros behind them."""
    numbers: Int64s
    """Index of each buffer in the file, ascending, int64 (buffers,)."""
    bases: Int64s
    """Start of each expanded buffer in `data`."""
    edges: Int64s
    """First record of each buffer, and one behind the last of all, int64 (buffers + 1,)."""
    positions: Int64s
    """Start of each record in `data`, int64 (n,); `sizes`, `ticks` and `forms` likewise."""
    sizes: Int64s
    ticks: Int64s
    forms: Int32s


class BufferLoader:
    """Loads buffers of one file."""

    def __init__(
        self,
        source: Source,
        index: BufferIndex,
        order: BufferOrder,
        method: Compression,
        table: FormTable,
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
        self._table = table
        self._limits = limits
        self._signs = signs
        self._log = log

    def load(self, loading: Int64s, *, spare: int) -> Loaded:
        """Read, expand and walk some buffers.

        Args:
            loading: their index in the file, in the order in which the reader wants them; what is wrong is told in this order.
            spare: bytes to leave free at the start of the data, a multiple of 8.

        Raises: SourceError.
        """
        turn = np.argsort(loading)
        numbers = loading[turn]
        starts, bases, end = self._places(numbers, spare)
        data = np.empty(end + PAD_BYTES, np.uint8)
        data[end:] = 0
        ends = bases + self._index.filled[numbers]
        found = []
        for first, beyond in _pieces(bases, ends):
            starts[first] = True
            runs = [*(np.flatnonzero(starts[first:beyond]) + first).tolist(), beyond]
            for run, run_end in pairwise(runs):
                self._fill(data, numbers, bases, ends, run, run_end)
            low, high = int(bases[first]), (int(ends[beyond - 1]) + 7) & ~7
            piece = data[low : high + PAD_BYTES]
            walked = walk(piece, bases[first:beyond] + (HEADER_BYTES - low), ends[first:beyond] - low)
            found.append(
                (walked.positions + low, walked.sizes, *record_ticks(piece, walked), self._table.of(piece, walked), walked.stops + low)
            )
        positions, sizes, ticks, is_timed, forms, stops = (np.concatenate(column) for column in zip(*found, strict=True))
        edges = np.searchsorted(positions, np.append(bases, end))
        ticks, is_sorted = self._times(ticks, is_timed, edges, numbers, turn)
        for lane in np.flatnonzero(~is_sorted).tolist():
            rows = slice(int(edges[lane]), int(edges[lane + 1]))
            order = np.argsort(ticks[rows], kind="stable")
            for column in (positions, sizes, ticks, forms):
                column[rows] = column[rows][order]
        loaded = Loaded(data, numbers, bases, edges, positions, sizes, ticks, forms)
        self._judge(loaded, stops, ends, turn)
        return loaded

    def _places(self, numbers: Int64s, spare: int) -> tuple[Bools, Int64s, int]:
        """Which buffers are not read along with the one before them, where each goes, and where all end.

        Plain buffers that stand close to each other in the file do so in memory, with what is between them.
        """
        index = self._index
        offset, filled, is_packed = index.offset[numbers], index.filled[numbers], index.is_packed[numbers]
        gap, step = offset[1:] - (offset + filled)[:-1], np.diff(offset)
        is_joined = (gap >= 0) & (gap <= _GAP_BYTES) & (step % 8 == 0) & ~is_packed[1:] & ~is_packed[:-1]
        room = (filled + 7) & ~7
        room[:-1] = np.where(is_joined, step, room[:-1])
        places = spare + np.concatenate(([0], np.cumsum(room)))
        return np.concatenate(([True], ~is_joined)), places[:-1], int(places[-1])

    def _fill(self, data: UInt8s, numbers: Int64s, bases: Int64s, ends: Int64s, first: int, beyond: int) -> None:
        """Put the bytes of a run of plain buffers, or of one packed one, where they belong."""
        index, number = self._index, int(numbers[first])
        base, offset = int(bases[first]), int(index.offset[number])
        if index.is_packed[number]:
            expanded = self._expanded(number)
            ends[first] = base + HEADER_BYTES + len(expanded)
            data[base + HEADER_BYTES : int(ends[first])] = np.frombuffer(expanded, np.uint8)
            return
        memory = data[base : int(ends[beyond - 1])]
        if (count := self._source.read_into(offset, memory.data)) < memory.size:
            raise self._gone(int(numbers[first + int(np.searchsorted(ends[first:beyond] - base, count, "right"))]))

    def _gone(self, number: int) -> SourceError:
        return SourceError(
            f"{self._source.name}: the file became shorter while it was being read: buffer {number:,} at byte "
            f"{int(self._index.offset[number]):,} is gone. Stop what writes it, and collect it again."
        )

    def _expanded(self, number: int) -> bytes:
        """The bytes of a packed buffer behind its header, up to its end of records, or to where damage ends them."""
        index = self._index
        wanted = int(index.size[number]) - HEADER_BYTES
        packed = self._source.read_at(int(index.offset[number]) + HEADER_BYTES, wanted)
        if len(packed) < wanted:
            raise self._gone(number)
        return expand(packed, int(index.filled[number]) - HEADER_BYTES, self._method)

    def _times(self, ticks: Int64s, is_timed: Bools, edges: Int64s, numbers: Int64s, turn: Int64s) -> tuple[Int64s, Bools]:
        """Time stamps of all records, int64; and for each buffer whether they never go back.

        A record without one takes that of the record before it in its buffer; so does one whose own cannot be right. None is earlier
        than the start of its buffer: windows before that were handed out already.
        """
        low, high = self._limits
        is_sorted = np.ones(numbers.size, np.bool_)
        if not ticks.size:
            return ticks, is_sorted
        if int(ticks.min()) < low or int(ticks.max()) > high or not is_timed.all():
            is_absurd = is_timed & ((ticks < low) | (ticks > high))
            if is_absurd.any():
                is_timed = is_timed & ~is_absurd
                place = self._first_place(np.flatnonzero(is_absurd), edges, numbers, turn)
                self._log.add(DAMAGED_TIME, count=int(np.count_nonzero(is_absurd)), place=place)
            if not is_timed.all():
                ticks = self._filled(ticks, is_timed, edges, numbers)
        falls = np.flatnonzero(ticks[1:] < ticks[:-1]) + 1
        if falls.size:
            falls = falls[edges[np.searchsorted(edges, falls, "right") - 1] != falls]  # between two buffers time may go back
        if falls.size:
            is_sorted[np.searchsorted(edges, falls, "right") - 1] = False
            place = self._first_place(falls, edges, numbers, turn)
            first, last = int(ticks[falls].min()), int(ticks[falls].max())
            self._log.add(DISORDER, count=int(falls.size), first_ticks=first, last_ticks=last, place=place)
        start = self._order.start[numbers]
        lanes = np.flatnonzero(edges[1:] > edges[:-1])
        is_early = ~is_sorted[lanes] | (ticks[edges[lanes]] < start[lanes])
        for lane in lanes[is_early].tolist():
            rows = slice(int(edges[lane]), int(edges[lane + 1]))
            ticks[rows] = np.maximum(ticks[rows], start[lane])
        return ticks, is_sorted

    def _first_place(self, rows: Int64s, edges: Int64s, numbers: Int64s, turn: Int64s) -> str:
        """The buffer of some records that was wanted first."""
        lanes = np.searchsorted(edges, rows, "right") - 1
        return f"buffer {int(numbers[lanes[np.argmin(turn[lanes])]]):,}"

    def _filled(self, ticks: Int64s, is_timed: Bools, edges: Int64s, numbers: Int64s) -> Int64s:
        """Give untimed records the time of the one before them, at the start of a buffer that of the first timed one."""
        owner: Int64s = np.repeat(np.arange(numbers.size), np.diff(edges))
        rows = np.arange(ticks.size)
        before = np.maximum.accumulate(np.where(is_timed, rows, -1))
        after = np.minimum.accumulate(np.where(is_timed, rows, ticks.size)[::-1])[::-1]
        has_before = before >= edges[owner]
        has_after = after < edges[owner + 1]
        start = self._order.start[numbers][owner]
        filled = np.where(has_after, ticks[np.minimum(after, ticks.size - 1)], start)
        return np.where(has_before, ticks[np.maximum(before, 0)], filled)

    def _judge(self, loaded: Loaded, stops: Int64s, ends: Int64s, turn: Int64s) -> None:
        """Note what is missing in buffers: bytes that are no record, and losses that flags tell of."""
        index, numbers = self._index, loaded.numbers
        is_short = ends - loaded.bases < index.filled[numbers]
        is_cut = stops + 8 <= ends
        is_flagged = index.has_lost_events[numbers] | index.has_lost_buffers[numbers]
        lanes = np.flatnonzero(is_short | is_cut | is_flagged)
        for lane in lanes[np.argsort(turn[lanes])].tolist():
            number, rows = int(numbers[lane]), slice(int(loaded.edges[lane]), int(loaded.edges[lane + 1]))
            start = int(self._order.start[number])
            ticks = loaded.ticks[rows]
            first, last = (int(ticks[0]), int(ticks[-1])) if ticks.size else (start, start)
            if is_short[lane] and index.is_packed[number] and not index.is_clamped[number]:
                place = f"buffer {number:,} at byte {int(index.offset[number]):,}"
                wanted, got = int(index.filled[number]) - HEADER_BYTES, int(ends[lane] - loaded.bases[lane]) - HEADER_BYTES
                self._log.add(DECOMPRESSION_FAILED, first_ticks=start, place=place, found=f"{place} gives {got:,} of {wanted:,} bytes")
            if is_cut[lane] and not index.is_clamped[number]:
                stop = int(stops[lane])
                place = f"buffer {number:,}, offset {stop - int(loaded.bases[lane]):,}"
                marker = int.from_bytes(loaded.data[stop : stop + 4].tobytes(), "little")
                skipped = int(ends[lane]) - stop
                self._log.add(DAMAGED_RECORD, first_ticks=last, place=place, found=f"{place} begins with 0x{marker:08x}", skipped=skipped)
            if is_short[lane] or is_cut[lane]:
                self._signs.damage(last, int(self._order.following[number]))
            if is_flagged[lane]:
                self._signs.flagged(
                    first,
                    last,
                    has_events=bool(index.has_lost_events[number]),
                    has_buffers=bool(index.has_lost_buffers[number]),
                    markers=ticks[self._table.is_marker[loaded.forms[rows]]],
                )


def _pieces(bases: Int64s, ends: Int64s) -> list[tuple[int, int]]:
    """Buffers to read and walk at once, as first and one behind the last."""
    number = (ends - bases[0]) // _PIECE_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), bases.size]
    return list(pairwise(cuts))

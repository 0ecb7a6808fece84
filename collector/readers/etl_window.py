"""A window of an ETL file: records of some buffers in their order, whose columns are read when they are asked for."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.raw import Forms, Int32s, Int64s, RawEvents, UInt8s, UInt16s, UInt64s
from collector.readers.etl_forms import FormTable
from collector.readers.etl_headers import header_columns, item_ends

__all__ = ["EtlWindow", "Taken"]

Bools = NDArray[np.bool_]

_KEYWORD_WORD, _ACTIVITY_WORD = 6, 8  # of EVENT headers


@dataclass(frozen=True, slots=True)
class Taken:
    """The records of a window, buffer by buffer, those of each buffer in the order of their time."""

    position: Int64s
    """Start of each record in the window's bytes, int64 (n,); `size`, `ticks` and `form` likewise."""
    size: Int64s
    ticks: Int64s
    form: Int32s
    counts: Int64s
    """Records of each buffer, int64 (buffers,); so all that follow."""
    rank: Int64s
    cpu: UInt16s
    number: Int32s
    """Index of the buffer in the file."""
    base: Int64s
    """Start of the expanded buffer in the window's bytes; negative where its beginning is gone."""

    @staticmethod
    def joined(parts: "list[Taken]") -> "Taken":
        """The records of several parts, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return Taken(*(np.concatenate([getattr(part, name) for part in parts]) for name in Taken.__slots__))


class EtlWindow(RawEvents):
    """See `RawEvents`."""

    is_damaged: Bools
    """Records whose header does not fit into them, shape (n,)."""

    def __init__(self, data: UInt8s, taken: Taken, table: FormTable, first_seq: int) -> None:
        self.data = data
        self.providers = table.providers.guids
        self.first_seq = first_seq
        self._taken = taken
        self._table = table
        self._forms = table.forms
        self._order, self.ticks = _in_order(taken)
        self.offset = taken.position.take(self._order)
        self._form = taken.form.take(self._order)
        self._place_payloads(taken.size.take(self._order))

    @property
    def forms(self) -> Forms:
        return self._forms

    @property
    def form(self) -> Int32s:
        return self._form

    def _place_payloads(self, size: Int64s) -> None:
        """Where the user data of each record is; a header that leaves its own record has none."""
        end = self.offset + size
        self.payload = self.offset + self._table.fixed.take(self._form)
        self.is_damaged = self.payload > end
        if (rows := self.rows_of(self._table.has_items)).size:
            self.extended = np.full(end.size, -1, np.int64)
            self.extended[rows] = self.payload[rows]
            self.payload[rows], is_good = item_ends(self.data.view(np.uint64), self.payload[rows], end[rows])
            self.is_damaged[rows] = ~is_good
            self.extended[rows[~is_good]] = -1
        if self.is_damaged.any():
            self.payload[self.is_damaged] = end[self.is_damaged]
        self.payload_size = (end - self.payload).astype(np.int32)

    def __getattr__(self, name: str) -> NDArray[np.generic]:
        """Fill a column at its first use; asked only for what is not there yet."""
        fill = _FILLS.get(name)
        if fill is None:
            raise AttributeError(name)
        column = fill(self)
        setattr(self, name, column)
        return column

    def rows_of(self, is_wanted: Bools) -> Int64s:
        """Rows whose form is wanted, a bool for each form."""
        return np.flatnonzero(is_wanted.take(self._form)) if is_wanted.any() else np.zeros(0, np.int64)

    def of_form(self, name: str) -> NDArray[np.generic]:
        """A column that the form decides."""
        column: NDArray[np.generic] = getattr(self._forms, name).take(self._form)
        return column

    @property
    def lane(self) -> Int64s:
        """Which of the window's buffers each record is in."""
        lanes: Int64s = np.repeat(np.arange(self._taken.counts.size), self._taken.counts).take(self._order)
        return lanes

    def of_buffer(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """A column that the buffer decides."""
        return column.take(self.lane)

    def ids(self) -> tuple[Int64s, Int64s]:
        """Thread and process ids."""
        has_ids = self._table.has_plain_ids.take(self._form)
        halves = self.data.view(np.uint64).take((self.offset >> 3) + 1).view(np.uint32)
        ids = []
        for half in (halves[::2], halves[1::2]):
            number = half.astype(np.int64)
            number[number == 0xFFFF_FFFF] = -1
            number[~has_ids] = -1
            ids.append(number)
        rows = np.flatnonzero(self._table.is_message.take(self._form))
        if rows.size:
            columns = header_columns(self.data, self.offset[rows], file_pointer_size=self._table.file_pointer_size)
            ids[0][rows], ids[1][rows] = columns.tid, columns.pid
        return ids[0], ids[1]

    def of_event(self, word: int) -> UInt64s:
        """A 64-bit word of EVENT headers, 0 for other records."""
        is_event = self._table.is_event.take(self._form)
        words = self.data.view(np.uint64)
        if is_event.all():
            return words.take((self.offset >> 3) + word)
        column = np.zeros(is_event.size, np.uint64)
        rows = np.flatnonzero(is_event)
        column[rows] = words.take((self.offset[rows] >> 3) + word)
        return column

    def within_buffer(self) -> Int32s:
        """Start of each record in its expanded buffer."""
        return (self.offset - self._taken.base.take(self.lane)).astype(np.int32)


def _fill_ids(window: EtlWindow, name: str) -> Int64s:
    window.tid, window.pid = window.ids()
    return window.tid if name == "tid" else window.pid


_FILLS: dict[str, Callable[[EtlWindow], NDArray[np.generic]]] = {
    "kind": lambda window: window.of_form("kind"),
    "pointer_size": lambda window: window.of_form("pointer_size"),
    "provider": lambda window: window.of_form("provider"),
    "event_id": lambda window: window.of_form("event_id"),
    "opcode": lambda window: window.of_form("opcode"),
    "version": lambda window: window.of_form("version"),
    "level": lambda window: window.of_form("level"),
    "pid": lambda window: _fill_ids(window, "pid"),
    "tid": lambda window: _fill_ids(window, "tid"),
    "keyword": lambda window: window.of_event(_KEYWORD_WORD),
    "activity": lambda window: window.of_event(_ACTIVITY_WORD),
    "cpu": lambda window: window.of_buffer(window._taken.cpu),
    "buffer": lambda window: window.of_buffer(window._taken.number),
    "buffer_offset": lambda window: window.within_buffer(),
    "extended": lambda window: np.full(len(window), -1, np.int64),
}


def _in_order(taken: Taken) -> tuple[Int64s, Int64s]:
    """Which record stands at each place of the order (ticks, rank of the buffer, place in it), and the time stamps in that order."""
    n = taken.ticks.size
    ranked, by_rank = taken.ticks, None
    if np.any(taken.rank[1:] < taken.rank[:-1]):
        buffers = np.argsort(taken.rank)
        counts = taken.counts[buffers]
        shift = (np.cumsum(taken.counts) - taken.counts)[buffers] - (np.cumsum(counts) - counts)
        by_rank = np.repeat(shift, counts)
        by_rank += np.arange(n)
        ranked = ranked.take(by_rank)
    if not np.any(ranked[1:] < ranked[:-1]):
        return np.arange(n) if by_rank is None else by_rank, ranked
    earliest, bits = int(ranked.min()), n.bit_length()
    if (int(ranked.max()) - earliest) >> (62 - bits):
        order = np.argsort(ranked, kind="stable")
        ticks = ranked.take(order)
    else:
        # Time and place in one number: sorting numbers is several times as quick as sorting places by their numbers.
        keys = ranked - earliest
        keys <<= bits
        keys |= np.arange(n)
        keys.sort()
        order = keys & ((1 << bits) - 1)
        keys >>= bits
        keys += earliest
        ticks = keys
    return order if by_rank is None else by_rank.take(order), ticks

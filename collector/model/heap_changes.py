"""What the records of one window did, gathered from both ways of replaying until the window is over."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.heap_totals import WindowDeltas

__all__ = ["Anomalies", "WindowChanges", "WindowClock"]

Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class WindowClock:
    """When the rows of a window happened."""

    ticks: Int64s
    """Raw clock of each row."""
    first_seq: int
    """Record number of the first row."""


@dataclass(slots=True)
class Anomalies:
    """Records of one kind that do not fit the blocks known; columns of one length. `slots` is -1 where no kept block is concerned."""

    kind: str
    rows: Int64s
    processes: Int64s
    handles: UInt64s
    addresses: UInt64s
    tids: Int64s
    slots: Int64s
    numbers: Int64s
    """Row number of the block, -1 unknown; where a slot is given its block's number holds."""


@dataclass(slots=True)
class WindowChanges:
    """Slots and rows of one window, each list in no order; `deltas` by row."""

    deltas: WindowDeltas
    opened: list[Int64s] = field(default_factory=list)
    """Slots of new blocks."""
    ended_rows: list[Int64s] = field(default_factory=list)
    ended_slots: list[Int64s] = field(default_factory=list)
    owner_rows: list[Int64s] = field(default_factory=list)
    """Records that set a size; each may bring the owner stack of the block in the slot beside it."""
    owner_slots: list[Int64s] = field(default_factory=list)
    resized: list[tuple[Int64s, Int64s, Int64s, Int64s]] = field(default_factory=list)
    """Row, slot, size from then on, size until then."""
    linked: list[tuple[Int64s, Int64s]] = field(default_factory=list)
    """Slot of a block, slot of the block that it was moved from."""
    anomalies: list[Anomalies] = field(default_factory=list)

    def end(self, rows: Int64s, slots: Int64s) -> None:
        self.ended_rows.append(rows)
        self.ended_slots.append(slots)

    def own(self, rows: Int64s, slots: Int64s) -> None:
        self.owner_rows.append(rows)
        self.owner_slots.append(slots)

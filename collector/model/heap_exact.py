"""Replaying records one by one, by every rule: reallocations, lost frees, errors of the program, heaps that begin or end.

A window brings here only the places and heaps that need it. About 10 µs a record, so even a trace that needs it throughout stays linear.
"""

from collector.model.heap_blocks import (
    ADOPTED,
    ALLOC,
    FREED,
    HEAP_DESTROYED,
    HEAP_SUPERSEDED,
    LIVE,
    PROCESS_EXIT,
    REALLOC_MOVE,
    REALLOC_MOVED,
    REALLOC_STANDALONE,
    SUPERSEDED,
)
from collector.model.heap_ledger import Block, Ledger, Place
from collector.model.heap_lives import Heap, Lives
from collector.model.heap_losses import LossIndex
from collector.model.heap_places import Places
from collector.model.heap_steps import Alloc, Create, Destroy, Exit, Free, ReAlloc, Shown, Sight, Step
from collector.model.heap_totals import HeapTotals

__all__ = ["ExactReplay"]


class ExactReplay:
    """One window's steps, in the order of their records."""

    def __init__(self, ledger: Ledger, *, places: Places, lives: Lives, totals: HeapTotals, losses: LossIndex, hold_ticks: int) -> None:
        self._ledger, self._places, self._lives, self._totals = ledger, places, lives, totals
        self._losses, self._hold = losses, hold_ticks

    def run(self, steps: list[Step]) -> None:
        """Replay steps in the order of their rows."""
        for step in steps:
            match step:
                case Alloc():
                    self._alloc(step)
                case Free():
                    self._free(step)
                case ReAlloc():
                    self._realloc(step)
                case Sight():
                    self._lives.begin(self._lives.heaps[step.heap], step.row, self._ledger.ticks(step.row))
                case Shown():
                    self._touch(self._lives.heaps[step.heap])
                case Create():
                    self._create(step)
                case Destroy():
                    self._destroy(step)
                case Exit():
                    for heap in step.heaps:
                        self._ledger.end_all(self._lives.heaps[heap], step.row, PROCESS_EXIT, -1, is_inferred=False)

    # ------------------------------------------------------------------------------------------------ blocks

    def _alloc(self, step: Alloc) -> None:
        heap, place = self._in_life(step.heap, step.row), self._ledger.place(step.place)
        self._supersede(place, step.row, step.tid)
        self._ledger.open(place, heap, step.row, step.tid, step.size, step.source, ALLOC)
        self._totals.count(heap.process, "allocs")

    def _free(self, step: Free) -> None:
        heap, place = self._lives.heaps[step.heap], self._ledger.place(step.place)
        self._touch(heap)
        ticks, process = self._ledger.ticks(step.row), heap.process
        if place.is_live:
            self._ledger.end(self._ledger.latest(place), place, step.row, FREED, step.tid, is_inferred=False)
            self._totals.count(process, "frees")
            return
        if heap.is_destroyed:
            self._unmatched("free_after_destroy", step, place, heap)
            return
        twin = self._places.live_twin(place.index) if place.is_twin else None
        if twin is not None:
            block, slot = self._ledger.owner(twin)
            self._ledger.report("free_wrong_heap", step.row, heap, step.tid, address=place.address, block=block, slot=slot)
            self._totals.count(process, "wrong_heap_frees")
            return
        assert heap.life is not None
        if place.generation and place.life == heap.life.n:
            if place.is_unconfirmed:
                place.is_unconfirmed = False
                self._totals.count(process, "frees")
            elif self._losses.between(place.end_ticks, ticks):
                self._unmatched("free_unmatched_after_loss", step, place, heap)
            else:
                self._unmatched("double_free", step, place, heap, latest=True)
                self._totals.count(process, "double_frees")
        elif heap.life.create_seen:
            lost = self._losses.between(heap.life.first_ticks, ticks)
            self._unmatched("free_unmatched_after_loss" if lost else "free_never_allocated", step, place, heap)
        else:
            self._unmatched("free_unknown", step, place, heap)
            self._totals.count(process, "unknown_frees")

    def _realloc(self, step: ReAlloc) -> None:
        heap, new = self._in_life(step.heap, step.row), self._ledger.place(step.new)
        self._totals.count(heap.process, "reallocs")
        if step.new == step.old:
            if new.is_live:
                self._resize(self._ledger.latest(new), new, heap, step)
            else:
                self._ledger.open(new, heap, step.row, step.tid, step.size, step.source, ADOPTED)
            return
        old = self._ledger.place(step.old) if step.old >= 0 else None
        block = self._ledger.latest(new) if new.is_live else None
        if block is not None and self._is_pair(block, step):
            block.is_claimed, block.origin = True, REALLOC_MOVE
            if old is not None:
                block.previous = self._moved_from(block, old, step)
        else:
            moved = None
            if old is not None and old.is_live:
                moved = self._ledger.latest(old)
                self._end_moved(moved, old, step)
            self._supersede(new, step.row, step.tid)
            block = self._ledger.open(new, heap, step.row, step.tid, step.size, step.source, REALLOC_STANDALONE)
            block.previous = moved
        if old is not None and block.previous is None:
            self._totals.count(heap.process, "realloc_unknown_old")

    @staticmethod
    def _is_pair(block: Block, step: ReAlloc) -> bool:
        """Whether an Alloc opened the block for this reallocation."""
        return block.origin == ALLOC and not block.is_claimed and block.tid == step.tid and block.size == step.size

    def _moved_from(self, block: Block, old: Place, step: ReAlloc) -> Block | None:
        """The old half of a move whose new half an Alloc opened; its end is relabelled or made."""
        ticks = self._ledger.ticks(step.row)
        candidate = self._ledger.kept_latest(old)
        while candidate is not None and (candidate.reason == LIVE or candidate.end_seq > block.first_seq):
            # Rows older than the hold may have been handed on; leaving them alone keeps the result independent of the windows.
            if candidate.reason == FREED and candidate.free_tid == step.tid and ticks - candidate.end_ticks < self._hold:
                candidate.reason = REALLOC_MOVED
                return candidate
            candidate = self._ledger.older(candidate)
        if old.is_live and (live := self._ledger.latest(old)).first_seq < block.first_seq:
            self._end_moved(live, old, step)
            return live
        return None

    def _end_moved(self, block: Block, place: Place, step: ReAlloc) -> None:
        self._ledger.end(block, place, step.row, REALLOC_MOVED, step.tid, is_inferred=True)
        place.is_unconfirmed = True

    def _resize(self, block: Block, place: Place, heap: Heap, step: ReAlloc) -> None:
        if block.size != step.told_size:
            self._ledger.report("size_mismatch", step.row, heap, step.tid, address=place.address, block=block)
        self._ledger.resize(block, step.row, step.size)

    def _supersede(self, place: Place, row: int, tid: int) -> None:
        """End a live block whose address was handed out again."""
        if place.is_live:
            block, heap = self._ledger.latest(place), self._lives.heaps[place.heap]
            self._ledger.end(block, place, row, SUPERSEDED, -1, is_inferred=True)
            self._ledger.report("implicit_free", row, heap, tid, address=place.address, block=block)
            self._totals.count(heap.process, "implicit_frees")

    # ------------------------------------------------------------------------------------------------ heaps

    def _in_life(self, index: int, row: int) -> Heap:
        """A heap whose memory is handed out: after a destroy its Create was lost."""
        heap = self._lives.heaps[index]
        if heap.is_destroyed:
            self._lives.begin(heap, row, self._ledger.ticks(row))
        self._touch(heap)
        return heap

    @staticmethod
    def _touch(heap: Heap) -> None:
        if heap.life is not None:
            heap.life.is_named_only = False

    def _create(self, step: Create) -> None:
        heap, ticks = self._lives.heaps[step.heap], self._ledger.ticks(step.row)
        if heap.life is not None and not heap.is_destroyed:
            if heap.life.is_named_only and not heap.life.create_seen:
                self._lives.created(heap, ticks, step.flags)  # the allocator writes sizes while it makes the heap
                return
            ended = self._ledger.end_all(heap, step.row, HEAP_SUPERSEDED, -1, is_inferred=True)
            if ended:
                self._ledger.report("implicit_destroy", step.row, heap, step.tid)
        self._lives.begin(heap, step.row, ticks, create_seen=True, flags=step.flags)

    def _destroy(self, step: Destroy) -> None:
        heap = self._lives.heaps[step.heap]
        if heap.is_destroyed or heap.life is None:
            return
        ended = self._ledger.end_all(heap, step.row, HEAP_DESTROYED, step.tid, is_inferred=False)
        if ended:
            self._totals.count(heap.process, "destroyed_blocks", ended)
        self._lives.destroy(heap, self._ledger.ticks(step.row))

    def _unmatched(self, kind: str, step: Free, place: Place, heap: Heap, *, latest: bool = False) -> None:
        block = self._ledger.kept_latest(place) if latest else None
        self._ledger.report(kind, step.row, heap, step.tid, address=place.address, block=block, n=place.n if latest else -1)
        self._totals.count(heap.process, "unmatched_frees")

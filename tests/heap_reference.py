"""The rules of heaps and blocks once more, one record after the other, as plainly as can be: what the model is compared with.

Nothing here is shared with the model, and nothing is fast.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.heap_model import Rec

__all__ = ["Expected", "replay"]

Place = tuple[int, int, int]  # process id, heap, address
HOLD = 10_000_000


@dataclass(eq=False)
class Block:
    number: int
    place: Place
    generation: int
    life: int
    seq: int
    ticks: int
    size: int
    tid: int
    origin: str
    end_seq: int | None = None
    end_ticks: int | None = None
    reason: str | None = None
    is_inferred: bool = False
    free_tid: int | None = None
    is_claimed: bool = False
    is_unconfirmed: bool = False
    previous: "Block | None" = None
    sizes: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Expected:
    """Blocks, points (record number, pid, bytes, count), counters by pid and anomalies, as the rules demand."""

    blocks: list[Block] = field(default_factory=list)
    points: list[tuple[int, int, int, int]] = field(default_factory=list)
    counters: dict[int, Counter[str]] = field(default_factory=dict)
    anomalies: list[tuple[int, str, int, int | None]] = field(default_factory=list)


def replay(records: Sequence[Rec]) -> Expected:
    """Replay records of a trace without losses; their order is their number."""
    return _Replay().run(records)


class _Replay:
    def __init__(self) -> None:
        self.out = Expected()
        self.live: dict[Place, Block] = {}
        self.history: dict[Place, list[Block]] = {}
        self.lives: dict[tuple[int, int], int] = {}
        self.created: set[tuple[int, int]] = set()
        self.destroyed: set[tuple[int, int]] = set()
        self.touched: set[tuple[int, int]] = set()
        self.life_count = 0
        self.bytes: Counter[int] = Counter()
        self.count: Counter[int] = Counter()
        self.rec: Rec
        self.seq = 0

    def run(self, records: Sequence[Rec]) -> Expected:
        for self.seq, self.rec in enumerate(records):
            before = dict(self.bytes), dict(self.count)
            name = self.rec.name
            if name == "ProcessEnd":
                pid = int(str(self.rec.fields["process_id"]))
                self.end_all([b for b in self.live.values() if b.place[0] == pid], "process_exit", inferred=False)
            elif name.startswith("Heap"):
                self.heap_record(name)
            for pid in self.count:
                if (self.bytes[pid], self.count[pid]) != (before[0].get(pid, 0), before[1].get(pid, 0)):
                    self.out.points.append((self.seq, pid, self.bytes[pid], self.count[pid]))
        return self.out

    def n(self, name: str) -> int:
        return int(str(self.rec.fields[name]))

    @property
    def heap(self) -> tuple[int, int]:
        return self.rec.pid, self.n("heap_handle")

    def add(self, name: str, times: int = 1) -> None:
        self.out.counters.setdefault(self.rec.pid, Counter())[name] += times

    def anomaly(self, kind: str, address: int, block: Block | None = None) -> None:
        self.out.anomalies.append((self.seq, kind, address, None if block is None else block.number))

    def heap_record(self, name: str) -> None:
        if name == "HeapCreate":
            own = [b for b in self.live.values() if b.place[:2] == self.heap]
            if own:
                self.end_all(own, "heap_superseded", inferred=True)
                self.anomaly("implicit_destroy", 0)
            self.begin_life()
            self.created.add(self.heap)
            return
        if self.heap not in self.lives:
            self.begin_life()
        if name == "HeapAlloc" and self.n("alloc_address"):
            self.open_life()
            self.supersede(self.n("alloc_address"))
            self.open(self.n("alloc_address"), self.n("alloc_size"), "alloc")
            self.add("allocs")
        elif name == "HeapAlloc":
            self.add("failed_allocs")
        elif name == "HeapFree" and self.n("free_address"):
            self.free(self.n("free_address"))
        elif name == "HeapReAlloc" and not self.n("new_alloc_address"):
            self.add("failed_reallocs")
        elif name == "HeapReAlloc":
            self.open_life()
            self.add("reallocs")
            self.realloc(self.n("new_alloc_address"), self.n("old_alloc_address"), self.n("new_alloc_size"))
        elif name == "HeapDestroy" and self.heap not in self.destroyed:
            own = [b for b in self.live.values() if b.place[:2] == self.heap]
            self.end_all(own, "heap_destroyed", inferred=False)
            if own:
                self.add("destroyed_blocks", len(own))
            self.destroyed.add(self.heap)

    def begin_life(self) -> None:
        self.life_count += 1
        self.lives[self.heap] = self.life_count
        self.created.discard(self.heap)
        self.destroyed.discard(self.heap)

    def open_life(self) -> None:
        if self.heap in self.destroyed:
            self.begin_life()

    def open(self, address: int, size: int, origin: str) -> Block:
        place = (*self.heap, address)
        past = self.history.setdefault(place, [])
        block = Block(
            len(self.out.blocks), place, len(past) + 1, self.lives[self.heap], self.seq, self.rec.ticks, size, self.rec.tid, origin
        )
        past.append(block)
        self.out.blocks.append(block)
        self.live[place] = block
        self.bytes[self.rec.pid] += size
        self.count[self.rec.pid] += 1
        return block

    def end(self, block: Block, reason: str, *, inferred: bool, tid: int | None) -> None:
        block.reason, block.is_inferred, block.end_seq, block.end_ticks, block.free_tid = reason, inferred, self.seq, self.rec.ticks, tid
        del self.live[block.place]
        self.bytes[block.place[0]] -= block.size
        self.count[block.place[0]] -= 1

    def end_all(self, blocks: list[Block], reason: str, *, inferred: bool) -> None:
        for block in blocks:
            self.end(block, reason, inferred=inferred, tid=self.rec.tid if reason == "heap_destroyed" else None)

    def supersede(self, address: int) -> None:
        block = self.live.get((*self.heap, address))
        if block is not None:
            self.end(block, "superseded", inferred=True, tid=None)
            self.anomaly("implicit_free", address, block)
            self.add("implicit_frees")

    def free(self, address: int) -> None:
        place = (*self.heap, address)
        if place in self.live:
            self.end(self.live[place], "freed", inferred=False, tid=self.rec.tid)
            self.add("frees")
            return
        if self.heap in self.destroyed:
            self.anomaly("free_after_destroy", address)
            self.add("unmatched_frees")
            return
        others = [b for b in self.live.values() if b.place[0] == place[0] and b.place[2] == address]
        if others:
            self.anomaly("free_wrong_heap", address, max(others, key=lambda b: b.seq))
            self.add("wrong_heap_frees")
            return
        past = [b for b in self.history.get(place, []) if b.life == self.lives[self.heap]]
        if past and past[-1].is_unconfirmed:
            past[-1].is_unconfirmed = False
            self.add("frees")
            return
        self.add("unmatched_frees")
        if past:
            self.anomaly("double_free", address, past[-1])
            self.add("double_frees")
        elif self.heap in self.created:
            self.anomaly("free_never_allocated", address)
        else:
            self.anomaly("free_unknown", address)
            self.add("unknown_frees")

    def realloc(self, new: int, old: int, size: int) -> None:
        block = self.live.get((*self.heap, new))
        if new == old:
            if block is None:
                self.open(new, size, "adopted")
                return
            if block.size != self.n("old_alloc_size"):
                self.anomaly("size_mismatch", new, block)
            self.bytes[self.rec.pid] += size - block.size
            if size != block.size:
                block.sizes.append((self.seq, size))
            block.size = size
            return
        before: Block | None = None
        if block is not None and block.origin == "alloc" and block.tid == self.rec.tid and block.size == size and not block.is_claimed:
            block.is_claimed, block.origin = True, "realloc_move"
            if old:
                before = self.moved_from(block, (*self.heap, old))
        else:
            before = self.live.get((*self.heap, old)) if old else None
            if before is not None:
                self.end(before, "realloc_moved", inferred=True, tid=self.rec.tid)
                before.is_unconfirmed = True
            self.supersede(new)
            block = self.open(new, size, "realloc_standalone")
        block.previous = before
        if old and before is None:
            self.add("realloc_unknown_old")

    def moved_from(self, block: Block, place: Place) -> Block | None:
        for past in reversed(self.history.get(place, [])):
            if past.reason == "freed" and past.free_tid == self.rec.tid and past.end_seq is not None and past.end_seq > block.seq:
                assert past.end_ticks is not None
                if self.rec.ticks - past.end_ticks < HOLD:
                    past.reason = "realloc_moved"
                    return past
        live = self.live.get(place)
        if live is not None and live.seq < block.seq:
            self.end(live, "realloc_moved", inferred=True, tid=self.rec.tid)
            live.is_unconfirmed = True
            return live
        return None

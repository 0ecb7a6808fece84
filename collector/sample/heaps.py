"""A heap as the programs of the sample use it: an allocator that reuses addresses, its records, and the stacks behind them.

Stacks are records of their own. Those of some programs name a key: the frames come when the key leaves the cache or at the end of the
session, and a key that has left is given to another stack.
"""

from dataclasses import dataclass, field

from collector.etlwriter.payloads import Value
from collector.sample.machine import Context, Frames, Machine, Program, Thread

__all__ = ["Heap", "StackKeys"]

_LFH, _BACK_END = 2, 3
_FIRST_KEY = 0xFFFF_C40E_A110_0000
_KEYS = 6
_EXPAND = 0x1_0000
_RESERVED = 0x40_0000


class StackKeys:
    """The cache of stacks by key, with room for six."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._key_of: dict[Frames, int] = {}
        self._used_at: dict[Frames, int] = {}

    def refer(self, frames: Frames, ticks: int, thread: Thread) -> None:
        """Log that an event's stack is the one behind a key."""
        key = self._key_of.get(frames)
        if key is None:
            key = self._take(thread.context)
            self._key_of[frames] = key
        values: dict[str, Value] = {
            "event_time_stamp": ticks,
            "stack_process": thread.program.pid,
            "stack_thread": thread.tid,
            "stack_key": key,
        }
        self._used_at[frames] = self._machine.log("StackKeyUser", values, thread.context, after_us=2.4)

    def _take(self, context: Context) -> int:
        """A free key; the stack that was not asked for longest has to go, which defines what its key meant."""
        if len(self._key_of) < _KEYS:
            return _FIRST_KEY + 0x1B0 * len(self._key_of)
        oldest = min(self._key_of, key=lambda frames: self._used_at[frames])
        key = self._key_of.pop(oldest)
        self._machine.log("StackKeyDelete", {"stack_key": key, "frames": oldest}, context, after_us=0.6)
        return key

    def finish(self) -> None:
        """The rundown at the end of the session: what every key means now."""
        for frames, key in self._key_of.items():
            self._machine.log("StackKeyRundown", {"stack_key": key, "frames": frames}, Context(0, 0, 0))


@dataclass(slots=True, eq=False)
class Heap:
    """One heap of a program.

    Sizes are rounded up to 16 bytes for the places, small ones are used again last in, first out.
    """

    machine: Machine
    program: Program
    handle: int
    keys: StackKeys | None = None
    has_stacks: bool = True
    is_new: bool = False
    next: int = field(init=False)
    committed: int = field(init=False)
    live: dict[int, int] = field(init=False, default_factory=dict)
    free_places: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.next = self.handle + 0x740
        self.committed = self.handle + _EXPAND

    def create(self, thread: Thread, flags: int = 0x1002) -> None:
        self.is_new = True
        spaces: dict[str, Value] = {"reserved_space": _RESERVED, "committed_space": _EXPAND, "allocated_space": 0x740}
        self._log("HeapCreate", {"heap_flags": flags, **spaces}, thread, ())

    def destroy(self, thread: Thread) -> None:
        self._log("HeapDestroy", {}, thread, ())
        self.live.clear()

    def alloc(self, size: int, thread: Thread, stack: Frames = ()) -> int:
        """Allocate; gives the address."""
        address = self._place(size, thread)
        self.live[address] = size
        values: dict[str, Value] = {"alloc_size": size, "alloc_address": address, "source_id": self._source(size)}
        self._log("HeapAlloc", values, thread, stack)
        return address

    def free(self, address: int, thread: Thread, stack: Frames = ()) -> None:
        """Free an address, whether it is allocated or not."""
        size = self.live.pop(address, None)
        if size is not None:
            self.free_places.setdefault(self._rounded(size), []).append(address)
        source = self._source(size or 0)
        self._log("HeapFree", {"free_address": address, "source_id": source}, thread, stack)

    def resize(self, address: int, size: int, thread: Thread, stack: Frames = ()) -> None:
        """Reallocate in place."""
        self._realloc(address, address, size, self.live[address], thread, stack)
        self.live[address] = size

    def move(self, address: int, size: int, thread: Thread, stack: Frames = ()) -> int:
        """Reallocate to a new place: an allocation, a free and the summary."""
        old_size = self.live[address]
        new = self.alloc(size, thread, stack)
        self.free(address, thread)
        self._realloc(new, address, size, old_size, thread, stack)
        return new

    def _realloc(self, new: int, old: int, size: int, old_size: int, thread: Thread, stack: Frames) -> None:
        values: dict[str, Value] = {
            "new_alloc_address": new,
            "old_alloc_address": old,
            "new_alloc_size": size,
            "old_alloc_size": old_size,
            "source_id": _BACK_END,
        }
        self._log("HeapReAlloc", values, thread, stack)

    def snapshot(self, thread: Thread) -> None:
        """The heap's totals; a session asks for them when it begins."""
        used = sum(self.live.values())
        values: dict[str, Value] = {
            "free_space": self.committed - self.handle - used,
            "committed_space": self.committed - self.handle,
            "reserved_space": _RESERVED,
            "heap_flags": 2,
            "process_id": self.program.pid,
        }
        self._log("HeapSnapShot", values, thread, ())

    def ranges(self, thread: Thread) -> None:
        """A rundown of the heap's address ranges."""
        values: dict[str, Value] = {"hr_flags": 0, "hr_pid": self.program.pid, "reserved": 0, "ranges": ((self.handle, _RESERVED),)}
        self._log("HeapRangeRundown", values, thread, ())

    def _place(self, size: int, thread: Thread) -> int:
        places = self.free_places.get(self._rounded(size))
        if places:
            return places.pop()
        address = self.next
        self.next += self._rounded(size) + 16
        if self.next > self.committed:
            self._expand(thread)
        return address

    def _expand(self, thread: Thread) -> None:
        start = self.committed
        self.committed = (self.next + _EXPAND) & ~(_EXPAND - 1)
        values: dict[str, Value] = {
            "committed_size": self.committed - start,
            "commit_address": start,
            "free_space": self.committed - self.next + sum(size * len(places) for size, places in self.free_places.items()),
            "committed_space": self.committed - self.handle,
            "reserved_space": max(_RESERVED, self.committed - self.handle),
            "no_of_ucrs": 1,
            "allocated_space": sum(self.live.values()),
        }
        self._log("HeapExpand", values, thread, ())

    @staticmethod
    def _rounded(size: int) -> int:
        return max(16, (size + 15) & ~15)

    @staticmethod
    def _source(size: int) -> int:
        return _LFH if size <= 0x4000 else _BACK_END

    def _log(self, name: str, values: dict[str, Value], thread: Thread, stack: Frames) -> None:
        machine = self.machine
        size = self.program.pointer_size
        ticks = machine.log(name, {"heap_handle": self.handle, **values}, thread.context, pointer_size=size)
        if not stack or not self.has_stacks:
            return
        if self.keys is not None:
            self.keys.refer(stack, ticks, thread)
            return
        walk: dict[str, Value] = {
            "event_time_stamp": ticks,
            "stack_process": self.program.pid,
            "stack_thread": thread.tid,
            "frames": stack,
        }
        machine.log("StackWalk", walk, thread.context, after_us=1.7)

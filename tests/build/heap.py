"""Builders of heap events."""

from typing import TypedDict, Unpack

from collector.etlwriter.events import HeaderValues
from collector.etlwriter.payloads import Value
from tests.build.events import PID, TID, Event, event

__all__ = ["HEAP", "Where", "alloc", "create", "destroy", "expand", "free", "ranges", "realloc", "snapshot"]

HEAP = 0x1A_0000
_GROWABLE = 2
_LFH = 2


class Where(TypedDict, total=False):
    """Whose event it is; `pointer_size` is that of the writing process."""

    heap: int
    pid: int
    tid: int
    stack: tuple[int, ...]
    pointer_size: int
    version: int


def _event(name: str, at_us: float, where: Where, values: dict[str, Value]) -> Event:
    header = HeaderValues(pid=where.get("pid", PID), tid=where.get("tid", TID))
    if "version" in where:
        header["version"] = where["version"]
    built = event(name, at_us=at_us, header=header, stack=where.get("stack", ()), pointer_size=where.get("pointer_size"))
    return built.with_values(heap_handle=where.get("heap", HEAP), **values)


def create(*, at_us: float, flags: int = _GROWABLE, **where: Unpack[Where]) -> Event:
    return _event("HeapCreate", at_us, where, {"heap_flags": flags})


def destroy(*, at_us: float, **where: Unpack[Where]) -> Event:
    return _event("HeapDestroy", at_us, where, {})


def alloc(*, at_us: float, address: int = HEAP + 0x1000, size: int = 64, source: int = _LFH, **where: Unpack[Where]) -> Event:
    return _event("HeapAlloc", at_us, where, {"alloc_size": size, "alloc_address": address, "source_id": source})


def free(*, at_us: float, address: int = HEAP + 0x1000, source: int = _LFH, **where: Unpack[Where]) -> Event:
    return _event("HeapFree", at_us, where, {"free_address": address, "source_id": source})


def realloc(
    *,
    at_us: float,
    new: int = HEAP + 0x1000,
    old: int = HEAP + 0x1000,
    new_size: int,
    old_size: int,
    source: int = 3,
    **where: Unpack[Where],
) -> Event:
    values: dict[str, Value] = {
        "new_alloc_address": new,
        "old_alloc_address": old,
        "new_alloc_size": new_size,
        "old_alloc_size": old_size,
        "source_id": source,
    }
    return _event("HeapReAlloc", at_us, where, values)


def expand(*, at_us: float, committed: int, reserved: int, free_space: int = 0, **where: Unpack[Where]) -> Event:
    values: dict[str, Value] = {"committed_space": committed, "reserved_space": reserved, "free_space": free_space}
    return _event("HeapExpand", at_us, where, values)


def snapshot(
    *, at_us: float, committed: int, reserved: int, free_space: int = 0, process_id: int | None = None, **where: Unpack[Where]
) -> Event:
    values: dict[str, Value] = {"committed_space": committed, "reserved_space": reserved, "free_space": free_space}
    if process_id is not None:
        values["process_id"] = process_id
    return _event("HeapSnapShot", at_us, where, values)


def ranges(*, at_us: float, ranges: tuple[tuple[int, int], ...], process_id: int = PID, **where: Unpack[Where]) -> Event:
    """A rundown of a heap's ranges: pairs of address and size."""
    return _event("HeapRangeRundown", at_us, where, {"hr_pid": process_id, "reserved": 0, "ranges": ranges})

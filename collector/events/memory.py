"""Virtual memory that processes reserve, commit and give back: two events of the kernel's memory group."""

from collector.events.heap import MEMORY
from collector.schema import EventSchema, pointer, sizet, u32

__all__ = ["VIRTUAL_MEMORY_EVENTS"]

_SOURCE = "MOF class PageFault_VirtualAlloc of Microsoft's ETW documentation; no public trace has one"
_RANGE = (pointer("base_address"), sizet("region_size", unit="bytes"), u32("process_id"), u32("flags", enum="VirtualAllocFlags"))

VIRTUAL_MEMORY_EVENTS: tuple[EventSchema, ...] = (
    EventSchema(MEMORY, 98, (2,), "VirtualAlloc", _RANGE, _SOURCE, is_classic=True),
    EventSchema(MEMORY, 99, (2,), "VirtualFree", _RANGE, _SOURCE, is_classic=True),
)

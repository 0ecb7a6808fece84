"""Heap: the allocator's events 0x20 to 0x3A and the heap range events of the memory group.

The process of an event is the one of its header, save where the payload has a process id of its own. Sizes are those the program asked for.
Payloads are packed, also where an 8-byte field follows a 4-byte one. Published XML manifests of this provider call the pointers 32-bit
numbers; that is wrong for 64-bit records.
"""

from uuid import UUID

from collector.schema import EventSchema, Field, pointer, ranges, sizet, u32

__all__ = ["HEAP", "HEAP_EVENTS", "HEAP_RANGES", "HEAP_SNAPSHOT", "HEAP_SUMMARY", "MEMORY"]

HEAP = UUID("222962ab-6180-4b88-a825-346b75f2a24a")
"""Hook group 0x10, and the class of heap events with a full header."""
MEMORY = UUID("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c")
"""Hook group 0x02, which carries the heap range events."""
HEAP_RANGES = UUID("d781ca11-61c0-4387-b83d-af52d3d2dd6a")
HEAP_SUMMARY = UUID("05867806-c246-43ef-a147-e17d2bdb1496")
HEAP_SNAPSHOT = UUID("901d2afa-4ff6-46d7-8d0e-53645e1a47f5")
"""Three more heap providers, whose payloads nobody has published."""

_PUBLISHED = "heap structures of the published ntwmi.h, and the MOF classes of the heap provider in perfview"
_COMMENT = "ntwmi.h gives name and number; the layout is that of the snapshot event, as a comment there says"
_SCHEMA_ONLY = "MOF classes of the heap provider in perfview; another header calls the number reserved"

_HEAP = (pointer("heap_handle"),)
_ALLOCATED = (sizet("allocated_space", unit="bytes", required=False),)
_TOTALS = (sizet("free_space", unit="bytes"), sizet("committed_space", unit="bytes"), sizet("reserved_space", unit="bytes"))
_EXPAND = (*_HEAP, sizet("committed_size", unit="bytes"), pointer("commit_address"), *_TOTALS, u32("no_of_ucrs"))
_CONTRACT = (*_HEAP, sizet("de_committed_size", unit="bytes"), pointer("de_commit_address"), *_TOTALS, u32("no_of_ucrs"))
# The oldest published form of a snapshot ends with its flags. Another process may write the record: process_id, unless 0, names the owner.
_SNAPSHOT = (
    *_HEAP,
    *_TOTALS,
    u32("heap_flags", enum="HeapFlags"),
    u32("process_id", required=False),
    sizet("large_ucr_space", unit="bytes", required=False),
    u32("free_list_length", required=False),
    u32("ucr_length", required=False),
)
_SUBSEGMENT = (*_HEAP, pointer("sub_segment"))
_SUBSEGMENT_SIZES = (*_SUBSEGMENT, sizet("sub_segment_size", unit="bytes"), sizet("block_size", unit="bytes"))
# The published structure is not packed: 64-bit records may have 4 bytes more.
_COMMIT = (*_HEAP, pointer("block"), sizet("size", unit="bytes"), u32("caller", enum="HeapCommitCaller"))


def _heap(opcode: int, versions: tuple[int, ...], name: str, fields: tuple[Field, ...], source: str = _PUBLISHED) -> EventSchema:
    return EventSchema(HEAP, opcode, versions, name, fields, source, is_classic=True)


def _range(opcode: int, name: str, fields: tuple[Field, ...]) -> EventSchema:
    return EventSchema(MEMORY, opcode, (), name, fields, _PUBLISHED, is_classic=True)


HEAP_EVENTS: tuple[EventSchema, ...] = (
    _heap(0x20, (0, 2), "HeapCreate", (*_HEAP, u32("heap_flags", enum="HeapFlags"))),
    _heap(
        0x20,
        (3,),
        "HeapCreate",
        (
            *_HEAP,
            u32("heap_flags", enum="HeapFlags"),
            sizet("reserved_space", unit="bytes", required=False),
            sizet("committed_space", unit="bytes", required=False),
            *_ALLOCATED,
        ),
    ),
    _heap(
        0x21,
        (0, 2),
        "HeapAlloc",
        (*_HEAP, sizet("alloc_size", unit="bytes"), pointer("alloc_address"), u32("source_id", enum="HeapSource")),
    ),
    _heap(
        0x22,
        (0, 2),
        "HeapReAlloc",
        (
            *_HEAP,
            pointer("new_alloc_address"),
            pointer("old_alloc_address"),
            sizet("new_alloc_size", unit="bytes"),
            sizet("old_alloc_size", unit="bytes"),
            u32("source_id", enum="HeapSource"),
        ),
    ),
    _heap(0x23, (0, 2), "HeapDestroy", _HEAP),
    _heap(0x24, (0, 2), "HeapFree", (*_HEAP, pointer("free_address"), u32("source_id", enum="HeapSource"))),
    _heap(0x25, (0, 2), "HeapExpand", _EXPAND),
    _heap(0x25, (3,), "HeapExpand", (*_EXPAND, *_ALLOCATED)),
    _heap(0x26, (0, 2), "HeapSnapShot", _SNAPSHOT),
    _heap(0x26, (3,), "HeapSnapShot", (*_SNAPSHOT, *_ALLOCATED)),
    _heap(0x27, (2, 3), "HeapCreateSnapShot", (*_SNAPSHOT, *_ALLOCATED), _COMMENT),
    _heap(0x28, (2, 3), "HeapDestroySnapShot", (*_SNAPSHOT, *_ALLOCATED), _COMMENT),
    _heap(0x29, (2, 3), "HeapExtendSnapShot", (*_SNAPSHOT, *_ALLOCATED), _COMMENT),
    _heap(0x2A, (0, 2), "HeapContract", _CONTRACT),
    _heap(0x2A, (3,), "HeapContract", (*_CONTRACT, *_ALLOCATED)),
    _heap(0x2B, (0, 2), "HeapLock", _HEAP),
    _heap(0x2C, (0, 2), "HeapUnlock", _HEAP),
    _heap(0x2D, (0, 2), "HeapValidate", _HEAP),
    _heap(0x2E, (0, 2), "HeapWalk", _HEAP),
    _heap(0x2F, (0, 2), "HeapSubsegmentAlloc", _SUBSEGMENT_SIZES),
    _heap(0x30, (0, 2), "HeapSubsegmentFree", _SUBSEGMENT_SIZES),
    _heap(0x31, (0, 2), "HeapSubsegmentAllocCached", _SUBSEGMENT_SIZES),
    _heap(0x32, (0, 2), "HeapSubsegmentFreeCached", _SUBSEGMENT_SIZES),
    _heap(0x33, (0, 2), "HeapCommit", _COMMIT),
    _heap(0x34, (0, 2), "HeapDecommit", _COMMIT),
    _heap(
        0x35,
        (0, 2),
        "HeapSubsegmentInit",
        (*_SUBSEGMENT, sizet("block_size", unit="bytes"), sizet("block_count"), u32("affinity_index")),
    ),
    _heap(0x36, (0, 2), "HeapAffinityManagerEnable", (*_HEAP, u32("bucket_index"))),
    _heap(0x37, (0, 2), "HeapAffinitySlotAssigned", (u32("slot_index"),), _SCHEMA_ONLY),
    _heap(0x38, (0, 2), "HeapSubSegmentActivated", _SUBSEGMENT),
    _heap(0x39, (0, 2), "HeapAffinitySlotChanged", (pointer("heap"), pointer("sub_segment"), u32("slot_index"))),
    _heap(0x3A, (0, 2), "HeapSubsegmentReuseThresholdActivated", (pointer("heap"), pointer("sub_segment"), u32("bucket_index"))),
    # Another process may write this record: hr_pid names the one that owns the heap.
    _range(
        0x64,
        "HeapRangeRundown",
        (
            *_HEAP,
            u32("hr_flags"),
            u32("hr_pid"),
            u32("hr_range_count"),
            u32("reserved", required=False),
            ranges("ranges", length_field="hr_range_count"),
        ),
    ),
    _range(0x65, "HeapRangeCreate", (*_HEAP, sizet("first_range_size", unit="bytes"), u32("hr_create_flags", enum="HeapFlags"))),
    _range(0x66, "HeapRangeReserve", (*_HEAP, pointer("hr_address"), sizet("hr_size", unit="bytes"))),
    _range(0x67, "HeapRangeRelease", (*_HEAP, pointer("hr_address"), sizet("hr_size", unit="bytes"))),
    _range(0x68, "HeapRangeDestroy", _HEAP),
)

"""What counters, matching rules and odd heap records are called on pages, where their stored names say too little."""

__all__ = ["LABELS", "label"]

LABELS = {
    # how a completion found the request that it completes
    "activity": "by activity id",
    "thread": "by thread, on the fast path",
    "buffer": "by buffer address",
    "kernel_order": "by the kernel's order of requests",
    "fifo": "the oldest request (inferred)",
    # where the process id of an owner is known from
    "kernel": "the kernel's process records",
    "create": "the creation of a socket",
    "heap": "its heap records",
    "location": "records that run in the caller's thread",
    "header": "the headers of its records (inferred)",
    # counters of the heap
    "allocs": "allocations",
    "reallocs": "reallocations",
    "destroyed_blocks": "blocks that ended with their heap",
    "implicit_frees": "blocks whose free was not recorded",
    "realloc_unknown_old": "reallocations of older blocks",
    "unknown_frees": "frees of blocks from before the trace",
    "unmatched_frees": "frees of no known block",
    "wrong_heap_frees": "frees through another heap",
    # records of the heap that do not fit what went before
    "double_free": "freed a second time",
    "free_wrong_heap": "freed through another heap",
    "free_never_allocated": "freed, never allocated",
    "free_after_destroy": "freed after its heap was destroyed",
    "free_unknown": "freed, from before the trace",
    "free_unmatched_after_loss": "freed, unknown after a loss of records",
    "size_mismatch": "sizes that differ",
    "implicit_free": "allocated again without a free",
    "implicit_destroy": "heap created again without an end",
}
"""Labels by stored name."""


def label(name: str) -> str:
    """The label of a name; of one without, its words."""
    return LABELS.get(name, name.replace("_", " "))

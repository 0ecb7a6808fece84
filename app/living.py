"""Whether the collector that an entry or a trace speaks of still lives: one that was killed can say nothing any more."""

from dataclasses import replace

from app.page import TraceHead
from app.queries.catalog import EntryRow
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["is_alive", "living_entry", "living_head", "version_of"]


def is_alive(folder: TraceStore, key: str) -> bool:
    """Whether a process collects or follows a trace now; in a folder that may not be written nobody can tell, and it is believed."""
    try:
        return folder.is_being_collected(key)
    except StoreError:
        return True


def version_of(folder: TraceStore, key: str) -> str:
    """What tells one state of a trace from the next; empty where there is none, or nobody can tell."""
    try:
        return folder.version_of(key)
    except StoreError:
        return ""


def living_entry(folder: TraceStore, entry: EntryRow) -> EntryRow:
    """The entry as it will be once somebody has settled it."""
    if entry.state not in ("collecting", "live") or is_alive(folder, entry.key):
        return entry
    return replace(entry, state="complete" if entry.state == "collecting" and folder.has_trace(entry.key) else "interrupted")


def living_head(folder: TraceStore, head: TraceHead) -> TraceHead:
    """What the pages of a trace say of it."""
    return replace(head, state="interrupted") if head.state == "live" and not is_alive(folder, head.key) else head

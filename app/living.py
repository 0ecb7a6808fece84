"""What pages say of traces whose collector may be gone, and which state of a trace they show."""

from dataclasses import replace

from app.page import TraceHead
from app.queries.catalog import EntryRow
from collector.errors import StoreError
from collector.store.stores import TraceStore, is_alive, settled_state

__all__ = ["living_entry", "living_head", "version_of"]


def version_of(folder: TraceStore, key: str) -> str:
    """What tells one state of a trace from the next; empty where there is none, or nobody can tell."""
    try:
        return folder.version_of(key)
    except StoreError:
        return ""


def living_entry(folder: TraceStore, entry: EntryRow) -> EntryRow:
    """The entry as it will be once somebody has settled it."""
    return replace(entry, state=settled_state(folder, entry.key, entry.state))


def living_head(folder: TraceStore, head: TraceHead) -> TraceHead:
    """What the pages of a trace say of it."""
    return replace(head, state="interrupted") if head.state == "live" and not is_alive(folder, head.key) else head

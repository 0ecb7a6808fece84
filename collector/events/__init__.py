"""Every event that we know how to read, and the providers whose unknown events we keep."""

from uuid import UUID

from collector.events.afd import AFD, AFD_EVENTS
from collector.events.heap import HEAP, HEAP_EVENTS, HEAP_RANGES, HEAP_SNAPSHOT, HEAP_SUMMARY
from collector.events.system import SYSTEM_EVENTS
from collector.schema import EventSchema, SchemaTable, table_of

__all__ = ["ALL_EVENTS", "OWN_PROVIDERS", "SCHEMAS"]

ALL_EVENTS: tuple[EventSchema, ...] = (*AFD_EVENTS, *HEAP_EVENTS, *SYSTEM_EVENTS)
SCHEMAS: SchemaTable = table_of(ALL_EVENTS)

OWN_PROVIDERS: frozenset[UUID] = frozenset({AFD, HEAP, HEAP_RANGES, HEAP_SUMMARY, HEAP_SNAPSHOT})
"""Providers that the product is about: an event of theirs without a layout is kept raw, those of others are only counted."""

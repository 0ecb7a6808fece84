"""Every event that we know how to read, the providers whose unknown events we keep, and those that merely help to answer."""

from uuid import UUID

from collector.events.afd import AFD, AFD_EVENTS
from collector.events.heap import HEAP, HEAP_EVENTS, HEAP_RANGES, HEAP_SNAPSHOT, HEAP_SUMMARY
from collector.events.memory import VIRTUAL_MEMORY_EVENTS
from collector.events.names import NAME_EVENTS
from collector.events.network import NETWORK_EVENTS
from collector.events.system import SYSTEM_EVENTS
from collector.schema import EventKey, EventSchema, SchemaTable, table_of

__all__ = ["ALL_EVENTS", "NEIGHBOURS", "NEIGHBOUR_EVENTS", "OWN_PROVIDERS", "SCHEMAS"]

NEIGHBOUR_EVENTS: tuple[EventSchema, ...] = (*NETWORK_EVENTS, *NAME_EVENTS, *VIRTUAL_MEMORY_EVENTS)
ALL_EVENTS: tuple[EventSchema, ...] = (*AFD_EVENTS, *HEAP_EVENTS, *SYSTEM_EVENTS, *NEIGHBOUR_EVENTS)
SCHEMAS: SchemaTable = table_of(ALL_EVENTS)

OWN_PROVIDERS: frozenset[UUID] = frozenset({AFD, HEAP, HEAP_RANGES, HEAP_SUMMARY, HEAP_SNAPSHOT})
"""Providers that the product is about: an event of theirs without a layout is kept raw, those of others are only counted."""

NEIGHBOURS: frozenset[EventKey] = frozenset(schema.key for schema in NEIGHBOUR_EVENTS)
"""Events that make answers better where a trace has them. The trace's own layout of one comes before ours, and what fits neither is
foreign: nothing that the product is about depends on it."""

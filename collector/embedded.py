"""Layouts that a trace brings along: the event metadata that a merge writes into the file.

Class {bbccf6c1-6cd1-48c4-80ff-839482e37671}, opcode 32 TRACE_EVENT_INFO and 33 EVENT_MAP_INFO.
"""

from uuid import UUID

from collector.schema import EventKey, EventSchema

__all__ = ["METADATA", "EmbeddedLayouts"]

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")


class EmbeddedLayouts:
    """The layouts of one trace."""

    def learn(self, opcode: int, blob: bytes) -> None:
        """Take in one metadata record."""

    def layout(self, key: EventKey, version: int, *, like: EventSchema | None = None) -> EventSchema | None:
        """The layout of an event, None where the file has none."""
        return None

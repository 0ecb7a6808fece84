"""Traces as text: events that a tool of Windows has written out as XML."""

from collector.texts.event_xml import is_event_xml, trace_of_xml

__all__ = ["is_event_xml", "trace_of_xml"]

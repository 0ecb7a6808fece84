"""Traces as text: events that a tool of Windows has written out."""

from collector.texts.reading import FORMS, form_of, trace_of_text

__all__ = ["FORMS", "form_of", "trace_of_text"]

"""Builders: a trace in a few lines of a test, over the package's own ETL writer."""

from tests.build.events import ENTER, EXIT, Event, event
from tests.build.trace import Trace

__all__ = ["ENTER", "EXIT", "Event", "Trace", "event"]

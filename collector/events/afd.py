"""Winsock AFD: every event of the provider, both generations and registered I/O."""

from collector.events.afd_documented import DOCUMENTED
from collector.events.afd_modern import MODERN
from collector.events.afd_provider import AFD
from collector.events.afd_rio import REGISTERED_IO
from collector.schema import EventSchema

__all__ = ["AFD", "AFD_EVENTS"]

AFD_EVENTS: tuple[EventSchema, ...] = (*DOCUMENTED, *MODERN, *REGISTERED_IO)

"""An ETL file as XML, as tracerpt and the Event Viewer write it."""

from pathlib import Path
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from collector.clock import filetime_to_datetime
from collector.raw import TraceHeader
from tests.build.told import Number, ToldEvent, told_events

__all__ = ["about_session", "event_xml", "xml_of_event"]


def event_xml(path: Path, *, number: Number = str, is_reversed: bool = False, is_undecoded: bool = False) -> str:
    """The text; `is_reversed` writes the last event first, as the Event Viewer may.

    With `is_undecoded` the tool did not know the layouts.
    """
    header, told = told_events(path, number=number)
    data = "".join(f'<Data Name="{name}">{value}</Data>' for name, value in about_session(header).items())
    first = _system(UUID("9e814aad-3204-11d2-9a82-006008a86939"), header.clock.start_filetime, "", 0, 0)
    first += f"<EventData>{data}</EventData>" + _class(UUID("68fdd900-4a3e-11d1-84f4-0000f80464e3"))
    events = [f"<Event>{first}</Event>"]  # instead of the record that stands in the header
    events += [xml_of_event(event, is_undecoded=is_undecoded) for event in told[1:]]
    return '<?xml version="1.0"?>\n<Events>\n' + "\n".join(reversed(events) if is_reversed else events) + "\n</Events>\n"


def about_session(header: TraceHeader) -> dict[str, int]:
    """What the session's own event says, in its order."""
    return {
        "BufferSize": header.buffer_size, "Version": 0, "ProviderVersion": header.os_build, "NumberOfProcessors": header.processors,
        "EndTime": header.end_filetime, "TimerResolution": header.timer_resolution, "MaxFileSize": 0, "LogFileMode": 0,
        "BuffersWritten": 1, "StartBuffers": 1, "PointerSize": header.pointer_size, "EventsLost": header.events_lost,
        "CPUSpeed": header.cpu_mhz, "BootTime": header.boot_filetime, "StartTime": header.clock.start_filetime,
        "BuffersLost": header.buffers_lost,
    }  # fmt: skip


def xml_of_event(event: ToldEvent, *, is_undecoded: bool = False) -> str:
    """One event."""
    if event.values is None or is_undecoded:
        data = f"<BinaryEventData>{event.payload.hex().upper()}</BinaryEventData>"
    else:
        data = "<EventData>"
        for field, text in event.values:
            shown = "".join(part.capitalize() for part in field.name.split("_"))
            data += f"<Data Name={quoteattr(shown)}>{escape(text)}</Data>"
        data += "</EventData>"
    numbers = (
        f"<EventID>{event.event_id}</EventID><Version>{event.version}</Version><Level>{event.level}</Level><Task>0</Task>"
        f"<Opcode>{event.opcode}</Opcode><Keywords>0x{event.keyword:x}</Keywords>"
    )
    ids = f'<Execution ProcessID="{event.pid}" ThreadID="{event.tid}" ProcessorID="{event.cpu}"/>'
    ids += f'<Correlation ActivityID="{{{event.activity}}}"/>' if event.activity.int else "<Correlation/>"
    system = _system(event.provider, event.filetime, numbers, event.opcode, event.cpu, ids)
    rendered = "<RenderingInfo Culture='en-US'><Level>Information </Level><Opcode>Open </Opcode></RenderingInfo>"
    space = "http://schemas.microsoft.com/win/2004/08/events/event"
    return f"<Event xmlns='{space}'>{system}{data}{'' if event.is_manifest else _class(event.provider)}{rendered}</Event>"


def _system(guid: UUID, filetime: int, numbers: str, opcode: int, cpu: int, ids: str = "") -> str:
    moment = filetime_to_datetime(filetime)
    assert moment is not None
    time = f"{moment:%Y-%m-%dT%H:%M:%S}.{filetime % 10_000_000:07d}00Z"
    numbers = numbers or f"<EventID>0</EventID><Version>2</Version><Opcode>{opcode}</Opcode>"
    ids = ids or f'<Execution ProcessID="4" ThreadID="8" ProcessorID="{cpu}"/>'
    return f'<System><Provider Guid="{{{guid}}}" />{numbers}<TimeCreated SystemTime="{time}"/>{ids}<Channel /><Computer /></System>'


def _class(guid: UUID) -> str:
    space = "http://schemas.microsoft.com/win/2004/08/events/trace"
    return f"<ExtendedTracingInfo xmlns='{space}'><EventGuid>{{{guid}}}</EventGuid></ExtendedTracingInfo>"

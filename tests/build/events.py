"""One event of a built trace: its name, its values, when it happens, and what its header says."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from collector.clock import Clock
from collector.etlwriter.events import HeaderValues, record_of, schema_of
from collector.etlwriter.items import stack_trace
from collector.etlwriter.payloads import Value, Values
from collector.etlwriter.records import Record
from collector.schema import EventSchema, FieldType

__all__ = ["ENDPOINT", "ENTER", "EXIT", "PID", "PROCESS", "TID", "Event", "event", "ticks_at"]

ENTER, EXIT = 0, 1

PID, TID = 4120, 11
PROCESS = 0xFFFF_9A0C_1122_3080
"""Process object of the process PID."""
ENDPOINT = 0xFFFF_9A0C_2A00_1010

_EMPTY: Mapping[FieldType, Value] = {
    FieldType.ANSI: "",
    FieldType.UTF16: "",
    FieldType.SID: b"",
    FieldType.GUID: UUID(int=0),
    FieldType.IPV4: 0,
    FieldType.IPV6: 0,
    FieldType.SOCKADDR: b"",
    FieldType.POINTERS: (),
    FieldType.RANGES: (),
    FieldType.REST: b"",
}


def ticks_at(at_us: float, clock: Clock) -> int:
    """Raw time stamp of a moment of the trace, the nearest tick."""
    return clock.start_ticks + round(at_us * clock.ticks_per_second / 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event before it is bound to a trace.

    `stack` are return addresses, innermost first. Modern events carry them in their own header; a classic event gets a stack record
    of its own, `stack_delay_us` later. `pointer_size` is that of the writing process where it is not the trace's. `cut` bytes of the
    payload's end are missing and `tail` follows it.
    """

    name: str
    at_us: float
    values: Values
    header: HeaderValues = field(default_factory=HeaderValues)
    stack: tuple[int, ...] = ()
    stack_delay_us: float = 1
    pointer_size: int | None = None
    cut: int = 0
    tail: bytes = b""

    def with_header(self, header: HeaderValues) -> "Event":
        """The same event with other header values."""
        return replace(self, header={**self.header, **header})

    def with_values(self, **values: Value) -> "Event":
        """The same event with other values."""
        return replace(self, values={**self.values, **values})

    def records(self, pointer_size: int, clock: Clock) -> list[Record]:
        """The record of the event, and that of its stack where it has one of its own."""
        size = self.pointer_size or pointer_size
        ticks = ticks_at(self.at_us, clock)
        schema = schema_of(self.name, self.header.get("version"))
        header = self.header
        if self.stack and not schema.is_classic:
            header = {**header, "items": (*header.get("items", ()), stack_trace(self.stack, pointer_size=pointer_size))}
        record = record_of(self.name, self.values, ticks=ticks, pointer_size=size, **header)
        payload = record.payload[: len(record.payload) - self.cut] + self.tail
        records = [replace(record, payload=payload)]
        if self.stack and schema.is_classic:
            walk: Values = {
                "event_time_stamp": ticks,
                "stack_process": header.get("pid", 0),
                "stack_thread": header.get("tid", 0),
                "frames": self.stack,
            }
            later = ticks_at(self.at_us + self.stack_delay_us, clock)
            records.append(record_of("StackWalk", walk, ticks=later, pointer_size=pointer_size))
        return records


def event(
    name: str,
    *,
    at_us: float,
    header: HeaderValues | None = None,
    stack: tuple[int, ...] = (),
    pointer_size: int | None = None,
    cut: int = 0,
    tail: bytes = b"",
    **values: Value,
) -> Event:
    """Any event by its name; fields that are not given are zero or empty."""
    schema = schema_of(name, (header or {}).get("version"))
    return Event(
        name=name,
        at_us=at_us,
        values={**_empty(schema), **values},
        header=header or HeaderValues(),
        stack=stack,
        pointer_size=pointer_size,
        cut=cut,
        tail=tail,
    )


def _empty(schema: EventSchema) -> dict[str, Value]:
    """A value for each field that a record must have, and for lists."""
    measured = {f.length_field for f in schema.fields if f.length_field}
    return {f.name: _EMPTY.get(f.type, 0) for f in schema.fields if f.name not in measured and (f.required or f.type in _EMPTY)}

"""The row that says what a trace is: its clock, its machine, its length."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from collector.clock import filetime_to_datetime
from collector.model.rows import Rows, rows_of
from collector.raw import TraceHeader

__all__ = ["LIVE_PREFIX", "TraceRow", "end_of_trace", "live_key", "trace_row"]

LIVE_PREFIX = "live-"
_LIVE_DIGITS = 12
_NO_VERSION = "0.0.0"  # a header without one, as of a text that does not tell it

_LATEST_END_NS = 7 * 86_400 * 10**9
"""A header may put the end of the session this long behind its last record; later is a damaged header."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """The row of the table `trace`, in its columns' order behind `n`."""

    key: str
    name: str
    state: str
    start_utc: str | None
    end_ns: int
    clock: str
    ticks_per_second: int
    start_ticks: int
    pointer_size: int
    processors: int
    os_build: str | None
    records: int
    events_lost: int
    buffers_lost: int
    collected_utc: str
    collector_version: str
    header: str

    def rows(self) -> Rows:
        """As rows of the table."""
        return {"trace": rows_of("trace", {"n": [1], **{name: [value] for name, value in asdict(self).items()}}, count=1)}


def live_key(header: TraceHeader) -> str:
    """The key of a trace while its session records: made of what the header says of the session from its beginning to its end.

    So it is the same on every machine that follows the file, and whoever has the finished file can tell it.
    """
    told = (
        header.session_name, header.file_name, header.clock.start_filetime, header.boot_filetime, header.perf_freq, header.processors,
        header.os_version, header.pointer_size, header.buffer_size,
    )  # fmt: skip
    return LIVE_PREFIX + sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:_LIVE_DIGITS]


def trace_row(
    header: TraceHeader,
    *,
    key: str,
    name: str,
    records: int,
    end_ns: int,
    collected_utc: str,
    collector_version: str,
    state: str = "complete",
    followed_as: str | None = None,
    machine: str | None = None,
) -> TraceRow:
    """What is known about a trace; `end_ns` is what `end_of_trace` gives, `state` is complete, live or interrupted; `followed_as` the key
    under which it was shown while it was recorded, None: what `live_key` gives; `machine` the name of the machine, where a record has it.
    """
    clock = header.clock
    start = clock.start_utc()
    shape = {field: value for field, value in asdict(header).items() if field != "clock"}
    shape |= {"start_filetime": clock.start_filetime, "live_key": followed_as or live_key(header), "machine": machine}
    return TraceRow(
        key=key,
        name=name,
        state=state,
        start_utc=start.isoformat().replace("+00:00", "Z") if start else None,
        end_ns=end_ns,
        clock=str(clock.kind),
        ticks_per_second=clock.ticks_per_second,
        start_ticks=clock.start_ticks,
        pointer_size=header.pointer_size,
        processors=header.processors,
        os_build=None if header.os_version == _NO_VERSION else header.os_version,
        records=records,
        events_lost=header.events_lost,
        buffers_lost=header.buffers_lost,
        collected_utc=collected_utc,
        collector_version=collector_version,
        header=json.dumps(shape),
    )


def end_of_trace(header: TraceHeader, last_ns: int, *, is_cut: bool) -> int:
    """The last record, or the end that the header states when that is later and can be right; ns.

    A file whose end is missing (`is_cut`) ends with its last record, whatever its header says: what came later is not known.
    """
    if is_cut or filetime_to_datetime(header.end_filetime) is None or filetime_to_datetime(header.clock.start_filetime) is None:
        return last_ns
    stated = (header.end_filetime - header.clock.start_filetime) * 100
    return stated if last_ns < stated <= last_ns + _LATEST_END_NS else last_ns

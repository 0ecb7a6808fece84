"""The report of `sockscope inspect`: what is in a file, without a database."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta

from collector.clock import Clock, ClockKind, filetime_to_datetime
from collector.decoder import Decoder
from collector.errors import Problem, Severity
from collector.inventory import EventCount, Inventory
from collector.plain import plain_line
from collector.raw import Reader, TraceHeader
from collector.readers import reader_for
from collector.source import Source

__all__ = ["Inspection", "inspect_trace"]

_CLOCK_WORDS = {
    ClockKind.QPC: "performance counter",
    ClockKind.SYSTEM_TIME: "system time",
    ClockKind.CPU_CYCLES: "processor cycles",
}
_SEVERITY_WORDS = {Severity.DATA_LOSS: "LOSS", Severity.DAMAGE: "DAMAGE", Severity.LIMIT: "limit", Severity.NOTE: "note"}
_LABEL_WIDTH = 18
_UNSAID = (
    "clock", "session_name", "file_name", "os_version", "log_file_mode", "buffer_size", "buffers_written", "layout_version", "is_merged",
    "is_compressed", "is_circular", "is_closed",
)  # fmt: skip
"""What only a recorded file says, of the fields of its header."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in one file."""

    name: str
    size_bytes: int
    form: str
    """What a file that is no recorded one is, such as CSV of tracerpt: it has no buffers and says little of the session; else empty."""
    header: TraceHeader
    buffers: int
    records: int
    records_by_kind: dict[str, int]
    first_ticks: int | None
    last_ticks: int | None
    losses: list[tuple[int, int]]
    """Spans in raw ticks."""
    loses_everywhere: bool
    problems: list[Problem]
    events: list[EventCount]

    @property
    def is_limited(self) -> bool:
        """Whether records were lost or damaged."""
        return any(problem.kind.severity in (Severity.DATA_LOSS, Severity.DAMAGE) for problem in self.problems)

    def lines(self) -> list[str]:
        """The report as text."""
        return [*self._header_lines(), "", *self._problem_lines(), "", *self._event_lines()]

    def as_dict(self) -> dict[str, object]:
        """The report for JSON: times in ns since time 0, GUIDs as text, unknown values null."""
        clock = self.header.clock
        unsaid = _UNSAID if self.form else ("clock",)
        return {
            "file": {"name": self.name, "size_bytes": self.size_bytes, "form": self.form or "ETL"},
            "header": {key: value for key, value in asdict(self.header).items() if key not in unsaid},
            "clock": {
                "kind": str(clock.kind),
                "ticks_per_second": clock.ticks_per_second,
                "start_ticks": clock.start_ticks,
                "start_filetime": clock.start_filetime,
                "start_utc": _utc(clock.start_filetime),
                "end_utc": _utc(self.header.end_filetime),
                "boot_utc": _utc(self.header.boot_filetime),
            },
            "buffers": None if self.form else self.buffers,
            "records": self.records,
            "records_by_kind": None if self.form else self.records_by_kind,
            "first_ns": _ns(clock, self.first_ticks),
            "last_ns": _ns(clock, self.last_ticks),
            "losses": {
                "events_lost": self.header.events_lost,
                "buffers_lost": self.header.buffers_lost,
                "spans_ns": [[clock.ns_of(first), clock.ns_of(self._bounded(last))] for first, last in self.losses],
                "everywhere": self.loses_everywhere,
            },
            "problems": [self._problem_dict(problem) for problem in self.problems],
            "events": [self._event_dict(event) for event in self.events],
        }

    def _header_lines(self) -> Iterator[str]:
        header, clock = self.header, self.header.clock
        span = None if self.first_ticks is None or self.last_ticks is None else clock.ns_of(self.last_ticks) - clock.ns_of(self.first_ticks)
        traits = [
            word
            for is_so, word in (
                (header.is_merged, "merged"),
                (header.is_compressed, "compressed"),
                (header.is_circular, "circular"),
                (not header.is_closed, "not closed"),
            )
            if is_so
        ]
        lost = f"{header.events_lost:,} events, {header.buffers_lost:,} buffers by the header"
        if self.losses:
            lost += f"; places in the file: {len(self.losses):,}"
        if self.loses_everywhere:
            lost += "; without a place: any moment may lack records"
        if self.form:
            yield from self._told_lines(span)
            return
        for label, text in (
            ("File", f"{self.name}, {self.size_bytes:,} bytes"),
            ("Session", header.session_name or "(no name)"),
            ("Recorded as", header.file_name or "(no name)"),
            ("Windows", f"{header.os_version}, {header.processors} processors, {8 * header.pointer_size} bits"),
            ("Clock", f"{_CLOCK_WORDS[clock.kind]}, {clock.ticks_per_second:,} ticks a second"),
            ("Time 0", f"{_utc(clock.start_filetime) or 'unknown'} (tick {clock.start_ticks:,})"),
            ("Closed", _utc(header.end_filetime) or "unknown"),
            ("Records", f"{self.records:,} within {timedelta(microseconds=(span or 0) // 1000)}"),
            ("By header kind", ", ".join(f"{kind} {count:,}" for kind, count in self.records_by_kind.items()) or "none"),
            ("Buffers", f"{self.buffers:,} of {header.buffer_size:,} bytes, {header.buffers_written:,} by the header"),
            ("File mode", f"0x{header.log_file_mode:08x}, layout {header.layout_version}" + (", " + ", ".join(traits) if traits else "")),
            ("Lost", lost),
        ):
            yield f"{label:<{_LABEL_WIDTH}}{plain_line(text)}"

    def _told_lines(self, span_ns: int | None) -> Iterator[str]:
        """What a text says: what stands in a container alone is left out."""
        header = self.header
        machine = [f"{8 * header.pointer_size} bits"]
        if header.os_build:
            machine = [f"build {header.os_build}", f"{header.processors} processors", *machine]
        lost = (
            f"{header.events_lost:,} events, {header.buffers_lost:,} buffers" if header.events_lost or header.buffers_lost else "none told"
        )
        for label, text in (
            ("File", f"{self.name}, {self.size_bytes:,} bytes"),
            ("Form", self.form),
            ("Windows", ", ".join(machine)),
            ("Time 0", _utc(header.clock.start_filetime) or "unknown"),
            ("Records", f"{self.records:,} within {timedelta(microseconds=(span_ns or 0) // 1000)}"),
            ("Lost", lost),
        ):
            yield f"{label:<{_LABEL_WIDTH}}{plain_line(text)}"

    def _problem_lines(self) -> Iterator[str]:
        if not self.problems:
            yield "Problems: none"
            return
        yield f"Problems: {len(self.problems)}"
        for problem in self.problems:
            yield f"  {_SEVERITY_WORDS[problem.kind.severity]:<8}{plain_line(problem.text)}"
            if problem.place:
                yield f"          First: {plain_line(problem.place)}."
            yield f"          {problem.kind.advice}"

    def _event_lines(self) -> Iterator[str]:
        yield f"{'Count':>12} {'Known':>12} {'Damaged':>8}  {'Id':>5} {'Opcode':>6} {'Version':>7}  {'Kind':<11} Provider and event"
        for event in self.events:
            number = "" if event.event_id is None else str(event.event_id)
            name = event.provider_name or str(event.provider)
            kind = "" if self.form else event.header_kind
            yield (
                f"{event.count:>12,} {event.known:>12,} {event.damaged:>8,}  {number:>5} {event.opcode:>6} {event.version:>7}  "
                f"{kind:<11} {plain_line(name)}{' ' + plain_line(event.event_name) if event.event_name else ''}"
            )
        known = sum(event.known for event in self.events)
        yield f"{self.records:>12,} {known:>12,} {sum(event.damaged for event in self.events):>8,}  in all"

    def _problem_dict(self, problem: Problem) -> dict[str, object]:
        clock = self.header.clock
        return {
            "kind": problem.kind.name,
            "severity": str(problem.kind.severity),
            "count": problem.count,
            "first_ns": _ns(clock, problem.first_ticks),
            "last_ns": _ns(clock, problem.last_ticks),
            "place": problem.place,
            "text": problem.text,
            "effect": problem.effect,
            "advice": problem.kind.advice,
        }

    def _event_dict(self, event: EventCount) -> dict[str, object]:
        clock = self.header.clock
        fields = {key: value for key, value in asdict(event).items() if key not in ("provider", "first_ticks", "last_ticks")}
        return {
            "provider": str(event.provider),
            **fields,
            "header_kind": None if self.form else event.header_kind,
            "first_ns": clock.ns_of(event.first_ticks),
            "last_ns": clock.ns_of(event.last_ticks),
        }

    def _bounded(self, ticks: int) -> int:
        """A tick of a loss, not later than the last record."""
        return ticks if self.last_ticks is None else min(ticks, self.last_ticks)


def inspect_trace(source: Source, *, on_progress: Callable[[int, int], None] | None = None) -> Inspection:
    """Read a whole file, decode it, and count; nothing is stored. Raises SourceError, FormatError.

    `on_progress` is called after each window with the bytes read and the bytes of the file.
    """
    reader: Reader = reader_for(source)
    clock = reader.header.clock
    decoder = Decoder(header=reader.header)
    inventory = Inventory(clock)
    first = last = None
    for raw in reader.windows():
        inventory.add(decoder.decode(raw, clock))
        first = int(raw.ticks[0]) if first is None else first
        last = int(raw.ticks[-1])
        if on_progress:
            on_progress(reader.bytes_done, reader.bytes_total)
    events = inventory.counts()
    by_kind: Counter[str] = Counter()
    for event in events:
        by_kind[event.header_kind] += event.count
    return Inspection(
        name=source.name,
        size_bytes=source.told_by[1] if source.told_by else source.size,
        form=source.told_by[0] if source.told_by else "",
        header=reader.header,
        buffers=reader.buffers_read,
        records=by_kind.total(),
        records_by_kind=dict(by_kind.most_common()),
        first_ticks=first,
        last_ticks=last,
        losses=list(reader.losses.spans),
        loses_everywhere=reader.losses.is_everywhere,
        problems=reader.problems,
        events=events,
    )


def _ns(clock: Clock, ticks: int | None) -> int | None:
    return None if ticks is None else clock.ns_of(ticks)


def _utc(filetime: int) -> str | None:
    moment = filetime_to_datetime(filetime)
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")

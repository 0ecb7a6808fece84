"""What can be wrong with the container of a trace without ending its import."""

from collections.abc import Iterable

from collector.errors import Problem, ProblemKind, Severity

__all__ = [
    "BUFFERS_MISSING",
    "BUFFERS_WRITTEN_DIFFERS",
    "CONTAINER_PROBLEMS",
    "COUNTER_FREQUENCY",
    "CPU_SPEED",
    "DAMAGED_BUFFER",
    "DAMAGED_PACKAGE",
    "DAMAGED_RECORD",
    "DAMAGED_TEXT",
    "DAMAGED_TIME",
    "DECOMPRESSION_FAILED",
    "DISORDER",
    "EVENT_LOG_FORM",
    "HEADER_FIELD",
    "INVALID_HEADER_TIME",
    "LOST_BUFFERS",
    "LOST_EVENTS",
    "REPEATED_BUFFER",
    "SEQUENCE_FAULT",
    "SEQUENCE_GAP",
    "STILL_RECORDED",
    "TEXT_FORM",
    "TIMER_RESOLUTION",
    "TOO_MANY_FORMS",
    "TOO_MANY_PROVIDERS",
    "TRUNCATED_FILE",
    "UNFINISHED_SESSION",
    "UNKNOWN_HEADER_KIND",
    "WRAPPED_FILE",
    "ZEROED_BUFFER",
    "ProblemLog",
]

_COLLECT_AGAIN = "Stop the session (logman stop NAME -ets) before copying the file, and copy it again."

LOST_EVENTS = ProblemKind(
    "lost_events",
    Severity.DATA_LOSS,
    "Events lost by the session: {count}. No buffer was free when they were written.",
    effect="Operations may lack their completion, allocations their free; counts and bytes are lower bounds.",
    advice="Record again with larger or more buffers, e.g. logman ... -bs 1024 -nb 64 256; "
    "what was read live, with files: record --live --files.",
)
LOST_BUFFERS = ProblemKind(
    "lost_buffers",
    Severity.DATA_LOSS,
    "Whole buffers lost by the session: {count}. They could not be written in time.",
    effect="Stretches of time lack all records of a processor; what began or ended there is unknown.",
    advice="Record to a faster disk, with more buffers, or with fewer providers and keywords; "
    "what was read live, with files: record --live --files.",
)
DAMAGED_BUFFER = ProblemKind(
    "damaged_buffer",
    Severity.DAMAGE,
    "Buffers with a header that cannot be right: {count}; the first: {found}.",
    effect="Records of these buffers are missing where their header left no way to find them.",
    advice=f"The file may be cut, or still being written. {_COLLECT_AGAIN}",
)
DAMAGED_PACKAGE = ProblemKind(
    "damaged_package",
    Severity.DAMAGE,
    "The package in which the trace came is damaged: {found}.",
    effect="What could be unpacked up to there was read; bytes behind it may be missing, and bytes before it may be wrong.",
    advice="Copy the package again from where it was made; the trace then gets another key.",
)
DAMAGED_TEXT = ProblemKind(
    "damaged_text",
    Severity.DAMAGE,
    "Events of the text that could not be read: {count}, or those behind its end; the reason: {found}.",
    effect="They are missing; what their operations did is known only from their other events.",
    advice="Write the text again from the recorded .etl file, or better collect that file itself.",
)
TEXT_FORM = ProblemKind(
    "text_form",
    Severity.LIMIT,
    "This trace was read from {form} that a tool made of a recording, not from the recording itself.{stacks}{inferred}",
    effect="Times have the resolution of the text, 100 ns at best. Stacks are missing, as the text does not say to which event they "
    "belong, and so are lists, such as the ranges of a heap. The order of events at one moment is that of the text.",
    advice="Collect the .etl file that the session wrote, where it is still there.",
)
EVENT_LOG_FORM = ProblemKind(
    "event_log_form",
    Severity.LIMIT,
    "This trace was read from an event log, in which Windows keeps the events of a channel.{inferred}",
    effect="An event log has the events that its channel was enabled for, without call stacks, and when it is full the oldest are "
    "overwritten. The order of events at one moment is that of the log.",
    advice="For processes, heaps and losses, record into an .etl file: sockscope record --help.",
)
ZEROED_BUFFER = ProblemKind(
    "zeroed_buffer",
    Severity.DAMAGE,
    "Buffers in the middle of the file that hold nothing but zero bytes: {count}.",
    effect="The records of these buffers are gone; reading went on behind them.",
    advice=f"The copy may be incomplete. {_COLLECT_AGAIN}",
)
REPEATED_BUFFER = ProblemKind(
    "repeated_buffer",
    Severity.DAMAGE,
    "Buffers that are copies of an earlier one of the file: {count}.",
    effect="Each was read once, so nothing counts twice; what a copy may have taken the place of is missing.",
    advice="The file may have been put together from copies of itself. Copy it again from the machine that recorded it.",
)
DAMAGED_RECORD = ProblemKind(
    "damaged_record",
    Severity.DAMAGE,
    "Damaged records: {count}; the first: {found}. Bytes skipped behind them: {skipped:,}.",
    effect="A record without a valid size hides those behind it: the rest of its buffer was skipped, reading went on with the next buffer.",
    advice="Copy the file again from the machine that recorded it; if the damage stays, record again.",
)
DAMAGED_TIME = ProblemKind(
    "damaged_time",
    Severity.DAMAGE,
    "Records with a time stamp more than a hundred years away from the others: {count}.",
    effect="They are shown at the time of the record before them in their buffer.",
    advice="Copy the file again from the machine that recorded it; if the damage stays, record again.",
)
DECOMPRESSION_FAILED = ProblemKind(
    "decompression_failed",
    Severity.DAMAGE,
    "Compressed buffers that could not be expanded in full: {count}; the first: {found}.",
    effect="Records behind the damage are missing; reading went on with the next buffer.",
    advice="Copy the file again from the machine that recorded it; if the damage stays, record without compression.",
)
TRUNCATED_FILE = ProblemKind(
    "truncated_file",
    Severity.DAMAGE,
    "The file ends inside a buffer: {missing:,} bytes are missing.",
    effect="The records of that buffer up to the cut were read; later ones are missing.",
    advice=f"The copy may be incomplete. {_COLLECT_AGAIN}",
)
UNFINISHED_SESSION = ProblemKind(
    "unfinished_session",
    Severity.LIMIT,
    "The session was not closed: the file header gives neither its end nor its number of buffers.",
    effect="The last records of each processor, those not yet flushed, are missing; lost events were not counted.",
    advice="Stop the session (logman stop NAME -ets) before copying its file.",
)
STILL_RECORDED = ProblemKind(
    "still_recorded",
    Severity.LIMIT,
    "The session was still recording when this was read.",
    effect="What is open at the end goes on; the last records of each processor are not in the file yet, and lost events not counted.",
    advice="Wait until the session has ended: this trace is then replaced by the whole one.",
)
BUFFERS_MISSING = ProblemKind(
    "buffers_missing",
    Severity.DATA_LOSS,
    "The file header counts {declared:,} buffers, the file holds {found:,}: {count} are missing.",
    effect="Records are missing where the sequence numbers have gaps, else at the end: what looks unfinished may have finished there.",
    advice=f"The copy may be incomplete. {_COLLECT_AGAIN}",
)
BUFFERS_WRITTEN_DIFFERS = ProblemKind(
    "buffers_written_differs",
    Severity.NOTE,
    "The file header counts {declared:,} buffers, the file holds {found:,}.",
    effect="All buffers that the file holds were read.",
    advice="Nothing is missing; a tool that counts differently may have written the header.",
)
INVALID_HEADER_TIME = ProblemKind(
    "invalid_header_time",
    Severity.NOTE,
    "Times in the file header that cannot be right: {count} ({fields}).",
    effect="Times count from the first moment of the trace; dates are shown only as far as the header's start time is right.",
    advice="Nothing needs to be done for the analysis; compare with other files by relative times only.",
)
COUNTER_FREQUENCY = ProblemKind(
    "counter_frequency",
    Severity.LIMIT,
    "The file header gives a counter frequency of {found:,} ticks a second. {used}",
    effect="Where a frequency was assumed, durations and rates may be wrong by one factor throughout; order and counts are right.",
    advice="Check durations against a known one before relying on them, or record again.",
)
CPU_SPEED = ProblemKind(
    "cpu_speed",
    Severity.NOTE,
    "The file header gives a processor speed of {found:,} MHz. {used}",
    effect="None unless the clock of the session counts processor cycles; then durations may be wrong by one factor throughout.",
    advice="If times matter and the session counted processor cycles, record with the performance counter as its clock.",
)
TIMER_RESOLUTION = ProblemKind(
    "timer_resolution",
    Severity.NOTE,
    "The file header gives a timer resolution of {found:,} units of 100 ns.",
    effect="None: the resolution is shown only and takes no part in any time.",
    advice="Nothing needs to be done.",
)
WRAPPED_FILE = ProblemKind(
    "wrapped_file",
    Severity.LIMIT,
    "The file is circular and was full: its oldest buffers, {count} of them, were overwritten.",
    effect="What began before the oldest record is known only by what it did later: sockets lack their creation, blocks their allocation.",
    advice="Record with a larger file (logman ... -max MB), or stop the session sooner after the trouble.",
)
HEADER_FIELD = ProblemKind(
    "header_field",
    Severity.NOTE,
    "Fields of the file header that cannot be right: {count} ({fields}).",
    effect="They were replaced by what the rest of the file says.",
    advice="Nothing needs to be done unless other damage is listed.",
)
DISORDER = ProblemKind(
    "disorder",
    Severity.DAMAGE,
    "Records with an earlier time stamp than the record before them in their buffer: {count}.",
    effect="They were sorted by their time stamps, but not before the start of their buffer; what happened first is uncertain there.",
    advice="Copy the file again from the machine that recorded it; if the disorder stays, check the clock of that (virtual) machine.",
)
SEQUENCE_GAP = ProblemKind(
    "sequence_gap",
    Severity.NOTE,
    "Sequence numbers of buffers that are missing: {count}.",
    effect="Buffers that a session never wrote leave such gaps; if they held records, those are missing.",
    advice="Look at the counts of lost events and buffers: when both are 0, gaps are usual.",
)
SEQUENCE_FAULT = ProblemKind(
    "sequence_fault",
    Severity.NOTE,
    "Buffers with a sequence number that repeats or contradicts their times: {count}.",
    effect="Buffers were ordered by the times of their records.",
    advice="Nothing needs to be done unless other damage is listed.",
)
UNKNOWN_HEADER_KIND = ProblemKind(
    "unknown_header_kind",
    Severity.LIMIT,
    "Records with a kind of header that this reader does not know: {count} ({kinds}).",
    effect="They are counted but not decoded, and take the time of the record before them.",
    advice="Report the kinds with `sockscope inspect`.",
)
TOO_MANY_PROVIDERS = ProblemKind(
    "too_many_providers",
    Severity.DAMAGE,
    "Records of providers beyond the first {limit:,}, more than any real trace has: {count}.",
    effect="They are kept under the provider 00000000-0000-0000-0000-000000000000.",
    advice="The file is probably damaged. Copy it again from the machine that recorded it.",
)
TOO_MANY_FORMS = ProblemKind(
    "too_many_forms",
    Severity.DAMAGE,
    "Records with headers unlike the first {limit:,} that were told apart, more than any real trace has: {count}.",
    effect="They are counted under the provider 00000000-0000-0000-0000-000000000000 and not decoded.",
    advice="The file is probably damaged. Copy it again from the machine that recorded it.",
)

CONTAINER_PROBLEMS = (
    LOST_EVENTS,
    LOST_BUFFERS,
    DAMAGED_PACKAGE,
    DAMAGED_TEXT,
    DAMAGED_BUFFER,
    ZEROED_BUFFER,
    REPEATED_BUFFER,
    DAMAGED_RECORD,
    DAMAGED_TIME,
    DECOMPRESSION_FAILED,
    TRUNCATED_FILE,
    UNFINISHED_SESSION,
    STILL_RECORDED,
    WRAPPED_FILE,
    BUFFERS_MISSING,
    BUFFERS_WRITTEN_DIFFERS,
    INVALID_HEADER_TIME,
    COUNTER_FREQUENCY,
    CPU_SPEED,
    TIMER_RESOLUTION,
    HEADER_FIELD,
    DISORDER,
    SEQUENCE_GAP,
    SEQUENCE_FAULT,
    UNKNOWN_HEADER_KIND,
    TOO_MANY_PROVIDERS,
    TOO_MANY_FORMS,
    TEXT_FORM,
    EVENT_LOG_FORM,
)
"""Worst first, the order in which they are shown."""


class ProblemLog:
    """Problems as they are met: the same kind again raises a count and widens a time range; the first place and details stay."""

    def __init__(self, before: Iterable[Problem] = ()) -> None:
        """`before` is what was met on the way to the bytes."""
        self._by_kind: dict[str, Problem] = {}
        for problem in before:
            self.merge(problem)

    def add(
        self,
        kind: ProblemKind,
        *,
        count: int = 1,
        first_ticks: int | None = None,
        last_ticks: int | None = None,
        place: str | None = None,
        **details: object,
    ) -> Problem:
        """Count a problem; details of an `int` type add up, others keep their first value."""
        problem = self._by_kind.get(kind.name)
        if problem is None:
            problem = Problem(kind, count, first_ticks, last_ticks if last_ticks is not None else first_ticks, place, dict(details))
            self._by_kind[kind.name] = problem
            return problem
        problem.count += count
        times = [t for t in (problem.first_ticks, problem.last_ticks, first_ticks, last_ticks) if t is not None]
        if times:
            problem.first_ticks, problem.last_ticks = min(times), max(times)
        problem.place = problem.place or place
        _add_up(problem, details)
        return problem

    def merge(self, problem: Problem) -> None:
        """Count a problem that was met elsewhere."""
        times = (problem.first_ticks, problem.last_ticks)
        found = self.add(problem.kind, count=problem.count, first_ticks=times[0], last_ticks=times[1], place=problem.place)
        _add_up(found, problem.details)
        found.own_effect = found.own_effect or problem.own_effect

    def problems(self) -> list[Problem]:
        """All problems so far, worst kind first."""
        order = [kind.name for kind in CONTAINER_PROBLEMS]
        return [self._by_kind[name] for name in order if name in self._by_kind]


def _add_up(problem: Problem, details: dict[str, object]) -> None:
    for name, value in details.items():
        known = problem.details.setdefault(name, value)
        if known is not value and isinstance(value, int) and isinstance(known, int):
            problem.details[name] = known + value

"""What limits the answers of a whole trace: what was not recorded, and what could not be decoded.

What the container and the models find wrong is theirs; here are the gaps that only the inventory of the whole trace shows. "Never seen"
is a fact about the trace; that it was not recorded is a conclusion, and said as one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from collector.clock import Clock
from collector.errors import Problem, ProblemKind, Severity
from collector.inventory import EventCount
from collector.recording import RECORD_HEAP, RECORD_PROCESSES, RECORD_SOCKETS

__all__ = [
    "PROBLEM_KINDS",
    "STORED_IN_PART",
    "Misread",
    "ProblemRow",
    "Seen",
    "decoding_problems",
    "inventory_problems",
    "problem_rows",
    "seen_in",
]

Seen = Mapping[tuple[UUID, int], int]
"""Records by provider and event id (of manifest events) or opcode (of classic ones)."""

_AFD = UUID("e53c6823-7bb8-44bb-90dc-3f86090d48a6")
_HEAP = UUID("222962ab-6180-4b88-a825-346b75f2a24a")
_PROCESS = UUID("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c")
_IMAGE = UUID("2cb15d1d-5fc1-11d2-abe1-00a0c911f518")

_OLDER = range(1, 42)
_OLDER_VERBOSE = frozenset((*range(18, 40), 41))  # level 5 in the manifest
_NEWER = range(1000, 1038)
_INDICATIONS = range(3000, 3008)
_FAILURES = frozenset((1032, 1033))  # level 2 by themselves
_NARROW_PROFILE = frozenset((1000, 1001, 1003, 1004, 1009, 1013, 1015, 1018, 1021, 1027, 1030, 1032))
"""The ids that the network profile of a common recording tool keeps."""

NO_SOCKET_EVENTS = ProblemKind(
    "no_socket_events",
    Severity.LIMIT,
    "There is no event of the Winsock provider in this trace.",
    effect="The pages on sockets, operations, aborts and overlaps are empty.",
    advice=f"Record with {RECORD_SOCKETS}",
)
LEVEL_TOO_LOW = ProblemKind(
    "socket_level_too_low",
    Severity.LIMIT,
    "There are socket events, but none of level 5 (ids 18 to 39 and 41): the session was probably started with level 4.",
    effect="Sends, receives, options, polls, drops and indications are unknown; bytes are 0, unread data cannot be told.",
    advice=f"Record with level 5: {RECORD_SOCKETS}",
)
FAILURES_ONLY = ProblemKind(
    "socket_failures_only",
    Severity.LIMIT,
    "Of the socket events only aborts and drops are there: the session was probably started with level 2.",
    effect="Lives of sockets, operations and bytes are unknown; only what failed is shown.",
    advice=f"Record with level 5: {RECORD_SOCKETS}",
)
NO_INDICATIONS = ProblemKind(
    "no_transport_indications",
    Severity.LIMIT,
    "There are socket calls, but no indication of the transport (ids 3000 to 3007): keyword 0x8 was probably not enabled.",
    effect="Data that arrived but was not read, the peer's disconnects and arriving connections are unknown; unread bytes cannot be told.",
    advice=f"Record with all keywords: {RECORD_SOCKETS}",
)
NO_CALLS = ProblemKind(
    "no_socket_calls",
    Severity.LIMIT,
    "There are indications of the transport (ids 3000 to 3007), but no socket call: keyword 0x4 was probably not enabled.",
    effect="Which program a socket belongs to, its operations and its end are unknown; only what arrived is shown.",
    advice=f"Record with all keywords: {RECORD_SOCKETS}",
)
NO_CLEANUP = ProblemKind(
    "no_cleanup_events",
    Severity.LIMIT,
    "Sockets are closed (id 1001) but never cleaned up (id 1002), which comes first: the session left ids out.",
    effect="Closed times are those of the last reference, possibly much later; what was in flight at closesocket() is uncertain.",
    advice=f"Record without a filter of ids: {RECORD_SOCKETS}",
)
IDS_FILTERED = ProblemKind(
    "ids_filtered",
    Severity.LIMIT,
    "Socket events have only {kept} of 30 ids of calls, all of a narrow network profile: the session kept no others.",
    effect="Drops, options, listen calls, plain binds and the completions of some connects and accepts are missing, not absent.",
    advice=f"Record without a filter of ids: {RECORD_SOCKETS}",
)
NO_HEAP_EVENTS = ProblemKind(
    "no_heap_events",
    Severity.NOTE,
    "There is no heap event in this trace.",
    effect="The heap pages are empty, and nothing can be said about the memory behind I/O buffers.",
    advice=f"A heap needs a session of its own: {RECORD_HEAP}",
)
NO_PROCESS_EVENTS = ProblemKind(
    "no_process_events",
    Severity.LIMIT,
    "There is no process event in this trace.",
    effect="Programs have no names, and a process id that was used again cannot be told from one process. Owners of sockets are inferred.",
    advice=f"Record processes beside: {RECORD_PROCESSES}",
)
NO_IMAGE_EVENTS = ProblemKind(
    "no_image_events",
    Severity.LIMIT,
    "There are call stacks, but no module (image) event in this trace.",
    effect="Stacks show bare addresses instead of module+offset.",
    advice=f"Record modules beside: {RECORD_PROCESSES}",
)
NO_STACKS = ProblemKind(
    "no_stacks",
    Severity.LIMIT,
    "There is no call stack in this trace.",
    effect="Who allocated, sent or closed is known by thread only.",
    advice=f"Record with stacks: {RECORD_HEAP}",
)
UNKNOWN_EVENTS = ProblemKind(
    "unknown_events",
    Severity.LIMIT,
    "Events of the socket and heap providers without a known layout: {count} ({which}).",
    effect="They are kept as bytes and take part in no answer.",
    advice="Report the ids and versions with `sockscope inspect --json`.",
)
UNKNOWN_EVENTS_CAPPED = ProblemKind(
    "unknown_events_capped",
    Severity.NOTE,
    "Only the first {kept:,} of the events that could not be decoded are kept; left out: {count}.",
    effect="All are counted in the inventory; the bytes of the later ones are only in the trace file.",
    advice="Nothing needs to be done.",
)
NEWER_EVENTS = ProblemKind(
    "newer_events",
    Severity.NOTE,
    "Events of a newer version than this program knows: {count} ({which}).",
    effect="They were read with the newest known layout; fields that a later version added are not shown.",
    advice="Update sockscope; report the versions with `sockscope inspect --json`.",
)
LONGER_EVENTS = ProblemKind(
    "longer_events",
    Severity.NOTE,
    "Events with more data than their layout has fields: {count} ({which}).",
    effect="The known fields were read, the rest is not shown.",
    advice="Report the events with `sockscope inspect --json`.",
)
DAMAGED_EVENTS = ProblemKind(
    "damaged_events",
    Severity.DAMAGE,
    "Events whose data does not fit their layout: {count} ({which}).",
    effect="They are kept as bytes and take part in no answer: operations may lack their completion, allocations their free.",
    advice="Copy the file again from the machine that recorded it; if the damage stays, report the events with `sockscope inspect --json`.",
)

HELPERS_UNREAD = ProblemKind(
    "helpers_unread",
    Severity.NOTE,
    "Events of the network stack, of name resolution or of virtual memory whose layout is not known for sure: {count} ({which}).",
    effect="They are only counted: names, retransmissions or resets may be missing beside sockets. Sockets and heaps are whole.",
    advice="Report the events with `sockscope inspect --json`.",
)

STORED_IN_PART = ProblemKind(
    "stored_in_part",
    Severity.LIMIT,
    "Only a part of this trace was stored: {what}.",
    effect="What lies outside is on no page, in no list and in no sum. What is stored is as the whole trace has it, sums of a socket's or "
    "heap block's whole life included; counts of events are those of the whole file.",
    advice="Collect the file without --process, --from, --to and --only to see all of it; links stay the same but for the trace's key.",
)

DAMAGED_LAYOUTS = ProblemKind(
    "damaged_layouts",
    Severity.LIMIT,
    "Descriptions of events that the file brings along and that cannot be read: {count}.",
    effect="Events that only these describe are kept as bytes; those that this program knows are not affected.",
    advice="Copy the file again from the machine that recorded it.",
)

PROBLEM_KINDS = (
    DAMAGED_LAYOUTS,
    STORED_IN_PART,
    DAMAGED_EVENTS,
    HELPERS_UNREAD,
    NO_SOCKET_EVENTS,
    LEVEL_TOO_LOW,
    FAILURES_ONLY,
    IDS_FILTERED,
    NO_CLEANUP,
    NO_INDICATIONS,
    NO_CALLS,
    NO_PROCESS_EVENTS,
    NO_IMAGE_EVENTS,
    NO_STACKS,
    UNKNOWN_EVENTS,
    UNKNOWN_EVENTS_CAPPED,
    NEWER_EVENTS,
    LONGER_EVENTS,
    NO_HEAP_EVENTS,
)


@dataclass(frozen=True, slots=True)
class Misread:
    """Records that were not decoded as they should be: of one event and version; times are raw ticks."""

    name: str
    count: int
    first_ticks: int
    last_ticks: int
    place: str


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A problem as it is stored, in the columns' order behind `n`."""

    kind: str
    severity: str
    count: int
    first_ns: int | None
    last_ns: int | None
    place: str | None
    text: str
    effect: str
    advice: str


def seen_in(counts: Iterable[EventCount]) -> Seen:
    """The records of an inventory by provider and number."""
    seen: dict[tuple[UUID, int], int] = {}
    for c in counts:
        identity = (c.provider, c.opcode if c.event_id is None else c.event_id)
        seen[identity] = seen.get(identity, 0) + c.count
    return seen


def inventory_problems(seen: Seen, *, has_stacks: bool) -> list[Problem]:
    """What the trace lacks, by what occurs in it. `seen` counts all records of the file, foreign ones too."""
    ids = {number for (provider, number), count in seen.items() if provider == _AFD and count}
    present = {provider for (provider, _), count in seen.items() if count}
    found: list[Problem] = []
    if not ids:
        found.append(Problem(NO_SOCKET_EVENTS))
    found += _socket_gaps(ids)
    if not ids and _HEAP not in present:
        return [*found, Problem(NO_HEAP_EVENTS)]  # a trace of something else: more advice would not help
    if _PROCESS not in present:
        found.append(Problem(NO_PROCESS_EVENTS))
    if has_stacks and _IMAGE not in present:
        found.append(Problem(NO_IMAGE_EVENTS))
    if not has_stacks:
        found.append(Problem(NO_STACKS))
    if _HEAP not in present:
        found.append(Problem(NO_HEAP_EVENTS))
    return found


def _socket_gaps(ids: set[int]) -> list[Problem]:
    """What a session left out, told by the ids of the socket events that it kept."""
    older, calls = ids & set(_OLDER), ids & set(_NEWER)
    found: list[Problem] = []
    if older and not calls and not older & _OLDER_VERBOSE:
        found.append(Problem(LEVEL_TOO_LOW))
    if not calls:
        return [*found, Problem(NO_CALLS)] if ids & set(_INDICATIONS) and not older else found
    if calls <= _FAILURES:
        return [*found, Problem(FAILURES_ONLY)]
    if 1001 in calls and 1002 not in calls:
        is_narrow = calls <= _NARROW_PROFILE and len(calls) > 2
        found.append(Problem(IDS_FILTERED, details={"kept": len(calls)}) if is_narrow else Problem(NO_CLEANUP))
    if not ids & set(_INDICATIONS):
        found.append(Problem(NO_INDICATIONS))
    return found


def decoding_problems(
    *,
    damaged: Iterable[Misread],
    unknown: Iterable[Misread],
    newer: Iterable[Misread],
    longer: Iterable[Misread],
    passed_over: Iterable[Misread] = (),
    kept: int,
    left_out: int,
    layouts: int = 0,
) -> list[Problem]:
    """What could not be decoded in full.

    `kept` and `left_out` count the records that were stored as bytes and those beyond the cap, `layouts` descriptions of events that
    cannot be read.
    """
    kinds = (
        (DAMAGED_EVENTS, damaged),
        (UNKNOWN_EVENTS, unknown),
        (NEWER_EVENTS, newer),
        (LONGER_EVENTS, longer),
        (HELPERS_UNREAD, passed_over),
    )
    found = [_summed(kind, group) for kind, records in kinds if (group := list(records))]
    if left_out:
        found.append(Problem(UNKNOWN_EVENTS_CAPPED, count=left_out, details={"kept": kept}))
    if layouts:
        found.append(Problem(DAMAGED_LAYOUTS, count=layouts))
    return found


def problem_rows(problems: Iterable[Problem], clock: Clock) -> list[ProblemRow]:
    """Problems as they are stored, worst first."""
    order = list(Severity)
    return [
        ProblemRow(
            p.kind.name,
            p.kind.severity,
            p.count,
            None if p.first_ticks is None else clock.ns_of(p.first_ticks),
            None if p.last_ticks is None else clock.ns_of(p.last_ticks),
            p.place,
            p.text,
            p.effect,
            p.kind.advice,
        )
        for p in sorted(problems, key=lambda p: order.index(p.kind.severity))
    ]


def _summed(kind: ProblemKind, records: list[Misread]) -> Problem:
    most = sorted(records, key=lambda r: -r.count)
    which = ", ".join(f"{r.name}: {r.count:,}" for r in most[:4]) + (f" and {len(most) - 4} more kinds" if len(most) > 4 else "")
    first = min(records, key=lambda r: r.first_ticks)
    return Problem(
        kind,
        sum(r.count for r in records),
        first.first_ticks,
        max(r.last_ticks for r in records),
        first.place,
        {"which": which},
    )

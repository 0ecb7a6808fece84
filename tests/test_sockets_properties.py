"""What holds for any sequence of socket records: windows do not matter, nothing is counted twice, overlaps are what the rule says."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.etlwriter.events import HeaderValues
from collector.losses import Losses
from collector.model import socket_archive
from tests.build import ENTER, EXIT, afd, documented
from tests.build.afd import Who
from tests.build.events import ENDPOINT, PROCESS, Event
from tests.socket_model import Model, model

USER = 0x1D2_A446_0000
KERNEL = 0xFFFF_9A0C_3000_0000
ENDPOINTS = st.sampled_from([ENDPOINT, ENDPOINT, ENDPOINT, ENDPOINT + 0x800])
PROCESSES = st.sampled_from([PROCESS] * 15 + [PROCESS + 0x540])
BUFFERS = st.sampled_from([USER, USER, USER, USER + 100, USER + 4000, KERNEL, KERNEL + 512, 0])
LENGTHS = st.sampled_from([0, 100, 4096, 4096])
THREADS = st.integers(1, 2)
GOOD, BAD = 0, st.sampled_from([0, 0, 0xC000_00A3, 0xC000_0120, 0x8000_0005])
ACTIVITIES = st.sampled_from([0, 0, 0x41000A20, 0x41000C40])
MOVES = st.sampled_from([afd.send, afd.receive, afd.receive, afd.send_message, afd.receive_from])
LIVES = st.sampled_from([afd.create, afd.cleanup, afd.close])


@st.composite
def moves(draw: st.DrawFn, where: Who) -> Event:
    """A modern record that moves data."""
    is_exit = draw(st.integers(0, 2)) == 0
    return draw(MOVES)(
        at_us=0,
        enter_exit=EXIT if is_exit else ENTER,
        buffer=draw(BUFFERS),
        length_bytes=draw(LENGTHS),
        buffer_count=draw(st.sampled_from([1, 1, 2])),
        status=draw(BAD) if is_exit or draw(st.integers(0, 19)) == 0 else GOOD,
        activity=draw(ACTIVITIES),
        is_fast=draw(st.booleans()),
        location=draw(st.sampled_from([0, 0, 0, 0, 3073])),
        **where,
    )


def queue(name: str, **values: int) -> Event:
    """A record of registered I/O."""
    return Event(name=name, at_us=0, values=values)


PEERS = st.sampled_from(["192.0.2.1:80", "192.0.2.2:53", "[fe80::1%7]:53"])
STATES = st.sampled_from([0xFFFF_9A0C_5000_0800, 0xFFFF_9A0C_5000_0900])


@st.composite
def others(draw: st.DrawFn, where: Who) -> Event:
    """A record that moves no data and is about connections, listeners, options, what arrives, or queues."""
    # Keywords of many builders, each of its own type.
    modern: dict[str, Any] = {"at_us": 0, "enter_exit": draw(st.sampled_from([ENTER, EXIT])), "status": draw(BAD), **where}
    plain: dict[str, Any] = {"at_us": 0, **where}
    address, accepted = draw(PEERS), draw(ENDPOINTS)
    makers: list[Callable[[], Event]] = [
        lambda: afd.connect(address=address, **modern),
        lambda: afd.connect_ex(**modern),
        lambda: afd.bind(address=draw(st.sampled_from([None, "0.0.0.0:8080"])), **modern),
        lambda: afd.listen(backlog=draw(st.integers(0, 200)), **modern),
        lambda: afd.wait_for_listen(**modern),
        lambda: afd.accept(address=address, accepted=accepted, backlog=draw(st.integers(0, 5)), **modern),
        lambda: afd.accept_ex(address=draw(st.sampled_from([None, address])), accepted=draw(st.sampled_from([0, accepted])), **modern),
        lambda: afd.connect_indication(address=address, **plain),
        lambda: afd.data_indication(address=draw(st.sampled_from([None, address])), length_bytes=draw(LENGTHS), **plain),
        lambda: afd.disconnect(**plain),
        lambda: afd.send_backlog(backlog_bytes=1 << 16, **plain),
        lambda: afd.drop(reason=draw(st.integers(1, 6)), address=address, **plain),
        lambda: afd.option(option=6, value=draw(st.integers(0, 1 << 20)), **plain),
        lambda: documented.create(socket_type=draw(st.sampled_from([1, 2])), **plain),
        lambda: documented.bind(address="10.0.0.1:50000", **plain),
        lambda: documented.bind_failed(**plain),
        lambda: documented.connect(address=address.replace("%7", ""), **plain),
        lambda: documented.connect_completed(error=draw(BAD), **plain),
        lambda: documented.connect_indicated(address="192.0.2.1:80", **plain),
        lambda: documented.accepted(address="192.0.2.1:80", **plain),
        lambda: documented.failed("Accept", **plain),
        lambda: documented.close(**plain),
        lambda: documented.cleanup(**plain),
        lambda: documented.posted("SendTo", address="192.0.2.2:53", buffer=draw(BUFFERS), **plain),
        lambda: documented.completed(draw(st.sampled_from(["SendTo", "SendMsg"])), buffer=draw(BUFFERS), **plain),
        lambda: documented.completed("RecvFrom", address="192.0.2.2:53", buffer=draw(BUFFERS), **plain),
        lambda: documented.aborted(reason=draw(st.integers(1, 20)), by_transport=draw(st.booleans()), **plain),
        lambda: documented.dropped(**plain),
        lambda: documented.data_indicated(**plain),
        lambda: documented.disconnect_indicated(**plain),
        lambda: documented.option(option=7, value=0, **plain),
        lambda: documented.select(**plain),
        lambda: documented.selected(**plain),
        lambda: queue("AfdRioCleanupRioState", rio_state=draw(STATES)),
        lambda: queue("AfdRioDeregisterBuffer", buffer=draw(STATES), references=draw(st.integers(0, 2))),
        lambda: queue("AfdNrtCreate", name_resolution_handle=1, process=where["process"], status=0),
    ]
    return draw(st.sampled_from(makers))()


@st.composite
def records(draw: st.DrawFn, *, is_plain: bool = False) -> Event:
    """One socket record; a plain one neither begins nor ends a socket."""
    where = Who(endpoint=draw(ENDPOINTS), process=PROCESS if is_plain else draw(PROCESSES), tid=draw(THREADS))
    what = draw(st.integers(0, 16 if is_plain else 27))
    if what <= 13:
        return draw(moves(where))
    if what == 14:
        return documented.posted(
            draw(st.sampled_from(["Send", "Recv"])), at_us=0, buffer=draw(BUFFERS), length_bytes=draw(LENGTHS), **where
        )
    if what == 15:
        return documented.completed(draw(st.sampled_from(["Send", "Recv"])), at_us=0, buffer=draw(BUFFERS), **where)
    if what == 16:
        return documented.failed(draw(st.sampled_from(["Send", "Recv", "SendMsg"])), at_us=0, **where)
    if what == 17:
        return afd.abort(at_us=0, reason=draw(st.sampled_from([4, 5, 7])), **where)
    if what > 19:
        return draw(others(where))
    return draw(LIVES)(at_us=0, enter_exit=draw(st.sampled_from([ENTER, EXIT])), **where)


@st.composite
def attempts(draw: st.DrawFn) -> list[Event]:
    """A fast attempt, perhaps its answer, and the slow entry of the same request."""
    where = Who(endpoint=draw(ENDPOINTS), tid=draw(THREADS))
    move, length = draw(MOVES), draw(LENGTHS)
    first = move(at_us=0, buffer=USER, length_bytes=length, is_fast=True, **where)
    answer = move(at_us=0, enter_exit=EXIT, buffer=USER, length_bytes=length, status=0xC000_00A3, is_fast=True, **where)
    second = move(at_us=0, buffer=KERNEL, length_bytes=length, activity=draw(ACTIVITIES), is_fast=False, **where)
    return [first, answer, second] if draw(st.booleans()) else [first, second]


@st.composite
def posts(draw: st.DrawFn) -> list[Event]:
    """Requests at user addresses, rarely an exit, and more rarely a create over an open socket."""
    where = Who(endpoint=draw(ENDPOINTS), tid=draw(st.integers(1, 20)))
    what = draw(st.integers(0, 19))
    if what <= 1:
        return [afd.create(at_us=0, **where)]
    post = draw(MOVES)(
        at_us=0,
        enter_exit=EXIT if what < 5 else ENTER,
        buffer=draw(BUFFERS),
        length_bytes=draw(LENGTHS),
        buffer_count=draw(st.sampled_from([1, 2])),
        is_fast=draw(st.booleans()),
        **where,
    )
    return [post]


@st.composite
def traces(draw: st.DrawFn, *, is_plain: bool = False, is_busy: bool = False) -> list[Event]:
    """Up to 60 records in time order, many at one tick."""
    at_us, placed = 0.0, []
    one = records(is_plain=is_plain).map(lambda record: [record])
    some_records = one if is_plain else posts() | posts() | posts() | attempts() if is_busy else one | one | one | attempts()
    for record in (r for some in draw(st.lists(some_records, min_size=8 * is_busy, max_size=60)) for r in some):
        at_us += draw(st.sampled_from([0, 0.1, 0.1, 1]))
        placed.append(replace(record, at_us=at_us))
    return placed


# ---------------------------------------------------------------------------------------------------- windows


@given(traces(), st.lists(st.integers(1, 59), max_size=5))
@settings(max_examples=40, deadline=None)
def test_windows_may_be_cut_anywhere(events: list[Event], cuts: list[int]) -> None:
    assert model(events, cuts=cuts).tables == model(events).tables


@given(traces())
@settings(max_examples=25, deadline=None)
def test_every_record_may_be_a_window_of_its_own(events: list[Event]) -> None:
    assert model(events, cuts=range(len(events))).tables == model(events).tables


@given(traces(), st.integers(0, 2), st.sampled_from([1, 600, 1 << 20]))
@settings(max_examples=40, deadline=None)
def test_the_archive_of_sockets_changes_nothing_in_memory_or_on_disk(events: list[Event], kept: int, waiting_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket_archive, "_AT_ONCE", waiting_bytes)
        assert model(events, kept=kept).tables == model(events).tables


# ---------------------------------------------------------------------------------------------------- nothing twice, nothing lost


@given(traces())
@settings(max_examples=40, deadline=None)
def test_every_record_is_in_one_place(events: list[Event]) -> None:
    m = model(events)

    places = [seq for row in m.rows("operation", "posted_seq", "completed_seq") for seq in set(row) if seq is not None]
    places += [row["seq"] for row in m.table("socket_event")]
    assert max(Counter(places).values(), default=1) == 1
    assert len(places) + len(m.table("skipped")) == len(events)


@given(traces())
@settings(max_examples=40, deadline=None)
def test_bytes_of_operations_are_those_of_their_sockets(events: list[Event]) -> None:
    m = model(events)

    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for socket_n, kind, moved in m.rows("operation", "socket_n", "kind", "bytes"):
        (sent if kind.startswith("send") else received)[socket_n] += moved
    assert m.rows("socket", "bytes_sent", "bytes_received") == [(sent[row["n"]], received[row["n"]]) for row in m.table("socket")]


@given(traces())
@settings(max_examples=40, deadline=None)
def test_operations_end_after_they_begin_and_belong_to_a_socket(events: list[Event]) -> None:
    m = model(events)

    known = {row["n"] for row in m.table("socket")}
    for row in m.table("operation"):
        times = [t for t in (row["posted_ns"], row["completed_ns"]) if t is not None]
        assert times == sorted(times)
        assert times
        assert row["end_ns"] is None or row["posted_ns"] is None or row["posted_ns"] <= row["end_ns"]
        assert (row["match"] is None) == (row["completed_event"] is None or row["outcome"] == "rejected")
        assert row["socket_n"] in known or row["socket_n"] <= max(known, default=0) + 3


# ---------------------------------------------------------------------------------------------------- matching, by reading the rules


def is_sending(event: Event) -> bool:
    return event.name.startswith(("AfdSend",))


def matches_by_the_rules(events: list[Event]) -> list[tuple[int | None, int, str]]:
    """Record numbers of post and completion, and the rule, by looking through all open requests (winsock-semantics 4.1 rule 5)."""
    opened: list[tuple[int, Event]] = []
    found: list[tuple[int | None, int, str]] = []
    for number, e in enumerate(events):
        if e.values["enter_exit"] == ENTER:
            opened.append((number, e))
            continue
        mine = [o for o in opened if o[1].values["endpoint"] == e.values["endpoint"] and is_sending(o[1]) == is_sending(e)]
        match, word = first_rule(mine, e)
        if match is not None:
            opened.remove(match)
        found.append((None if match is None else match[0], number, word))
    return found


def first_rule(mine: list[tuple[int, Event]], e: Event) -> tuple[tuple[int, Event] | None, str]:
    """The request that the first rule with an answer gives."""
    buffer, tid, activity = e.values["buffer"], e.header["tid"], e.header.get("activity")
    is_kernel = isinstance(buffer, int) and buffer >= 0xFFFF_8000_0000_0000
    same = [o for o in mine if o[1].values["buffer"] == buffer]
    same_thread = [o for o in same if o[1].header["tid"] == tid]
    by_activity = [o for o in mine if activity and o[1].header.get("activity") == activity]
    kernel = [o for o in mine if o[1].values["buffer"] in (KERNEL, KERNEL + 512) and not o[1].header.get("activity")]
    if by_activity:
        return by_activity[0], "activity"
    if e.header["keyword"] & 0x10 and same_thread:
        return same_thread[-1], "thread"
    if buffer:
        if same:
            return same[0], "buffer"
        return (kernel[0], "kernel_order") if is_kernel and kernel else (None, "none")
    if same_thread:
        return same_thread[-1], "thread"
    return (same[0], "fifo") if same else (None, "none")


@given(traces(is_plain=True))
@settings(max_examples=100, deadline=None)
def test_requests_are_found_as_the_rules_say(events: list[Event]) -> None:
    """Lengths differ from post to post, so that no request is taken for the slow entry of another."""
    modern = [e for e in events if e.name.startswith("Afd")]
    plain = [
        e.with_header(HeaderValues(keyword=int(e.header["keyword"]) & ~0x20)).with_values(buffer_length=i + 1, location=0)
        for i, e in enumerate(modern)
        if e.values["enter_exit"] == EXIT or e.values["status"] == 0
    ]
    m = model(plain)

    got = m.rows("operation", "posted_seq", "completed_seq", "match")
    assert sorted((r for r in got if r[1] is not None), key=lambda r: r[1]) == matches_by_the_rules(plain)


MOVED = {"receive": afd.receive, "send": afd.send, "send_message": afd.send_message}


@given(
    st.lists(
        st.tuples(st.sampled_from(list(MOVED)), st.integers(0, 8), st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.booleans()),
        min_size=1,
        max_size=25,
    ),
    st.permutations([0, 1, 2]),
)
@settings(max_examples=60, deadline=None)
def test_requests_of_many_processors_are_found_whichever_logged_a_tick_first(
    requests: list[tuple[str, int, int, int, int, bool]], processors: list[int]
) -> None:
    """Each request has a buffer or an ActivityId of its own; its completion is logged elsewhere, perhaps at the tick of its post."""
    placed: list[tuple[Event, int]] = []
    expected = []
    for i, (name, at, duration, cpu, step, is_fast) in enumerate(requests):
        where = {"activity": 0} if is_fast else {"activity": 0x41000000 + 64 * i}
        length = 100 + i
        for enter_exit, t, on in ((ENTER, at, cpu), (EXIT, at + duration, (cpu + step) % 3)):
            event = MOVED[name](
                at_us=t / 10,
                enter_exit=enter_exit,
                buffer=USER + 8192 * i,
                length_bytes=length,
                tid=100 * i + enter_exit + 1,
                **where,  # type: ignore[arg-type]  # keywords by name
            )
            placed.append((event, processors[on]))
        expected.append((at * 100, (at + duration) * 100, length, "completed"))
    m = model([event for event, _ in placed], on_cpu=[on for _, on in placed])

    assert sorted(m.rows("operation", "posted_ns", "completed_ns", "bytes", "outcome")) == sorted(expected)
    assert m.one("socket", "bytes_sent", "bytes_received") == (
        sum(length for (name, *_), (_, _, length, _) in zip(requests, expected, strict=True) if name != "receive"),
        sum(length for (name, *_), (_, _, length, _) in zip(requests, expected, strict=True) if name == "receive"),
    )


# ---------------------------------------------------------------------------------------------------- overlaps, by brute force


TICK_NS = 100


def overlaps_by_the_rule(m: Model, lost: list[tuple[int, int]]) -> dict[tuple[int, int], tuple[object, ...]]:
    """All pairs of the definition with what is said of each, each operation compared with each; `lost` in ticks, both included."""
    owners = {row["n"]: row["owner_n"] for row in m.table("socket")}
    endpoints = {row["n"]: row["endpoint"] % (1 << 64) for row in m.table("socket")}
    operations = [
        (row["posted_ns"], endpoints[row["socket_n"]], row["buffer"], row["n"], owners[row["socket_n"]], row)
        for row in m.table("operation")
        if row["space"] == "user" and row["posted_len"] and row["posted_ns"] is not None and row["outcome"] != "rejected"
        if row["socket_n"] in owners
    ]
    operations.sort(key=lambda o: o[:4])
    found = {}
    for i, (posted, _, start, n, owner, row) in enumerate(operations):
        end_ns = posted if row["outcome"] == "sent" else row["end_ns"]
        for posted_ns, _, other_start, other, other_owner, other_row in operations[i + 1 :]:
            in_flight = end_ns is None or posted_ns < end_ns
            if owner == other_owner and in_flight and max(start, other_start) < min(end_of(row), end_of(other_row)):
                until = 1 << 62 if end_ns is None else end_ns // TICK_NS
                is_lossy = any(first <= until and posted // TICK_NS <= last for first, last in lost)
                found[n, other] = said_of(row, other_row, is_lossy=is_lossy)
    return found


def end_of(row: dict[str, Any]) -> int:
    """Beyond the last byte that was posted."""
    return int(row["buffer"] + row["posted_len"])


def said_of(one: dict[str, Any], other: dict[str, Any], *, is_lossy: bool) -> tuple[object, ...]:
    """Time, intersection, pair, range, certainty, scope and severity of an overlap, from the rows of its operations."""
    rows = (one, other)
    lo, hi = max(row["buffer"] for row in rows), min(end_of(row) for row in rows)
    inside = [(row["buffer"], end_of(row)) == (lo, hi) for row in rows]
    ways = ["send" if row["kind"].startswith("send") else "recv" for row in rows]
    known = [(row["buffer"], row["buffer"] + 1 if (row["buffer_count"] or 0) > 1 else end_of(row)) for row in rows]
    is_known = max(first for first, _ in known) < min(beyond for _, beyond in known)
    is_doubtful = is_lossy or one["outcome"] == "unknown_end" or any(row["buffer_inferred"] for row in rows)
    return (
        other["posted_ns"],
        lo,
        hi,
        "->".join(ways),
        {0: "partial", 1: "contained", 2: "exact"}[sum(inside)],
        "certain" if is_known and not is_doubtful else "possible",
        "same_socket" if one["socket_n"] == other["socket_n"] else "cross_socket",
        "low" if ways == ["send", "send"] else "high",
    )


@given(traces() | traces(is_busy=True), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=2))
@settings(max_examples=120, deadline=None)
def test_overlaps_are_exactly_those_of_the_rule(events: list[Event], losses: list[tuple[int, int]]) -> None:
    lost = [(first, first + length) for first, length in losses]
    last = max((round(e.at_us * 10) for e in events), default=0)
    m = model(events, losses=Losses([span for span in lost if span[1] <= last]))

    columns = ("t_ns", "lo", "hi", "pair", "range", "certainty", "scope", "severity")
    got = {(row["first_n"], row["second_n"]): tuple(row[c] for c in columns) for row in m.table("overlap")}
    assert got == overlaps_by_the_rule(m, [span for span in lost if span[1] <= last])


@given(traces(is_plain=True), st.permutations([0, 1, 2]))
@settings(max_examples=40, deadline=None)
def test_which_processor_logged_a_tick_first_changes_no_overlap(events: list[Event], processors: list[int]) -> None:
    """Operations whose records share no tick may be logged anywhere."""
    places = Counter((e.at_us, e.values["endpoint"]) for e in events)
    apart = [e for e in events if places[e.at_us, e.values["endpoint"]] == 1]
    plain, moved = (model(apart, on_cpu=[cpu[i % 3] for i in range(len(apart))]) for cpu in ([0, 1, 2], processors))

    assert pairs_by_record(plain) == pairs_by_record(moved)


def pairs_by_record(m: Model) -> set[tuple[object, ...]]:
    """Overlaps named by the times and endpoints of both posts, as numbers depend on the order."""
    sockets = {row["n"]: row["endpoint"] for row in m.table("socket")}
    names = {row["n"]: (row["posted_ns"], sockets[row["socket_n"]], row["buffer"], row["posted_len"]) for row in m.table("operation")}
    return {
        (names[a], names[b], kind, certainty) for a, b, kind, certainty in m.rows("overlap", "first_n", "second_n", "pair", "certainty")
    }

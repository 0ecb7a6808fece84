"""Findings: each rule on rows that show its pattern, and on rows that only resemble it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from collector import words
from collector.afdcodes import ABORT_REASONS
from collector.model.finding import sized, span
from collector.model.findings import RULES, Finding, findings
from collector.store.engine import TraceFolder
from collector.store.writer import TraceWriter
from tests.build.database import BUILT_KEY, rows_from
from tests.build.imported import Imported

Line = dict[str, object]
Find = Callable[..., list[Finding]]

SECOND = 1_000_000_000
MS = 1_000_000
END = 60 * SECOND

PROCESS: Line = {"n": 1, "pid": 4120, "image": r"\Device\HarddiskVolume3\Apps\webproxy.exe", "first_ns": 50}
OTHER: Line = {"n": 2, "pid": 7000, "image": "loadtest.exe", "first_ns": 60}
OWNER: Line = {"n": 1, "eprocess": 0x8000, "process_n": 1, "first_ns": 50}


@pytest.fixture
def find(tmp_path: Path) -> Find:
    folder = TraceFolder(tmp_path)
    folder.make()

    def run(rows: Mapping[str, Sequence[Line]], *, has_losses: bool = False) -> list[Finding]:
        tables = {"process": [PROCESS, OTHER], "owner": [OWNER]} | dict(rows)
        with TraceWriter(folder, BUILT_KEY) as writer:
            writer.write({table: rows_from(table, lines) for table, lines in tables.items()})
            writer.index()
            return findings(writer.connection, end_ns=END, has_losses=has_losses)

    return run


def socket(n: int, **more: object) -> Line:
    base: Line = {
        "n": n, "endpoint": 0x1000 * n, "process_n": 1, "owner_n": 1, "type": 1, "first_ns": 100 * n, "last_ns": 200, "end": "closed",
        "closed_ns": 50 * SECOND, "create_seen": True, "created_ns": 100 * n, "connections": 1,
    }  # fmt: skip
    return base | more


def operation(socket_n: int, kind: str, outcome: str, **more: object) -> Line:
    base: Line = {"socket_n": socket_n, "kind": words.OPERATION_KINDS.index(kind), "outcome": words.OUTCOMES.index(outcome)}
    return base | more


def kinds(found: list[Finding]) -> list[str]:
    return [finding.kind for finding in found]


def abort(socket_n: int, **more: object) -> Line:
    base: Line = {
        "socket_n": socket_n, "t_ns": 10 * SECOND, "event": 1032, "reason": 4, "initiator": "transport", "during": "running",
        "is_primary": True,
    }  # fmt: skip
    return base | more


# -------------------------------------------------------------------------------------------------------- endings


def test_q01_one_reset_leads_to_its_socket(find: Find) -> None:
    (finding,) = find({"socket": [socket(1)], "abort": [abort(1, outstanding=1), abort(1, t_ns=11 * SECOND, is_primary=False)]})

    assert (finding.kind, finding.code, finding.severity, finding.certainty) == ("aborted", "Q01", "high", "possible")
    assert (finding.count, finding.process_n, finding.socket_n, finding.t_ns) == (1, 1, 1, 10 * SECOND)
    assert finding.title == ("1 connection of webproxy.exe (4120) was aborted while it was open (reason 4, probably: transport disconnect)")
    assert finding.link == "sockets/0x1000@100"
    assert "Requests were in flight." in finding.text
    assert "Possible: the event and its number were recorded; what the number means is inferred." in finding.text


def test_q01_resets_are_grouped_by_their_cause(find: Find) -> None:
    aborts = [abort(1), abort(2), abort(3, reason=2, initiator="afd"), abort(4, reason=99, initiator="afd", during="close")]
    found = find({"socket": [socket(n) for n in range(1, 5)], "abort": aborts})

    assert [(f.count, f.severity, f.certainty, f.link) for f in found] == [
        (
            2,
            "high",
            "possible",
            "aborts?process=4120@50&reason=4&initiator=transport&during=running&primary=yes&unread=no&listener=no",
        ),
        (1, "medium", "certain", "sockets/0x3000@300"),
        (1, "low", "certain", "sockets/0x4000@400"),
    ]
    assert found[1].title == "webproxy.exe (4120) asked for the reset of 1 connection"
    assert "unnamed" in found[2].title
    assert "what the number means is not known" in found[2].text


@pytest.mark.parametrize("number", sorted(ABORT_REASONS))
def test_q01_title_badge_and_text_agree_on_how_sure_a_reason_is(find: Find, number: int) -> None:
    is_sure = ABORT_REASONS[number].certainty == "certain"
    (finding,) = find({"socket": [socket(1)], "abort": [abort(1, reason=number, initiator="afd")]})

    assert finding.certainty == ("certain" if is_sure else "possible")
    assert ("probably" in finding.title) == (not is_sure)
    assert ("Probably: " in finding.text) == (not is_sure)
    assert ("Certain: " in finding.text, "Possible: " in finding.text) == (is_sure, not is_sure)


def test_q01_connections_that_a_process_took_along(find: Find) -> None:
    ended = {**OTHER, "end_ns": 30 * SECOND}
    found = find(
        {
            "process": [PROCESS, ended],
            "socket": [socket(n, process_n=2, end="ended_by_exit") for n in (1, 2)],
            "abort": [abort(n, reason=7, initiator="afd", during="close", t_ns=30 * SECOND - MS) for n in (1, 2)],
        }
    )
    assert [f.title for f in found] == ["Winsock aborted 2 connections of loadtest.exe (7000) as it ended (pending data at disconnect)"]
    assert "its end probably closed them" in found[0].text


def test_q06_unread_data_is_a_finding_of_its_own(find: Find) -> None:
    (finding,) = find({"socket": [socket(1)], "abort": [abort(1, reason=7, initiator="afd", during="close", unread_bytes=1460)]})

    assert (finding.kind, finding.code, finding.severity) == ("unread_at_close", "Q06", "high")
    assert finding.title == "webproxy.exe (4120) closed 1 connection with 1,460 bytes unread"


def test_q06_requests_in_flight_at_the_close(find: Find) -> None:
    operations = [
        operation(1, "send", "ended_with_socket", posted_ns=5, end_ns=9, posted_len=512),
        operation(1, "recv", "ended_with_socket", posted_ns=5, end_ns=9),
        operation(2, "recv", "ended_with_socket", posted_ns=5, end_ns=9),
        operation(2, "accept", "ended_with_socket", posted_ns=5, end_ns=9),
    ]
    found = find({"socket": [socket(1), socket(2)], "operation": operations})

    assert [(f.kind, f.severity, f.count, f.socket_n) for f in found] == [
        ("closed_in_flight", "medium", 1, 1),
        ("closed_in_flight", "low", 2, None),
    ]
    assert "512 bytes may never have left" in found[0].text


def test_q23_failed_connects_by_address_and_status(find: Find) -> None:
    def failed(socket_n: int, status: int) -> Line:
        return operation(socket_n, "connect", "failed", status=status, posted_ns=SECOND, completed_ns=2 * SECOND, end_ns=2 * SECOND)

    found = find(
        {
            "address": [{"text": "192.0.2.8:443"}],
            "socket": [socket(n, remote_n=1) for n in (1, 2, 3)],
            "operation": [failed(1, 0xC0000236), failed(2, 0xC0000236), failed(3, 0xC00000A3)],
        }
    )
    assert [(f.kind, f.count, f.title) for f in found] == [
        ("connect_failed", 2, "2 connects to 192.0.2.8:443 by webproxy.exe (4120) failed")
    ]
    assert "STATUS_CONNECTION_REFUSED (0xC0000236)" in found[0].text


@pytest.mark.parametrize(("rest_s", "expected"), [(20, ["stale_connection"]), (1, [])])
def test_a_connection_used_after_a_rest_and_reset_at_once(find: Find, rest_s: int, expected: list[str]) -> None:
    last = 10 * SECOND
    again = last + rest_s * SECOND
    operations = [
        operation(1, "recv", "completed", posted_ns=last - 5, completed_ns=last, end_ns=last),
        operation(1, "send", "completed", posted_ns=again, completed_ns=again + 9, end_ns=again + 9),
    ]
    found = find({"socket": [socket(1)], "operation": operations, "abort": [abort(1, t_ns=again + 30 * MS)]})
    assert [kind for kind in kinds(found) if kind != "aborted"] == expected


# -------------------------------------------------------------------------------------------------------- sockets


def opened(count: int, still_open: int) -> list[Line]:
    return [
        socket(n, remote_n=1, end="open_at_end" if n <= still_open else "closed", closed_ns=None if n <= still_open else 9 * SECOND)
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    ("count", "still_open", "expected"), [(9, 9, []), (10, 10, ["unclosed_sockets"]), (25, 10, []), (20, 10, ["unclosed_sockets"])]
)
def test_q05_sockets_that_are_not_closed(find: Find, count: int, still_open: int, expected: list[str]) -> None:
    found = find({"address": [{"text": "192.0.2.25:993"}], "socket": opened(count, still_open)})
    assert kinds(found) == expected
    for finding in found:
        assert (finding.count, finding.code, finding.link) == (
            still_open,
            "Q05",
            "sockets?process=4120@50&remote=192.0.2.25:993&kept=left_open&unused=",
        )


def test_q05_losses_make_it_possible_only(find: Find) -> None:
    (finding,) = find({"address": [{"text": "192.0.2.25:993"}], "socket": opened(10, 10)}, has_losses=True)
    assert finding.certainty == "possible"
    assert "Possible: events were lost" in finding.text


@pytest.mark.parametrize(
    ("closed_s", "aborted", "expected"),
    [(None, False, ["half_closed"]), (21, False, ["half_closed"]), (12, False, []), (None, True, ["aborted"])],
)
def test_q05_the_peer_has_finished_and_the_program_has_not(find: Find, closed_s: int | None, aborted: bool, expected: list[str]) -> None:
    closed = None if closed_s is None else closed_s * SECOND
    found = find(
        {
            "socket": [socket(1, closed_ns=closed, end="closed" if closed else "open_at_end")],
            "socket_event": [{"socket_n": 1, "t_ns": 10 * SECOND, "seq": 1, "event": 3006, "status": 0}],
            "abort": [abort(1)] if aborted else [],
        }
    )
    assert kinds(found) == expected


@pytest.mark.parametrize(
    ("kind", "age_ms", "expected"),
    [
        ("send", 999, 0),
        ("send", 1000, 1),
        ("recv", 9_999, 0),
        ("recv", 10_000, 1),
        ("connect", 2_999, 0),
        ("connect", 3_000, 1),
        ("accept", 50_000, 0),
    ],
)
def test_q04_requests_that_never_completed(find: Find, kind: str, age_ms: int, expected: int) -> None:
    found = find({"socket": [socket(1, closed_ns=None)], "operation": [operation(1, kind, "in_flight", posted_ns=END - age_ms * MS)]})
    assert kinds(found) == ["never_completed"] * expected
    assert [f.code for f in found] == ["Q04"] * expected


@pytest.mark.parametrize(("count", "status", "expected"), [(9, 0xC000020D, 0), (10, 0xC000020D, 1), (50, 0xC00000A3, 0)])
def test_q23_the_same_error_again_and_again(find: Find, count: int, status: int, expected: int) -> None:
    errors = [operation(1, "send", "failed", status=status, posted_ns=n * SECOND, completed_ns=n * SECOND) for n in range(count)]
    found = find({"socket": [socket(1)], "operation": errors})
    assert kinds(found) == ["repeated_errors"] * expected
    for finding in found:
        assert "1.1 a second" in finding.text


def test_q09_no_port_was_left_and_who_held_them(find: Find) -> None:
    found = find(
        {
            "address": [{"text": f"10.0.0.1:{port}", "port": port} for port in (50_000, 50_001, 80)],
            "socket": [socket(1, process_n=2, local_n=1), socket(2, process_n=2, local_n=2), socket(3, process_n=2, local_n=3), socket(4)],
            "bind_failure": [
                {"socket_n": 4, "t_ns": 5 * SECOND, "status": 0xC0000209},
                {"socket_n": 4, "t_ns": 6 * SECOND, "status": 0xC0000043},
            ],
        }
    )
    assert [(f.kind, f.severity, f.code) for f in found] == [("ports_exhausted", "high", "Q09"), ("bind_failed", "low", "Q09")]
    assert "loadtest.exe (7000) held 2 ports" in found[0].text


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([{"what": "listen", "backlog_asked": 10}, {"what": "indication", "backlog_now": 9}], []),
        ([{"what": "listen", "backlog_asked": 10}, {"what": "indication", "backlog_now": 10}], [("medium", 1)]),
        ([{"what": "indication", "backlog_now": 3, "status": 0xC000020A}], [("high", 1)]),
        ([{"what": "accept_failed", "status": 0xC0000120}, {"what": "accepted", "status": 0}], [("high", 1)]),
    ],
)
def test_q13_a_listener_that_cannot_keep_up(find: Find, events: list[Line], expected: list[tuple[str, int]]) -> None:
    found = find({"socket": [socket(1, listener=True)], "listen_event": [{"socket_n": 1, "t_ns": n, **e} for n, e in enumerate(events)]})
    assert [(f.severity, f.count) for f in found] == expected


def stalls(count: int, wait_ms: int, *, write_write: bool = True) -> list[Line]:
    """Two small sends, then an answer after a wait, again and again."""
    operations = []
    for n in range(count):
        t = n * SECOND
        sends = (t, t + MS) if write_write else (t,)
        operations += [operation(1, "send", "completed", bytes=100, posted_ns=at, completed_ns=at + 5, end_ns=at + 5) for at in sends]
        answer = sends[-1] + wait_ms * MS
        operations.append(operation(1, "recv", "completed", bytes=50, posted_ns=answer - 5, completed_ns=answer, end_ns=answer))
    return operations


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        (stalls(6, 200), [6]),
        (stalls(6, 41), [6]),
        (stalls(6, 100), []),  # a slow peer, no usual delay
        (stalls(4, 200), []),  # too few to be a pattern
        (stalls(12, 200, write_write=False), []),  # one send, one answer: nothing waits for an acknowledgement
    ],
    ids=["200ms", "40ms", "100ms", "few", "ping-pong"],
)
def test_q16_small_writes_that_wait_for_an_acknowledgement(find: Find, operations: list[Line], expected: list[int]) -> None:
    found = find({"socket": [socket(1)], "operation": operations})
    assert [(f.count) for f in found] == expected
    assert all(f.code == "Q16" and f.certainty == "possible" for f in found)


def test_q16_sends_that_take_that_long_themselves(find: Find) -> None:
    sends = [
        operation(1, "send", "completed", bytes=20, posted_ns=n * SECOND, completed_ns=n * SECOND + 200 * MS, end_ns=n * SECOND + 200 * MS)
        for n in range(10)
    ]
    (finding,) = find({"socket": [socket(1)], "operation": sends, "option": [{"socket_n": 1, "t_ns": 1, "option": 7, "value": 0}]})
    assert (finding.kind, finding.count) == ("small_write_stall", 10)
    assert "The waits add up to 2.000 s" in finding.text
    assert "SO_SNDBUF was set to 0" in finding.text


@pytest.mark.parametrize(
    ("aborted_at", "expected"),
    [
        ((5 * MS + 100,), (1, "1 of these is also recorded as an abort")),  # the abort tells of the same connection
        ((5 * MS - 100,), (1, "1 of these is also")),
        ((9 * MS,), (2, "1 connection was aborted at the listener without any other record")),
        ((), (1, "1 connection failed with STATUS_INSUFFICIENT_RESOURCES (0xC000009A).")),
    ],
)
def test_q13_a_failure_and_its_abort_count_once(find: Find, aborted_at: tuple[int, ...], expected: tuple[int, str]) -> None:
    (finding,) = find(
        {
            "socket": [socket(1, listener=True)],
            "listen_event": [{"socket_n": 1, "t_ns": 5 * MS, "what": "indication", "status": 0xC000009A}],
            "abort": [abort(1, t_ns=t_ns, reason=9, initiator="afd", on_listener=True) for t_ns in aborted_at],
        }
    )
    assert (finding.count, finding.certainty) == (expected[0], "certain")
    assert expected[1] in finding.text


# -------------------------------------------------------------------------------------------------------- datagrams


def test_q21_dropped_datagrams(find: Find) -> None:
    drops = [
        {"socket_n": 1, "t_ns": n * SECOND, "reason": 2, "reason_certainty": "certain", "length": 100, "receive_buffer_bytes": 8192}
        for n in (1, 2)
    ]
    (finding,) = find({"socket": [socket(1, type=2)], "drop": drops})
    assert (finding.kind, finding.code, finding.count, finding.severity, finding.certainty) == (
        "datagrams_dropped",
        "Q21",
        2,
        "medium",
        "certain",
    )
    assert "200 bytes from unknown senders were thrown away" in finding.text
    assert "8,192 bytes. No receive waited" in finding.text


def test_q21_a_number_whose_meaning_is_inferred_is_possible(find: Find) -> None:
    (finding,) = find({"socket": [socket(1, type=2)], "drop": [{"socket_n": 1, "t_ns": 1, "reason": 2, "reason_certainty": "possible"}]})
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    ("type_", "asked", "expected"),
    [(2, None, "was not set"), (2, 1, "was switched on"), (2, 0, "was set to 0"), (1, None, None)],
)
def test_q15_resets_of_datagram_sockets(find: Find, type_: int, asked: int | None, expected: str | None) -> None:
    found = find(
        {
            "socket": [socket(1, type=type_)],
            "operation": [operation(1, "recvfrom", "failed", status=0xC000020D, posted_ns=1, completed_ns=2)],
            "option": [] if asked is None else [{"socket_n": 1, "t_ns": 0, "option": 11, "value": asked}],
        }
    )
    assert kinds(found) == (["datagram_reset"] if expected else [])
    assert all(str(expected) in f.text for f in found)


def test_q22_receives_too_small(find: Find) -> None:
    small = operation(1, "recvfrom", "completed", status=0x80000005, posted_len=512, posted_ns=1, completed_ns=2)
    (finding,) = find({"socket": [socket(1, type=2)], "operation": [small]})
    assert (finding.kind, finding.code) == ("receive_too_small", "Q22")
    assert "offered 512 bytes and w" in finding.text


# -------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("certain", "certainty"), [("certain", "certain"), ("possible", "possible")])
def test_q10_overlaps(find: Find, certain: str, certainty: str) -> None:
    overlap = {"owner_n": 1, "first_n": 1, "second_n": 2, "t_ns": 9, "lo": 0x1000, "hi": 0x1800, "pair": "send->recv", "range": "partial",
               "certainty": certain, "scope": "same_socket", "severity": "high"}  # fmt: skip
    operations = [operation(1, "send", "completed", n=1), operation(1, "recv", "completed", n=2)]
    (finding,) = find({"socket": [socket(1)], "operation": operations, "overlap": [overlap]})

    assert (finding.kind, finding.code, finding.severity, finding.certainty) == ("buffer_overlap", "Q10", "high", certainty)
    assert finding.title == "webproxy.exe (4120) posted a receive into memory that a send still used"
    assert finding.link == "overlaps?process=4120@50&pair=send-%3Erecv&severity=high"
    assert "2,048 bytes are shared, at" in finding.text


@pytest.mark.parametrize("kind", ["freed_in_flight", "reused_in_flight", "shrunk_in_flight", "overruns_block", "posted_after_free"])
def test_q11_memory_and_requests_in_each_others_way(find: Find, kind: str) -> None:
    line = {"kind": kind, "t_ns": 7, "process_n": 1, "socket_n": 1, "operation_n": 1, "certainty": "certain", "by_bytes": 16}
    (finding,) = find({"socket": [socket(1)], "operation": [operation(1, "recv", "completed", n=1)], "io_finding": [line]})
    assert (finding.kind, finding.code, finding.severity, finding.link) == (
        kind,
        "Q11",
        "high",
        f"in-flight-frees?process=4120@50&kind={kind}",
    )


def test_frees_of_unknown_blocks_are_no_finding(find: Find) -> None:
    def anomaly(kind: str) -> Line:
        return {"process_n": 1, "kind": kind, "t_ns": 5, "address": 0x10}

    found = find({"heap_anomaly": [anomaly("free_unknown"), anomaly("double_free"), anomaly("free_unmatched_after_loss")]})
    assert [(f.kind, f.title) for f in found] == [("double_free", "webproxy.exe (4120) freed 1 block a second time")]


def blocks(moments_s: list[int], *, freed: int = 0, ref: int = 1) -> list[Line]:
    made: list[Line] = [
        {"process_n": 1, "heap_n": 1, "address": n, "size": 64, "size_at_open": 64, "start_ns": t * SECOND, "first_ns": t * SECOND,
         "trust": 0, "owner_stack_ref": ref}
        for n, t in enumerate(moments_s)
    ]  # fmt: skip
    return made + [line | {"end_ns": 59 * SECOND, "end_reason": 0, "trust": None} for line in made[:1] * freed]


@pytest.mark.parametrize(
    ("held", "freed", "expected"),
    [
        ([0, 1, 20, 40, 59], 0, [5]),
        ([0, 1, 20, 59], 0, []),  # too few
        ([0, 1, 2, 3, 59], 0, []),  # all but one at the start: no growth
        ([0, 1, 20, 40, 59], 5, []),  # half of them are freed: churn
    ],
)
def test_q02_stacks_whose_blocks_stay(find: Find, held: list[int], freed: int, expected: list[int]) -> None:
    found = find(
        {
            "heap": [{"n": 1, "process_n": 1}],
            "allocation": blocks(held, freed=freed),
            "stack": [{"n": 8, "hash": "abc"}],
            "stack_ref": [{"ref": 1, "stack_n": 8}],
        }
    )
    assert [f.count for f in found] == expected
    for finding in found:
        assert (finding.kind, finding.code, finding.certainty) == ("held_growth", "Q02", "possible")
        assert finding.link == f"heap/4120@50/growth?from=0&to={60 * SECOND + 1}&stack=abc"
        assert "still holds 320 bytes in 5 blocks" in finding.title


def test_a_process_that_ended_holds_nothing(find: Find) -> None:
    found = find(
        {
            "process": [PROCESS | {"end_ns": 50 * SECOND}],
            "heap": [{"n": 1, "process_n": 1}],
            "allocation": blocks([0, 1, 20, 40, 59]),
            "stack": [{"n": 8, "hash": "abc"}],
            "stack_ref": [{"ref": 1, "stack_n": 8}],
        }
    )
    assert found == []


def test_a_registered_buffer_taken_away_in_use(find: Find) -> None:
    def deregistered(references: int) -> Line:
        return {"t_ns": 65, "seq": 1, "event": 4011, "pid": 7000, "fields": f'{{"references": {references}}}'}

    (finding,) = find({"socket_event": [deregistered(2), deregistered(0)]})
    assert (finding.kind, finding.count, finding.process_n) == ("buffer_deregistered_in_use", 1, 2)
    assert finding.title == "loadtest.exe (7000) deregistered 1 buffer of registered I/O in use"


# -------------------------------------------------------------------------------------------------------- all together


def test_nothing_is_found_in_an_empty_trace(find: Find) -> None:
    assert find({}) == []


def test_the_worst_comes_first(find: Find) -> None:
    aborts = [abort(1), abort(2, reason=2, initiator="afd"), abort(3, reason=1, initiator="afd", during="close")]
    found = find({"socket": [socket(n) for n in (1, 2, 3)], "abort": aborts})
    assert [f.severity for f in found] == ["high", "medium", "low"]


def test_each_rule_says_which_answer_it_gives() -> None:
    assert len({rule.__name__ for rule in RULES}) == len(RULES)
    assert all(rule.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 µs"), (41_500, "42 µs"), (41 * MS, "41 ms"), (SECOND, "1.000 s"), (61 * SECOND + 255 * MS, "61.255 s"), (-5 * MS, "-5 ms")],
)
def test_times_in_sentences(ns: int, text: str) -> None:
    assert span(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 byte"), (99_999, "99,999 bytes"), (123_456, "123.5 kB"), (12_400_000, "12.4 MB"), (3 * 10**9, "3.0 GB")]
)
def test_sizes_in_sentences(count: int, text: str) -> None:
    assert sized(count) == text


def test_the_sample_shows_most_of_them(sample: Imported) -> None:
    found = {kind for (kind,) in sample.rows("SELECT kind FROM v_findings")}
    assert found >= {
        "aborted", "unread_at_close", "connect_failed", "unclosed_sockets", "half_closed", "never_completed", "ports_exhausted",
        "listener_overrun", "small_write_stall", "datagrams_dropped", "datagram_reset", "receive_too_small", "buffer_overlap",
        "freed_in_flight", "overruns_block", "double_free", "held_growth",
    }  # fmt: skip
    codes = {code for (code,) in sample.rows("SELECT code FROM v_findings WHERE code IS NOT NULL")}
    assert codes >= {"Q01", "Q02", "Q04", "Q05", "Q06", "Q09", "Q10", "Q11", "Q13", "Q15", "Q16", "Q21", "Q22", "Q23"}


def test_findings_of_the_sample_read_well(sample: Imported) -> None:
    for title, text, link in sample.rows("SELECT title, text, link FROM v_findings"):
        assert not title.endswith("."), title
        assert text.endswith("."), text
        assert "Next: " in text, text
        assert "  " not in title + text, text
        assert "None" not in title + text, text
        assert "(s)" not in title + text, text
        assert not link.startswith("/"), link

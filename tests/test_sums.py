"""What the collector sums up once must be what the tables themselves say, so that a page may show either."""

from collections import Counter

import pytest

from collector.store.tables import LIFETIME_LIMITS, SIZE_LIMITS
from collector.words import END_REASONS, OPERATION_KINDS, ORIGINS, OUTCOMES
from tests.build.imported import Imported

_FAILED, _REJECTED = OUTCOMES.index("failed"), OUTCOMES.index("rejected")
_FIRST_DATA = OPERATION_KINDS.index("send")

_ADOPTED = ORIGINS.index("adopted")
_LAST_OF_A_LIFE = END_REASONS.index("heap_destroyed")  # freed and moved come before it


def _class_of(value: str, below: str, limits: tuple[int, ...]) -> str:
    """SQL for the class of a value."""
    whens = " ".join(f"WHEN {value} {below} {limit} THEN {place}" for place, limit in enumerate(limits))
    return f"CASE {whens} ELSE {len(limits)} END"


SUMS = {
    "operation_sum": (
        "SELECT kind, outcome, match, space, is_posted, waits, count FROM operation_sum",
        f"""SELECT kind, outcome, match, space, posted_ns IS NOT NULL, kind >= {_FIRST_DATA} AND posted_ns IS NOT NULL
                  AND (end_ns IS NULL OR end_ns > posted_ns) AS waits, count(*)
           FROM operation GROUP BY 1, 2, 3, 4, 5, 6""",
    ),
    "failure": (
        "SELECT socket_n, kind, status, count, first_ns, last_ns FROM failure",
        f"""SELECT socket_n, kind, status, count(*), min(coalesce(completed_ns, posted_ns)), max(coalesce(completed_ns, posted_ns))
           FROM operation WHERE outcome IN ({_FAILED}, {_REJECTED}) AND (status IS NULL OR status <> 0xC00000A3) GROUP BY 1, 2, 3""",
    ),
    "process_sum": (
        """SELECT process_n, sockets, bytes_sent, bytes_received, errors, failed_binds, open_at_end, not_made, ports, first_ns, last_ns
           FROM process_sum""",
        """SELECT s.process_n, count(*), sum(s.bytes_sent), sum(s.bytes_received), sum(s.errors),
                  (SELECT count(*) FROM bind_failure f JOIN socket b ON b.n = f.socket_n WHERE b.process_n IS s.process_n),
                  sum(s.closed_ns IS NULL), sum(NOT s.create_seen), count(DISTINCT a.port), min(s.first_ns), max(s.first_ns)
           FROM socket s LEFT JOIN address a ON a.n = s.local_n GROUP BY 1""",
    ),
    "remote_sum": (
        "SELECT process_n, text, count, open_at_end, closed_here, first_ns, last_ns, bytes_sent, bytes_received FROM remote_sum",
        """SELECT s.process_n, min(a.text), count(*), sum(s.closed_ns IS NULL), sum(s.closed_ns IS NOT NULL), min(s.first_ns),
                  max(s.first_ns), sum(s.bytes_sent), sum(s.bytes_received)
           FROM socket s JOIN address a ON a.n = s.remote_n WHERE s.accepted_from_n IS NULL GROUP BY s.process_n, a.ip""",
    ),
    "listener_sum": (
        "SELECT socket_n, backlog_asked, backlog_peak, indications, accepted, pauses, longest_wait_ns, mean_wait_ns FROM listener_sum",
        """SELECT socket_n, max(backlog_asked), max(backlog_now), sum(what = 'indication'), sum(what = 'accepted'), sum(what = 'pause'),
                  max(wait_ns), CAST(avg(wait_ns) AS INTEGER) FROM listen_event GROUP BY 1""",
    ),
    "stack_sum": (
        "SELECT stack_n, process_n, held_bytes, held_count, allocations, allocated_bytes, first_ns, last_ns FROM stack_sum",
        """SELECT r.stack_n, a.process_n, sum(iif(a.end_ns IS NULL, a.size, 0)), sum(a.end_ns IS NULL), count(*), sum(a.size_at_open),
                  min(a.first_ns), max(a.first_ns)
           FROM allocation a JOIN stack_ref r ON r.ref = a.owner_stack_ref GROUP BY 1, 2""",
    ),
    "heap_stack": (
        "SELECT heap_n, stack_n, blocks, bytes, held, held_bytes, freed, first_ns, last_ns, is_suspect FROM heap_stack",
        f"""SELECT a.heap_n, r.stack_n, count(*), sum(a.size_at_open), sum(a.end_ns IS NULL), sum(iif(a.end_ns IS NULL, a.size, 0)),
                  sum(coalesce(a.end_reason, 9) <= {_LAST_OF_A_LIFE}), min(a.first_ns), max(a.first_ns),
                  max(a.end_ns IS NULL AND coalesce(a.trust, 0) = 1)
           FROM allocation a LEFT JOIN stack_ref r ON r.ref = a.owner_stack_ref WHERE a.origin <> {_ADOPTED} GROUP BY 1, 2""",
    ),
    "heap_class": (
        "SELECT heap_n, what, place, blocks, bytes, held, held_bytes FROM heap_class",
        f"""SELECT heap_n, 'size', {_class_of("size_at_open", "<=", SIZE_LIMITS)} AS place, count(*), sum(size_at_open),
                  sum(end_ns IS NULL), sum(iif(end_ns IS NULL, size, 0)) FROM allocation WHERE origin <> {_ADOPTED} GROUP BY 1, 2, 3
           UNION ALL
           SELECT heap_n, 'lifetime', {_class_of("end_ns - first_ns", "<", LIFETIME_LIMITS)} AS place, count(*), sum(size_at_open), 0, 0
           FROM allocation WHERE origin <> {_ADOPTED} AND end_reason <= {_LAST_OF_A_LIFE} GROUP BY 1, 2, 3
           UNION ALL
           SELECT heap_n, iif(origin = {_ADOPTED}, 'adopted', 'ended'), 0, count(*), sum(size), 0, 0
           FROM allocation WHERE end_ns IS NOT NULL GROUP BY 1, 2""",
    ),
    "stack_use": (
        "SELECT stack_n, what, times, first_ns, last_ns FROM stack_use",
        " UNION ALL ".join(
            f"""SELECT r.stack_n, '{what}', count(*), min(t.{time}), max(t.{time})
                FROM {table} t JOIN stack_ref r ON r.ref = t.{ref} GROUP BY 1"""
            for what, table, ref, time in (
                ("blocks freed", "allocation", "free_stack_ref", "end_ns"),
                ("operations posted", "operation", "posted_stack_ref", "posted_ns"),
                ("operations completed", "operation", "completed_stack_ref", "completed_ns"),
                ("sockets created", "socket", "create_stack_ref", "created_ns"),
                ("sockets closed", "socket", "close_stack_ref", "closed_ns"),
                ("other socket events", "socket_event", "stack_ref", "t_ns"),
                ("aborts", "abort", "stack_ref", "t_ns"),
                ("heap records that do not fit", "heap_anomaly", "stack_ref", "t_ns"),
            )
        ),
    ),
}


@pytest.mark.parametrize("table", list(SUMS))
def test_sums_are_those_of_the_rows(sample: Imported, table: str) -> None:
    stored, counted = (Counter(sample.rows(sql)) for sql in SUMS[table])

    assert stored == counted
    assert stored


def test_most_come_first(sample: Imported) -> None:
    failures = sample.rows("SELECT count, first_ns FROM failure ORDER BY n")
    remotes = sample.rows("SELECT count, text FROM remote_sum ORDER BY n")

    assert failures == sorted(failures, key=lambda row: (-row[0], row[1]))
    assert remotes == sorted(remotes, key=lambda row: (-row[0], row[1]))

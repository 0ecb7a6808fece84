"""No page reads a large table whole: all statements of each page, and of lists in their order and by their indexes, are explained.

A trace id is the first column of every key and the same in all rows, so a search by it alone is a scan as well. A scan that stops is
none: rows that come in the order of an index, and a limit.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bench.pages import page_paths
from collector.store.tables import TRACE
from tests.build.imported import Imported
from tests.build.served import served

LARGE = frozenset(
    {
        "abort", "address", "allocation", "heap_anomaly", "heap_gauge", "heap_rollup", "listen_event", "operation", "operation_buffer",
        "peer", "poll", "raw_event", "resize", "skipped", "socket", "socket_event", "socket_rollup", "stack", "stack_frame", "stack_ref",
        "address_name", "transport_event", "transport_flow", "virtual_memory",
    }
)  # fmt: skip
"""Tables that grow with the events of a trace."""

FEW = frozenset(
    index.name
    for table in TRACE.tables.values()
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None and index.name != "ix_operation_buffer"
)
"""Indexes of some rows: listeners, what is never freed, what lives long, what is large."""

INDEXED = (
    "sockets?sort=bytes_sent", "sockets?sort=-bytes_sent", "sockets?sort=bytes_received", "sockets?sort=-bytes_received",
    "sockets?sort=-sends", "sockets?process={process}", "sockets?port=443", "sockets?remote=unknown", "operations?process={process}",
    "operations?endpoint={socket}", "operations?buffer={buffer}", "operations?from=1s&to=2s", "events?endpoint={socket}",
    "events?from=1s&to=2s", "aborts?endpoint={socket}", "aborts?from=1s&to=2s", "drops?endpoint={socket}", "polls?from=1s&to=2s",
    "allocations?process={process}", "allocations?from=1s&to=2s", "allocations?state=live&process={process}", "stacks?process={process}",
    "overlaps?from=1s&to=2s", "listeners?process={process}", "ports?process={process}", "stalls?endpoint={socket}",
)  # fmt: skip
"""Lists by what has an index. The rest is sorted or filtered row by row, with a limit on the time that it may take."""

# What may be read whole all the same, by the page and the table, and why.
EXCEPTIONS = {
    ("overview", "address"): "how many hosts the trace names; addresses occur once each, and their index is all that is read",
    ("overview", "stack_frame"): "how many functions the trace names; stacks are as many as the program has, not as it has events",
    ("overview", "raw_event"): "how many payloads are kept; there are at most 10,000 of these records",
    ("events", "raw_event"): "at most 10,000 records, in the order of their time",
    ("events?from=1s&to=2s", "raw_event"): "at most 10,000 records, in the order of their time",
    ("events?from=1s&to=2s", "operation"): "a short list of sockets: where there are few operations, these are read instead of searched",
    ("trust", "skipped"): "how many records were left out for which reason; they are a small part",
    ("in-flight-frees", "operation_buffer"): "how many buffers had a known block behind them; only in traces of sockets and heap together",
}

_STEP = re.compile(r"(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?(?:INDEX (\w+)|PRIMARY KEY)(?: \(([^)]*)\))?)?")
_ALIAS = re.compile(r"\b(\w+) AS (\w+)\b")
_ENDS = re.compile(r"SELECT (\(SELECT )?(min|max)\(\w+\.\w+\)")


@contextmanager
def statements() -> Iterator[list[tuple[str, Any]]]:
    """What is asked of any database meanwhile, with its values."""
    asked: list[tuple[str, Any]] = []

    def heard(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:  # Any: tuples
        asked.append((statement, values))

    event.listen(Engine, "before_cursor_execute", heard)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", heard)


def whole_reads(db: sqlite3.Connection, statement: str, values: Any) -> set[str]:  # Any: as above
    """Large tables that a statement reads from end to end."""
    if _ENDS.match(statement) or "WHERE 0 = 1" in statement:
        return set()
    plan = [(above, detail) for _, above, _, detail in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    sorted_parts = {above for above, detail in plan if "TEMP B-TREE" in detail}
    names = {alias: table for table, alias in _ALIAS.findall(statement)}
    found: set[str] = set()
    for above, detail in plan:
        step = _STEP.match(detail)
        table = "" if step is None else str(names.get(step[2], step[2]))
        if step is None or table not in LARGE or step[3] in FEW:
            continue
        is_whole = step[1] == "SCAN" or step[4] in (None, "trace_id=?")
        stops = re.search(r"\bLIMIT\b", statement) and above not in sorted_parts
        if is_whole and not stops:
            found.add(table)
    return found


def paths_of(sample: Imported) -> dict[str, str]:
    """All pages, and the lists by their indexes."""
    key = sample.report.key
    found = page_paths(sample.folder.root, key)
    parts = {
        "process": sample.one("SELECT process FROM v_operations GROUP BY process ORDER BY count(*) DESC LIMIT 1"),
        "socket": sample.one("SELECT socket FROM v_sockets ORDER BY sends + receives DESC LIMIT 1"),
        "buffer": sample.one("SELECT buffer FROM v_operations WHERE buffer IS NOT NULL LIMIT 1"),
    }
    return found | {one: f"/t/{key}/{one.format(**parts)}" for one in INDEXED}


@pytest.fixture(scope="module")
def reads(sample: Imported) -> dict[str, set[str]]:
    """Large tables that each page reads whole."""
    client = served(sample.folder)
    found: dict[str, set[str]] = {}
    with closing(sqlite3.connect(f"file:{sample.path}?mode=ro", uri=True)) as db:
        for name, path in paths_of(sample).items():
            with statements() as asked:
                answer = client.get(path, headers={"Cache-Control": "no-store"})
            assert answer.status_code == 200, path
            of_trace = [one for one in asked if not re.search(r"trace_entry|catalog_|\bnote\b|alembic|sqlite_master", one[0])]
            assert of_trace or name == "/", path
            found[name] = set().union(*(whole_reads(db, *one) for one in of_trace))
    return found


def test_no_page_reads_a_large_table_whole(reads: dict[str, set[str]]) -> None:
    told = {(page, table) for page, tables in reads.items() for table in tables}
    assert told - EXCEPTIONS.keys() == set()


def test_every_exception_is_one(reads: dict[str, set[str]]) -> None:
    assert [each for each in EXCEPTIONS if each[1] not in reads.get(each[0], set())] == []


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("SELECT count(*) FROM operation WHERE trace_id = 1", {"operation"}),
        ("SELECT count(*) FROM operation AS o WHERE o.trace_id = 1 AND o.bytes > 5", {"operation"}),
        ("SELECT n FROM socket WHERE trace_id = 1 ORDER BY errors LIMIT 5", {"socket"}),
        ("SELECT n FROM socket WHERE trace_id = 1 ORDER BY n LIMIT 5", set()),
        ("SELECT n FROM operation WHERE trace_id = 1 AND socket_n = 4", set()),
        ("SELECT max(operation.n) FROM operation WHERE trace_id = 1", set()),
    ],
)
def test_whole_reads_are_told_from_searches(sample: Imported, statement: str, tables: set[str]) -> None:
    with closing(sqlite3.connect(f"file:{sample.path}?mode=ro", uri=True)) as db:
        assert whole_reads(db, statement, ()) == tables

"""Every statement of a trace's page names the trace for each table that it reads, so that a server looks at one partition of each."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import ClauseElement, and_, exists, false, func, or_, select, union_all

from collector.store.tables import THIS_TRACE, TRACE
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder
from tests.test_app_lists import CASES, LISTS, sorts_of
from tests.test_query_plans import paths_of
from tests.trace_names import asked, nameless

_s, _o, _p = TRACE.tables["socket"], TRACE.tables["operation"], TRACE.tables["process"]


def named_by_none(client: TestClient, paths: Iterable[str]) -> set[tuple[str, str]]:
    """Pages, and tables that a statement of theirs reads without naming the trace."""
    found: set[tuple[str, str]] = set()
    for path in paths:
        with asked() as heard:
            answer = client.get(path, headers={"Cache-Control": "no-store"})
        assert answer.status_code == 200, path
        assert heard, path
        found |= {(path, table) for one in heard for table in nameless(one)}
    return found


def test_each_statement_of_each_page_names_the_trace(sample: Imported) -> None:
    paths = [*paths_of(sample).values(), "/search?q=443", f"/search?q=send&trace={sample.report.key}"]
    assert named_by_none(served(sample.folder), paths) == set()


def test_each_statement_of_each_filter_and_order_names_the_trace(tmp_path: Path) -> None:
    client = served(small_folder(tmp_path))
    orders = [(name, f"sort={sort.key}") for name, module in LISTS.items() for sort in sorts_of(module)]
    filters = [(name, query) for name, query, *_ in CASES]
    assert named_by_none(client, [f"/t/{KEY}/{name}?{query}" for name, query in (*orders, *filters)]) == set()


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        (select(_s.c.n).where(_s.c.trace_id == THIS_TRACE), set()),
        (select(_s.c.n), {"socket"}),
        (select(_s.c.n).where(_s.c.trace_id == 1), {"socket"}),
        (select(_s.c.n).where(or_(_s.c.trace_id == THIS_TRACE, _s.c.n == 4)), {"socket"}),
        (select(_s.c.n).where(or_(_s.c.n == 3, and_(_s.c.n == 4, _s.c.trace_id == THIS_TRACE))), {"socket"}),
        (select(_s.c.n).where(or_(_s.c.n == 3, _s.c.n == 4), _s.c.trace_id == THIS_TRACE), set()),
        (select(_s.c.n).join_from(_s, _p, and_(_p.c.trace_id == THIS_TRACE, _p.c.n == _s.c.process_n)), {"socket"}),
        (select(_s.c.n).join_from(_s, _p, _p.c.n == _s.c.process_n).where(_s.c.trace_id == THIS_TRACE), {"process"}),
        (select(_s.c.n).where(_s.c.trace_id == THIS_TRACE, exists().where(_o.c.socket_n == _s.c.n)), {"operation"}),
        (select(_s.c.n).where(exists().where(_o.c.socket_n == _s.c.n, _o.c.trace_id == THIS_TRACE)), {"socket"}),
        (select(func.count()).select_from(select(_o.c.n).limit(1).subquery()), {"operation"}),
        (select(select(func.max(_o.c.n)).scalar_subquery()), {"operation"}),
        (select(_s.alias("other").c.n).where(_s.c.trace_id == THIS_TRACE), {"socket"}),
        (union_all(select(_s.c.n).where(_s.c.trace_id == THIS_TRACE), select(_p.c.n)), {"process"}),
        (union_all(select(_s.c.n), select(_p.c.n).where(_p.c.trace_id == THIS_TRACE)), {"socket"}),
        (select(_s.c.n).where(false(), _s.c.trace_id == THIS_TRACE), set()),
    ],
)
def test_what_a_statement_leaves_open_is_told(statement: ClauseElement, tables: set[str]) -> None:
    assert nameless(str(statement)) == tables


def test_sql_that_is_written_as_text_is_read_as_well() -> None:
    assert nameless("SELECT count(*) FROM operation JOIN socket AS s ON s.n = operation.socket_n") == {"operation", "socket"}

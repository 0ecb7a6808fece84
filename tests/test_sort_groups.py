"""A list in the order of its process is read process by process: the same rows as sorting all of them gives."""

import random
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app import sort_groups
from app.paging import Sort
from app.planning import without_joins
from app.queries import operations
from collector.store.tables import TRACE
from tests.build.answers import as_json
from tests.build.database import BUILT_KEY, built_database
from tests.build.served import served
from tests.test_query_plans import statements

IMAGES = ("b.exe", "a.exe", None, "c.exe", "a.exe")
"""Two processes of one image, one of none; the last socket has no process, and one operation is on no socket of the table."""
SOCKETS = len(IMAGES) + 1
OWNERS = {n + 1: image for n, image in enumerate(IMAGES)}


def _built() -> dict[str, list[dict[str, object]]]:
    chosen = random.Random(5)
    numbers = [chosen.randrange(1, SOCKETS + 2) for _ in range(80)]
    return {
        "process": [{"pid": 100 + i, "image": image, "first_ns": i} for i, image in enumerate((*IMAGES, "idle.exe"))],
        "owner": [{"process_n": i + 1, "first_ns": i} for i in range(len(IMAGES))],
        "socket": [
            {"endpoint": 16 + i, "process_n": i + 1 if i < len(IMAGES) else None, "first_ns": i, "end": "open_at_end"}
            for i in range(SOCKETS)
        ],
        "operation": [{"socket_n": n, "kind": 2, "posted_ns": at // 3, "posted_tid": n, "posted_len": at} for at, n in enumerate(numbers)],
    }


BUILT = _built()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(built_database(tmp_path_factory.mktemp("grouped"), BUILT)) as client:
        yield client


def _expected(*, falls: bool) -> list[object]:
    """Which operations come one after the other, by their length, different for each, the last of an image first where it falls."""

    def image(row: dict[str, object]) -> str | None:
        return OWNERS.get(int(str(row["socket_n"])))

    rows = [*reversed(BUILT["operation"])] if falls else BUILT["operation"]
    known = sorted((row for row in rows if image(row) is not None), key=lambda row: str(image(row)), reverse=falls)
    return [row["posted_len"] for row in (*known, *(row for row in rows if image(row) is None))]


@pytest.mark.parametrize("few", [0, 10, 200_000])
@pytest.mark.parametrize("sort", ["process", "-process"])
def test_pages_by_process_are_those_of_the_sorted_list(client: TestClient, monkeypatch: pytest.MonkeyPatch, sort: str, few: int) -> None:
    monkeypatch.setattr(sort_groups, "_FEW", few)
    found: list[object] = []
    path: str | None = f"/t/{BUILT_KEY}/operations?sort={sort}&limit=7"
    while path is not None:
        listing = as_json(client, path)["listing"]
        found += [row["posted_len"] for row in listing["rows"]]
        path = listing["next"]
    assert found == _expected(falls=sort.startswith("-"))


def test_of_a_process_without_operations_nothing_is_read(client: TestClient) -> None:
    with statements() as asked:
        as_json(client, f"/t/{BUILT_KEY}/operations?sort=process&limit=200")
    numbers = [text for text, _ in asked if re.match(r"SELECT operation\.n\s+FROM operation\b.*ORDER BY", text, re.DOTALL)]
    assert len(numbers) == len(set(IMAGES))


def test_a_filter_sorts_what_it_leaves(client: TestClient) -> None:
    listing = as_json(client, f"/t/{BUILT_KEY}/operations?sort=process&tid=2&limit=50")["listing"]
    assert [row["process"]["image"] for row in listing["rows"]] == ["a.exe"] * len(listing["rows"])
    assert len(listing["rows"]) == sum(row["socket_n"] == 2 for row in BUILT["operation"]) > 0


def _sort(key: str) -> Sort:
    return next(sort for sort in operations.SORTS if sort.key == key)


@pytest.mark.parametrize(("key", "kept"), [("kind", set()), ("peer", {"address"}), ("process", {"socket", "process"})])
def test_only_the_tables_stay_joined_that_an_order_needs(key: str, kept: set[str]) -> None:
    table = TRACE.tables["operation"]
    statement = str(without_joins(operations._ROWS, table, [_sort(key).column]).with_only_columns(table.c.n))
    joined = {name for name in ("socket", "process", "address") if f"JOIN {name} " in statement}
    assert joined == kept

"""A finding's link shows exactly what the finding counts: the numbers of both are compared, over the sample and over stories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.build.imported import Imported, collect
from tests.build.served import served

Json = dict[str, Any]  # Any: JSON


def shown(path: str, page: Json) -> int:
    """How many of a finding's things a page shows. Groups say how many they hold; ports and listeners list their failures apart."""
    rows = page["listing"]["rows"] if "listing" in page else []
    if path in ("errors", "stalls"):
        return sum(row["count"] for row in rows)
    if path in ("ports", "listeners"):
        return len(page["failures"]["rows"])
    if path == "events":
        return len(rows)
    total: int = page["listing"]["total"]
    return total


def differences(trace: Imported, client: TestClient) -> tuple[list[str], int]:
    """Findings whose list shows another number than they give, and how many lead to a list."""
    wrong, compared = [], 0
    for kind, count, title, link in trace.rows("SELECT kind, count, title, link FROM v_findings"):
        answer = client.get(f"/t/{trace.report.key}/{link}", headers={"Accept": "application/json"})
        assert answer.status_code == 200, (kind, link, answer.text[:300])
        path = link.partition("?")[0]
        if path.startswith("sockets/"):
            assert answer.json()["socket"], link  # one socket's page shows all that happened to it
        elif path.endswith("/growth"):
            stack = link.rpartition("stack=")[2]
            held = [row["held"] for row in answer.json()["rows"] if row["stack"] == stack]
            compared += 1
            wrong += [] if held == [count] else [f"{title}: {link} shows {held}"]
        elif "/" not in path:
            number = shown(path, answer.json())
            compared += 1
            is_full_queue = kind == "listener_overrun" and number == 0 and count == 1
            wrong += [] if number == count or is_full_queue else [f"{title}: {link} shows {number}, not {count}"]
    return wrong, compared


@pytest.fixture(scope="module")
def client(sample: Imported) -> Iterator[TestClient]:
    with served(sample.folder) as client:
        yield client


def test_links_of_the_sample_show_what_is_counted(sample: Imported, client: TestClient) -> None:
    wrong, compared = differences(sample, client)
    assert wrong == []
    assert compared >= 20


@pytest.mark.shared
@pytest.mark.parametrize("name", ["story-32", "story-mixed"])
def test_links_of_stories_show_what_is_counted(shared_dir: Path, tmp_path: Path, name: str) -> None:
    trace = collect(shared_dir / "traces" / f"{name}.etl", tmp_path)
    with served(trace.folder) as client:
        wrong, compared = differences(trace, client)
    assert wrong == []
    assert compared >= 5

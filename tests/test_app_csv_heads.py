"""A file of a table has the same columns whether it has rows or not."""

import csv
import io
import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.listing import Listing
from app.main import create_app
from app.settings import Settings
from tests.build.imported import Imported

MOST_PAGES = 120
NARROWED = ("sockets?port=1", "operations?port=1", "allocations?min_size=1TB", "overlaps?port=1", "drops?port=1", "polls?min_latency=9999s",
            "aborts?port=1", "in-flight-frees?port=1", "listeners?port=1", "processes?name=zzz.exe")  # fmt: skip


@pytest.fixture(scope="module")
def client(sample: Imported) -> TestClient:
    return TestClient(create_app(Settings(database=sample.folder.root)), base_url="http://127.0.0.1")


def head_of(client: TestClient, path: str) -> tuple[list[str], int]:
    """The columns of a file, and how many rows it has."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    return rows[0], len(rows) - 1


@pytest.mark.parametrize("narrowed", NARROWED)
def test_a_file_without_rows_has_the_columns_of_one_with_rows(client: TestClient, sample: Imported, narrowed: str) -> None:
    name, _, _ = narrowed.partition("?")
    full, some = head_of(client, f"/t/{sample.path.stem}/{name}?format=csv")
    bare, none = head_of(client, f"/t/{sample.path.stem}/{narrowed}&format=csv")
    assert some > 0
    assert none == 0
    assert bare == full


def test_every_table_knows_what_its_rows_are(client: TestClient, sample: Imported, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, set[tuple[type, type]]] = {}
    make = Listing.__init__

    def noting(self: Listing, *args: Any, **kwargs: Any) -> None:  # Any: those of a dataclass
        make(self, *args, **kwargs)
        for row in self.rows:
            made.setdefault(self.name, set()).add((self.row_type, type(row)))

    monkeypatch.setattr(Listing, "__init__", noting)
    shapes: set[str] = set()
    open_ = ["/", "/findings", f"/t/{sample.path.stem}"]
    while open_ and len(shapes) < MOST_PAGES:
        path = open_.pop(0)
        shape = re.sub(r"0x[0-9a-f]+|\d+", "0", path)
        if shape in shapes or "format=" in path or path.startswith("/static"):
            continue
        shapes.add(shape)
        answer = client.get(path, headers={"Accept": "text/html", "Cache-Control": "no-store"})
        if "text/html" in answer.headers.get("content-type", ""):
            open_ += [unescape(href).partition("#")[0] for href in re.findall(r'href="(/[^"]*)"', answer.text)]
    assert len(made) > 30
    assert {name: types for name, types in made.items() if any(said is not real for said, real in types)} == {}

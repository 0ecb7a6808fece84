"""Whatever a trace says, pages, answers, tables, command lines and logs show it as text."""

import csv
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from app.cli import main
from app.logs import PlainFormatter
from app.main import create_app
from app.settings import Settings
from tests.build import Trace, afd, heap, system
from tests.build.database import built_database
from tests.build.hostile import HOSTILE_TEXT, hostile_rows, is_free_of_marks
from tests.build.small_trace import KEY

ALLOWED = set("\n")
MOST_PAGES = 150


class Seen(HTMLParser):
    """What a browser would run or follow."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name in ("style", "srcdoc")]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "formaction", "data")]


def seen(html: str) -> Seen:
    parser = Seen()
    parser.feed(html)
    return parser


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = built_database(tmp_path_factory.mktemp("hostile"), hostile_rows(), key=KEY, name=HOSTILE_TEXT)
    with TestClient(create_app(Settings(database=folder.root)), base_url="http://127.0.0.1", follow_redirects=False) as made:
        yield made


@pytest.fixture(scope="module")
def places(client: TestClient) -> dict[str, str]:
    """HTML of pages by path: all that links lead to, one of each shape."""
    found: dict[str, str] = {}
    shapes: set[str] = set()
    open_ = ["/", "/help", "/docs", f"/t/{KEY}", f"/search?q={KEY}", f"/t/{KEY}/notes"]
    while open_ and len(found) < MOST_PAGES:
        path = open_.pop(0)
        parts = urlsplit(path)
        shape = re.sub(r"0x[0-9a-f]+|\d+", "0", parts.path) + "?" + ",".join(sorted(re.findall(r"(?:^|&)([a-z_]+)=", parts.query)))
        if shape in shapes or parts.path.startswith("/static"):
            continue
        shapes.add(shape)
        answer = client.get(path, headers={"Accept": "text/html"})
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        assert answer.status_code < 500, path
        found[path] = answer.text
        open_ += [unescape(href).partition("#")[0] for href in re.findall(r'href="(/[^"]*)"', answer.text)]
    return found


def test_pages_show_hostile_text_as_text(places: dict[str, str]) -> None:
    assert len(places) > 60
    shown = [path for path, html in places.items() if "&lt;script&gt;alert(1)" in html]
    assert len(shown) > 20, "the text is on many pages, or this tests nothing"
    for path, html in places.items():
        assert "<script>alert" not in html, path
        assert "<img src=x" not in html, path
        assert seen(html).handlers == [], path
        assert [
            link
            for link in seen(html).links
            if re.match(r"\s*(?:javascript:|data:|vbscript:|https?:(?!//127\.0\.0\.1/)|//)", link, re.IGNORECASE)
        ] == [], path
        assert "49 {" not in html, path
        assert is_free_of_marks(html), path
        for script in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL):
            json.loads(script)


def test_charts_get_no_markup_of_a_trace(places: dict[str, str]) -> None:
    figures = [
        script
        for html in places.values()
        for script in re.findall(r'<script type="application/json"[^>]*-figure">(.*?)</script>', html, re.DOTALL)
    ]
    assert len(figures) > 3

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for one in value.values():
                yield from texts(one)
        elif isinstance(value, list):
            for one in value:
                yield from texts(one)

    said = [text for figure in figures for text in texts(json.loads(figure))]
    assert any("alert(1)" in text for text in said), "no chart names a process: this tests nothing"
    assert [text for text in said if re.search(r"<(?!br>|/?b>|/?extra>)[a-z/]", text)] == []
    assert [text for text in said if not is_free_of_marks(text)] == []


def test_json_and_csv_are_what_they_say(client: TestClient, places: dict[str, str]) -> None:
    tables = 0
    for path in places:
        glue = "&" if "?" in path else "?"
        answer = client.get(f"{path}{glue}format=json")
        if answer.status_code == 200:
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["x-content-type-options"] == "nosniff"
            json.loads(answer.content)
        answer = client.get(f"{path}{glue}format=csv")
        if answer.status_code != 200:
            assert answer.status_code in (303, 307, 400, 404, 503), path
            continue
        tables += 1
        assert answer.headers["content-type"].startswith("text/csv")
        assert re.fullmatch(r'attachment; filename="[A-Za-z0-9-]+\.csv"', answer.headers["content-disposition"])
        for row in csv.reader(io.StringIO(answer.text, newline="")):
            assert not [cell for cell in row if cell.lstrip(" ")[:1] in tuple("=+@\t\r\n|%") and cell.lstrip(" ")], path
    assert tables > 10


@pytest.mark.parametrize(
    "path",
    ["/t/%3Cscript%3Ealert(1)", "/%0d%0aSet-Cookie:%20x=1", "/t/x%00", "/t/..%2f..%2fcatalog", "/search?q=%3Cscript%3Ealert(1)", "/%ff"],
)
def test_a_hostile_address_is_answered_as_text(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code < 500
    assert "<script>alert" not in answer.text
    assert "set-cookie" not in answer.headers or "x=1" not in answer.headers["set-cookie"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such file names there")
@pytest.mark.parametrize("name", ["\x1b[2J\nforged.etl", "exe\u202elte.etl", os.fsdecode(b"bad\xff.etl"), "<script>alert(1)<&script>.etl"])
def test_the_command_line_prints_one_line_a_thing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = HOSTILE_TEXT.replace("\x00", "")
    trace = Trace().cpu(
        0,
        system.process_rundown(image="\x1b[31m\u202e.exe", command_line=hostile),
        system.thread(name=hostile),
        system.image(base=0x7FF6_0000_0000, file=f"C:\\{hostile}"),
        *afd.opened(at_us=100),
        *afd.connected(at_us=200),
        heap.alloc(at_us=300),
        *afd.closed(at_us=900),
    )
    path = trace.write(tmp_path / name)
    database = ["--database", str(tmp_path / "database")]
    assert main(["inspect", str(path)]) in (0, 3)
    assert main(["inspect", str(path), "--json"]) in (0, 3)
    capsys.readouterr()
    assert main(["collect", str(path), *database]) in (0, 3)
    collected = capsys.readouterr()
    assert len(collected.out.splitlines()) == 1
    key = collected.out.split()[0]
    assert main(["list", *database]) == 0
    listed = capsys.readouterr().out
    assert len(listed.splitlines()) == 2
    assert main(["collect", str(path) + "\x1b\n", *database]) == 1
    refused = capsys.readouterr().err
    assert len(refused.splitlines()) == 1
    assert main(["export", key, "--output", str(tmp_path / "o\x1b.db"), *database]) == 0
    exported = capsys.readouterr().out
    with TestClient(create_app(Settings(database=tmp_path / "database")), base_url="http://127.0.0.1") as client:
        for page in ("", f"t/{key}", f"t/{key}/processes", f"t/{key}/sockets"):
            answer = client.get(f"/{page}", headers={"Accept": "text/html"})
            assert answer.status_code == 200
            assert is_free_of_marks(answer.text)
            assert client.get(f"/{page}?format=json").status_code == 200
    assert main(["delete", key, *database]) == 0
    deleted = capsys.readouterr().out
    for text in (collected.out, collected.err.replace("\r", ""), listed, refused, exported, deleted):
        assert all(c.isprintable() or c in ALLOWED for c in text)


def test_lone_surrogates_in_a_trace_become_marks_of_what_is_missing(tmp_path: Path) -> None:
    path = Trace().cpu(0, system.process_rundown(image="a.exe", command_line="x\ud800y"), *afd.opened(at_us=100)).write(tmp_path / "s.etl")
    assert main(["collect", str(path), "--database", str(tmp_path / "database")]) in (0, 3)
    with TestClient(create_app(Settings(database=tmp_path / "database")), base_url="http://127.0.0.1") as client:
        key = client.get("/?format=json").json()["listing"]["rows"][0]["key"]
        rows = client.get(f"/t/{key}/processes?format=json").json()["listing"]["rows"]
    assert [row["command_line"] for row in rows if row["command_line"]] == ["x\ufffdy"]


def test_a_record_of_the_log_is_one_line_and_its_traceback_is_indented() -> None:
    try:
        raise ValueError("first\n2025-01-01 00:00:00 ERROR sockscope: forged\x1b[2J")
    except ValueError:
        record = logging.LogRecord("sockscope", logging.ERROR, "x.py", 1, "%s failed", ("/a\nforged \x1b[2J\u202e",), sys.exc_info())
    lines = PlainFormatter().format(record).splitlines()
    assert lines[0].endswith("ERROR sockscope: /a\\nforged \\x1b[2J\\u202e failed")
    assert all(line.startswith("    | ") for line in lines[1:])
    assert len(lines) > 2
    assert all(line.isprintable() for line in lines)

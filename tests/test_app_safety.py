"""Who may ask, what a browser may do with the answer, and that reading writes nothing."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings, SettingsError, is_loopback
from tests.build.served import served
from tests.build.small_trace import KEY, small_folder
from tests.test_app_odd_requests import FORMS, PAGES

TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_folder(tmp_path_factory.mktemp("small")).root


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(database=root)), base_url="http://127.0.0.1", follow_redirects=False) as made:
        yield made


@pytest.fixture
def guarded(root: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(database=root, token=TOKEN)), base_url="http://127.0.0.1", follow_redirects=False) as made:
        yield made


@pytest.mark.parametrize("path", ["/", f"/t/{KEY}", "/nowhere", "/static/css/sockscope.css", "/healthz", f"/t/{KEY}/sockets?sort=x"])
def test_every_answer_has_the_safety_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    parts = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    nothing = dict.fromkeys(("default-src", "base-uri", "frame-ancestors"), "'none'")
    assert parts == nothing | dict.fromkeys(("script-src", "style-src", "img-src", "connect-src", "form-action"), "'self'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("path", ["/", f"/t/{KEY}", f"/t/{KEY}/sockets", f"/t/{KEY}/ports", "/help", "/docs", "/search?q=443"])
def test_pages_carry_no_inline_script_or_style(client: TestClient, path: str) -> None:
    text = client.get(path).text
    assert " style=" not in text
    assert "<style" not in text
    assert " onclick=" not in text
    assert "javascript:" not in text
    assert "http://" not in text.replace("http://127.0.0.1", "").replace("http://www.w3.org", "")
    assert "https://" not in text


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1", 200), ("localhost:8350", 200), ("[::1]:8350", 200), ("evil.example", 421), ("", 421)]
)
def test_only_our_own_names_are_answered(client: TestClient, host: str, status: int) -> None:
    assert client.get("/", headers={"Host": host}).status_code == status


def test_further_names_can_be_allowed(root: Path) -> None:
    with TestClient(create_app(Settings(database=root, allowed_hosts=("traces.example",))), base_url="http://traces.example") as client:
        assert client.get("/").status_code == 200


def test_a_token_is_demanded_and_becomes_a_cookie(guarded: TestClient) -> None:
    assert guarded.get("/").status_code == 401
    assert guarded.get("/?token=wrong").status_code == 401
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    away = guarded.get(f"/t/{KEY}/sockets?port=443&token={TOKEN}")
    assert (away.status_code, away.headers["location"]) == (303, f"/t/{KEY}/sockets?port=443")
    assert "httponly" in away.headers["set-cookie"].lower()
    assert guarded.get(f"/t/{KEY}/sockets?port=443").status_code == 200


def test_a_token_that_is_not_text_is_refused(guarded: TestClient) -> None:
    assert guarded.get("/", headers={b"Authorization": b"Bearer \xff\xfe"}).status_code == 401
    assert guarded.get("/", headers={"Cookie": 'sockscope_token="; x=,;'}).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_pages_can_only_be_read(client: TestClient, method: str) -> None:
    assert client.request(method, f"/t/{KEY}/sockets").status_code == 405


OF_NOTHING_HERE = {"/uploads/{upload}", "/uploads/files/{digest}", "/live/{trace_key}"}
"""Pages of what this folder does not have: files that are on their way, a trace that grows."""


def _linked(client: TestClient) -> dict[str, str]:
    """A link to each page by its path in the program, as other pages have it."""
    shapes = {path: re.compile(re.sub(r"\\{\w+\\}", "[^/?#]+", re.escape(path)) + r"(?:\?[^#]*)?") for path, _ in PAGES}
    found: dict[str, str] = {}
    open_ = ["/", "/docs", "/search?q=443", "/compare", "/healthz"]
    while open_:
        link = open_.pop(0)
        page = next((page for page, shape in shapes.items() if shape.fullmatch(link)), None)
        if page is not None and page not in found:
            found[page] = link
            open_ += [unescape(href) for href in re.findall(r'(?:href|data-[a-z-]+)="(/[^"#]*)', client.get(link).text)]
    return found


def test_reading_changes_no_file(client: TestClient, root: Path) -> None:
    def state() -> dict[Path, tuple[int, int, bytes]]:
        files = [path for path in root.rglob("*") if path.is_file()]
        return {path: (path.stat().st_size, path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before, folders = state(), [path for path in root.rglob("*") if path.is_dir()]
    linked = _linked(client)
    for page, _ in PAGES:
        for form in FORMS:
            link = linked.get(page, re.sub(r"\{\w+\}", "0123456789abcdef", page))
            answer = client.get(f"{link}{'&' if '?' in link else '?'}format={form}")
            assert answer.status_code < 500, link
    assert state() == before
    assert [path for path in root.rglob("*") if path.is_dir()] == folders
    assert {page for page, _ in PAGES} - set(linked) == OF_NOTHING_HERE, "a page was not read"


def test_static_files_are_kept_by_their_version(client: TestClient) -> None:
    page = client.get("/").text
    link = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert "?v=" in link
    assert "immutable" in client.get(link).headers["cache-control"]
    assert client.get("/static/css/sockscope.css").headers["cache-control"] == "public, max-age=60"
    assert client.get("/static/../app/main.py").status_code == 404
    assert client.get("/static/%2e%2e/pyproject.toml").status_code == 404


def test_plotly_comes_from_the_installed_package(client: TestClient) -> None:
    answer = client.get("/static/vendor/plotly.min.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert b"plotly.js v" in answer.content[:200]


def test_a_base_path_is_in_every_link(root: Path) -> None:
    with served(small_folder(root.parent / "based"), base_path="/traces") as client:
        page = client.get("/").text
    assert f'href="/traces/t/{KEY}"' in page
    assert 'href="/traces/static/css/' in page


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        (Settings(host="0.0.0.0"), "demands a token"),  # refused, not bound
        (Settings(host="192.0.2.1", token="short"), "too short"),
        (Settings(port=70_000), "a port is"),
        (Settings(query_seconds=0), "more than 0"),
        (Settings(root_path="x"), "starts with a slash"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: Settings, part: str) -> None:
    with pytest.raises(SettingsError, match=part):
        create_app(settings)


def test_loopback_is_known_by_address() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "192.0.2.1", "::", "example.org", ""))


def test_a_fault_of_ours_is_a_page_with_the_safety_headers(root: Path) -> None:
    app = create_app(Settings(database=root))

    @app.get("/fault")
    def fault() -> None:
        raise ZeroDivisionError("a secret detail")

    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.get("/fault")
    assert answer.status_code == 500
    assert "This page failed" in answer.text
    assert "secret" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_part_of_a_link_that_is_too_long_is_refused(client: TestClient) -> None:
    answer = client.get(f"/t/{'a' * 100}/sockets")
    assert answer.status_code == 400
    assert "trace_key" in answer.text

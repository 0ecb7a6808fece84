"""Requests as no page of ours makes them: each gets an answer that says what is wrong, in the form that was asked for; none fails."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from app.main import ROUTERS, create_app
from app.settings import Settings
from tests.build.small_trace import CLIENT, KEY, small_folder

FORMS = ("html", "json", "csv")

# As they stand in a URL. What is after the percent sign is bytes of the text.
VALUES = (
    "9223372036854775808", "-1", "-9223372036854775809", "1e999", "NaN", "Infinity", "%EF%BC%99", "%D9%A3", "0x", "0x1g",
    "0xffffffffffffffff@9223372036854775807", "1@99999999999999999999", "4@-1", "send:0x1@0", "send:@", "0x1:0x2@", ":@:", "%00", "a%00b",
    "%FF%FE", "%C0%AF", "%ED%A0%80", "%zz", "%", "%E2%80%AE", "%F0%9F%92%A9", "..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c", "a" * 3000,
    "%27%20OR%201=1--", "{{7*7}}", "%3Cscript%3E", "*", "%20", "+", "%0d%0aSet-Cookie:%20x=1", "1,2", ",", "-", "null", "[]", "%25s",
)  # fmt: skip


def _routes() -> list[tuple[str, tuple[str, ...]]]:
    """Path and names of the parameters of the query of each page that is read."""
    document = create_app(Settings()).openapi()
    pages = ((path, methods["get"]) for path, methods in document["paths"].items() if "get" in methods)
    return [(path, tuple(p["name"] for p in page.get("parameters", ()) if p["in"] == "query")) for path, page in pages]


PAGES = _routes()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(database=small_folder(tmp_path_factory.mktemp("small")).root))
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False, raise_server_exceptions=False) as made:
        yield made


def check(client: TestClient, url: str, form: str) -> int:
    """Ask; the answer may be anything but a failure, and what it says is in the form that was asked for. Gives its status."""
    answer = client.get(url)
    assert answer.status_code < 500, url
    assert "Traceback" not in answer.text
    assert "set-cookie" not in answer.headers or "x=1" not in answer.headers["set-cookie"]
    if answer.status_code >= 400:
        assert len(answer.text) > 20, url
        if form == "json" and answer.headers["content-type"].startswith("application/json"):
            said: dict[str, Any] = json.loads(answer.text)  # Any: JSON
            assert said["sentence"], url
    return answer.status_code


def _fill(path: str, value: str) -> str:
    """A path with the trace that there is and a value for all other parts."""
    parts = [KEY if part == "{trace_key}" else value if part.startswith("{") else part for part in path.split("/")]
    return "/".join(parts)


WITH_NAMES = [path for path, _ in PAGES if "{" in path.replace("{trace_key}", "")]


def _in_turn(turn: int, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Each value with a name and a form; another turn begins at others, so that over all pages a value meets every form and place."""
    for number, value in enumerate(VALUES):
        yield value, names[(number + turn) % len(names)], FORMS[(number + turn + number // 3) % 3]


@pytest.mark.parametrize("turn", range(len(PAGES)), ids=[path for path, _ in PAGES])
def test_no_value_in_a_query_fails(client: TestClient, turn: int) -> None:
    path, names = PAGES[turn]
    place = _fill(path, f"{CLIENT:#x}")
    for value, name, form in _in_turn(turn, (*(name for name in names if name != "format"), "from", "to", "nonsense")):
        check(client, f"{place}?format={form}&{name}={value}", form)


@pytest.mark.parametrize("turn", range(len(WITH_NAMES)), ids=WITH_NAMES)
def test_no_name_in_a_path_fails(client: TestClient, turn: int) -> None:
    for value, _, form in _in_turn(turn, ("",)):
        check(client, f"{_fill(WITH_NAMES[turn], value)}?format={form}", form)


def test_over_all_pages_every_value_is_asked_for_in_every_form() -> None:
    asked = {(value, form) for turn, (_, names) in enumerate(PAGES) for value, _, form in _in_turn(turn, names or ("",))}
    assert asked == set(product(VALUES, FORMS))


@pytest.mark.parametrize("value", VALUES)
def test_no_key_of_a_trace_fails(client: TestClient, value: str) -> None:
    for form in FORMS:
        assert check(client, f"/t/{value}/sockets?format={form}", form) in (307, 400, 404)


@pytest.mark.parametrize(("form", "page"), [*product(FORMS, ("sockets", "operations", "events", "allocations"))])
def test_what_is_wrong_is_named(client: TestClient, form: str, page: str) -> None:
    for query, named in (
        ("from=20s&to=10s", "runs forward"),
        ("from=1e999", "from=1e999"),
        ("limit=0", "limit=0"),
        ("limit=%EF%BC%99", "limit=９"),
        ("limit=9223372036854775808", "limit=9223372036854775808"),
        ("after=x", "after=x"),
        ("sort=nonsense", "sort=nonsense"),
        ("nonsense=1", "nonsense=1"),
        ("from=%FF", "UTF-8"),
        ("from=%00", "control characters"),
        ("limit=1&limit=2", "2 times"),
    ):
        answer = client.get(f"/t/{KEY}/{page}?{query}&format={form}")
        assert answer.status_code == 400, query
        assert named in answer.text, query


def test_a_form_that_there_is_not_is_named(client: TestClient) -> None:
    answer = client.get(f"/t/{KEY}/sockets?format=xml")
    assert (answer.status_code, "html, json or csv" in answer.text) == (400, True)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "POST"])
@pytest.mark.parametrize("path", ["/", f"/t/{KEY}", f"/t/{KEY}/sockets", "/healthz", "/static/css/sockscope.css"])
def test_other_methods_are_refused(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    if not path.startswith("/static"):
        assert answer.headers["allow"]
        assert f"does not know the method {method}" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        f"//t/{KEY}/sockets", f"/t//{KEY}", f"/t/{KEY}//sockets", f"/t/{KEY}/../../etc/passwd",
        "/static/../../pyproject.toml",
        "/static/%2e%2e/%2e%2e/pyproject.toml", "/static/..%2f..%2fpyproject.toml", "/static/%00", "/static/css/%00.css",
        "/static/" + "a" * 5000,
        "/static/css", "/static/", "/help/%00", "/help/screenshots/%00", "/help/screenshots/..%2f..%2fREADME",
        "/help/..%2f..%2fREADME", "/" + "a/" * 2000, f"/t/{KEY}/" + "x/" * 500, "/%FF",
        "/%00", "/\\..\\",
        "/t/" + "f" * 5000, "/;a=b", "/%3f", "/t/%2f", "/.git/config", "/static/.%00./x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("accept", ["text/html", "application/json", "text/csv"])
def test_paths_that_lead_nowhere_are_not_found(client: TestClient, path: str, accept: str) -> None:
    answer = client.get(path, headers={"Accept": accept})
    assert answer.status_code in (307, 400, 404, 405), path
    assert "[build-system]" not in answer.text


def test_every_router_has_pages_in_this_test() -> None:
    known = {path for path, _ in PAGES} | {"/healthz", "/help/screenshots/{name}"}
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes if "GET" in (route.methods or ())} <= known

"""What a query string may hold: every link and form of our own pages works, and whatever a page does not have is refused."""

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from fastapi.testclient import TestClient

from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, path_of, small_folder


class Links(HTMLParser):
    """Links and GET forms of a page; a form as the link that it leads to when it is sent as it stands."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._form: str | None = None
        self._fields: list[tuple[str, str]] = []
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "a" and "href" in given:
            self.found.add(given["href"])
        if tag == "form" and given.get("method", "get") == "get":
            self._form, self._fields = given.get("action", ""), []
        if tag == "select":
            self._select = given.get("name", "")
            self._fields.append((self._select, ""))
        if tag == "option" and "selected" in given:
            self._fields[-1] = (self._select, given.get("value", ""))
        if tag in ("input", "button") and given.get("name") and given.get("type") not in ("checkbox", "radio"):
            self._fields.append((given["name"], given.get("value", "")))
        for name in given:
            if name.startswith("data-") and name.endswith("href"):
                self.found.add(given[name])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form is not None:
            self.found.add(f"{self._form}?{urlencode(self._fields)}")
            self._form = None


def parts_of(path: str) -> set[tuple[str, str]]:
    """What a page can refuse of a link: each part of the query at its route, and of an order the column too."""
    url = urlsplit(path)
    route = re.sub(r"(?<=/)(?:[^/]*[0-9@][^/]*)", "*", url.path)
    pairs = (part.partition("=") for part in url.query.split("&"))
    return {(route, f"{name}={value.lstrip('-')}" if name in ("sort", "format") else name) for name, _, value in pairs}


def test_no_link_of_a_page_leads_to_a_refusal(sample: Imported) -> None:
    seen: set[tuple[str, str]] = set()
    refused = []
    with served(sample.folder) as client:
        waiting = ["/"]
        known = set(waiting)
        while waiting:
            path = waiting.pop(0)
            answer = client.get(path, headers={"Accept": "text/html"}, follow_redirects=True)
            if answer.status_code >= 400:
                refused.append((path, answer.status_code, re.findall(r'<p class="lead">(.*?)</p>', unescape(answer.text))))
                continue
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            for link in Links(answer.text).found:
                further = urljoin(str(answer.url), link).partition("#")[0].removeprefix("http://127.0.0.1")
                if not further.startswith("/") or further in known:
                    continue
                known.add(further)
                if not parts_of(further) <= seen:  # each part of each route is asked for once
                    seen |= parts_of(further)
                    waiting.append(further)
    assert not refused
    assert len(seen) > 200, "the walk got about"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as made:
        yield made


PAGES = ("", "/trust", "/sockets", "/stacks", "/processes/4242@0", "/sockets/0xffff9a0c2a001010@10000000", "/heap/4242@0",
         "/heap/4242@0/timeline", "/sockets/0xffff9a0c2a001010@10000000/timeline", "/address/0x1f0100", "/notes", "/around/0")  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/help", *(f"/t/{KEY}{one}" for one in PAGES)])
@pytest.mark.parametrize("query", ["nonsense=1", "utm_source=x"])
def test_a_part_that_a_page_does_not_have_is_refused(client: TestClient, path: str, query: str) -> None:
    assert client.get(path).status_code == 200
    answer = client.get(f"{path}?{query}")
    assert answer.status_code == 400
    assert f"{query}: this page has no parameter of this name" in unescape(answer.text)


@pytest.mark.parametrize(
    ("path", "query", "part"),
    [
        ("/sockets", "fron=1", "Did you mean from?"),
        ("/sockets", "Proces=1", "Did you mean process?"),
        ("/operations", "min_lenght=1", "Did you mean min_le"),
        ("/sockets/0xffff9a0c2a001010@10000000", "kinds=abort", "Did you mean kind?"),
        ("/sockets", "from=2 s&to=1 s", "this is before from=2 s"),
        ("/operations", "min_bytes=2 KiB&max_bytes=1 KiB", "this is less than min_bytes=2 KiB"),
        ("/operations", "min_latency=2 s&max_latency=1 ms", "this is less than min_latency"),
        ("/heap/4242@0", "from=2 s&to=1 s", "a range that runs forward"),
        ("/sockets", "from=1&from=2", "given 2 times"),
        ("/sockets", "process=%FF%FE", "no text in UTF-8"),
        ("/sockets", "process=a%00b", "without control characters"),
        ("/sockets", "pid=99999999999999999999999", "this page has no parameter"),
        ("/processes", "pid=99999999999999999999999", "a whole number"),
        ("/stacks", "from=2 s&to=1 s", "this is before from=2 s"),
        ("/stacks/aaaabbbbccccdddd", "from=1 s", "this page has no parameter of this name"),
        ("/trust", "from=1 s&to=2 s", "this page has no parameter of this name"),
        ("/processes/4242@0", "to=2 s", "this page has no parameter of this name"),
        ("/around/0", "from=1 s", "this page has no parameter of this name"),
        ("/around/+12.000", "", "needs a unit"),
        ("/sockets", "remote=192.0.2.25:x", "a port from 0 to 65535"),
        ("/sockets", "remote=192.0.2.25/x", "an IP address, with a port"),
        ("/sockets", "remote=[2001:db8::1]x", "an IP address, with a port"),
        ("/sockets", "unused=maybe", "hide or only; leave it empty for all"),
        ("/sockets", "unused=hide,only", "hide or only; leave it empty for all"),
    ],
)
def test_a_query_that_cannot_be_answered_says_what_is_wrong(client: TestClient, path: str, query: str, part: str) -> None:
    answer = client.get(f"/t/{KEY}{path}?{query}")
    assert answer.status_code == 400
    assert part in unescape(answer.text)
    assert "Traceback" not in answer.text


def test_a_range_of_nanoseconds_is_said_to_the_nanosecond(client: TestClient) -> None:
    thin = "\N{NARROW NO-BREAK SPACE}"
    first, last = f"+0.010{thin}000{thin}002 s", f"+0.010{thin}000{thin}009 s"
    rows = client.get(f"/t/{KEY}/operations?from=10000002&to=10000009&format=json").json()
    assert f"from {first}, to {last}" in rows["sentence"]
    socket = client.get(f"/t/{KEY}/sockets/0xffff9a0c2a001010@10000000?from=10000002&to=10000009").text
    assert f"from {first} to {last}" in socket
    assert f">{first}</span>" in socket


def test_a_range_of_one_moment_is_a_range(client: TestClient) -> None:
    assert client.get(f"/t/{KEY}/sockets?from=5&to=5").status_code == 200
    assert client.get(f"/t/{KEY}/operations?min_bytes=5&max_bytes=5").status_code == 200


def test_the_description_of_the_api_has_what_each_page_reads(client: TestClient) -> None:
    """A page that is asked for nonsense says what it has; the description of the API must say the same."""
    shared = {"clock", "format", "table", "token"}  # read for every page of a trace: how moments are said, the form of the answer
    paths = client.get("/openapi.json").json()["paths"]
    compared = 0
    for path, methods in paths.items():
        if "get" not in methods or not path.startswith("/t/"):
            continue
        text = unescape(client.get(f"{path_of(path)}?nonsense=1").text)
        found = re.search(r"this page has no parameter of this name\..*? It has ([a-z_, ]+)\.", text)
        if found is None:
            continue
        has = set(found[1].split(", "))
        declared = {one["name"] for one in methods["get"].get("parameters", []) if one["in"] == "query"}
        assert has - shared <= declared, path
        assert declared - shared <= has, path
        assert all(one.get("description") for one in methods["get"]["parameters"] if one["in"] == "query"), path
        compared += 1
    assert compared > 25

"""What every page has around its content: a title, the way to it, one sentence, a preview for those who are sent its link; words that are
explained where they stand.
"""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from fastapi.testclient import TestClient

from app.glossary import TERMS
from app.sections import SECTIONS
from tests.build.answers import as_json, text_of
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, path_of, small_folder

BESIDE = ("/", "/findings", "/search?q=10054", "/compare", f"/compare?a={KEY}&b={KEY}", "/help", "/help/recording", "/docs")
"""Pages that belong to no trace, or to several."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served(small_folder(tmp_path_factory.mktemp("small"))) as made:
        yield made


@pytest.fixture(scope="module")
def pages(client: TestClient) -> dict[str, str]:
    """Every page of a trace as HTML, by its path."""
    routes = [path for path, methods in client.get("/openapi.json").json()["paths"].items() if path.startswith("/t/") and "get" in methods]
    found = {}
    for path in map(path_of, routes):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        if answer.headers["content-type"].startswith("text/html"):
            found[path] = answer.text
    assert len(found) > 30
    return found


def test_every_page_has_a_title_the_way_to_it_and_one_sentence(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        (heading,) = re.findall(r"<h1>(.*?)</h1>", html, re.DOTALL)
        (sentence,) = re.findall(r'<p class="sentence">(.*?)</p>', html, re.DOTALL)
        title = re.findall(r"<title>(.*?)</title>", html)
        crumbs = re.findall(r'href="([^"]*)"', re.findall(r'aria-label="Where you are">(.*?)</nav>', html, re.DOTALL)[0])
        assert text_of(heading).strip(), path
        assert sentence.strip().endswith((".", ".)")), (path, sentence)
        assert len(title) == 1, path
        assert title[0].endswith(" – sockscope"), path
        assert crumbs[0] == "/", path
        assert f"/t/{KEY}" in crumbs or path == f"/t/{KEY}", path


@pytest.mark.parametrize("path", BESIDE)
def test_pages_beside_a_trace_have_the_same_frame(client: TestClient, path: str) -> None:
    html = client.get(path).text
    (sentence,) = re.findall(r'<p class="sentence">(.*?)</p>', html, re.DOTALL)
    crumbs = re.findall(r'href="([^"]*)"', re.findall(r'aria-label="Where you are">(.*?)</nav>', html, re.DOTALL)[0])

    assert len(re.findall(r"<h1>[^<]+</h1>", html)) == 1
    assert sentence.strip().endswith("."), sentence
    assert len(re.findall(r"<title>[^<]+ – sockscope</title>", html)) == 1
    assert crumbs[:1] == ([] if path == "/" else ["/"])
    assert '<form class="search" role="search" action="/search" method="get">' in html
    assert unescape(sentence).strip() == unescape(re.findall(r'<meta name="description" content="([^"]*)"', html)[0])


def test_every_page_has_the_search_box_and_the_clock(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        assert re.search(r'<form class="search" role="search" action="/search" method="get">', html), path
        assert f'<input type="hidden" name="trace" value="{KEY}">' in html, path
        assert '<input id="search" type="search" name="q"' in html, path
        assert re.search(r'data-clock="" aria-current="true">since', html), path
        assert re.search(r'data-clock="utc">UTC', html), path


def test_the_overview_says_what_was_recorded_where_when_and_how_long(pages: dict[str, str]) -> None:
    text = text_of(pages[f"/t/{KEY}"])
    for fact in (
        f"Trace {KEY}",
        "Recorded 2025-03-04 10:00:00 UTC",
        "Length 1.00 min",
        "Machine 64-bit, Windows 10.0.19045, 4 processors",
        "Clock performance counter (QPC)",
        "Trust 2 problems",
        "Data was lost in this range",
    ):
        assert fact in text, fact


def test_each_claim_about_a_socket_leads_to_its_evidence(sample: Imported) -> None:
    """The links in brackets behind the sentences that explain a socket, of sockets that ended in each way."""
    chosen = sample.rows("SELECT min(socket) FROM v_sockets GROUP BY end, listener, protocol, errors > 0")
    chosen += sample.rows("SELECT min(socket) FROM v_aborts WHERE on_listener = 0 GROUP BY reason")
    followed = set()
    with served(sample.folder) as client:
        for (socket,) in chosen:
            page = client.get(f"/t/{sample.report.key}/sockets/{socket}", headers={"Accept": "text/html"}).text
            story = re.findall(r'<p class="explain".*?</p>', page, re.DOTALL)[0]
            links = re.findall(r'href="([^"]*)"', story)
            assert len(links) >= 2, socket
            assert all(f"/t/{sample.report.key}/" in link for link in links)
            for link in links:
                kind = re.sub(r"0x[0-9a-f]+|[0-9]+", "#", link)
                if kind not in followed:
                    followed.add(kind)
                    assert client.get(unescape(link)).status_code == 200, link
    assert any("/around/#" in kind for kind in followed)
    assert len(followed) > 6


def test_every_page_previews_as_what_it_shows(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        heading, sentence = (re.findall(rf"<{tag}>(.*?)</", html, re.DOTALL)[0] for tag in ("h1", 'p class="sentence"'))
        meta = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)">', html))
        assert unescape(meta["description"]) == unescape(meta["og:description"]) == unescape(sentence).strip(), path
        assert unescape(meta["og:title"]).startswith(unescape(heading)), path
        assert len(unescape(meta["og:title"])) < 150, path
        assert meta["og:url"].startswith(f"http://127.0.0.1/t/{KEY}"), path
        assert "data-share" in html, path


def test_the_navigation_names_every_kind_of_list_and_lights_where_one_is(pages: dict[str, str]) -> None:
    links = [f"/t/{KEY}/{section.link}".rstrip("/") for group in SECTIONS for section in group.sections]
    for path, html in pages.items():
        nav = re.findall(r'<nav class="sections".*?</nav>', html, re.DOTALL)[0]
        assert re.findall(r'href="([^"]*)"', nav) == links, path
        assert nav.count("aria-current") <= 1, path
    for link in links:
        assert f'href="{link}" aria-current="page"' in pages[link], link


@pytest.mark.parametrize(
    ("path", "word", "term"),
    [
        ("operations", "Posted", "posted"),
        ("sockets/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000", "Posted", "posted"),
        ("sockets/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000", "Completed", "completed"),
        ("sockets/0xffff9a0c2a001010@10000000/recv:0x1f0100@1500000000", "Fast path", "fast path"),
        ("aborts", "Reason", "abort reason"),
        ("aborts", "In flight", "in flight"),
        ("operations", "Header pid", "header process"),
    ],
)
def test_a_word_is_explained_on_hover_as_in_the_glossary(client: TestClient, path: str, word: str, term: str) -> None:
    html = client.get(f"/t/{KEY}/{path}").text
    assert re.search(rf'title="{re.escape(TERMS[term])}"[^>]*>{word}<', unescape(html)), (path, word)


def test_the_help_has_every_word_and_how_to_record(client: TestClient) -> None:
    text = text_of(client.get("/help").text)
    for word, meaning in TERMS.items():
        assert word in text, word
        assert meaning in text, word
    recording = text_of(client.get("/help/recording").text)
    for command in ("logman start", "netsh trace start", "wpr -start", "xperf -start"):
        assert command in recording, command
        assert command.split()[0] in recording


def test_a_search_shows_the_best_first(client: TestClient) -> None:
    """What is called so stands before what only has the text in it, and each group leads to the whole list."""
    found = as_json(client, f"/search?q=WSAECONNRESET&trace={KEY}")["found"][0]["groups"]
    assert found[0]["title"] == "Errors"
    links = [hit["link"] for hit in found[0]["hits"]]
    assert links == ["operations?status=0xc000020d", "aborts?status=WSAECONNRESET"]
    assert [len(as_json(client, f"/t/{KEY}/{link}")["listing"]["rows"]) for link in links] == [1, 1]
    assert found[0]["all_link"] == "errors?status=WSAECONNRESET"

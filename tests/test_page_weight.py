"""Pages stay light whatever the size of a trace: every page that links lead to, of the sample and of the story traces, is weighed."""

import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.build.answers import as_json
from tests.build.database import built_database
from tests.build.imported import Imported, collect
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

PAGE_BYTES = 300_000
CHART_BYTES = 500_000
WHOLE_BYTES = 2_000_000
"""Of a page with all its charts."""
PER_KIND = 2
"""Pages of one kind that are weighed; the busiest sockets come on top."""

_NAMES = re.compile(r"0x[0-9a-f]+|\d{3,}|[0-9a-f]{16}")


def kind_of(path: str) -> str:
    """A path with the names of objects taken out, so that pages of one kind are alike."""
    return _NAMES.sub("#", path)


def weigh(client: TestClient, trace: Imported) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Bytes of pages, of chart calls, and of pages with all their charts, beginning at the overview and at the busiest sockets."""
    home = f"/t/{trace.report.key}"
    busy = trace.rows("SELECT socket FROM v_operations WHERE socket NOT NULL GROUP BY socket ORDER BY count(*) DESC LIMIT 3")
    paths = [home, *(f"{home}/sockets/{socket}" for (socket,) in busy)]
    pages: dict[str, int] = {}
    charts: dict[str, int] = {}
    whole: dict[str, int] = {}
    met: Counter[str] = Counter()
    for path in paths:  # grows as pages are read
        if path in pages:
            continue
        answer = client.get(path, headers={"Accept": "text/html"}, follow_redirects=True)
        assert answer.status_code == 200, path
        pages[path] = len(answer.content)
        for url in re.findall(r'data-url="([^"]+)"', answer.text):
            charts[url] = len(client.get(unescape(url)).content)
        whole[path] = pages[path] + sum(charts[url] for url in re.findall(r'data-url="([^"]+)"', answer.text))
        for href in map(unescape, re.findall(r'href="([^"#?]+)"', answer.text)):
            if href.startswith(home + "/") and href not in paths and met[kind_of(href)] < PER_KIND:
                met[kind_of(href)] += 1
                paths.append(href)
    return pages, charts, whole


def check(trace: Imported) -> None:
    with served(trace.folder) as client:
        pages, charts, whole = weigh(client, trace)
    assert len({kind_of(path) for path in pages}) > 25
    assert {path: size for path, size in pages.items() if size >= PAGE_BYTES} == {}
    assert len(charts) > 5
    assert {url: size for url, size in charts.items() if size >= CHART_BYTES} == {}
    assert {path: size for path, size in whole.items() if size >= WHOLE_BYTES} == {}
    assert max(whole.values()) > max(pages.values()), "charts are counted"


def test_pages_and_charts_of_the_sample_are_light(sample: Imported) -> None:
    check(sample)


def test_pages_of_all_traces_are_light(tmp_path: Path) -> None:
    """The list of traces, their findings, a search and a comparison, of thirty traces with many findings each."""
    finding = SMALL["finding"][1] | {"text": "client.exe freed 8,192 bytes while a receive was using them. " * 4}
    rows = SMALL | {"finding": [finding] * 20}
    keys = [f"{number:012x}" for number in range(30)]
    for key in keys:
        folder = built_database(tmp_path, rows, key=key, name="a recording of some machine with a name of some length.etl")
    with served(folder) as client:
        for path in ("/", "/?group=program", "/findings", "/search?q=10054", "/compare", f"/compare?a={keys[0]}&b={keys[1]}"):
            answer = client.get(path, headers={"Accept": "text/html"})
            assert answer.status_code == 200, path
            assert len(answer.content) < PAGE_BYTES, path


@pytest.mark.shared
@pytest.mark.parametrize("name", ["story-mixed", "story-32"])
def test_pages_and_charts_of_a_story_trace_are_light(shared_dir: Path, tmp_path: Path, name: str) -> None:
    check(collect(shared_dir / "traces" / f"{name}.etl", tmp_path))


def test_a_listener_with_many_connections_shows_some_and_links_the_rest(sample: Imported) -> None:
    ((listener,),) = sample.rows("SELECT socket FROM v_sockets WHERE local = '0.0.0.0:8443' AND listener = 1")
    with served(sample.folder) as client:
        page = client.get(f"/t/{sample.report.key}/sockets/{listener}", headers={"Accept": "text/html"}).text
        rest = re.search(r'href="([^"]+)">All sockets of this process and port', page)
        assert rest is not None
        accepted = client.get(f"/t/{sample.report.key}/sockets/{listener}?format=json").json()["accepted"]["rows"]
        more = client.get(unescape(rest[1]) + "&format=json&limit=1000").json()["listing"]["rows"]
    assert len(accepted) == 50
    assert {row["socket"] for row in accepted} < {row["socket"] for row in more}


def test_a_heavy_chart_is_asked_for_and_a_light_one_comes_along(sample: Imported) -> None:
    ((busy,),) = sample.rows("SELECT socket FROM v_operations WHERE socket NOT NULL GROUP BY socket ORDER BY count(*) DESC LIMIT 1")
    ((quiet,),) = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns LIMIT 1")
    with served(sample.folder) as client:
        heavy, light = (
            client.get(f"/t/{sample.report.key}/sockets/{socket}", headers={"Accept": "text/html"}).text for socket in (busy, quiet)
        )
    assert 'data-url="' in heavy
    assert 'id="socket-timeline-figure"' not in heavy
    assert 'id="socket-timeline-figure"' in light


def test_an_address_where_much_lived_has_a_light_page_with_links_to_all(tmp_path: Path) -> None:
    """The worst page of an address: more of each kind than it shows, with long names."""
    at, number = 0x1F0100, 60
    image = "a program with a name of some length " * 2 + ".exe"
    local = {"text": "[2001:db8:1111:2222:3333:4444:5555:6666%4294967295]:65535", "family": 23, "ip": bytes(range(16)), "port": 65535}
    kinds: dict[str, dict[str, object]] = {
        "process": SMALL["process"][0] | {"image": image, "eprocess": at},
        "address": local,
        "socket": SMALL["socket"][0] | {"endpoint": at, "local_n": 1, "remote_n": 1, "owner_n": 1},
        "operation": SMALL["operation"][2] | {"peer_n": 1},
        "operation_buffer": SMALL["operation_buffer"][0],
        "overlap": SMALL["overlap"][0],
        "allocation": SMALL["allocation"][0] | {"tid": 4_000_000_000},
        "heap": SMALL["heap"][0],
        "module": {
            "process_n": 1,
            "base": at - 1,
            "size_bytes": 100,
            "file": "C:\\Program Files\\" + "folder\\" * 12 + "a.dll",
            "loaded_ns": 5,
        },
        "thread": SMALL["thread"][0] | {"stack_low": at - 1, "stack_high": at + 1},
        "heap_range": {"process_n": 1, "handle": 0x1E0000, "lo": at - 1, "hi": at + 1},
    }
    once = ("operation_buffer", "address", "heap")
    rows: dict[str, list[dict[str, object]]] = {name: [row] if name in once else [row] * number for name, row in kinds.items()}
    rows |= {name: SMALL[name] for name in ("event_count", "stack", "stack_frame", "stack_ref", "owner")}
    with served(built_database(tmp_path, rows, key=KEY)) as client:
        path = f"/t/{KEY}/address/{at:#x}"
        page = client.get(path, headers={"Accept": "text/html"})
        found = as_json(client, path)
        everything = {
            href.partition("?")[0].rpartition("/")[2]: as_json(client, unescape(href) + "&limit=1000")["listing"]["rows"]
            for href in re.findall(r'href="([^"]*)">All \w+ at this address<', page.text)
        }
    assert set(found["cut"]) == {"sockets", "allocations", "operations", "overlaps", "ranges"}
    assert all(len(found[name]["rows"]) == found["most"] for name in found["cut"])
    assert {name: len(rows) for name, rows in everything.items()} == dict.fromkeys(
        ("sockets", "allocations", "operations", "overlaps"), number
    )
    assert len(page.content) < PAGE_BYTES
    assert len(page.content) > 150_000, "it is the worst page"

"""Pages stay light whatever the size of a trace: every page that links lead to, of the sample and of the story traces, is weighed."""

import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.build.imported import Imported, collect
from tests.build.served import served

PAGE_BYTES = 300_000
CHART_BYTES = 500_000
PER_KIND = 2
"""Pages of one kind that are weighed; the busiest sockets come on top."""

_NAMES = re.compile(r"0x[0-9a-f]+|\d{3,}|[0-9a-f]{16}")


def kind_of(path: str) -> str:
    """A path with the names of objects taken out, so that pages of one kind are alike."""
    return _NAMES.sub("#", path)


def weigh(client: TestClient, trace: Imported) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of pages and of chart calls by path, beginning at the overview and at the sockets with the most operations."""
    home = f"/t/{trace.report.key}"
    busy = trace.rows("SELECT socket FROM v_operations WHERE socket NOT NULL GROUP BY socket ORDER BY count(*) DESC LIMIT 3")
    paths = [home, *(f"{home}/sockets/{socket}" for (socket,) in busy)]
    pages: dict[str, int] = {}
    charts: dict[str, int] = {}
    met: Counter[str] = Counter()
    for path in paths:  # grows as pages are read
        if path in pages:
            continue
        answer = client.get(path, headers={"Accept": "text/html"}, follow_redirects=True)
        assert answer.status_code == 200, path
        pages[path] = len(answer.content)
        for url in re.findall(r'data-url="([^"]+)"', answer.text):
            charts[url] = len(client.get(unescape(url)).content)
        for href in map(unescape, re.findall(r'href="([^"#?]+)"', answer.text)):
            if href.startswith(home + "/") and href not in paths and met[kind_of(href)] < PER_KIND:
                met[kind_of(href)] += 1
                paths.append(href)
    return pages, charts


def check(trace: Imported) -> None:
    with served(trace.folder) as client:
        pages, charts = weigh(client, trace)
    assert len({kind_of(path) for path in pages}) > 25
    assert {path: size for path, size in pages.items() if size >= PAGE_BYTES} == {}
    assert len(charts) > 5
    assert {url: size for url, size in charts.items() if size >= CHART_BYTES} == {}


def test_pages_and_charts_of_the_sample_are_light(sample: Imported) -> None:
    check(sample)


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

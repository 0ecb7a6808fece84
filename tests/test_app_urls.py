"""Paths by the name of a route: written from a pattern that is found once, they equal what the router itself writes."""

from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.routing import NoMatchFound

from app.main import create_app
from app.settings import Settings
from app.urls import Urls

PARTS = {"trace_key": "0123456789ab", "process": "7@0", "heap": "0x1@5", "socket": "0xffff@-3"}


@pytest.fixture
def urls(tmp_path: Path) -> Urls:
    found: Urls = create_app(Settings(database=tmp_path)).state.urls
    return found


@pytest.mark.parametrize("value", ["0xffff8a01@12", "{0}", "{}", "a/b", "50%", "é?x#y", "\0", "\x000\0", "a b"])
def test_a_part_is_quoted_whatever_is_in_it(urls: Urls, value: str) -> None:
    for _ in range(2):  # once to find the pattern, once from it
        path = urls("heap_process", trace_key="0123456789ab", process=value)
        assert path == f"/t/0123456789ab/heap/{quote(value, safe='@:,')}"


def test_the_order_of_parts_does_not_matter(urls: Urls) -> None:
    one = urls("one_heap", trace_key="k", process="p", heap="h")
    assert one == urls("one_heap", heap="h", process="p", trace_key="k") == "/t/k/heap/p/h"


def test_the_base_path_is_as_it_was_given(tmp_path: Path) -> None:
    urls = create_app(Settings(database=tmp_path, root_path="/tools/net")).state.urls
    assert [urls("traces"), urls("overview", trace_key="k")] == ["/tools/net/", "/tools/net/t/k"]


@pytest.mark.parametrize("parts", [{}, {"trace_key": "k", "process": "7", "more": "x"}])
def test_parts_that_no_route_has_are_refused(urls: Urls, parts: dict[str, str]) -> None:
    urls("process", trace_key="k", process="7")
    with pytest.raises(NoMatchFound):
        urls("process", **parts)


def test_an_empty_part_is_refused(urls: Urls) -> None:
    with pytest.raises(AssertionError, match="empty part"):
        urls("process", trace_key="k", process="")

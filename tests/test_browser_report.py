"""Reports in a browser, opened from disk: nothing is asked for, nothing complains, all can be read."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from app.cli import main
from tests.browser import Watched, chromium_path, launch
from tests.build.imported import Imported

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium_path() is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # as in test_browser
]


@pytest.fixture(scope="module")
def reports(sample: Imported, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A socket with aborts or overlaps, a listener and a heap."""
    place = tmp_path_factory.mktemp("reports")
    overlapped, t_ns = sample.rows("SELECT first_socket, t_ns FROM v_overlaps LIMIT 1")[0]
    listener = sample.rows("SELECT socket FROM v_sockets WHERE listener LIMIT 1")[0][0]
    process, heap = sample.rows("SELECT process, heap FROM v_heaps LIMIT 1")[0]
    asked = {
        "overlapped": ["--socket", overlapped],
        "overlap": ["--socket", overlapped, "--from", str(t_ns - 100_000_000), "--to", str(t_ns + 100_000_000)],
        "listener": ["--socket", listener],
        "heap": ["--process", process],
        "one heap": ["--process", process, "--heap", heap],
    }
    for name, words in asked.items():
        assert main(["report", sample.report.key, *words, "-o", str(place / f"{name}.html"), "--database", str(sample.folder.root)]) == 0
    return {name: place / f"{name}.html" for name in asked}


@pytest.fixture(scope="module")
def browser(reports: dict[str, Path]) -> Iterator[Browser]:
    """Started when the reports are there: both have event loops of their own."""
    path = chromium_path()
    assert path is not None
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


def opened(browser: Browser, path: Path, *, width: int, scheme: str) -> tuple[Page, Watched, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light")
    watched, asked = Watched("file://"), []
    page.on("console", lambda message: watched.complaints.append(message.text))
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    return page, watched, asked


@pytest.mark.parametrize("name", ["overlapped", "listener", "heap", "one heap"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_a_report_opens_from_disk(browser: Browser, reports: dict[str, Path], name: str, width: int, scheme: str) -> None:
    page, watched, asked = opened(browser, reports[name], width=width, scheme=scheme)
    try:
        assert asked == [reports[name].as_uri()], "the file itself and nothing else"
        assert watched.complaints == []
        shown = page.locator("svg.drawing:visible")
        assert shown.count() == page.locator("figure.chart").count() > 0
        assert shown.first.get_attribute("class") == f"drawing {'slim' if width == 390 else 'wide'}"
        box = shown.first.bounding_box()
        assert box is not None
        assert box["width"] > width * 0.8
        letters = page.evaluate(
            "() => { const s = [...document.querySelectorAll('svg.drawing')].find(e => e.checkVisibility());"
            " return 12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width }"
        )
        assert letters > 10, "the words of a picture can be read"
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == ("rgb(17, 20, 23)" if scheme == "dark" else "rgb(255, 255, 255)"), "the style sheet is allowed"
        if width == 390:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["overlap", "one heap"])  # of few rows: the check takes minutes for those of many
def test_nothing_stands_in_the_way_of_anybody(browser: Browser, reports: dict[str, Path], name: str, scheme: str) -> None:
    # axe itself is a script, which the report's own policy forbids
    colours: Literal["dark", "light"] = "dark" if scheme == "dark" else "light"
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=colours, bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(reports[name].as_uri())
        found = Axe().run(page)
        assert found.response["violations"] == [], found.generate_report()
    finally:
        context.close()


def test_no_script_runs_and_no_request_leaves(browser: Browser, reports: dict[str, Path], tmp_path: Path) -> None:
    """Even where something had found its way into a report, its policy stops it."""
    html = reports["heap"].read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        place = f"http://127.0.0.1:{server.getsockname()[1]}"
        style = f"<style>body {{ color: red; background: url({place}/y) }}</style>"
        more = f'<script>document.title = "ran"</script><img src="{place}/x.png">{style}'
        changed.write_text(html.replace("</main>", f"{more}</main>"), encoding="utf-8")
        page, watched, _ = opened(browser, changed, width=1280, scheme="light")
        try:
            assert page.title() != "ran"
            assert page.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
            assert len([line for line in watched.complaints if "Content Security Policy" in line]) >= 3
            with pytest.raises(TimeoutError):
                server.accept()
        finally:
            page.close()

"""A page of a trace that grows, in a browser: it goes along, and the reader stays where he is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from collector.follow import Followed, Pace, follow
from collector.store.engine import TraceFolder
from tests.browser import chromium_path, launch, serving, watch
from tests.build.growing import Recording
from tests.test_follow import BUFFER, many_sends

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium_path() is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

expect.set_options(timeout=30_000)  # the chart's script is large, and pages that take long are brought up to date less often
QUICK = Pace(look=0.05, pause=0.2, settle=3.0)


class Grown:
    """A file that is followed in a thread; the test says what is written."""

    def __init__(self, place: Path) -> None:
        self.folder = TraceFolder(place / "database")
        self.recording = Recording(place / "sockets.etl", many_sends(600))
        self.ended: list[Followed] = []
        self.keys: list[str] = []
        self._stored = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def _follow(self) -> None:
        def stored(report: object) -> None:
            self.keys.append(report.key)  # type: ignore[attr-defined]
            self._stored.set()

        self.ended.append(follow(self.recording.path, self.folder, self._stop.is_set, pace=QUICK, on_stored=stored))

    def write(self, buffers: int) -> None:
        """Some buffers more, and wait until they are shown."""
        self._stored.clear()
        self.recording.append(buffers * BUFFER)
        assert self._stored.wait(60)

    @contextmanager
    def running(self) -> Iterator["Grown"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(60)

    def close(self) -> None:
        self.recording.close()
        self._thread.join(60)


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[Grown]:
    with Grown(tmp_path).running() as grown:
        grown.write(5)
        yield grown


@pytest.fixture
def site(grown: Grown) -> Iterator[str]:
    with serving(grown.folder.root) as base:
        yield base


@pytest.fixture
def browser(site: str) -> Iterator[Browser]:  # after the site, so that its pages are gone before the server ends
    path = chromium_path()
    assert path is not None
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Page:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    return context.new_page()


def test_a_growing_page_is_quiet_fits_and_can_be_used_by_all(browser: Browser, site: str, grown: Grown) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 900}, bypass_csp=True)
    page = context.new_page()
    watched = watch(page, site)
    for path in ("", "/operations"):
        page.goto(f"{site}/t/{grown.keys[0]}{path}")
        upto = page.locator("#live .upto").inner_text()
        grown.write(3)
        expect(page.locator("#live .upto")).not_to_have_text(upto)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        violations = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:120]) for one in violations if one["impact"] in ("serious", "critical")] == []
    assert (watched.complaints, watched.foreign) == ([], [])
    context.close()


def rows(page: Page) -> int:
    return page.locator("main table.list tbody tr").count()


def test_a_list_grows_around_its_reader(page: Page, site: str, grown: Grown) -> None:
    watched = watch(page, site)
    page.goto(f"{site}/t/{grown.keys[0]}/operations?kind=send&from=0")
    page.evaluate("document.body.dataset.mark = 'the same document'")
    before = rows(page)
    page.mouse.wheel(0, 600)
    page.wait_for_function("scrollY > 300")
    height = page.evaluate("scrollY")
    upto = page.locator("#live .upto").inner_text()

    grown.write(3)
    expect(page.locator("#live .upto")).not_to_have_text(upto)

    assert rows(page) > before
    assert page.evaluate("scrollY") == height
    assert page.evaluate("document.body.dataset.mark") == "the same document"
    assert page.url.endswith("/operations?kind=send&from=0")
    assert (watched.complaints, watched.foreign) == ([], [])


def test_what_the_reader_is_at_is_left_alone(page: Page, site: str, grown: Grown) -> None:
    page.goto(f"{site}/t/{grown.keys[0]}")
    upto = page.locator("#live .upto").inner_text()
    page.locator("details.note-new summary").click()
    text = page.get_by_label("Note, plain text")
    text.fill("half a sentence")

    grown.write(3)
    expect(page.locator("#live .more")).to_be_visible()
    assert page.locator("#live .upto").inner_text() == upto
    assert text.input_value() == "half a sentence"

    page.locator("h1").click()
    expect(page.locator("#live .upto")).not_to_have_text(upto)
    assert page.get_by_label("Note, plain text").input_value() == "half a sentence"
    expect(page.locator("details.note-new")).to_have_attribute("open", "")


def test_a_chart_and_the_selection_go_along(page: Page, site: str, grown: Grown) -> None:
    page.goto(f"{site}/t/{grown.keys[0]}/sockets")
    page.locator("main table.list tbody tr td.keep a").first.click()
    drawn = page.locator("[data-chart]").first
    expect(drawn).to_have_attribute("data-drawn", "1")
    row = page.locator("tr[data-link]").nth(2)
    chosen = row.get_attribute("data-link")
    row.locator("td").last.click()
    marked = page.locator("#operations tr[aria-selected]")
    expect(marked).to_have_attribute("data-link", str(chosen))
    url = page.url
    assert "selected=" in url

    grown.write(3)
    expect(drawn).not_to_have_attribute("data-drawn", "1")
    expect(marked).to_have_attribute("data-link", str(chosen))
    assert page.url == url
    assert page.locator(".js-plotly-plot").count() == page.locator("[data-chart][data-drawn]").count()


def test_at_the_end_the_reader_goes_to_the_same_view_of_the_whole(page: Page, site: str, grown: Grown) -> None:
    page.goto(f"{site}/t/{grown.keys[0]}/operations?kind=send")
    before = rows(page)
    grown.close()
    page.get_by_role("link", name="Show the whole trace").click()
    page.wait_for_url(f"{site}/t/{grown.ended[0].report.key}/operations?kind=send")
    assert rows(page) > before
    expect(page.locator("#live")).to_have_count(0)


def test_without_scripts_there_is_a_link(browser: Browser, site: str, grown: Grown) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{site}/t/{grown.keys[0]}/operations?kind=send")
    upto = page.locator("#live .upto").inner_text()
    grown.write(3)
    page.get_by_role("link", name="Load it again").click()
    assert page.locator("#live .upto").inner_text() != upto
    assert page.url.endswith("/operations?kind=send")

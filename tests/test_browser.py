"""The dashboard in a browser: one question of a user each, on the sample trace."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from collector.store import locks
from collector.store.catalog import Catalog
from tests.browser import Watched, chromium_path, launch, serving, watch
from tests.build.answers import as_json
from tests.build.database import built_database
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium_path() is None, reason="no Chromium on this machine"),
    # playwright's own event loop is still open when the interpreter collects it
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


CHART_WIDTH = "document.querySelector('.js-plotly-plot .main-svg').getBoundingClientRect().width"


COLLECTING = "aaaabbbbcccc"
"""The key of a trace that is still being collected."""


@pytest.fixture(scope="module")
def site(sample: Imported, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The sample, the small trace, and one that is being collected."""
    root = tmp_path_factory.mktemp("site") / "database"
    shutil.copytree(sample.folder.root, root)
    folder = built_database(root, SMALL, key=KEY)
    catalog = Catalog(folder)
    catalog.begin(COLLECTING, name="big.etl", path="big.etl", size_bytes=4_000_000_000, version="0.1.0")
    with locks.held(folder.lock_path(COLLECTING), "busy"), serving(root) as base:
        yield base


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    assert path is not None
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="module")
def trace(sample: Imported) -> str:
    """Path of the sample trace's overview."""
    return f"/t/{sample.report.key}"


@pytest.fixture(scope="module")
def places(sample: Imported, trace: str) -> dict[str, str]:
    """Paths of the main pages, one object of each kind."""
    reset = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns")[0][0]
    busy = sample.rows("SELECT socket FROM v_operations GROUP BY socket ORDER BY count(*) DESC")[0][0]
    process = sample.rows("SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC")[0][0]
    block = sample.rows("SELECT process, allocation FROM v_allocations WHERE end_reason = 'freed' ORDER BY start_ns")[0]
    with served(sample.folder) as client:

        def first(name: str) -> dict[str, Any]:  # Any: JSON
            row: dict[str, Any] = as_json(client, f"{trace}/{name}")["listing"]["rows"][0]
            return row

        operation, overlap, freed = first("operations?kind=send"), first("overlaps"), first("in-flight-frees?kind=freed_in_flight")
        held, stack = first(f"allocations?process={process}"), first("stacks")["stack"]
    pair = "/".join(overlap[name] for name in ("first_socket", "first", "second_socket", "second"))
    return {
        "traces": "/",
        "traces by program": "/?group=program",
        "findings of all": "/findings",
        "search in all": "/search?q=10054",
        "a trace to choose": f"/compare?a={trace.removeprefix('/t/')}",
        "two traces": f"/compare?a={trace.removeprefix('/t/')}&b={KEY}",
        "collecting": f"/t/{COLLECTING}",
        "overview": trace,
        "trust": f"{trace}/trust",
        "processes": f"{trace}/processes",
        "process": f"{trace}/processes/{process}",
        "sockets": f"{trace}/sockets",
        "socket": f"{trace}/sockets/{reset}",
        "busy socket": f"{trace}/sockets/{busy}",
        "operations": f"{trace}/operations",
        "aborts": f"{trace}/aborts",
        "overlaps": f"{trace}/overlaps",
        "frees in flight": f"{trace}/in-flight-frees",
        "listeners": f"{trace}/listeners",
        "ports": f"{trace}/ports",
        "drops": f"{trace}/drops",
        "events": f"{trace}/events",
        "heap": f"{trace}/heap",
        "heap of a process": f"{trace}/heap/{process}",
        "allocation": f"{trace}/heap/{block[0]}/{block[1]}",
        "allocations": f"{trace}/allocations",
        "stacks": f"{trace}/stacks",
        "search": f"/search?q=10054&trace={trace.removeprefix('/t/')}",
        "help": "/help",
        "recording": "/help/recording",
        "architecture": "/help/architecture",
        "API": "/docs",
        "operation": f"{trace}/sockets/{operation['socket']}/{operation['operation']}",
        "overlap": f"{trace}/overlaps/{pair}",
        "free in flight": f"{trace}/in-flight-frees/{freed['socket']}/{freed['operation']}",
        "errors": f"{trace}/errors",
        "stalls": f"{trace}/stalls",
        "polls": f"{trace}/polls",
        "too small receives": f"{trace}/too-small-receives",
        "heaps": f"{trace}/heaps",
        "around": f"{trace}/around/{reset.partition('@')[2]}",
        "address": f"{trace}/address/{held['allocation'].partition(':')[2].partition('@')[0]}",
        "one heap": f"{trace}/heap/{process}/{held['heap']}@{held['first_ns']}",
        "calls": f"{trace}/heap/{process}/flame",
        "growth": f"{trace}/heap/{process}/growth",
        "two moments": f"{trace}/heap/{process}/compare",
        "stack": f"{trace}/stacks/{stack}",
        "notes": f"{trace}/notes",
        "questions": f"{trace}/answers",
        "sends": f"{trace}/sends",
        "filtered": f"{trace}/operations?kind=send&from=09:30:01&sort=-bytes&clock=utc",
        "nothing found": f"{trace}/sockets?port=1",
    }


REFUSED = {
    "no such trace": (404, "/t/ffffffffffff"),
    "no such page": (404, "/nothing"),
    "no such socket": (404, "{trace}/sockets/0xffff000000000001@1"),
    "no such filter": (400, "{trace}/sockets?colour=red"),
    "a value that is none": (400, "{trace}/operations?kind=jump"),
    "several of one name": (300, "{trace}/processes/8412"),
    "not yet": (503, f"/t/{COLLECTING}/sockets"),
}
"""Links that lead to no view, and the status of what is said instead."""


def open_page(page: Page, url: str, status: int = 200) -> None:
    response = page.goto(url, wait_until="networkidle")
    assert response is not None
    assert response.status == status, url


def every_page(context: BrowserContext, site: str, trace: str, places: dict[str, str]) -> Iterator[tuple[str, Page, Watched]]:
    """Each page with its name, all its charts drawn; closed when the next is asked for."""
    whole = {name: (200, path) for name, path in places.items()} | REFUSED
    for name, (status, path) in whole.items():
        page = context.new_page()
        watched = watch(page, site)
        open_page(page, site + path.format(trace=trace), status)
        for chart in page.locator("[data-chart]").all():
            chart.scroll_into_view_if_needed()
        expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0, timeout=20_000)
        # Of an answer that is no success the browser itself tells its console.
        watched.complaints = [said for said in watched.complaints if status == 200 or f"with a status of {status}" not in said]
        yield name, page, watched
        page.close()


def test_the_pages_that_are_looked_at_are_of_every_kind(sample: Imported, places: dict[str, str]) -> None:
    """What holds for all of these holds for every page that there is."""
    with served(sample.folder) as client:
        routes = {
            path: re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
            for path, methods in client.get("/openapi.json").json()["paths"].items()
            if "text/html" in methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        }
    del routes["/uploads/{upload}"]  # only there while a file is sent; the tests of sending look at it
    shown = [path.partition("?")[0] for path in places.values()]
    assert {path for path, pattern in routes.items() if not any(pattern.fullmatch(one) for one in shown)} == set()


@pytest.mark.folder("takes minutes; server/test_same_answers.py compares a server's pages with these, byte by byte")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (2560, "light")])
def test_every_page_is_quiet_and_fits(browser: Browser, site: str, trace: str, places: dict[str, str], width: int, scheme: str) -> None:
    """No console error, no request to another server, nothing wider than the window."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light")
    faults = []
    for name, page, watched in every_page(context, site, trace, places):
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if watched.complaints or watched.foreign or too_wide > 0:
            faults.append((name, watched.complaints, watched.foreign, too_wide))
    context.close()
    assert faults == []


@pytest.mark.parametrize("width", [1280, 1000, 700, 390])
def test_the_list_of_traces_fits_with_all_that_a_row_can_say(browser: Browser, tmp_path: Path, width: int) -> None:
    """Two to choose from, a key with a suffix, a long name, a file that is missing, losses and findings of high severity."""
    part = "0123456789ac-103a36"
    built_database(tmp_path, SMALL, key=KEY)
    folder = built_database(tmp_path, SMALL, key=part, name="a recording of the machine (heap, process client.exe).etl")
    folder.trace_path(part).unlink()
    with serving(tmp_path) as site:
        page = browser.new_page(viewport={"width": width, "height": 800})
        open_page(page, site + "/")
        assert page.get_by_text("its file is missing").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        label = page.locator("#traces thead tr").evaluate("row => getComputedStyle(row, '::before').content")
        assert label == ('"Sort by"' if width == 700 else "none")
        open_page(page, site + "/?group=program")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_on_a_small_screen_the_page_is_seen_in_the_navigation_and_numbers_have_names(
    browser: Browser, site: str, places: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    for name in ("ports", "stacks", "overview"):
        open_page(page, site + places[name])
        box = page.locator(".sections a[aria-current]").bounding_box()
        assert box is not None
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= 390, name
    open_page(page, site + places["ports"])
    bare = page.locator("table.list td.k-count, table.list td.k-bytes, table.list td.k-errors").evaluate_all(
        "cells => cells.filter(cell => !getComputedStyle(cell, '::before').content.includes(cell.dataset.label)).length"
    )
    assert bare == 0
    context.close()


@pytest.mark.folder("takes minutes; server/test_same_answers.py compares a server's pages with these, byte by byte")
def test_no_page_has_a_serious_accessibility_violation(browser: Browser, site: str, trace: str, places: dict[str, str]) -> None:
    faults = []
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True
        )
        for name, page, _ in every_page(context, site, trace, places):
            violations = Axe().run(page).response["violations"]
            faults += [
                (scheme, name, violation["id"], violation["nodes"][0]["html"][:120])
                for violation in violations
                if violation["impact"] in ("serious", "critical")
            ]
        context.close()
    assert faults == []


def test_what_is_not_here_says_so_and_offers_the_nearest(page: Page, site: str, trace: str, places: dict[str, str]) -> None:
    """A link from another copy of the trace."""
    socket = places["socket"].rpartition("/")[2]
    response = page.goto(f"{site}{trace}/sockets/{socket.partition('@')[0]}@59999999999")
    assert response is not None
    assert response.status == 404
    expect(page.locator("main")).to_contain_text("The nearest at this endpoint address")
    expect(page.locator(f"main a[href$='/sockets/{socket}']")).to_be_visible()
    missing = page.goto(f"{site}{trace}/sockets/0xffff000000000001@1")
    assert missing is not None
    assert missing.status == 404
    expect(page.locator("main a").first).to_be_visible()


def test_a_page_on_paper_is_dark_on_white_without_its_controls(browser: Browser, site: str, places: dict[str, str]) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.emulate_media(media="print", color_scheme="dark")
    for name in ("overview", "sockets", "socket"):
        open_page(page, site + places[name])
        for hidden in (".top .search", ".sections", ".share"):
            expect(page.locator(hidden).first).to_be_hidden()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        ground, text, raised = page.evaluate(
            """() => [getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.body).color,
                      getComputedStyle(document.documentElement).getPropertyValue("--raised").trim()]"""
        )
        assert (ground, text) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)"), name
        assert raised == "#f6f7f8", name
    assert page.evaluate("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    widths = [page.evaluate(f"dispatchEvent(new Event('{moment}')), {CHART_WIDTH}") for moment in ("beforeprint", "afterprint")]
    assert widths[0] < 700 < widths[1], "a chart is as wide as the paper while it is printed"
    assert len(page.pdf()) > 10_000
    context.close()


def test_from_a_finding_to_its_evidence_to_the_socket(page: Page, site: str, trace: str) -> None:
    """Why did this connection end, and who ended it?"""
    open_page(page, site + trace)
    page.get_by_role("link", name=re.compile(r"was aborted while it was open \(reason 4")).first.click()
    page.wait_for_load_state()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    link = re.compile(r"/sockets/0x[0-9a-f]+@\d+$")
    sockets = page.locator("main a[href*='/sockets/']")
    hrefs = sockets.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    sockets.nth(next(place for place, href in enumerate(hrefs) if link.search(href))).click()
    page.wait_for_url(link)
    expect(page.locator("main")).to_contain_text("transport")
    expect(page.locator("main")).to_contain_text("reason 4")


def test_a_zoomed_link_shows_the_same_view_in_another_browser(
    browser: Browser, context: BrowserContext, site: str, places: dict[str, str]
) -> None:
    """The address bar is the share link."""
    page = context.new_page()
    open_page(page, site + places["busy socket"])
    chart = page.locator(".js-plotly-plot .nsewdrag").first
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+"))
    expect(page.locator("[aria-busy]")).to_have_count(0)  # the tables answer for the new range
    row = page.locator("tr[data-link]").first
    expect(row).to_be_visible()
    row.locator("td").last.click()
    page.wait_for_url(re.compile("selected="))
    link = page.url

    def view(other: Page) -> tuple[list[float], list[str], list[str], list[dict[str, float]]]:
        """The axis, the rows, those that are marked, and the outline of the bar that is."""
        marked = other.wait_for_function(
            "() => (shapes => shapes.length && shapes)(document.querySelector('.js-plotly-plot').layout.shapes.filter(MARKED))".replace(
                "MARKED", "shape => shape.name === 'selected'"
            )
        ).json_value()
        return (
            other.evaluate("document.querySelector('.js-plotly-plot').layout.xaxis.range"),
            other.locator("tr[data-link]").evaluate_all("rows => rows.map(row => row.innerText)"),
            other.locator("tr[aria-selected=true]").all_inner_texts(),
            [{end: shape[end] for end in ("x0", "x1", "y0", "y1")} for shape in marked],
        )

    first = view(page)
    fresh = browser.new_context(viewport={"width": 1280, "height": 900})
    other = fresh.new_page()
    open_page(other, link)
    second = view(other)
    fresh.close()
    assert first[1:3] == second[1:3]
    assert first[2], "the row is marked"
    assert first[0] == pytest.approx(second[0])
    assert len(first[3]) == 1, "its bar is outlined"
    assert first[3][0] == pytest.approx(second[3][0])


@pytest.mark.parametrize("spelling", ["10054", "WSAECONNRESET", "0xC000020D", "STATUS_CONNECTION_RESET", "3221225997"])
def test_search_understands_every_spelling_of_an_error(page: Page, site: str, trace: str, spelling: str) -> None:
    open_page(page, site + trace)
    page.get_by_role("searchbox").fill(spelling)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/search"))
    expect(page.locator("main")).to_contain_text("STATUS_CONNECTION_RESET")
    expect(page.locator("main a[href*='/t/']").first).to_be_visible()


def test_the_keyboard_alone_leads_to_a_socket(page: Page, site: str, places: dict[str, str]) -> None:
    open_page(page, site + places["sockets"])
    for _ in range(120):
        page.keyboard.press("Tab")
        href = page.evaluate("document.activeElement?.getAttribute('href') ?? ''")
        if re.search(r"/sockets/0x", href):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is not visible"
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/sockets/0x[0-9a-f]+@\d+"))


def test_arrow_keys_go_through_the_rows_of_a_table(page: Page, site: str, places: dict[str, str]) -> None:
    open_page(page, site + places["sockets"])
    links = page.locator("table.list tbody tr td.keep a[href*='/sockets/0x']")
    links.first.focus()
    for key, row in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", links.count() - 1), ("Home", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        expect(links.nth(row)).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    href = links.first.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}{href}")
    first = page.locator("#operations tbody tr").first
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("selected="))
    expect(page.locator("#operations tr[aria-selected=true]")).to_have_count(1)


def test_a_whole_row_is_a_target_and_its_text_can_be_selected(page: Page, site: str, places: dict[str, str]) -> None:
    open_page(page, site + places["sockets"])
    row = page.locator("table.list tbody tr").nth(1)
    href = row.locator("td.keep a").first.get_attribute("href")
    text = row.locator("td", has_not=page.locator("a")).filter(has_text=re.compile(r"\d:\d")).first
    text.dblclick(position={"x": 14, "y": 10})
    assert str(page.evaluate("getSelection().toString()")).strip() != ""
    page.wait_for_timeout(400)  # longer than a row waits for a second click
    assert page.url == site + places["sockets"]
    page.evaluate("getSelection().empty()")
    with page.context.expect_page() as beside:
        text.click(button="middle")
    assert beside.value.url in ("about:blank", f"{site}{href}")
    beside.value.wait_for_url(f"{site}{href}")
    assert page.url == site + places["sockets"]
    text.click()
    page.wait_for_url(f"{site}{href}")


def test_tables_work_without_javascript(browser: Browser, site: str, places: dict[str, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in ("sockets", "operations", "aborts", "socket", "heap of a process", "allocations"):
        open_page(page, site + places[name])
        assert page.locator("main table tbody tr").count() > 0, name
    open_page(page, site + places["sockets"])
    page.get_by_role("link", name=re.compile("^Sent")).first.click()
    page.wait_for_url(re.compile("sort="))
    context.close()


def test_hostile_names_are_text(browser: Browser, import_hostile: Imported) -> None:
    with serving(import_hostile.folder.root) as base:
        context = browser.new_context()
        page = context.new_page()
        watched = watch(page, base)
        page.add_init_script("window.broken = false")
        open_page(page, f"{base}/t/{import_hostile.report.key}/processes")
        expect(page.locator("main")).to_contain_text("<img src=x onerror=window.broken=true>")
        assert page.evaluate("window.broken") is False
        assert watched.complaints == []
        context.close()


@pytest.fixture
def import_hostile(tmp_path: Path) -> Imported:
    from tests.build import Trace, afd, system
    from tests.build.imported import collect

    hostile = "<img src=x onerror=window.broken=true>"
    trace = Trace().cpu(
        0,
        system.process_start(at_us=1, pid=4120, image=hostile, command_line=f'"{hostile}"'),
        afd.create(at_us=10, pid=4120),
    )
    return collect(trace, tmp_path)

"""Sharing in a browser: a copied link, a note, a trace that is sent; one question of a user each."""

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from collector.sample import write_sample
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.browser import Watched, chromium_path, launch, serving, watch
from tests.build.database import BUILT_KEY, built_database
from tests.build.imported import Imported
from tests.test_app_socket_page import many_operations

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium_path() is None, reason="no Chromium on this machine"),
    # playwright's own event loop is still open when the interpreter collects it
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    assert path is not None
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over a folder without traces, which the tests fill."""
    folder = TraceFolder(tmp_path_factory.mktemp("site"))
    Catalog(folder)
    with serving(folder.root) as base:
        yield base


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sent") / "sample.etl"
    write_sample(path)
    return path


def opened(browser: Browser, base: str, **more: object) -> tuple[Page, Watched]:
    context = browser.new_context(**more)  # type: ignore[arg-type] # the options of a context
    context.set_default_timeout(20_000)
    page = context.new_page()
    return page, watch(page, base)


def busy_socket(sample: Imported) -> str:
    name = sample.rows("SELECT socket FROM v_operations GROUP BY socket ORDER BY count(*) DESC")[0][0]
    return f"/t/{sample.report.key}/sockets/{name}"


@pytest.mark.folder("a dashboard of a server takes no files")
def test_a_trace_is_dropped_on_the_start_page(browser: Browser, site: str, trace_file: Path) -> None:
    page, watched = opened(browser, site)
    page.goto(site)
    transfer = page.evaluate_handle(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(atob(bytes), c => c.charCodeAt(0))], "dropped.etl"));
            return transfer;
        }""",
        b64encode(trace_file.read_bytes()).decode(),
    )
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})
    page.wait_for_url(re.compile(r"/t/[0-9a-f]{12}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("dropped.etl")
    assert (watched.complaints, watched.foreign) == ([], [])
    page.context.close()


def test_progress_is_followed_in_place_until_the_trace_is_there(browser: Browser, tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    catalog = Catalog(folder)
    catalog.begin(BUILT_KEY, name="built.etl", path="built.etl", size_bytes=4_000_000, version="0.1.0")
    with locks.held(folder.lock_path(BUILT_KEY), "busy"), serving(folder.root) as base:
        page, watched = opened(browser, base)
        page.goto(f"{base}/t/{BUILT_KEY}")
        page.evaluate("document.body.dataset.mark = 'the same document'")
        catalog.progress(BUILT_KEY, bytes_done=1_000_000, bytes_total=4_000_000, counts={"sockets": 7})
        expect(page.locator(".sentence")).to_contain_text("1.00 MB of 4.00 MB read")
        expect(page.get_by_role("progressbar", name="Read")).to_have_js_property("value", 1_000_000)
        expect(page.locator("#known")).to_contain_text("Sockets so far7")
        assert page.evaluate("document.body.dataset.mark") == "the same document"
        built_database(folder.root, {})
        expect(page.get_by_role("heading", name="Findings")).to_be_visible()
        assert (watched.complaints, watched.foreign) == ([], [])
        page.context.close()


@pytest.mark.folder("a dashboard of a server takes no files")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_trace_is_sent_without_a_script(browser: Browser, site: str, trace_file: Path, width: int) -> None:
    page, _ = opened(browser, site, java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(site)
    page.get_by_label("An .etl file").set_input_files(trace_file)
    page.get_by_role("button", name="Collect it").click()
    page.wait_for_url(re.compile(r"/t/[0-9a-f]{12}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("sample.etl")
    page.context.close()


@pytest.mark.folder("a dashboard of a server takes no files")
def test_a_file_that_is_no_trace_is_refused_in_words(browser: Browser, site: str) -> None:
    page, _ = opened(browser, site)
    page.goto(site)
    page.get_by_label("An .etl file").set_input_files({"name": "notes.etl", "mimeType": "", "buffer": b"only some text" * 50})
    page.get_by_role("button", name="Collect it").click()
    expect(page.locator("main")).to_contain_text("could not be collected")
    expect(page.locator("main")).to_contain_text("notes.etl: ")
    violations = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert violations == []
    page.context.close()


def test_copy_link_gives_the_view_as_it_is_now(browser: Browser, sample: Imported) -> None:
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=base)
        path = busy_socket(sample)
        page.goto(f"{base}{path}?from=1000&to=50000000000", wait_until="networkidle")
        page.locator("tr[data-link]").first.locator("td").last.click()
        page.wait_for_url(re.compile("selected="))
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = str(page.evaluate("navigator.clipboard.readText()"))
        assert copied == page.url
        assert copied.startswith(f"{base}{path}?from=1000&to=50000000000&selected=")
        other, _ = opened(browser, base)
        other.goto(copied, wait_until="networkidle")
        expect(other.locator("#operations tr[aria-selected=true]")).to_have_count(1)
        assert watched.complaints == []
        page.context.close()
        other.context.close()


def drag(page: Page, chart: str, first: float, last: float) -> None:
    """Draw over a part of a chart, from left to right."""
    page.locator(f"#{chart}").scroll_into_view_if_needed()
    box = page.locator(f"#{chart} .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * first, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * last, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+"))
    expect(page.locator("[aria-busy]")).to_have_count(0)


def axis_of(page: Page, chart: str) -> list[float]:
    """The times that a chart shows, as it draws them."""
    page.wait_for_function("id => document.getElementById(id)?._fullLayout?.xaxis", arg=chart)
    return [float(value) for value in page.evaluate("id => document.getElementById(id).layout.xaxis.range", chart)]


def test_a_zoomed_filtered_and_marked_view_is_copied_and_seen_elsewhere(browser: Browser, sample: Imported) -> None:
    """Zoom, filter, select, copy the link, open it in a fresh browser: the same range, filter, rows and selection."""
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=base)
        page.goto(base + busy_socket(sample), wait_until="networkidle")
        drag(page, "socket-timeline", 0.3, 0.5)
        as_csv = page.locator("#forms a", has_text="operations as CSV").get_attribute("href")
        assert as_csv is not None
        assert re.search(r"from=\d+&to=\d+", as_csv), "what the page gives as data follows the range"
        page.get_by_label("Kind").select_option("completion")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url(re.compile("kind=completion"))
        page.locator("#operations tr[data-link]").nth(1).locator("td").last.click()
        page.wait_for_url(re.compile("selected="))
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = str(page.evaluate("navigator.clipboard.readText()"))

        other, _ = opened(browser, base, viewport={"width": 1280, "height": 900})
        other.goto(copied, wait_until="networkidle")

        assert {"from", "to", "kind", "selected"} <= set(re.findall(r"[?&](\w+)=", copied))
        assert axis_of(other, "socket-timeline") == pytest.approx(axis_of(page, "socket-timeline"))
        expect(other.get_by_label("Kind")).to_have_value("completion")
        for rows in ("#operations tbody tr", "#records tbody tr"):
            shown = [one.locator(rows).evaluate_all("rows => rows.map(row => row.innerText)") for one in (page, other)]
            assert shown[0] == shown[1]
            assert shown[0]
        marked = [one.locator("#operations tr[aria-selected=true]").get_attribute("data-link") for one in (page, other)]
        assert marked[0] == marked[1]
        assert watched.complaints == []
        page.context.close()
        other.context.close()


def click_bar(page: Page, link: str = "", chart: str = "socket-timeline") -> str:
    """Click on the bar of an operation, on the longest where none is named; gives its link."""
    place = page.evaluate(
        """([link, chart]) => {
            const plot = document.getElementById(chart);
            const bars = plot._fullData.filter(t => t.type === "bar" && t.orientation === "h" && t.meta?.selects);
            let best = null;
            for (const t of bars) for (let i = 0; i < t.x.length; i++)
                if (link ? t.customdata[i][0] === link : !best || t.x[i] > best.length) best = { t, i, length: t.x[i] };
            const axis = (kind, ref) => plot._fullLayout[kind + "axis" + (ref ?? kind).slice(1)];
            const x = axis("x", best.t.xaxis), y = axis("y", best.t.yaxis), box = plot.getBoundingClientRect();
            return { left: box.left + x._offset + x.l2p(best.t.base[best.i] + best.length / 2),
                     top: box.top + y._offset + y.l2p(best.t.y[best.i]), link: best.t.customdata[best.i][0] };
        }""",
        [link, chart],
    )
    page.mouse.move(place["left"], place["top"])
    page.mouse.click(place["left"], place["top"])
    page.wait_for_url(re.compile("selected="))
    return str(place["link"])


def rows_of(page: Page, *, marked: bool = False) -> list[list[str]]:
    """What the operations and the records say, row by row; or only those rows that are marked."""
    which = "tr[aria-selected=true]" if marked else "tbody tr"
    return [
        page.locator(f"{table} {which}").evaluate_all("rows => rows.map(row => row.innerText)") for table in ("#operations", "#records")
    ]


def test_a_bar_beyond_the_first_rows_brings_its_rows_and_its_link_shows_the_same(browser: Browser, tmp_path: Path) -> None:
    """A socket with 120 receives, of which the lists show 50 at first: its 90th and 95th are clicked, then the row of a record."""
    link, later = (f"recv:0x1f0000@{number * 500_000_000}" for number in (89, 94))
    with serving(built_database(tmp_path, many_operations(120, lasting_ns=400_000_000)).root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.goto(f"{base}/t/{BUILT_KEY}/sockets/0x10@0", wait_until="networkidle")
        page.evaluate("document.body.dataset.mark = 'the same document'")
        views = []
        for at in (link, later):
            page.locator("#socket-timeline").scroll_into_view_if_needed()
            axis_of(page, "socket-timeline")
            assert click_bar(page, at) == at
            row = page.locator("#operations tr[aria-selected=true]")
            expect(row).to_have_attribute("data-link", at)
            expect(page.locator("#records tr[aria-selected=true]")).to_have_count(2)
            expect(page.locator("#operations tbody tr")).to_have_count(51)
            expect(row).to_be_in_viewport()
            views.append(page.url)
        page.locator("#records tbody tr").nth(8).focus()
        page.locator("#records tbody tr").nth(8).locator("td").last.click()
        expect(page.locator("#records tr[aria-selected=true]")).to_have_count(2)
        expect(page.locator("#records tbody tr").nth(8)).to_have_attribute("aria-selected", "true")  # the list stays where it is
        expect(page.locator("#operations tr[aria-selected=true]")).to_have_count(1)
        shown, marked = rows_of(page), rows_of(page, marked=True)
        assert page.evaluate("document.body.dataset.mark") == "the same document"

        for with_script in (True, False):
            other, _ = opened(browser, base, viewport={"width": 1280, "height": 900}, java_script_enabled=with_script)
            other.goto(page.url, wait_until="networkidle")
            assert rows_of(other) == shown
            assert rows_of(other, marked=True) == marked
            other.goto(views[0], wait_until="networkidle")
            expect(other.locator("#operations tr[aria-selected=true]")).to_have_attribute("data-link", link)
            other.context.close()
        assert watched.complaints == []
        page.context.close()


def outline_of(page: Page) -> list[dict[str, object]]:
    """The outlines of what is selected in the drawn timeline, in its own units."""
    shapes: list[dict[str, object]] = page.evaluate(
        """() => (document.getElementById("socket-timeline").layout.shapes ?? []).filter((shape) => shape.name === "selected")
            .map(({ x0, x1, yref }) => ({ x0, x1, yref }))"""
    )
    return shapes


OUTLINED = "document.getElementById('socket-timeline').layout.shapes?.some(({ name, x0, x1 }) => name === 'selected' && x1 > x0)"


def test_a_row_is_outlined_in_the_band_that_stands_for_too_many_operations(browser: Browser, tmp_path: Path) -> None:
    """3,000 receives are drawn as how many were in flight; the one whose row is clicked is outlined there, also by its link alone."""
    link = "recv:0x1f0000@400000000"
    with serving(built_database(tmp_path, many_operations(3_000)).root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.goto(f"{base}/t/{BUILT_KEY}/sockets/0x10@0", wait_until="networkidle")
        page.locator("#socket-timeline").scroll_into_view_if_needed()
        axis_of(page, "socket-timeline")
        assert outline_of(page) == []
        row = page.locator(f"#operations tr[data-link='{link}']")
        row.locator("td").last.click()
        expect(row).to_have_attribute("aria-selected", "true")
        page.wait_for_function(OUTLINED)
        clicked = outline_of(page)
        assert [shape["yref"] for shape in clicked] == ["y2 domain"]
        unit = page.evaluate("Number(document.getElementById('socket-timeline').layout.meta.unit_ns)")
        assert (float(str(clicked[0]["x1"])) - float(str(clicked[0]["x0"]))) * unit == pytest.approx(2_500_000)

        other, _ = opened(browser, base, viewport={"width": 1280, "height": 900})
        other.goto(page.url, wait_until="networkidle")
        other.locator("#socket-timeline").scroll_into_view_if_needed()
        axis_of(other, "socket-timeline")
        other.wait_for_function(OUTLINED)
        assert outline_of(other) == clicked
        other.context.close()
        assert watched.complaints == []
        page.context.close()


def test_the_steps_beside_a_chart_move_it_in_place(browser: Browser, sample: Imported) -> None:
    """Later, with the mouse and with the keyboard; a double click shows all of it; back leads back."""
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        path = base + busy_socket(sample)
        page.goto(f"{path}?from=10000000000&to=14000000000", wait_until="networkidle")
        page.evaluate("document.body.dataset.mark = 'the same document'")
        page.locator("#socket-timeline").scroll_into_view_if_needed()
        before = axis_of(page, "socket-timeline")
        later = page.get_by_role("link", name="later")

        later.click()
        page.wait_for_url(f"{path}?from=12000000000&to=16000000000")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert axis_of(page, "socket-timeline") == pytest.approx([end + (before[1] - before[0]) / 2 for end in before])
        later.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(f"{path}?from=14000000000&to=18000000000")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(later).to_be_focused()

        box = page.locator("#socket-timeline .nsewdrag").first.bounding_box()
        assert box is not None
        page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + 3)
        page.wait_for_url(path)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator("#range")).to_contain_text("all of it")
        whole = axis_of(page, "socket-timeline")
        assert whole[1] - whole[0] > 5 * (before[1] - before[0])
        page.go_back()
        page.wait_for_url(f"{path}?from=14000000000&to=18000000000")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert axis_of(page, "socket-timeline")[1] < whole[1]
        assert page.evaluate("document.body.dataset.mark") == "the same document"
        assert watched.complaints == []
        page.context.close()


def test_a_click_on_a_bar_marks_its_row(browser: Browser, sample: Imported) -> None:
    ((quiet,),) = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns LIMIT 1")
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.goto(f"{base}/t/{sample.report.key}/sockets/{quiet}", wait_until="networkidle")
        page.locator("#socket-timeline").scroll_into_view_if_needed()
        axis_of(page, "socket-timeline")
        link = click_bar(page)
        expect(page.locator("#operations tr[aria-selected=true]")).to_have_count(1)
        assert page.locator("#operations tr[aria-selected=true]").get_attribute("data-link") == link
        assert watched.complaints == []
        page.context.close()


def test_both_ends_of_a_local_connection_share_their_time(browser: Browser, sample: Imported) -> None:
    ((socket,),) = sample.rows("SELECT socket FROM v_sockets WHERE local = '127.0.0.1:9010' AND remote IS NOT NULL LIMIT 1")
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.goto(f"{base}/t/{sample.report.key}/sockets/{socket}", wait_until="networkidle")
        peer = str(page.locator("h3", has_text="The other end").locator("a").get_attribute("href")).rpartition("/")[2]
        page.locator("#peer-timeline").scroll_into_view_if_needed()
        whole = axis_of(page, "peer-timeline")
        assert whole == axis_of(page, "socket-timeline")
        drag(page, "socket-timeline", 0.2, 0.4)
        closer = axis_of(page, "peer-timeline")
        assert closer == axis_of(page, "socket-timeline")
        assert closer != whole
        page.locator("#peer-timeline").scroll_into_view_if_needed()
        link = click_bar(page, chart="peer-timeline")  # its row is on the page of the other end
        page.wait_for_url(re.compile(rf"/sockets/{peer}\?from=\d+&to=\d+&selected="))
        expect(page.locator("#operations tr[aria-selected=true]")).to_have_attribute("data-link", link)
        assert watched.complaints == []
        page.context.close()


def test_a_window_of_the_heap_is_drawn_and_answered_for(browser: Browser, sample: Imported) -> None:
    ((process,),) = sample.rows("SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC LIMIT 1")
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, viewport={"width": 1280, "height": 900})
        page.goto(f"{base}/t/{sample.report.key}/heap/{process}", wait_until="networkidle")
        axis_of(page, "heap-timeline")
        before = page.locator("#window-part").inner_text()
        drag(page, "heap-timeline", 0.3, 0.5)
        assert page.locator("#window-part").inner_text() != before
        link = page.locator("#window-part").get_by_role("link", name="Allocations of this range").get_attribute("href")
        assert link is not None
        assert set(re.findall(r"(?:from|to)=\d+", page.url)) <= set(re.findall(r"(?:from|to)=\d+", link))
        assert watched.complaints == []
        page.context.close()


def test_an_explanation_is_copied_as_text(browser: Browser, sample: Imported) -> None:
    with serving(sample.folder.root) as base:
        page, _ = opened(browser, base)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=base)
        page.goto(base + busy_socket(sample), wait_until="networkidle")
        page.get_by_role("button", name="Copy as text").click()
        page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('This TCP socket'))")
        copied = str(page.evaluate("navigator.clipboard.readText()"))
        assert "[" not in copied
        for claim in page.locator("#explanation .claim").all_inner_texts():
            assert claim.replace("Possible, not certain.", "").strip() in copied
        page.context.close()


@pytest.mark.parametrize("with_script", [True, False])
def test_a_note_is_written_found_and_deleted(browser: Browser, sample: Imported, with_script: bool) -> None:
    with serving(sample.folder.root) as base:
        page, watched = opened(browser, base, java_script_enabled=with_script)
        page.goto(base + busy_socket(sample), wait_until="networkidle")
        page.get_by_text("Write a note").click()
        if with_script:  # a click on a record takes its moment
            page.locator("#records tr[data-ns]").first.locator("td").last.click()
            assert page.get_by_role("textbox", name="Moment").input_value() == page.locator("#records tr[data-ns]").first.get_attribute(
                "data-ns"
            )
        page.get_by_label("Note, plain text").fill("The peer gave up first.\n<b>bold</b>")
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Keep the note").click()
        page.wait_for_url(re.compile("#notes$"))
        expect(page.locator(".note-text")).to_have_text("The peer gave up first.\n<b>bold</b>")
        page.goto(f"{base}/t/{sample.report.key}", wait_until="networkidle")
        page.locator("ol.notes a").first.click()
        page.wait_for_url(re.compile("/sockets/"))
        page.locator(".note-delete summary").click()
        page.get_by_role("button", name="Delete this note").click()
        expect(page.locator(".note-text")).to_have_count(0)
        assert watched.complaints == []
        page.context.close()

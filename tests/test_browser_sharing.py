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
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.browser import Watched, chromium_path, launch, serving, watch
from tests.build.imported import Imported

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


@pytest.mark.parametrize("width", [390, 1280])
def test_a_trace_is_sent_without_a_script(browser: Browser, site: str, trace_file: Path, width: int) -> None:
    page, _ = opened(browser, site, java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(site)
    page.get_by_label("An .etl file").set_input_files(trace_file)
    page.get_by_role("button", name="Collect it").click()
    page.wait_for_url(re.compile(r"/t/[0-9a-f]{12}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("sample.etl")
    page.context.close()


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
        expect(other.locator("tr[aria-selected=true]")).to_have_count(1)
        assert watched.complaints == []
        page.context.close()
        other.context.close()


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

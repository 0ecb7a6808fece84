"""Reports: the words of the page in one file that asks for nothing, whatever a trace says."""

import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.charts.drawing import drawing
from app.charts.drawing_axes import axes, scales
from app.charts.heap_timeline import heap_timeline_figure
from app.cli import main
from app.notes import MAX_AUTHOR, MAX_TEXT
from app.queries.heap_timeline import HeapTimeline
from app.report import MOST_BYTES as MOST_REPORT
from app.report import Drawings, report
from collector.store.engine import TraceFolder
from tests.build.answers import text_of
from tests.build.database import built_database
from tests.build.hostile import HOSTILE_TEXT, hostile_rows, is_free_of_marks
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

MS = 1_000_000
SOCKET = "0xffff9a0c2a001010@10000000"
PAGES = (f"sockets/{SOCKET}", "heap/4242@0", "heap/4242@0/0x1e0000@0")
MOST_BYTES = 3 << 20
ACTIVE = {"script", "form", "a", "img", "link", "iframe", "object", "embed", "base", "button", "input", "use", "image"}


class Elements(HTMLParser):
    """The elements of a document, and how they are nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def is_inert(html: str) -> bool:
    """Whether a document has nothing that runs, is asked for, sent or followed."""
    elements = Elements(html)
    assert elements.open == []
    for tag, attrs in elements.found:
        assert tag not in ("script", "form", "a", "img", "link", "iframe", "object", "embed", "base", "button", "input", "use", "image"), (
            tag
        )
        assert not [name for name in attrs if name.startswith("on") or name in ("href", "src", "style", "action", "xlink:href", "data")]
        for value in attrs.values():
            assert not re.search(r"url\((?!#)", value or ""), value
    (policy,) = [attrs["content"] for tag, attrs in elements.found if attrs.get("http-equiv") == "Content-Security-Policy"]
    return policy is not None and policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    made = built_database(tmp_path_factory.mktemp("report"), SMALL, key=KEY, name="small.etl")
    with sqlite3.connect(made.catalog_path) as db:
        db.execute(
            "INSERT INTO note (key, object, author, text, created_utc) VALUES (?, ?, 'Ada', ?, '2025-01-01T00:00:00Z')",
            (KEY, f"sockets/{SOCKET}", "the <b>peer</b> hung up"),
        )
    db.close()
    return made


@pytest.mark.parametrize("page", PAGES)
def test_a_report_says_what_its_page_says_and_asks_for_nothing(folder: TraceFolder, page: str) -> None:
    with served(folder) as client:
        html = client.get(f"/t/{KEY}/{page}", headers={"Accept": "text/html"}).text
        answer = client.get(f"/t/{KEY}/{page}?format=report")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"].endswith('.html"')
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert is_inert(answer.text)
    said = text_of(answer.text)
    (title,) = re.findall(r"<h1>(.*?)</h1>", html)
    assert text_of(title) in said
    (sentence,) = re.findall(r'<p class="sentence">(.*?)</p>', html)
    assert text_of(sentence) in said
    for cell in re.findall(r'<td class="k-[^"]*"[^>]*>([^<]+)</td>', html):
        assert text_of(cell) in said
    assert f"/t/{KEY}/{page}" in said
    assert KEY in said
    assert "Drag" not in said
    assert "script" not in said
    assert answer.text.count("<svg") == 2 * html.count("data-chart")


def test_a_report_brings_its_notes_and_its_limits_along(folder: TraceFolder) -> None:
    with served(folder) as client:
        html = client.get(f"/t/{KEY}/sockets/{SOCKET}?format=report").text
    assert "the &lt;b&gt;peer&lt;/b&gt; hung up" in html
    said = text_of(html)
    assert "Ada" in said
    assert "Write a note" not in said
    assert "Data was lost in this range. The session lost 3 events." in said


def test_a_range_is_the_ranges_report(folder: TraceFolder) -> None:
    with served(folder) as client:
        said = text_of(client.get(f"/t/{KEY}/sockets/{SOCKET}?from=1000000000&to=1200000000&format=report").text)
    assert "+1.000 000 s to +1.200 000 s" in said
    assert f"/t/{KEY}/sockets/{SOCKET}?from=1000000000&to=1200000000" in said


def test_a_link_to_the_report_stands_where_there_is_one(folder: TraceFolder) -> None:
    with served(folder) as client:
        for page in PAGES:
            assert 'format=report">Report</a>' in client.get(f"/t/{KEY}/{page}", headers={"Accept": "text/html"}).text
        assert "format=report" not in client.get(f"/t/{KEY}/trust", headers={"Accept": "text/html"}).text
        refused = client.get(f"/t/{KEY}/sockets?format=report")
        missing = client.get(f"/t/{KEY}/sockets/0x1@1?format=report")
    assert (refused.status_code, "only the pages of one socket and of one heap" in refused.text) == (400, True)
    assert (missing.status_code, "No socket 0x1@1 is in this trace." in missing.text) == (404, True)


def test_hostile_text_is_text_in_a_report(tmp_path: Path) -> None:
    folder = built_database(tmp_path, hostile_rows(), key=KEY, name=HOSTILE_TEXT)
    with sqlite3.connect(folder.catalog_path) as db:
        db.execute(
            "INSERT INTO note (key, object, author, text, created_utc) VALUES (?, ?, ?, ?, '2025-01-01T00:00:00Z')",
            (KEY, f"sockets/{SOCKET}", HOSTILE_TEXT, HOSTILE_TEXT),
        )
    db.close()
    with served(folder) as client:
        for page in PAGES:
            html = client.get(f"/t/{KEY}/{page}?format=report").text
            assert is_inert(html)
            assert "&lt;script&gt;alert(1)" in html
            assert is_free_of_marks(html)
            assert "49 {" not in html


def test_a_report_of_the_busiest_socket_is_bounded(sample: Imported) -> None:
    (link,) = sample.rows("SELECT socket FROM v_operations GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")[0]
    with served(sample.folder) as client:
        answer = client.get(f"/t/{sample.report.key}/sockets/{link}?format=report")
    assert len(answer.content) < MOST_BYTES
    assert is_inert(answer.text)
    assert "The first 1 000 in this range." in text_of(answer.text)
    assert "Next records" not in answer.text


def busiest_rows() -> dict[str, list[dict[str, object]]]:
    """The hostile rows, with more operations, records and overlaps of one socket than a page shows."""
    rows = hostile_rows()
    socket, second = ({"socket_n": 1, "posted_ns": 12_000 * MS} | row for row in rows["operation"][1:3])
    rows["operation"] += [{**(socket, second)[n % 2], "posted_ns": (12_000 + n) * MS, "buffer": 0x1000 * n} for n in range(1_500)]
    rows["socket_event"] += [{**rows["socket_event"][1], "t_ns": (12_000 + n) * MS, "seq": 1_000 + n} for n in range(2_500)]
    rows["overlap"] += [{**rows["overlap"][0], "t_ns": (12_000 + n) * MS} for n in range(300)]
    return rows


def test_the_largest_report_is_bounded_and_says_what_it_left_out(tmp_path: Path) -> None:
    """As many notes as a page shows, of as many characters as a note has, which all become longer in HTML."""
    folder = built_database(tmp_path, busiest_rows(), key=KEY, name=HOSTILE_TEXT)

    def sizes(text: str, number: int) -> tuple[str, int, str]:
        with sqlite3.connect(folder.catalog_path) as db:
            row = (KEY, f"sockets/{SOCKET}", HOSTILE_TEXT[:MAX_AUTHOR], text)
            sql = "INSERT INTO note (key, object, author, text, created_utc) VALUES (?, ?, ?, ?, '2025-01-01T00:00:00Z')"
            db.executemany(sql, [row] * number)
        db.close()
        with served(folder) as client:
            html = client.get(f"/t/{KEY}/sockets/{SOCKET}?format=report").text
        assert is_inert(html)
        (left_out,) = re.findall(r"left out, as a report has at most 4[^<]* of them: ([\d,]+)\.", html) or ("",)
        pictures = sum(map(len, re.findall(r"(?s)<svg.*?</svg>|<style>.*?</style>", html)))
        return left_out, len(html.encode()) - pictures, html

    left_out, size, html = sizes("a word", 1)
    assert left_out == ""
    assert html.count("<tr") > 1_000
    left_out, size, html = sizes("&" * MAX_TEXT, 500)
    assert 100 < int(left_out) < 500
    assert MOST_REPORT < size < MOST_REPORT + 100_000
    assert len(html.encode()) < MOST_REPORT + (2 << 20)


def test_every_kind_of_page_of_the_sample_becomes_a_report(sample: Imported) -> None:
    sockets = [row[0] for row in sample.rows("SELECT socket FROM v_sockets WHERE rowid IS NULL OR true LIMIT 25")]
    sockets += [row[0] for row in sample.rows("SELECT DISTINCT first_socket FROM v_overlaps")]
    sockets += [row[0] for row in sample.rows("SELECT DISTINCT socket FROM v_aborts LIMIT 10")]
    heaps = [f"{process}/{heap}" for process, heap in sample.rows("SELECT process, heap FROM v_heaps")]
    with served(sample.folder) as client:
        for page in [f"sockets/{one}" for one in sockets] + [f"heap/{one}" for one in heaps]:
            answer = client.get(f"/t/{sample.report.key}/{page}?format=report", follow_redirects=True)
            assert answer.status_code == 200, page
            assert is_inert(answer.text), page
            assert len(answer.content) < MOST_BYTES


# ---------------------------------------------------------------------------------------------------- the picture

TIMELINE = {
    "data": [
        {"type": "bar", "orientation": "h", "base": [0, 5], "x": [5, 0], "y": [0, 0], "width": 1,
         "marker": {"color": ["var(--send)", "red"]},
         "customdata": [["link", "a &lt;b&gt;<br>c"], ["link", "d"]], "hovertemplate": "%{customdata[1]}<extra></extra>", "yaxis": "y"},
        {"type": "scatter", "mode": "lines", "x": [0, 5, 10], "y": [0, 4, 2], "yaxis": "y2",
         "line": {"shape": "hv", "color": "var(--text)"}},
        {"type": "scatter", "mode": "markers+text", "x": [10], "y": [2], "text": ["peak &amp; more"], "textposition": "middle left",
         "marker": {"symbol": "diamond-open", "size": 10, "color": "var(--error)"}, "hovertext": ["here"], "yaxis": "y2"},
    ],
    "layout": {"height": 162, "margin": {"l": 100, "r": 16, "t": 16, "b": 46},
               "xaxis": {"range": [0, 10], "title": {"text": "seconds"}},
               "yaxis": {"domain": [0.5, 1], "range": [-0.5, 0.5], "tickvals": [0], "ticktext": ["life"]},
               "yaxis2": {"domain": [0, 0.5], "rangemode": "tozero", "nticks": 2, "showgrid": True}},
}  # fmt: skip


def test_values_lie_where_their_axes_say() -> None:
    x, ys = scales(TIMELINE, 1116)
    assert [x.at(value) for value in (0, 5, 10)] == [100, 600, 1100]
    assert [ys["y"].at(value) for value in (-0.5, 0.5)] == [66, 16]
    assert ys["y2"].at(0) == 116
    assert ys["y2"].low == 0
    assert 4 < ys["y2"].high < 4.5


def test_a_picture_has_bars_steps_marks_and_words() -> None:
    svg = str(drawing(TIMELINE, "t", "what it <shows>", width=1116, kind="wide"))
    assert 'aria-label="what it &lt;shows&gt;"' in svg
    assert '<rect x="100.0" y="16.0" width="500.0" height="50.0" fill="var(--send)"' in svg
    assert "<title>a &lt;b&gt;\nc</title>" in svg
    assert 'width="0.5"' in svg, "what took no time is seen"
    (line,) = re.findall(r'<path d="([^"]*)" fill="none" stroke="var\(--text\)"', svg)
    assert len(re.findall("[ML]", line)) == 5, "a step is two strokes"
    assert 'text-anchor="end">peak &amp; more</text>' in svg
    assert "<title>here</title>" in svg
    assert ">life</text>" in svg


@pytest.mark.parametrize(("low", "high"), [(0, 1e-6), (-3, 1e15), (0.1, 0.1000001), (1e9, 1e9 + 3)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    layout = TIMELINE["layout"] | {"xaxis": {"range": [low, high], "title": {"text": "t"}}}  # type: ignore[operator]
    x, ys = scales({"data": TIMELINE["data"], "layout": layout}, 380)
    ticks = re.findall(r'<text x="([\d.]+)" y="133" text-anchor="middle"', "".join(axes(layout, x, ys, 380)))
    assert 1 <= len(ticks) <= 12
    assert all(x.start - 1 <= float(tick) <= x.end + 1 for tick in ticks)


def test_an_empty_heap_has_a_picture() -> None:
    figure = heap_timeline_figure(HeapTimeline(0, 10 * MS, 0, 0, 0, (), (), None))
    drawings = Drawings()
    assert drawings.place(figure, "h", "nothing") == '<div data-drawing="0"></div>'
    (made,) = drawings.made
    assert made.count("<svg") == 2
    assert "nan" not in made.lower()


def test_what_is_not_named_stays_behind(folder: TraceFolder) -> None:
    from app.page import Page, TraceHead

    page = Page(title="T", sentence="S", trace=TraceHead(KEY, "n", "complete", None, 1, (), 0))
    html = (
        '<html><head><title>x</title></head><body><main class="a" onclick="x" style="y"><a href="/x">kept</a><marquee>gone</marquee>'
        '<p class="pager">some <a href="/y">more</a></p><svg onload="z"><p>gone too</p></svg>'
        '<input value="gone"><br>&lt;i&gt;</main></body></html>'
    )
    made = report(html, page, Drawings(), "/t/x")
    assert '<main class="a">kept<p class="pager">some </p><br>&lt;i&gt;</main>' in made
    assert "gone" not in made


# ---------------------------------------------------------------------------------------------------- the verb


def test_the_verb_writes_what_the_page_gives(folder: TraceFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(["report", KEY, *words, "--database", str(folder.root)])
        said = capsys.readouterr()
        return status, said.out, said.err

    assert run("--socket", SOCKET, "-o", str(tmp_path))[0] == 0
    (made,) = tmp_path.iterdir()
    assert made.name == f"{KEY}-sockets-0xffff9a0c2a001010-10000000.html"
    with served(folder) as client:
        assert made.read_bytes() == client.get(f"/t/{KEY}/sockets/{SOCKET}?format=report").content
    status, _, err = run("--socket", SOCKET, "-o", str(made))
    assert (status, "is there already" in err) == (1, True)
    assert run("--socket", "0xffff9a0c2a001010@500000000", "-o", str(made), "--force")[0] == 0, "any moment of its life names it"
    assert run("--process", "4242@0", "--heap", "0x1e0000@0", "--from", "1s", "--to", "2s", "-o", str(tmp_path / "h.html"))[0] == 0
    assert "+1.000 000 s to +2.000 000 s" in text_of((tmp_path / "h.html").read_text(encoding="utf-8"))
    before = folder.catalog_path.read_bytes()
    for target in (folder.catalog_path, folder.traces_path / "other.html"):
        status, _, err = run("--socket", SOCKET, "-o", str(target), "--force")
        assert (status, "this is within the database itself" in err) == (1, True)
    assert folder.catalog_path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--socket", "0x12@5"), 1, "No socket 0x12@5 is in this trace. Nothing was written."),
        (("--socket", "what"), 2, "'what' is not a socket"),
        (("--process", "../../x"), 2, "'../../x' is no link"),
        (("--process", "7777@0"), 1, "Nothing was written."),
        (
            ("--process", "4242@0", "--from", "2000s"),
            1,
            "000 s, and from=2000000000000 begins after its end: name a time within it. Nothing was written.",
        ),
        (("--process", "4242"), 1, "2 processes had the process id 4242"),
        (("--process", "4242@0", "--heap", "0x99@0"), 1, "Nothing was written."),
        (("--socket", SOCKET, "--heap", "0x99"), 2, "--heap is one of a process"),
        (("--socket", SOCKET, "--from", "2s", "--to", "1s"), 2, "--to is before --from"),
        ((), 2, "one of the arguments --socket --process is required"),
        (("--socket", SOCKET, "-o", "missing/x.html"), 1, "cannot be written"),
    ],
)
def test_what_the_verb_cannot_do_is_said(
    folder: TraceFolder,
    words: tuple[str, ...],
    status: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", KEY, *words, "--database", str(folder.root)]) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_masked_report_names_nobody(sample: Imported, tmp_path: Path) -> None:
    link, remote, image = sample.rows(
        "SELECT s.socket, s.remote, p.image FROM v_sockets s JOIN v_processes p USING (process) WHERE s.remote LIKE '192.0.2.%' LIMIT 1"
    )[0]
    before = sorted(path.name for path in sample.folder.root.iterdir())
    for name, words in (("plain.html", []), ("masked.html", ["--mask"])):
        verb = ["report", sample.report.key, "--socket", link, *words, "-o", str(tmp_path / name), "--database", str(sample.folder.root)]
        assert main(verb) == 0
    plain, masked = ((tmp_path / name).read_text(encoding="utf-8") for name in ("plain.html", "masked.html"))
    for secret in (remote.rpartition(":")[0], image):
        assert secret in plain
        assert secret not in masked
    assert link in masked
    assert sorted(path.name for path in sample.folder.root.iterdir()) == before

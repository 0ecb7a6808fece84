"""Labels, and pruning: which traces go when a folder is to stay small, and what is kept all the same."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli import main
from collector.retention import Candidate, parse_age, parse_amount, plan
from collector.store import locks
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.stores import open_store
from tests.build.database import built_database
from tests.build.served import served

NOW = datetime(2025, 7, 1, tzinfo=UTC)
KEYS = ("aaaa00000001", "bbbb00000002", "cccc00000003", "dddd00000004")
Run = Callable[..., tuple[int, str, str]]


def trace(key: str, days: int, size: int = 10, *, label: str | None = None, notes: int = 0, is_busy: bool = False) -> Candidate:
    return Candidate(key, f"{key}.etl", label, NOW - timedelta(days=days), size, notes, is_busy)


def keys(choices: tuple[object, ...]) -> str:
    return "".join(choice.trace.key for choice in choices)  # type: ignore[attr-defined]  # choices


def test_what_is_older_goes_and_what_is_said_something_about_stays() -> None:
    traces = [trace("a", 31), trace("b", 40, label="good"), trace("c", 50, notes=1), trace("d", 60, is_busy=True), trace("e", 29)]
    found = plan(traces, now=NOW, older_than=timedelta(days=30), keep_bytes=None)
    assert keys(found.goes) == "a"
    assert {one.trace.key: one.why for one in found.spared} == {
        "b": "it has the label “good”", "c": "it has 1 note", "d": "it is being collected",
    }  # fmt: skip
    assert (found.bytes_before, found.bytes_after) == (50, 40)
    assert keys(plan(traces, now=NOW, older_than=timedelta(days=30), keep_bytes=None, also_labelled=True).goes) == "cba"


def test_the_oldest_go_until_the_rest_is_small_enough() -> None:
    traces = [trace("a", 5, 10), trace("b", 4, 20), trace("c", 3, 0), trace("d", 2, 30), trace("e", 1, 40)]
    gone = {bound: keys(plan(traces, now=NOW, older_than=None, keep_bytes=bound).goes) for bound in (100, 99, 90, 89, 70, 69, 40, 0)}
    assert gone == {100: "", 99: "a", 90: "a", 89: "ab", 70: "ab", 69: "abd", 40: "abd", 0: "abde"}
    both = plan(traces, now=NOW, older_than=timedelta(days=4, hours=12), keep_bytes=70)
    assert keys(both.goes) == "ab"


ANY = st.builds(
    trace, st.uuids().map(str), st.integers(0, 90), st.integers(0, 50), label=st.sampled_from([None, "x"]), notes=st.integers(0, 1),
    is_busy=st.booleans(),
)  # fmt: skip


@given(st.lists(ANY, max_size=12), st.integers(0, 200), st.booleans())
def test_no_more_goes_than_has_to(traces: list[Candidate], bound: int, also: bool) -> None:
    found = plan(traces, now=NOW, older_than=None, keep_bytes=bound, also_labelled=also)
    gone = {choice.trace.key for choice in found.goes}
    assert found.bytes_after == sum(one.size_bytes for one in traces if one.key not in gone)
    assert not any(choice.trace.is_busy or (not also and (choice.trace.label or choice.trace.notes)) for choice in found.goes)
    if found.goes:
        assert found.bytes_after + found.goes[-1].trace.size_bytes > bound, "the last one had to go"
    if found.bytes_after > bound:
        free = [one for one in traces if not one.is_busy and (also or not (one.label or one.notes)) and one.size_bytes]
        assert {one.key for one in free} == gone, "all that may go has gone"


@pytest.mark.parametrize(
    ("text", "days"), [("30d", 30), ("2w", 14), ("12h", 0.5), (" 1 D ", 1), ("0d", 0), ("30", None), ("d", None), ("-1d", None),
                       ("999999w", None), ("1m", None)]
)  # fmt: skip
def test_ages(text: str, days: float | None) -> None:
    if days is None:
        with pytest.raises(ValueError, match="an age such as"):
            parse_age(text)
    else:
        assert parse_age(text) == timedelta(days=days)


@pytest.mark.parametrize(
    ("text", "number"), [("20GB", 20 * 10**9), ("1.5 GiB", 3 << 29), ("0", 0), ("7kb", 7000), ("much", None), ("1.5", None), ("-1", None),
                         ("1e9", None)]
)  # fmt: skip
def test_amounts(text: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(ValueError, match="an amount such as"):
            parse_amount(text)
    else:
        assert parse_amount(text) == number


@pytest.fixture
def folder(tmp_path: Path) -> TraceFolder:
    """Four traces, the first one collected 40 days ago, each next one 10 days later."""
    for number, key in enumerate(KEYS):
        folder = built_database(tmp_path, {}, key=key, name=f"run{number}.etl")
        when = (datetime.now(UTC) - timedelta(days=40 - 10 * number)).isoformat(timespec="seconds")
        with closing(sqlite3.connect(folder.catalog_path)) as db:
            db.execute("UPDATE trace_entry SET collected_utc = ?, finished_utc = ? WHERE key = ?", [when, when, key])
            db.commit()
    return folder


@pytest.fixture
def run(folder: TraceFolder, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        status = main([*words, "--database", str(folder.root)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def left(folder: TraceFolder) -> list[str]:
    """First letters of the traces that are there, by their files and by the catalog."""
    store = open_store(folder.root)
    listed = sorted(entry.key for entry in Catalog(store).entries())
    assert listed == store.trace_keys()
    return [key[0] for key in listed]


def test_a_label_is_set_shown_found_by_and_cleared(run: Run, folder: TraceFolder) -> None:
    assert run("label", "run0.etl") == (0, "aaaa00000001  run0.etl has no label.\n", "")
    assert run("label", "run0.etl", "before", "the\x1b fix") == (0, "aaaa00000001  run0.etl is labelled “before the fix”.\n", "")
    assert run("label", "aaaa") == (0, "before the fix\n", "")
    assert run("label", "before the fix", "again")[0] == 0
    assert "again" in run("list")[1]
    assert run("label", "again", "x" * 201)[0] == 1
    status, _, err = run("label", "again", "new", "--clear")
    assert (status, err) == (2, "sockscope label: --clear takes the label away; give either words or --clear.\n")
    assert run("label", "again", "--clear") == (0, "aaaa00000001  run0.etl has no label now.\n", "")
    assert Catalog(open_store(folder.root)).find("aaaa").label is None
    assert run("label", "nothing")[0] == 1


def test_a_dry_run_says_what_would_go_and_deletes_nothing(run: Run, folder: TraceFolder) -> None:
    status, out, err = run("prune", "--older-than", "25d", "--dry-run")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.fullmatch(r"would go: aaaa00000001  run0\.etl, [\d,]+ bytes: collected (39|40) days ago", lines[0])
    assert lines[1].startswith("would go: bbbb00000002")
    assert re.fullmatch(r"2 would go, [\d,]+ of [\d,]+ bytes would stay\.", lines[2])
    assert left(folder) == ["a", "b", "c", "d"]


def test_old_traces_go_and_labelled_and_noted_ones_stay(run: Run, folder: TraceFolder) -> None:
    run("label", "aaaa", "keep me")
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        db.execute("INSERT INTO note (key, object, text, created_utc) VALUES ('bbbb00000002', '', 'look', '2025-01-01')")
        db.commit()
    status, out, _ = run("prune", "--older-than", "15d")
    assert status == 0
    assert "stays: aaaa00000001  keep me" in out
    assert "it has the label “keep me”" in out
    assert "it has 1 note\n" in out
    assert "Deleted 1;" in out
    assert left(folder) == ["a", "b", "d"]
    assert run("prune", "--older-than", "15d", "--also-labelled")[0] == 0
    assert left(folder) == ["d"]
    assert run("prune", "--older-than", "15d")[1].startswith("No trace goes;")


def test_the_oldest_go_until_the_files_are_small_enough(run: Run, folder: TraceFolder) -> None:
    size = open_store(folder.root).size_of(KEYS[0])
    status, out, _ = run("prune", "--keep-bytes", str(2 * size + size // 2))
    assert (status, "the oldest of what is too much" in out) == (0, True)
    assert left(folder) == ["c", "d"]
    run("label", "cccc", "stays")
    run("label", "dddd", "stays")
    status, _, err = run("prune", "--keep-bytes", "0")
    assert status == 1
    assert re.fullmatch(r"sockscope prune: [\d,]+ bytes are left, more than the 0 that may stay\.\n", err)
    assert left(folder) == ["c", "d"]


def test_a_trace_that_is_being_collected_is_left_alone(run: Run, folder: TraceFolder) -> None:
    with locks.held(folder.lock_path(KEYS[0]), "busy"):
        status, out, _ = run("prune", "--older-than", "1d", "--also-labelled")
    assert status == 0
    assert "stays: aaaa00000001" in out
    assert left(folder) == ["a"]


@pytest.mark.folder("a file that the system keeps")
def test_what_cannot_be_deleted_is_named_and_the_others_go(run: Run, folder: TraceFolder) -> None:
    whole = folder.trace_path(KEYS[0])
    whole.rename(folder.traces_path / "aside")
    whole.mkdir()  # a folder cannot be unlinked, whoever asks
    (whole / "held").touch()
    status, out, err = run("prune", "--older-than", "1d")
    assert status == 1
    assert "aaaa00000001.db: this file cannot be deleted" in err
    assert "Deleted 3;" in out
    assert [entry.key for entry in Catalog(folder).entries()] == [KEYS[0]], "its entry stays for as long as its file"


def test_a_trace_that_a_dashboard_has_open_can_go(run: Run, folder: TraceFolder) -> None:
    with served(folder) as client:
        assert client.get(f"/t/{KEYS[0]}").status_code == 200
        assert run("prune", "--older-than", "35d")[0] == 0
        assert client.get(f"/t/{KEYS[0]}").status_code == 404
        assert client.get("/?format=json").json()["listing"]["total"] == 3


def test_a_time_that_cannot_be_read_is_no_age(run: Run, folder: TraceFolder) -> None:
    with closing(sqlite3.connect(folder.catalog_path)) as db:
        db.execute("UPDATE trace_entry SET finished_utc = 'long ago' WHERE key = ?", [KEYS[0]])
        db.execute("UPDATE trace_entry SET finished_utc = '2001-01-01T00:00:00' WHERE key = ?", [KEYS[1]])
        db.commit()
    assert run("prune", "--older-than", "1000d")[0] == 0
    assert left(folder) == ["a", "c", "d"]


def test_wrong_usage_is_said(run: Run) -> None:
    assert run("prune")[::2] == (2, "sockscope prune: say what may go, with --older-than 30d or --keep-bytes 20GB.\n")
    for words in (("--older-than", "soon"), ("--keep-bytes", "much")):
        assert run("prune", *words)[0] == 2


def test_a_label_is_set_by_the_form_of_the_overview(folder: TraceFolder) -> None:
    key = KEYS[1]
    with served(folder) as client:
        page = client.get(f"/t/{key}", headers={"Accept": "text/html"}).text
        token = re.findall(r'/label">\s*<input type="hidden" name="form_token" value="([0-9a-f]+)"', page)[0]
        refused = client.post(f"/t/{key}/label", data={"label": "x"})
        assert refused.status_code == 400
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        assert client.post(f"/t/{key}/label", data={"label": "x", "form_token": token}, headers=elsewhere).status_code == 403
        assert client.post(f"/t/{key}/label", data={"label": "y" * 201, "form_token": token}).status_code == 400
        answer = client.post(f"/t/{key}/label", data={"label": "  <b>bad</b>\n run ", "form_token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/t/{key}")
        assert client.get(f"/t/{key}?format=json").json()["label"]["text"] == "<b>bad</b> run"
        assert "&lt;b&gt;bad&lt;/b&gt; run" in client.get(f"/t/{key}", headers={"Accept": "text/html"}).text
        assert client.get("/?text=%3Cb%3E&format=json").json()["listing"]["rows"][0]["key"] == key
        client.post(f"/t/{key}/label", data={"label": " ", "form_token": token})
        assert client.get(f"/t/{key}?format=json").json()["label"]["text"] is None

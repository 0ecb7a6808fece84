"""Judging a traced test run: what fails it, what cannot be shown, and the reports."""

import ast
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from app.cli import main
from collector import gate
from collector.model import finding, findings_memory
from collector.sample import write_sample
from tests.build import Trace, afd, heap

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = main(["collect", *words, "--database", str(tmp_path / "database")])
        except SystemExit as ended:  # of argparse
            status = int(ended.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), *afd.closed(at_us=90)).write(tmp_path / "good.etl"))


@pytest.fixture
def bad(tmp_path: Path) -> str:
    """An aborted connection."""
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.abort(at_us=500, reason=4))
    return str(trace.write(tmp_path / "bad.etl"))


def _texts(node: ast.AST) -> Iterator[str]:
    return (leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str))


def test_all_kinds_of_findings_can_be_named() -> None:
    kinds: set[str] = set()
    for path in Path(finding.__file__).parent.glob("findings_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                kinds |= set(_texts(node.args[0]))
    kinds |= {*findings_memory._BUFFERS, *findings_memory._HEAP_ERRORS}
    assert kinds == set(gate.KINDS)
    assert set(gate.NAMES.values()) <= set(gate.KINDS)
    assert gate._MOST_GROUPS == finding.MAX_PER_RULE


def test_what_occurs_fails_and_is_named_with_its_page(run: Run, tmp_path: Path) -> None:
    write_sample(tmp_path / "sample.etl")

    status, out, _ = run(str(tmp_path / "sample.etl"), "--fail-on", "overlap,freed_in_flight", "--fail-on", "any=100000")

    assert status == 4
    key = out.split()[0]
    assert re.search(rf"^FAILED  buffer_overlap: [1-9]\d*, allowed 0\n +.* posted a .* – /t/{key}/.+\n", out, re.M)
    assert re.search(rf"^FAILED  freed_in_flight: [1-9]\d*, allowed 0\n +.* freed memory .* – /t/{key}/.+\n", out, re.M)
    assert not re.search(r"^FAILED  any", out, re.M)


@pytest.mark.parametrize(("checks", "status"), [("abort=1", 0), ("abort", 4), ("abort=1,abort=0", 4), ("any", 4), ("any=99,leak", 3)])
def test_how_often_it_may_occur(run: Run, bad: str, checks: str, status: int) -> None:
    assert run(bad, "--fail-on", checks)[0] == status


def test_a_run_without_findings_passes(run: Run, good: str) -> None:
    status, out, _ = run(good, "--fail-on", "overlap,abort")

    assert status == 0
    assert "passed  buffer_overlap: 0, allowed 0" in out


def test_what_was_not_recorded_has_not_passed(run: Run, good: str, tmp_path: Path) -> None:
    blocks = str(Trace().cpu(0, heap.create(at_us=5), heap.alloc(at_us=10), heap.free(at_us=20)).write(tmp_path / "heap.etl"))

    assert run(good, "--fail-on", "freed_in_flight")[:1] == (3,)
    status, out, _ = run(blocks, "--fail-on", "abort,double_free")

    assert status == 3
    assert "unsure  aborted: 0, allowed 0; no socket was recorded" in out
    assert "passed  double_free" in out


def test_a_trace_with_losses_proves_nothing_but_what_is_there(run: Run, tmp_path: Path) -> None:
    lossy = Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.abort(at_us=500)).lose_events(3).write(tmp_path / "lossy.etl")

    assert run(str(lossy), "--fail-on", "abort")[0] == 4
    status, out, _ = run(str(lossy), "--fail-on", "overlap")

    assert status == 3
    assert "unsure  buffer_overlap: 0, allowed 0; records were lost" in out


def test_junit(run: Run, bad: str, good: str, tmp_path: Path) -> None:
    report, broken = tmp_path / "report.xml", tmp_path / "broken.etl"
    broken.write_bytes(b"no trace")

    status, _, _ = run(bad, good, str(broken), "--fail-on", "abort,leak", "--junit", str(report))

    assert status == 1
    suites = ET.parse(report).getroot()
    assert (suites.tag, suites.get("tests"), suites.get("failures"), suites.get("skipped"), suites.get("errors")) == (
        "testsuites", "5", "1", "2", "1",
    )  # fmt: skip
    first, second, third = suites
    assert [test.get("name") for test in first] == ["aborted", "held_growth"]
    failure = first[0].find("failure")
    assert failure is not None
    assert "was aborted while it was open" in (failure.text or "")
    assert [len(test) for test in second] == [0, 1]
    assert second[1][0].tag == "skipped"
    assert third[0][0].tag == "error"
    assert "broken.etl" in (third[0][0].get("message") or "")
    assert {path.name for path in tmp_path.iterdir()} - {"database"} == {"report.xml", "broken.etl", "bad.etl", "good.etl"}


def test_more_groups_than_a_rule_names_are_not_taken_for_few() -> None:
    from collector.stages import ImportReport
    from collector.store.copies import FindingCopy

    found = [FindingCopy("aborted", "high", 1, f"app{n}\x1b[0m\x00 aborted", "aborts") for n in range(20)]
    report = ImportReport("0123456789ab", "t\x01.etl", {"socket": 1, "allocation": 1}, [], found, 1.0)

    (verdict,) = gate.judged(report, gate.parse_checks("abort=25"))

    assert verdict.has_failed
    assert verdict.line() == "FAILED  aborted: at least 20, allowed 25"
    assert "\\x1b" in ET.fromstring(gate.junit_xml([verdict]))[0][0][0].text  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fail-on", "nonsense"), "'nonsense' is no kind of finding; there are any, overlap"),
        (("--fail-on", "abort=x"), "how often abort may occur is a number from 0"),
        (("--fail-on", "abort=-1"), "is a number from 0"),
        (("--fail-on", ""), "is no kind of finding"),
        (("--junit", "x.xml"), "name what shall fail"),
        (("--fail-on", "abort", "--follow"), "leave --follow and --watch out"),
    ],
)
def test_wrong_usage(run: Run, good: str, words: tuple[str, ...], says: str) -> None:
    status, _, err = run(good, *words)

    assert status == 2
    assert says in err


def test_a_report_that_cannot_be_written(run: Run, good: str, tmp_path: Path) -> None:
    status, out, err = run(good, "--fail-on", "abort", "--junit", str(tmp_path / "missing" / "report.xml"))

    assert status == 1
    assert "passed  aborted" in out
    assert "report.xml: the verdicts cannot be written (No such file or directory). The traces are stored." in err


def test_a_report_takes_the_place_of_reports_alone(run: Run, good: str, tmp_path: Path) -> None:
    mine, report = tmp_path / "mine.txt", tmp_path / "report.xml"
    mine.write_text("words")
    content = Path(good).read_bytes()
    for name, says in ((good, "this is a trace to collect"), (str(mine), "is no report"), ("", "names the file")):
        status, _, err = run(good, "--fail-on", "abort", "--junit", name)
        assert (status, says in err) == (2, True), err
    assert (Path(good).read_bytes(), mine.read_text()) == (content, "words")
    for _ in range(2):
        assert run(good, "--fail-on", "abort", "--junit", str(report))[0] == 0
    assert run(good, "--fail-on", "abort", "--junit", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()


def test_files_that_cannot_be_joined_are_an_error_of_the_report(run: Run, good: str, tmp_path: Path) -> None:
    notes, report = tmp_path / "notes.txt", tmp_path / "report.xml"
    notes.write_text("words")

    status, _, _ = run(good, str(notes), "--as", "one", "--fail-on", "abort", "--junit", str(report))

    assert status == 1
    (error,) = ET.parse(report).getroot().iter("error")
    assert "notes.txt" in (error.get("message") or "")


def test_files_of_one_recording_are_judged_as_one(run: Run, tmp_path: Path) -> None:
    connection = (afd.opened(at_us=10), afd.connected(at_us=50), afd.abort(at_us=500))
    recorded = (connection, (heap.create(at_us=5), heap.alloc(at_us=10)))
    files = [str(Trace().cpu(0, *events).write(tmp_path / f"{n}.etl")) for n, events in enumerate(recorded)]

    status, out, _ = run(*files, "--as", "one", "--fail-on", "abort")

    assert (status, out.count("FAILED")) == (4, 1)

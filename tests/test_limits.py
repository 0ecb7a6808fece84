"""Storing a part of a trace: what is asked for, what stays, that it is as in the whole, and that links still lead there."""

from pathlib import Path
from typing import Any

import pytest

from collector import cli
from collector.errors import NothingLeft
from collector.limits import Limits, Who, parse_moment, parse_who
from collector.pipeline import ImportReport, import_trace
from collector.sample import write_sample
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build.served import served

SECOND = 1_000_000_000
TABLES = ("process", "socket", "operation", "allocation", "overlap", "abort", "socket_event", "heap", "resize", "io_finding", "peer")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1500000", 1_500_000),
        ("1.5 s", 1_500_000_000),
        ("-20ms", -20_000_000),
        ("0.25us", 250),
        ("2min", 120 * SECOND),
        ("-0.5s", -SECOND // 2),
    ],
)
def test_moments(text: str, ns: int) -> None:
    assert parse_moment(text) == ns


@pytest.mark.parametrize("text", ["", "1.5", "soon", "1h", "1e9", "99999999999999999999", "1.0000000001s"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time|longer than any trace"):
        parse_moment(text)


def test_processes_as_users_name_them() -> None:
    assert parse_who("4120") == Who("4120", pid=4120)
    assert parse_who("4120@-5") == Who("4120@-5", pid=4120, ns=-5)
    assert parse_who("WebProxy.exe") == Who("WebProxy.exe", image="webproxy.exe")
    for text in ("", "a@b", "4294967296", "12@"):
        with pytest.raises(ValueError, match="is not a process"):
            parse_who(text)


def test_each_part_has_a_key_and_words_of_its_own() -> None:
    limits = Limits((parse_who("4120"),), SECOND // 2, 2 * SECOND, ("heap",))
    assert limits.words == "heap, process 4120, from 0.5 s, to 2 s"
    assert len({limits.suffix, Limits(from_ns=1).suffix, Limits(to_ns=1).suffix, Limits().suffix}) == 4
    assert Limits().suffix == "" and not Limits()  # noqa: PT018 - one statement about nothing


class Collected:
    """The sample trace, whole and in parts, in one folder."""

    def __init__(self, root: Path) -> None:
        self.file = root / "sample.etl"
        write_sample(self.file)
        self.folder = TraceFolder(root / "database")
        self.whole = self.collect(Limits())

    def collect(self, limits: Limits) -> ImportReport:
        with Source.open(self.file) as source:
            return import_trace(source, self.folder, limits=limits)

    def rows(self, report: ImportReport, table: str) -> dict[Any, tuple[Any, ...]]:
        """Rows of a table by their keys."""
        with self.folder.trace(report.key).connect() as db:
            rows = [tuple(row) for row in db.exec_driver_sql(f'SELECT * FROM "{table}"')]
        return {row[1:3] if table == "peer" else row[1]: row for row in rows}

    def value(self, report: ImportReport, query: str) -> Any:
        """One value of a trace's file, of any type."""
        with self.folder.trace(report.key).connect() as db:
            return db.exec_driver_sql(query).scalar()


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    return Collected(tmp_path_factory.mktemp("limits"))


def busiest(collected: Collected) -> tuple[int, int]:
    """Row number and pid of the process with most operations."""
    with collected.folder.trace(collected.whole.key).connect() as db:
        row = db.exec_driver_sql(
            "SELECT p.n, p.pid FROM operation o JOIN socket s ON s.n = o.socket_n JOIN process p ON p.n = s.process_n"
            " GROUP BY p.n ORDER BY count(*) DESC LIMIT 1"
        ).one()
    return int(row[0]), int(row[1])


def same_but_for_references(part: dict[Any, tuple[Any, ...]], whole: dict[Any, tuple[Any, ...]]) -> bool:
    """Whether each row is the whole's, save that what names a row that is gone is NULL."""
    return all(all(a in (b, None) for a, b in zip(row, whole[key], strict=True)) for key, row in part.items())


def test_one_process(collected: Collected) -> None:
    n, pid = busiest(collected)
    part = collected.collect(Limits((Who(str(pid), pid=pid),)))

    assert part.key.startswith(f"{collected.whole.key}-")
    assert part.name == f"sample.etl (process {pid})"
    whole = {table: collected.rows(collected.whole, table) for table in TABLES}
    kept = {table: collected.rows(part, table) for table in TABLES}
    for table in TABLES:
        assert same_but_for_references(kept[table], whole[table])
    of_process = f"SELECT group_concat(n) FROM socket WHERE process_n = {n}"
    assert set(kept["socket"]) == set(map(int, collected.value(collected.whole, of_process).split(",")))
    assert set(kept["operation"]) == {number for number, row in whole["operation"].items() if row[2] in kept["socket"]}
    assert {row[1] for row in kept["process"].values()} == {n}
    assert part.counts["operation"] == len(kept["operation"]) < len(whole["operation"])
    rolled = "SELECT sum(posted) FROM socket_rollup WHERE scope = 'trace' AND level = 36"
    assert collected.value(part, rolled) == collected.value(part, "SELECT count(*) FROM operation WHERE posted_ns IS NOT NULL")


def test_a_range_of_time(collected: Collected) -> None:
    low, high = 2 * SECOND, 4 * SECOND
    part = collected.collect(Limits(from_ns=low, to_ns=high))

    whole, kept = ({table: collected.rows(report, table) for table in TABLES} for report in (collected.whole, part))
    for table in TABLES:
        assert same_but_for_references(kept[table], whole[table])
    end = f"max(coalesce(end_ns, completed_ns, {1 << 62}), coalesce(completed_ns, end_ns, {1 << 62}))"
    touching = f"coalesce(posted_ns, completed_ns) <= {high} AND {end} >= {low}"
    assert len(kept["operation"]) == collected.value(collected.whole, f"SELECT count(*) FROM operation WHERE {touching}")
    assert 0 < len(kept["operation"]) < len(whole["operation"])
    assert 0 < len(kept["allocation"]) <= len(whole["allocation"])
    assert set(kept["process"]) == set(whole["process"])
    assert collected.value(part, f"SELECT count(*) FROM socket_event WHERE t_ns NOT BETWEEN {low} AND {high}") == 0
    assert collected.folder.trace_path(part.key).stat().st_size < collected.folder.trace_path(collected.whole.key).stat().st_size


@pytest.mark.parametrize(("kind", "there", "absent"), [("sockets", "operation", "allocation"), ("heap", "allocation", "operation")])
def test_only_one_kind(collected: Collected, kind: str, there: str, absent: str) -> None:
    part = collected.collect(Limits(only=(kind,)))

    assert len(collected.rows(part, there)) == len(collected.rows(collected.whole, there)) > 0
    assert collected.rows(part, absent) == {}
    assert "stored_in_part" in {problem.kind for problem in part.problems}


def test_a_part_answers_links_to_the_whole_and_says_that_it_is_one(collected: Collected, tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path)
    _, pid = busiest(collected)
    with Source.open(collected.file) as source:
        part = import_trace(source, folder, limits=Limits((Who(str(pid), pid=pid),)))
    with collected.folder.trace(collected.whole.key).connect() as db:
        endpoint, ns = db.exec_driver_sql(
            "SELECT s.endpoint, coalesce(s.created_ns, s.first_ns) FROM socket s JOIN process p ON p.n = s.process_n WHERE p.pid = ?",
            (pid,),
        ).first() or (0, 0)
    with served(folder) as client:
        page = client.get(f"/t/{collected.whole.key}/sockets/0x{endpoint & (1 << 64) - 1:x}@{ns}", follow_redirects=True)
        trust = client.get(f"/t/{part.key}/trust")
    assert (page.status_code, page.url.path.startswith(f"/t/{part.key}/sockets/")) == (200, True)
    assert f"Only a part of this trace was stored: process {pid}." in trust.text


def test_a_process_that_is_not_there(collected: Collected) -> None:
    before = collected.folder.trace_keys()
    with pytest.raises(NothingLeft, match=r"No process of this trace is 'nobody.exe', so nothing was stored\. There are, among others, "):
        collected.collect(Limits((parse_who("nobody.exe"),)))
    assert collected.folder.trace_keys() == before
    assert {entry.key for entry in Catalog(collected.folder).entries()} >= set(before)
    assert not [entry for entry in Catalog(collected.folder).entries() if entry.state == "interrupted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "soon"], "'soon' is not a time"),
        (["--from", "2s", "--to", "1s"], "--to is before --from"),
        (["--process", "a@b"], "'a@b' is not a process"),
        (["--only", "registry"], "invalid choice: 'registry'"),
    ],
)
def test_wrong_limits_are_refused(collected: Collected, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert cli.main(["collect", str(collected.file), "--database", str(collected.folder.root), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        (Limits(from_ns=500 * SECOND), "nothing of it is from 500 s, so"),
        (Limits(to_ns=-5 * SECOND), "nothing of it is to -5 s, so"),
        (Limits(from_ns=400 * SECOND, to_ns=500 * SECOND), "nothing of it is from 400 s, to 500 s, so"),
    ],
)
def test_a_range_outside_of_the_trace_stores_nothing_and_says_how_long_it_is(collected: Collected, limits: Limits, part: str) -> None:
    end = collected.value(collected.whole, "SELECT end_ns FROM trace")
    with pytest.raises(NothingLeft, match=part) as raised:
        collected.collect(limits)
    assert f" to {end / SECOND:g}"[:5] in str(raised.value)
    assert list(collected.folder.trace_keys()).count(collected.whole.key + limits.suffix) == 0
    assert [entry.key for entry in Catalog(collected.folder).entries() if entry.key.endswith(limits.suffix)] == []


def test_a_range_that_touches_an_end_of_the_trace_is_stored() -> None:
    Limits(from_ns=7, to_ns=7).check(-3, 7)
    Limits(from_ns=-9, to_ns=-3).check(-3, 7)
    Limits().check(0, 0)
    with pytest.raises(NothingLeft):
        Limits(from_ns=8).check(-3, 7)
    with pytest.raises(NothingLeft):
        Limits(to_ns=-4).check(-3, 7)

"""Watching a folder: files are taken once they rest, each content once, and bad ones are named once."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import cli
from collector import watch
from collector.errors import SourceError
from collector.etlwriter import Compression
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.watch import SETTLE_SECONDS, UNFINISHED_TIMES, settled_files
from tests.build import Trace, afd
from tests.build.growing import Time


def a_trace(**session: object) -> bytes:
    return Trace(**session).cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512)).bytes()  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "drop"
    place.mkdir()
    return place


def taken(place: Path, *steps: Callable[[], object], looks: int = 60) -> list[tuple[str, float]]:
    """Name of each file taken and when, with one step at each look."""
    todo = iter(steps)

    def play() -> Iterator[Callable[[], None]]:
        for step in todo:
            yield lambda step=step: (step(), None)[1]  # type: ignore[misc]  # binds the step now

    time = Time(play())
    return [(path.name, time.now_s) for path in settled_files(place, lambda: time.waits >= looks, wait=time.wait, now=time.now)]


def nothing() -> None:
    """Lets time pass."""


def test_a_file_is_taken_once_it_rests(place: Path) -> None:
    (place / "b.etl").write_bytes(a_trace())
    (place / "A.ETL").write_bytes(a_trace())
    (place / "notes.txt").write_text("no trace")
    (place / "below.etl").mkdir()
    assert taken(place) == [("A.ETL", SETTLE_SECONDS), ("b.etl", SETTLE_SECONDS)]


def test_a_file_that_is_still_copied_is_waited_for(place: Path) -> None:
    whole, path = a_trace(), place / "copied.etl"

    def more(size: int) -> Callable[[], object]:
        return lambda: path.write_bytes(whole[:size])

    found = taken(place, more(100), more(200), nothing, nothing, more(300), nothing, more(len(whole)))
    assert found == [("copied.etl", 7 + SETTLE_SECONDS)]


def test_a_session_that_has_not_ended_is_waited_for_longer(place: Path) -> None:
    (place / "quiet.etl").write_bytes(a_trace(is_closed=False))
    assert taken(place) == [("quiet.etl", SETTLE_SECONDS * UNFINISHED_TIMES)]


def test_a_file_that_changed_is_taken_again(place: Path) -> None:
    path = place / "again.etl"
    path.write_bytes(a_trace())
    found = taken(place, *[nothing] * 9, lambda: path.write_bytes(a_trace(compression=Compression.XPRESS)))
    assert [name for name, _ in found] == ["again.etl", "again.etl"]


def test_the_folder_may_go_away(place: Path) -> None:
    said: list[str] = []
    time = Time(iter([nothing, lambda: place.rename(place.with_name("gone")), nothing, lambda: place.with_name("gone").rename(place)]))  # type: ignore[list-item]
    (place / "one.etl").write_bytes(a_trace())
    files = settled_files(place, lambda: time.waits >= 20, on_trouble=said.append, wait=time.wait, now=time.now)
    assert [path.name for path in files] == ["one.etl"]
    assert len(said) == 1
    assert "tried again" in said[0]


def test_there_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such folder to watch"):
        next(settled_files(tmp_path / "none", lambda: False))


# ----------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def watched(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], tuple[int, str, str]]:
    """Runs `collect --watch` until a number of looks are over."""

    def run() -> tuple[int, str, str]:
        time = Time(iter(()))
        real = settled_files

        def bounded(place: Path, should_stop: object, **options: object) -> Iterator[Path]:
            return real(place, lambda: time.waits >= 8, wait=time.wait, now=time.now, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(watch, "settled_files", bounded)
        status = cli.main(["collect", "--watch", str(place), "--database", str(tmp_path / "db")])
        monkeypatch.setattr(watch, "settled_files", real)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_nothing_is_collected_twice(place: Path, tmp_path: Path, watched: Callable[[], tuple[int, str, str]]) -> None:
    (place / "one.etl").write_bytes(a_trace())
    (place / "copy of one.etl").write_bytes(a_trace())
    status, out, err = watched()
    assert status == 0
    assert len(out.splitlines()) == 1
    assert err.splitlines()[-1] == "1 stored; 1 there already"

    status, out, err = watched()  # another run of the command
    assert (status, out) == (0, "")
    assert err.splitlines()[-1] == "2 there already"
    assert len(Catalog(TraceFolder(tmp_path / "db")).entries()) == 1


def test_a_bad_file_is_named_once_and_the_others_are_taken(place: Path, watched: Callable[[], tuple[int, str, str]]) -> None:
    (place / "bad.etl").write_bytes(b"PK" + bytes(500))
    (place / "empty.etl").write_bytes(b"")
    (place / "good.etl").write_bytes(a_trace())
    status, out, err = watched()
    assert status == 1
    assert "good.etl" in out
    assert err.count("bad.etl") == 1
    assert err.count("empty.etl") == 1
    assert err.splitlines()[-1] == "1 stored; 2 not stored"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", ".", "x.etl"], "--watch takes a folder and nothing else"),
        (["--watch", ".", "--follow"], "--watch takes a folder and nothing else"),
        (["--watch", ".", "--name", "x"], "--name fits one file only"),
        (["--follow", "a.etl", "b.etl"], "--follow takes one file"),
        (["--follow", "a.etl", "--keep"], "--keep does not go with --follow"),
        (["a.etl", "--for", "5s"], "--for and --idle go with --follow"),
        (["a.etl", "--idle", "5s"], "--for and --idle go with --follow"),
        (["a.etl", "--settle", "5s"], "--settle goes with --watch"),
        (["--follow", "a.etl", "--for=-5s"], "is before now"),
        ([], "name an .etl file or a package with one, or a folder with --watch"),
    ],
)
def test_wrong_usage(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", *words, "--database", str(tmp_path / "db")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "db").exists()


def test_a_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", "--watch", str(tmp_path / "none"), "--database", str(tmp_path / "db")]) == 1
    assert f"{tmp_path / 'none'}: there is no such folder to watch.{os.linesep}" in capsys.readouterr().err

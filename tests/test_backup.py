"""Backing a folder up while it is used, and going on with the back-up."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from app.cli import main
from collector.errors import CollectCancelled, StoreError, StoreFull, StoreLocked
from collector.store import locks
from collector.store.backup import back_up
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.tables import note
from tests.build import Trace, afd
from tests.build.served import served

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(list(words))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> TraceFolder:
    """Two traces, one with a note."""
    folder = TraceFolder(tmp_path / "database")
    for n in (1, 2):
        file = Trace().cpu(0, afd.opened(at_us=10 * n), afd.connected(at_us=50)).write(tmp_path / f"{n}.etl")
        assert run("collect", str(file), "--database", str(folder.root))[0] == 0
    key = folder.trace_keys()[0]
    with Catalog(folder).engine.begin() as connection:
        connection.execute(note.insert().values(key=key, object="", text="look here", author="Ada", created_utc="2026-01-01T00:00:00"))
    return folder


def never() -> bool:
    return False


def bytes_in(folder: TraceFolder) -> dict[str, bytes]:
    return {key: folder.trace_path(key).read_bytes() for key in folder.trace_keys()}


def test_a_back_up_is_a_folder_like_any_other(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    target = tmp_path / "backup"

    status, out, err = run("backup", str(target), "--database", str(folder.root))

    assert (status, err) == (0, "")
    assert out == f"{target}: 2 traces copied, 0 there already.\n"
    assert bytes_in(TraceFolder(target)) == bytes_in(folder)
    assert sorted(path.name for path in target.iterdir()) == ["backup-of.txt", "catalog.db", "traces"]
    with served(TraceFolder(target)) as client:
        key = folder.trace_keys()[0]
        assert "look here" in client.get(f"/t/{key}/notes").text
        assert client.get("/?format=json").status_code == 200
    pages = []
    for one in (folder, TraceFolder(target)):
        with served(one) as client:
            pages.append([client.get(f"/t/{key}/sockets?format=json").json() for key in one.trace_keys()])
    assert pages[0] == pages[1]


def test_the_next_time_only_what_is_new_is_copied(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    inodes = {key: target.trace_path(key).stat().st_ino for key in target.trace_keys()}
    file = Trace().cpu(0, afd.opened(at_us=77)).write(tmp_path / "3.etl")
    run("collect", str(file), "--database", str(folder.root))
    with Catalog(folder).engine.begin() as connection:
        connection.execute(note.insert().values(key=folder.trace_keys()[1], object="", text="later", created_utc="2026-01-02T00:00:00"))

    done = back_up(folder, target, never)

    assert (len(done.copied), len(done.there_already), done.left_out, done.deleted) == (1, 2, (), ())
    assert {key: target.trace_path(key).stat().st_ino for key in inodes} == inodes
    with target.catalog().connect() as connection:
        assert set(connection.execute(select(note.c.text)).scalars()) == {"look here", "later"}
    assert back_up(folder, target, never).copied == ()


def test_a_trace_that_was_collected_again_is_copied_again(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    run("collect", str(tmp_path / "1.etl"), "--database", str(folder.root))

    done = back_up(folder, target, never)

    assert (len(done.copied), len(done.there_already)) == (1, 1)
    assert bytes_in(target) == bytes_in(folder)


@pytest.mark.parametrize(("option", "left", "word"), [((), 2, "kept"), (("--drop-deleted",), 1, "removed")])
def test_what_was_deleted_stays_unless_asked_for(
    folder: TraceFolder, tmp_path: Path, run: Run, option: tuple[str, ...], left: int, word: str
) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    run("delete", folder.trace_keys()[0], "--database", str(folder.root))

    status, out, _ = run("backup", str(target.root), "--database", str(folder.root), *option)

    assert status == 0
    assert f"1 deleted from the database, {word}" in out
    assert len(target.trace_keys()) == left


def test_what_is_not_whole_is_left_out_and_named(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    key = folder.trace_keys()[0]
    folder.trace_path(key).unlink()

    status, out, err = run("backup", str(tmp_path / "backup"), "--database", str(folder.root))

    assert status == 3
    assert "1 trace copied" in out
    assert f"{key}: left out" in err


def test_a_dashboard_that_writes_meanwhile_does_not_matter(folder: TraceFolder, tmp_path: Path) -> None:
    with Catalog(folder).engine.begin() as connection:  # a note on its way: its transaction holds the write lock
        connection.execute(note.insert().values(key=folder.trace_keys()[0], object="", text="half", created_utc="2026-01-02T00:00:00"))
        back_up(folder, TraceFolder(tmp_path / "backup"), never)

    with TraceFolder(tmp_path / "backup").catalog().connect() as connection:
        assert connection.execute(select(note.c.text)).scalars().all() == ["look here"]


@pytest.mark.parametrize("place", ["database", "database/traces", "database/inner", "."])
def test_a_back_up_is_not_in_the_folder_itself(folder: TraceFolder, tmp_path: Path, place: str) -> None:
    with pytest.raises(StoreError, match="a folder of its own"):
        back_up(folder, TraceFolder(tmp_path / place), never)


def test_a_back_up_that_is_shown_or_written_is_left_alone(folder: TraceFolder, tmp_path: Path) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    with locks.held(target.root / "backup.lock", "busy"), pytest.raises(StoreLocked, match="another process writes this back-up"):
        back_up(folder, target, never)
    (target.root / "catalog.db-wal").touch()
    with pytest.raises(StoreError, match="a program has this back-up open"):
        back_up(folder, target, never)


def test_cancelling_leaves_whole_files(folder: TraceFolder, tmp_path: Path) -> None:
    target, looks = TraceFolder(tmp_path / "backup"), iter([False, True])

    with pytest.raises(CollectCancelled, match="copied until now are whole"):
        back_up(folder, target, lambda: next(looks, True))

    assert sorted(path.name for path in target.root.iterdir()) == ["backup-of.txt", "traces"]
    assert [path.suffix for path in target.traces_path.iterdir()] in ([], [".db"])
    assert len(back_up(folder, target, never).there_already) == len(list(target.traces_path.iterdir())) - 1


def test_a_full_disk_leaves_the_last_back_up(folder: TraceFolder, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = os.path.getsize(folder.catalog_path) + 100_000  # noqa: PTH202 - of the database, for the catalog alone
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(StoreFull, match="no space is left"):
            back_up(folder, TraceFolder(disk / "backup"), never)
        assert not list((disk / "backup").rglob("*.part"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full_at_once_can_be_tried_again(
    folder: TraceFolder, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "backup"
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        status, out, err = run("backup", str(target), "--database", str(folder.root))
    assert (status, out) == (1, "")
    assert err == f"sockscope backup: {target}: the back-up cannot be written (no space is left on that disk). Nothing was copied.\n"
    assert list(target.iterdir()) == []

    (target / "backup-of.txt.part").write_text("of a run that was killed")
    assert run("backup", str(target), "--database", str(folder.root))[0] == 0
    assert sorted(path.name for path in target.iterdir()) == ["backup-of.txt", "catalog.db", "traces"]


def test_an_empty_mark_names_no_other_database(folder: TraceFolder, tmp_path: Path) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    mark = target.root / "backup-of.txt"
    text = mark.read_text()
    mark.write_text("")

    assert len(back_up(folder, target, never).there_already) == 2
    assert mark.read_text() == text == f"{folder.root.resolve()}\n"


def test_what_is_damaged_does_not_take_the_place_of_a_good_copy(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    target = TraceFolder(tmp_path / "backup")
    back_up(folder, target, never)
    good = bytes_in(target)
    key = folder.trace_keys()[0]
    folder.trace_path(key).write_bytes(b"junk")

    status, _, err = run("backup", str(target.root), "--database", str(folder.root))

    assert status == 3
    assert f"{key}: left out, since it is not whole, or its file is missing or damaged." in err
    assert bytes_in(target) == good


def test_nothing_but_a_back_up_of_this_database_is_written_over(folder: TraceFolder, tmp_path: Path, run: Run) -> None:
    other = TraceFolder(tmp_path / "other")
    run("collect", str(tmp_path / "1.etl"), "--database", str(other.root))
    before = {path: path.read_bytes() for path in other.root.rglob("*.db")}
    with pytest.raises(StoreError, match="not empty, and no back-up"):
        back_up(folder, other, never, drops_deleted=True)
    assert {path: path.read_bytes() for path in other.root.rglob("*.db")} == before
    back_up(folder, TraceFolder(tmp_path / "backup"), never)
    with pytest.raises(StoreError, match="this is the back-up of"):
        back_up(other, TraceFolder(tmp_path / "backup"), never)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"this is a file\. Name a folder for the back-up"):
        back_up(folder, TraceFolder(tmp_path / "file"), never)


def test_a_link_in_the_back_up_leads_nowhere(folder: TraceFolder, tmp_path: Path) -> None:
    target, kept = TraceFolder(tmp_path / "backup"), tmp_path / "kept"
    kept.write_text("mine")
    back_up(folder, target, never)
    key = target.trace_keys()[0]
    target.trace_path(key).unlink()
    target.trace_path(key).with_name(f"{key}.db.part").symlink_to(kept)

    back_up(folder, target, never)

    assert kept.read_text() == "mine"
    assert bytes_in(target) == bytes_in(folder)
    assert not target.trace_path(key).is_symlink()


def test_an_empty_folder_has_nothing_to_back_up(tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()

    status, _, err = run("backup", str(tmp_path / "backup"), "--database", str(tmp_path / "empty"))

    assert status == 1
    assert "there are no traces here yet" in err
    assert not (tmp_path / "backup").exists()

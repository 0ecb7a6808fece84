"""A finished file is put in its place in one step, and until then it can be cancelled, however large it is."""

import errno
import mmap
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.errors import CollectCancelled, StoreError
from collector.store import placing
from collector.store.placing import copied, put_in_place

PIECE = placing._AT_ONCE


def part_of(folder: Path, pieces: int) -> Path:
    """A file of so many pieces, and one byte more."""
    part = folder / "KEY.db.part"
    with part.open("wb") as file:
        file.truncate(pieces * PIECE)
        file.seek(pieces * PIECE)
        file.write(b"!")
    return part


def stop_at(ask: int) -> Callable[[], bool]:
    asked = iter(range(1, 1000))
    return lambda: next(asked) >= ask


def test_a_finished_file_takes_its_place(tmp_path: Path) -> None:
    part, target = part_of(tmp_path, 2), tmp_path / "KEY.db"
    target.write_bytes(b"old")
    put_in_place(part, target, lambda: False)
    assert not part.exists()
    assert target.stat().st_size == 2 * PIECE + 1


@pytest.mark.parametrize("ask", [1, 2, 3, 4])
def test_it_can_be_cancelled_before_each_piece_and_before_the_last_step(tmp_path: Path, ask: int) -> None:
    part, target = part_of(tmp_path, 2), tmp_path / "KEY.db"
    target.write_bytes(b"old")
    with pytest.raises(CollectCancelled, match="Nothing was stored"):
        put_in_place(part, target, stop_at(ask))
    assert target.read_bytes() == b"old"


def test_a_file_system_that_maps_no_files_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    part, target = part_of(tmp_path, 1), tmp_path / "KEY.db"
    put_in_place(part, target)
    assert target.stat().st_size == PIECE + 1


def test_a_place_that_cannot_be_taken_is_said(tmp_path: Path) -> None:
    part, target = part_of(tmp_path, 0), tmp_path / "KEY.db"
    target.mkdir()
    with pytest.raises(StoreError, match="cannot be put in place"):
        put_in_place(part, target)


def test_a_copy_can_be_cancelled(tmp_path: Path) -> None:
    part = part_of(tmp_path, 2)
    with pytest.raises(CollectCancelled):
        copied(part, tmp_path / "copy", stop_at(2))
    copied(part, tmp_path / "copy", stop_at(4))
    assert (tmp_path / "copy").stat().st_size == 2 * PIECE + 1

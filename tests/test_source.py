"""Bytes in: what cannot be opened says why in one line, what can is read piece by piece."""

import hashlib
import os
from pathlib import Path

import pytest

from collector.errors import EmptyTrace, SourceError
from collector.source import Source


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    return text


def test_a_file_is_read_at_any_place(tmp_path: Path) -> None:
    path = tmp_path / "some.etl"
    path.write_bytes(bytes(range(256)) * 20)

    with Source.open(path) as source:
        assert (source.name, source.path, source.size) == ("some.etl", path, 5120)
        assert source.read_at(256, 4) == b"\x00\x01\x02\x03"
        assert source.read_at(0, 5120) == path.read_bytes()


def test_a_read_at_the_end_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "some.etl"
    path.write_bytes(b"abc")

    with Source.open(path) as source:
        assert source.read_at(2, 10) == b"c"
        assert source.read_at(3, 10) == b""
        assert source.read_at(1000, 10) == b""


def test_the_hash_is_that_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "some.etl"
    path.write_bytes(os.urandom(3 * (1 << 20) + 17))

    with Source.open(path) as source:
        assert source.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file") as caught:
        Source.open(tmp_path / "absent.etl")
    assert "absent.etl" in one_line(caught.value)


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="this is a folder") as caught:
        Source.open(tmp_path)
    one_line(caught.value)


def test_a_file_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(SourceError) as caught:
        Source.open(tmp_path / "file" / "trace.etl")
    one_line(caught.value)


def test_a_name_that_no_file_can_have_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        Source.open(f"{tmp_path}/a\0b.etl")
    one_line(caught.value)
    with pytest.raises(SourceError) as caught:
        Source.open(tmp_path / ("x" * 5000))
    one_line(caught.value)


def test_an_empty_file_has_its_own_message(tmp_path: Path) -> None:
    path = tmp_path / "empty.etl"
    path.touch()
    with pytest.raises(EmptyTrace, match=r"empty\.etl: the file is empty") as caught:
        Source.open(path)
    assert caught.value.offset == 0
    one_line(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(SourceError, match="no ordinary file"):
        Source.open(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="only a user with limits can be refused")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.etl"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(SourceError, match="not permitted"):
        Source.open(path)


def test_reading_a_closed_source_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "some.etl"
    path.write_bytes(b"abc")
    source = Source.open(path)
    source.close()
    with pytest.raises(SourceError, match="was closed"):
        source.read_at(0, 1)

"""Sending while the server or the sender is killed, the disk of the server is full, its token changes, or two send the same file."""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector import sending
from collector.dashboard import Target
from collector.errors import CollectCancelled, SendError
from collector.sending import Sent, send_file
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.faults.folder import ROOT, story
from tests.test_sending import TOKEN, dashboard, states

PIECE = 16 << 10
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by means that Windows lacks")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return story(9_000, 1).write(tmp_path / "hang.etl")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def process(code: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A command line in a process of its own, after some changes; it does not outlive the block."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nfrom app.cli import main\nsys.exit(main(sys.argv[1:]))", *words]
    started = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def server(database: Path, port: int = 0) -> Iterator[tuple["subprocess.Popen[str]", str, int]]:
    """A server that takes files, on a disk that need not have room for more than they are."""
    words = ["serve", "--database", str(database), "--uploads", "--token", TOKEN, "--port", str(port)]
    with process("from app import uploads\nuploads.ROOM_BYTES = -(1 << 40)", *words) as started:
        assert started.stdout is not None
        for line in started.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise AssertionError(started.stderr.read() if started.stderr else "")
        yield started, found[0], int(found[1])


def sender(file: Path, base: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """`sockscope send` in small pieces, with short pauses."""
    code = f"from collector import sending\nsending._PIECE_BYTES = {PIECE}\nsending._LONGEST_PAUSE = 0.5"
    return process(code, "send", str(file), "--to", base, "--token", TOKEN)


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def arrived(database: Path, file: Path) -> int:
    try:
        return (database / "arriving" / digest_of(file) / "arriving").stat().st_size
    except OSError:
        return 0


def check(database: Path, *files: Path) -> None:
    """Each file is one whole trace, and nothing else is there."""
    keys = {digest_of(file)[:12] for file in files}
    assert {key: state for key, (_, state) in states(database).items()} == dict.fromkeys(keys, "complete")
    for key in keys:
        with closing(sqlite3.connect(f"file:{TraceFolder(database).trace_path(key)}?mode=ro", uri=True)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert left(database) == []


def left(database: Path) -> list[str]:
    """Files on their way."""
    return [str(path.relative_to(database)) for place in ("arriving", "spool") for path in (database / place).glob("*/*")]


def test_a_server_that_is_killed_amid_a_file_has_the_rest_later(tmp_path: Path, file: Path) -> None:
    database, size = tmp_path / "db", file.stat().st_size
    with server(database) as (first, base, port), sender(file, base) as sends:
        wait_until(lambda: arrived(database, file) > size // 4)
        first.send_signal(signal.SIGKILL)
        first.wait()
        kept = arrived(database, file)
        assert 0 < kept < size
        assert states(database) == {}, "nothing is shown of it"
        with server(database, port):
            wait_until(lambda: sends.poll() is not None or arrived(database, file) > kept)
            out, err = sends.communicate(timeout=120)
    assert sends.returncode == 0, err
    assert "does not answer" in err
    assert "Traceback" not in err
    assert out.startswith(f"{digest_of(file)[:12]}  hang.etl: {base}/t/")
    check(database, file)


def test_a_server_that_is_killed_while_it_collects(tmp_path: Path, file: Path) -> None:
    """Its collector outlives it, or the file is sent again."""
    database = tmp_path / "db"
    with server(database) as (first, base, port), sender(file, base) as sends:
        wait_until(lambda: bool(states(database)))
        first.send_signal(signal.SIGKILL)
        first.wait()
        with server(database, port):
            _, err = sends.communicate(timeout=120)
    assert sends.returncode == 0, err
    assert "Traceback" not in err
    key = digest_of(file)[:12]
    wait_until(lambda: states(database)[key][1] == "complete")
    assert states(database) == {key: (states(database)[key][0], "complete")}


def test_a_sender_that_is_killed_goes_on_where_it_was(tmp_path: Path, file: Path) -> None:
    database, size = tmp_path / "db", file.stat().st_size
    done: list[int] = []
    with server(database) as (_, base, _):
        with sender(file, base) as first:
            wait_until(lambda: arrived(database, file) > size // 4)
            first.send_signal(signal.SIGKILL)
            first.wait()
        kept = arrived(database, file)
        assert 0 < kept < size
        assert states(database) == {}
        sent = send_file(file, Target.parse(base, TOKEN), on_progress=lambda at, total: done.append(at))
    assert sent.state == "complete"
    assert done[0] >= kept - PIECE
    check(database, file)


# ---------------------------------------------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def test_a_disk_that_is_full_amid_a_file(small_disk: Path, file: Path) -> None:
    database, done = small_disk / "db", list[int]()
    with server(database) as (_, base, _):
        with sender(file, base) as sends:
            _, err = sends.communicate(timeout=120)
        assert sends.returncode == 1
        assert "cannot be written to the server's disk (No space left on device)" in err
        assert "Traceback" not in err
        kept = arrived(database, file)
        assert kept > PIECE
        assert states(database) == {}
        resize(small_disk, "64m")
        sent = send_file(file, Target.parse(base, TOKEN), on_progress=lambda at, total: done.append(at))
    assert (sent.state, done[0]) == ("complete", kept), "and it goes on where the disk was full"
    check(database, file)


def test_a_disk_that_is_full_while_it_is_collected(small_disk: Path, file: Path) -> None:
    database = small_disk / "db"
    resize(small_disk, f"{file.stat().st_size // 1024 + 500}k")
    with server(database) as (_, base, _):
        with pytest.raises(SendError, match=r"cannot be collected there: .*no space is left"):
            send_file(file, Target.parse(base, TOKEN))
        assert [state for _, state in states(database).values()] in ([], ["interrupted"])
        wait_until(lambda: left(database) == [])
        resize(small_disk, "64m")
        assert send_file(file, Target.parse(base, TOKEN)).state == "complete"
    check(database, file)


def test_a_disk_that_is_full_from_the_start(small_disk: Path, file: Path) -> None:
    """What could not be begun takes none of the places for files."""
    database = small_disk / "db"
    with server(database) as (_, base, _):
        filler = small_disk / "filler"
        with contextlib.suppress(OSError):
            filler.write_bytes(bytes(2 << 20))
        assert shutil.disk_usage(small_disk).free == 0
        for n in range(10):
            other = story(20 + n, 2).write(file.with_name(f"{n}.etl"))
            with pytest.raises(SendError, match="No space left on device"):
                send_file(other, Target.parse(base, TOKEN))
        filler.unlink()
        resize(small_disk, "64m")
        assert send_file(file, Target.parse(base, TOKEN)).state == "complete"


# ---------------------------------------------------------------------------------------------------- the server changes


def begun(file: Path, base: str, pieces: int = 3) -> int:
    """Send some pieces; returns how many bytes have arrived."""
    done: list[int] = []
    with pytest.raises(CollectCancelled):
        send_file(file, Target.parse(base, TOKEN), lambda: len(done) > pieces, on_progress=lambda at, total: done.append(at))
    return PIECE * (pieces + 1)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_PIECE_BYTES", PIECE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"token": "u" * 20}, "none of this server's tokens"),
        ({"upload_bytes": 1000}, "takes files of at most 1,000 bytes"),
        ({"uploads": False}, "Uploads are switched off"),
    ],
)
def test_a_server_that_changes_its_mind_amid_a_file(
    tmp_path: Path, file: Path, change: dict[str, Any], words: str
) -> None:  # Any: of several types
    database, done = tmp_path / "db", list[int]()
    with dashboard(database) as base:
        kept = begun(file, base)
    with dashboard(database, **change) as base, pytest.raises(SendError, match=words):
        send_file(file, Target.parse(base, TOKEN))
    assert arrived(database, file) == kept
    with dashboard(database) as base:
        assert send_file(file, Target.parse(base, TOKEN), on_progress=lambda at, total: done.append(at)).state == "complete"
    assert done[0] == kept
    check(database, file)


def test_a_wrong_token_within_one_sending(tmp_path: Path, file: Path) -> None:
    """The server is started anew with another token between two pieces."""
    database, said = tmp_path / "db", list[str]()
    servers = [dashboard(database)]
    base = servers[0].__enter__()
    port = int(base.rpartition(":")[2])

    def swap(done: int, total: int) -> None:
        if done >= 3 * PIECE and len(servers) == 1:
            servers[0].__exit__(None, None, None)
            servers.append(dashboard(database, port=port, token="u" * 20))
            servers[1].__enter__()

    try:
        with pytest.raises(SendError, match="none of this server's tokens"):
            send_file(file, Target.parse(base, TOKEN), on_progress=swap, on_trouble=said.append)
    finally:
        servers[-1].__exit__(None, None, None)
    assert arrived(database, file) == 3 * PIECE
    with dashboard(database) as base:
        assert send_file(file, Target.parse(base, TOKEN)).state == "complete"
    check(database, file)


# ---------------------------------------------------------------------------------------------------- the file changes


def test_a_file_that_is_replaced_between_two_attempts(tmp_path: Path, file: Path) -> None:
    database, first = tmp_path / "db", file.read_bytes()
    with dashboard(database) as base:
        begun(file, base)
        other = story(500, 7).write(tmp_path / "other.etl")
        file.write_bytes(other.read_bytes())
        done: list[int] = []
        assert send_file(file, Target.parse(base, TOKEN), on_progress=lambda at, total: done.append(at)).state == "complete"
        assert done[0] == 0, "nothing of the other file is taken for a part of this one"
        assert states(database) == {digest_of(other)[:12]: ("hang.etl", "complete")}
        file.write_bytes(first)
        assert send_file(file, Target.parse(base, TOKEN)).state == "complete"
    check(database, file, other)


def test_a_file_that_is_written_while_it_is_sent(tmp_path: Path, file: Path) -> None:
    database, said = tmp_path / "db", list[str]()

    def overwrite(done: int, total: int) -> None:
        with file.open("r+b") as out:
            out.seek(total - 10)
            out.write(os.urandom(10))

    with dashboard(database) as base, pytest.raises(SendError, match="Does something still write it"):
        send_file(file, Target.parse(base, TOKEN), on_progress=overwrite, on_trouble=said.append, wait=lambda seconds: None)
    assert "not the one that was announced" in said[0]
    assert (states(database), left(database)) == ({}, [])


def test_a_file_that_becomes_shorter(tmp_path: Path, file: Path) -> None:
    def cut(done: int, total: int) -> None:
        os.truncate(file, total // 2)

    with dashboard(tmp_path / "db") as base, pytest.raises(SendError, match="became shorter"):
        send_file(file, Target.parse(base, TOKEN), on_progress=cut)


# ---------------------------------------------------------------------------------------------------- two at once


@pytest.mark.parametrize("senders", [2, 4])
def test_several_send_the_same_file_at_once(tmp_path: Path, file: Path, senders: int) -> None:
    database, found = tmp_path / "db", list[Sent | Exception]()

    def send() -> None:
        try:
            found.append(send_file(file, Target.parse(base, TOKEN)))
        except Exception as error:  # whatever it is, the test looks at it
            found.append(error)

    with dashboard(database) as base:
        threads = [threading.Thread(target=send) for _ in range(senders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    key = digest_of(file)[:12]
    assert found == [Sent(key, "complete", f"{base}/t/{key}")] * senders
    check(database, file)


def test_a_second_that_comes_while_the_first_is_collected_does_not_send_again(tmp_path: Path, file: Path) -> None:
    database = tmp_path / "db"
    with dashboard(database) as base:
        send_file(file, Target.parse(base, TOKEN), wait_for_pages=False)
        done: list[int] = []
        assert send_file(file, Target.parse(base, TOKEN), on_progress=lambda at, total: done.append(at)).state == "complete"
    assert done == []
    assert [entry.key for entry in Catalog(TraceFolder(database)).entries()] == [digest_of(file)[:12]]

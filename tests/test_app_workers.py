"""A server of several processes: any of them answers, takes the forms of the others, and all end together."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli import main
from tests.build.imported import Imported

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")


@contextmanager
def serving(database: Path | str, workers: int, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address, killed at the end."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOCKSCOPE_")}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--database", str(database), "--workers", str(workers), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert address
        yield server, address[0]
    finally:
        server.kill()
        server.communicate()


def children(pid: int) -> set[int]:
    """The processes that answer: children that listen to the socket, not the helper that multiprocessing starts."""
    try:
        found = {int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
        return {one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()}
    except OSError:
        return set()


def listens(pid: int) -> bool:
    """Whether a process waits for connections: its loop looks at the socket besides what wakes the loop itself."""
    try:
        looked_at = [line for one in Path(f"/proc/{pid}/fdinfo").iterdir() for line in one.read_text().splitlines() if "tfd:" in line]
    except OSError:
        return False
    return len(looked_at) > 1


def wait_for(said: str, happened: object, seconds: float = 60) -> None:
    """Wait until a call says yes."""
    end = time.monotonic() + seconds
    assert callable(happened)
    while not happened():
        assert time.monotonic() < end, said
        time.sleep(0.05)


def ask(address: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    """Ask over a connection of its own, which any of the processes may take."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers or {}), timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_several_processes_answer_as_one_and_end_together(sample: Imported) -> None:
    with serving(sample.folder.root, 2) as (server, address):
        wait_for("two processes", lambda: len(children(server.pid)) == 2)
        wait_for("their answers", lambda: all(listens(pid) for pid in children(server.pid)))
        page = f"/t/{sample.report.key}/notes"
        assert ask(address, page)[0] == 200
        cookie = {"Cookie": "sockscope_form=a-cookie"}
        tags = {ask(address, page, cookie)[1].get("etag") for _ in range(12)}
        assert len(tags) == 1  # whoever made the page, it is the same page
        assert ask(address, page, cookie | {"If-None-Match": str(tags.pop())})[0] == 304
        tokens = [found[1] for _ in range(6) if (found := re.search(r'form_token" value="([0-9a-f]+)"', ask(address, page, cookie)[2]))]
        assert len(tokens) == 6
        first = children(server.pid)
        lost = first.pop()
        os.kill(lost, signal.SIGKILL)
        wait_for("another process instead", lambda: len(children(server.pid) - {lost}) == 2)
        assert ask(address, page)[0] == 200
        all_of_them = children(server.pid)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert not [pid for pid in all_of_them if Path(f"/proc/{pid}").exists()]


def test_processes_end_when_the_one_that_started_them_is_gone(sample: Imported) -> None:
    with serving(sample.folder.root, 2) as (server, address):
        wait_for("two processes", lambda: len(children(server.pid)) == 2)
        assert ask(address, "/healthz")[0] == 200
        running = children(server.pid)
        server.kill()
        server.wait()
        wait_for("the end of its processes", lambda: not any(Path(f"/proc/{pid}").exists() for pid in running))


@pytest.mark.parametrize("number", ["0", "-1", "33", "two", "1.5", ""])
def test_a_number_of_processes_that_cannot_be_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--workers", number]) == 2
    assert "from 1 to 32" in capsys.readouterr().err


def test_several_processes_take_no_traces_from_browsers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--database", str(tmp_path), "--workers", "2", "--uploads"]) == 2
    assert "--uploads needs --workers 1" in capsys.readouterr().err

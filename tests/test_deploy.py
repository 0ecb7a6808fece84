"""What is in deploy/: nginx in front of a running dashboard, and commands that the program knows."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest

from app.cli import main
from collector.dashboard import Target
from collector.sending import send_file
from tests.build import Trace, afd
from tests.build.imported import Imported

TOKEN = "a-token-of-sixteen-characters"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def outside(sample: Imported, project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of nginx in front of a dashboard with uploads and a base path."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("nginx")
    inner, outer = free_port(), free_port()
    part = (project_root / "deploy" / "nginx.conf").read_text("utf-8")
    assert "127.0.0.1:8350" in part
    (folder / "part.conf").write_text(part.replace("127.0.0.1:8350", f"127.0.0.1:{inner}"))
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    server = f"server {{ listen 127.0.0.1:{outer}; include {folder}/part.conf; }}"
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ access_log off; {places} {server} }}"
    )
    options = [
        "--base-path",
        "/sockscope",
        "--allow-host",
        "127.0.0.1",
        "--forwarded-allow-ips",
        "127.0.0.1",
        "--uploads",
        "--token",
        TOKEN,
    ]
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(inner), "--database", str(sample.folder.root), *options]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as dashboard,
        subprocess.Popen([nginx, "-p", str(folder), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]) as proxy,
    ):
        try:
            address = f"http://127.0.0.1:{outer}/sockscope"
            end = time.monotonic() + 60
            while True:
                assert dashboard.poll() is None
                assert proxy.poll() is None, (folder / "error.log").read_text()
                try:
                    assert ask(f"{address}/healthz")[2] == "ok\n"
                    break
                except (OSError, AssertionError):
                    assert time.monotonic() < end
                    time.sleep(0.1)
            yield address
        finally:
            proxy.terminate()
            dashboard.terminate()


def ask(url: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def test_links_and_files_stay_below_the_path_of_the_proxy(outside: str, sample: Imported) -> None:
    page = f"{outside}/t/{sample.report.key}/sockets?sort=first_ns"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert ask(page)[0] == 401

    status, headers, text = ask(page, bearer)

    assert status == 200
    links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', text))
    assert len(links) > 20
    assert all(link.startswith("/sockscope/") for link in links)
    assert f'<link rel="canonical" href="{outside}/t/{sample.report.key}/sockets' in text
    assert "default-src 'none'" in headers["content-security-policy"]
    root = outside.removesuffix("/sockscope")
    for link in sorted(link for link in links if "/static/" in link):
        assert ask(root + link, bearer)[0] == 200
    followed = [link for link in sorted(links) if "/t/" in link and "sort=" not in link][:15]
    assert [link for link in followed if ask(root + link.replace("&amp;", "&"), bearer)[0] != 200] == []


def test_the_link_with_the_token_sets_a_cookie_for_the_path_and_leads_on(outside: str) -> None:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            return None

    with pytest.raises(urllib.error.HTTPError) as redirect:
        urllib.request.build_opener(Stay).open(f"{outside}/?token={TOKEN}", timeout=60)

    with redirect.value as answer:
        assert answer.status == 303
        assert answer.headers["location"] == "/sockscope/"
        assert "path=/sockscope" in answer.headers["set-cookie"].lower()


def test_a_trace_is_sent_through_the_proxy(outside: str, tmp_path: Path) -> None:
    events = [afd.sent(at_us=100 + n, length_bytes=n) for n in range(60_000)]
    file = Trace(name="sent").cpu(0, afd.opened(at_us=10), *events).write(tmp_path / "sent.etl")
    assert file.stat().st_size > 8 << 20, "more than nginx takes unless told otherwise"

    sent = send_file(file, Target(outside, TOKEN), should_cancel=lambda: False)

    assert sent is not None
    listed = json.loads(ask(f"{outside}/?format=json", {"Authorization": f"Bearer {TOKEN}"})[2])
    assert "sent.etl" in {trace["name"] for trace in listed["listing"]["rows"]}


# ---------------------------------------------------------------------------------------------------- commands


def command_is_known(words: list[str], tmp_path: Path) -> bool:
    """Whether the program takes a command line: it then stops at the port, which is none."""
    words = [str(tmp_path) if before == "--database" else word for before, word in zip(["", *words], words, strict=False)]
    port = words.index("--port") + 1
    words[port] = "65536"
    return main(words) == 2


def test_the_unit_of_systemd_starts_what_there_is(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = RawConfigParser(strict=False, comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[assignment,method-assign] # names of systemd have capitals
    unit.read_string((project_root / "deploy" / "sockscope.service").read_text("utf-8").replace("\\\n", " "))
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    monkeypatch.setenv("SOCKSCOPE_TOKEN", TOKEN)

    assert Path(program).name == "sockscope"
    assert command_is_known(words, tmp_path)
    assert "port 65536" in capsys.readouterr().err
    assert words[words.index("--database") + 1] == f"/var/lib/{unit['Service']['StateDirectory']}"


def test_the_container_starts_what_there_is(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (project_root / "deploy" / "Containerfile").read_text("utf-8").splitlines()
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line[:1].isupper()}
    monkeypatch.setenv("SOCKSCOPE_TOKEN", TOKEN)

    assert json.loads(said["ENTRYPOINT"]) == ["sockscope"]
    assert command_is_known(json.loads(said["CMD"]), tmp_path)
    assert "port 65536" in capsys.readouterr().err
    extras = re.search(r'"/src\[([a-z,]+)\]"', "\n".join(lines))
    assert extras
    project = (project_root / "pyproject.toml").read_text("utf-8")
    assert all(f"\n{extra} = [" in project for extra in extras[1].split(","))
    assert os.path.isfile(project_root / "constraints.txt")  # noqa: PTH113 - it is copied with the rest

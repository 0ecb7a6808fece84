"""Sending to a dashboard under a path of a proxy, and over https with certificates that are trusted or not."""

import http.server
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import cli
from collector.dashboard import Target
from collector.errors import SendError
from collector.sending import send_file
from tests.test_sending import TOKEN, a_trace, dashboard, states


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hang.etl"
    path.write_bytes(a_trace(31))
    return path


@contextmanager
def stripping(target: str, prefix: str) -> Iterator[str]:
    """A proxy that shows a server under a path, and takes the path away before it asks."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            assert self.path.startswith(prefix), self.path
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            request = urllib.request.Request(target + self.path.removeprefix(prefix), body or None, headers, method=self.command)
            with urllib.request.urlopen(request) as answer:
                said = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        do_GET = do_PATCH = _pass_on

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path", ["", "/tools/traces"])
def test_a_link_leads_through_the_proxy(tmp_path: Path, file: Path, path: str) -> None:
    """Whether the server was told its path (--base-path) or not."""
    with dashboard(tmp_path / "db", path=path) as base, stripping(base, "/tools/traces") as shown:
        sent = send_file(file, Target.parse(f"{shown}/t/0123456789ab?token={TOKEN}", None))
        assert sent.address == f"{shown}/t/{sent.key}"
        request = urllib.request.Request(f"{sent.address}?format=json", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200


# ---------------------------------------------------------------------------------------------------- https


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A key, and a certificate that it signed itself, for 127.0.0.1 alone."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl that makes a certificate")
    place = tmp_path_factory.mktemp("tls")
    key, made = place / "key.pem", place / "certificate.pem"
    words = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=traces", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, "req", "-x509", *words, "-keyout", str(key), "-out", str(made)], check=True, capture_output=True)
    return {"ssl_keyfile": str(key), "ssl_certfile": str(made)}


@pytest.fixture(scope="module")
def safe(certificate: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    root = tmp_path_factory.mktemp("safe") / "db"
    with dashboard(root, tls=certificate) as base:
        yield base, root


def test_an_unknown_certificate_is_refused_with_what_to_do(safe: tuple[str, Path], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, root = safe
    assert cli.main(["send", str(file), "--to", base, "--token", TOKEN]) == 1
    err = capsys.readouterr().err
    assert "its certificate is not trusted (self-signed certificate), so nothing was sent." in err
    assert "Name the certificate of its authority with --ca-file." in err
    assert "Trying again" not in err
    assert states(root) == {}
    assert not (root / "arriving").exists()


def test_a_certificate_that_is_named_is_trusted(safe: tuple[str, Path], certificate: dict[str, str], file: Path) -> None:
    base, root = safe
    sent = send_file(file, Target.parse(base, TOKEN, certificate["ssl_certfile"]))
    assert sent.address == f"{base}/t/{sent.key}"
    assert states(root)[sent.key] == ("hang.etl", "complete")


def test_a_certificate_for_another_name(safe: tuple[str, Path], certificate: dict[str, str], file: Path) -> None:
    other = safe[0].replace("127.0.0.1", "localhost")
    with pytest.raises(SendError, match=r"not trusted \(Hostname mismatch.*Use the name that the certificate is for"):
        send_file(file, Target.parse(other, TOKEN, certificate["ssl_certfile"]))


def test_https_to_a_server_without_it(tmp_path: Path, file: Path) -> None:
    with (
        dashboard(tmp_path / "db") as base,
        pytest.raises(SendError, match=r"no safe connection comes about .*so nothing was sent. Does this server speak https"),
    ):
        send_file(file, Target.parse(base.replace("http:", "https:"), TOKEN))


def test_http_to_a_server_that_speaks_https(safe: tuple[str, Path], file: Path) -> None:
    ticks = iter(range(10**6))
    with pytest.raises(SendError, match=r"does not answer|does not speak http|answers 400"):
        send_file(
            file,
            Target.parse(safe[0].replace("https:", "http:"), TOKEN),
            give_up_seconds=5,
            wait=lambda seconds: None,
            now=lambda: next(ticks),
        )

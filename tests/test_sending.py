"""Sending a file to a dashboard elsewhere, over a network that breaks."""

import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import cli
from app.main import create_app
from app.settings import Settings
from collector import sending, watch
from collector.dashboard import Target
from collector.errors import CollectCancelled, SendError, SourceError
from collector.sending import send_file
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.watch import settled_files
from tests.build import Trace, afd
from tests.build.growing import Time
from tests.build.packages import zip_of
from tests.cutting_proxy import cutting

TOKEN = "t" * 20
SEEDS = count(1000)


def a_trace(seed: int = 0) -> bytes:
    events = [afd.sent(at_us=100 + 20 * n, length_bytes=seed + n, buffer=0x1000 + n, duration_us=15) for n in range(200)]
    return Trace(name=f"s{seed}").cpu(0, afd.opened(at_us=10), *events).bytes()


@contextmanager
def dashboard(root: Path, *, port: int = 0, path: str = "", tls: dict[str, str] | None = None, **more: Any) -> Iterator[str]:
    """A server in this process; `more` are fields of its settings, `tls` its certificate and key, `path` where a proxy shows it."""
    Catalog(TraceFolder(root))
    chosen: dict[str, Any] = {"token": TOKEN, "uploads": True} | more  # Any: fields of the settings
    app = create_app(Settings(database=root, root_path=path, **chosen))
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", proxy_headers=False, **(tls or {}))  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dashboard") / "database"


@pytest.fixture(scope="module")
def site(root: Path) -> Iterator[str]:
    with dashboard(root) as base:
        yield base


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hang über.etl"
    path.write_bytes(a_trace())
    return path


def place_of(base: str) -> tuple[str, int]:
    parts = urlsplit(base)
    return str(parts.hostname), int(parts.port or 0)


def states(root: Path) -> dict[str, tuple[str, str]]:
    return {entry.key: (entry.name, entry.state) for entry in Catalog(TraceFolder(root)).entries()}


def test_a_file_is_sent_and_collected(site: str, root: Path, file: Path) -> None:
    done: list[tuple[int, int]] = []
    sent = send_file(file, Target.parse(site, TOKEN), on_progress=lambda *at: done.append(at))
    assert sent.state == "complete"
    assert sent.address == f"{site}/t/{sent.key}"
    assert states(root)[sent.key] == ("hang über.etl", "complete")
    size = file.stat().st_size
    assert done[0] == (0, size)
    assert done[-1] == (size, size)
    assert send_file(file, Target.parse(f"{site}/?token={TOKEN}", None)) == sent, "what is there already is not sent again"


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.one_of(st.none(), st.just(0), st.integers(1, 60_000)), max_size=6))
def test_connections_that_break_cost_only_time(
    site: str, root: Path, tmp_path_factory: pytest.TempPathFactory, cuts: list[int | None]
) -> None:
    path = tmp_path_factory.mktemp("cut") / "cut.etl"
    path.write_bytes(a_trace(next(SEEDS)))  # what was sent once is not sent again
    with cutting(place_of(site), cuts) as (base, passed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "_PIECE_BYTES", 10_000)
        sent = send_file(path, Target.parse(base, TOKEN), wait=lambda seconds: None, now=_ticking())
    assert states(root)[sent.key] == ("cut.etl", "complete")
    assert len(passed) > path.stat().st_size // 10_000


def _ticking() -> Callable[[], float]:
    """A clock on which each look takes a tenth of a second, so that nobody waits."""
    time = iter(range(10**9))
    return lambda: next(time) / 10


def test_a_package_leads_to_the_trace_inside(site: str, root: Path, tmp_path: Path) -> None:
    trace = a_trace(4711)
    path = tmp_path / "packed.zip"
    path.write_bytes(zip_of({"inner.etl": trace}))
    sent = send_file(path, Target.parse(site, TOKEN))
    assert (sent.key, sent.state) == (hashlib.sha256(trace).hexdigest()[:12], "complete")
    assert sent.address == f"{site}/t/{sent.key}"
    assert states(root)[sent.key] == ("inner.etl (in packed.zip)", "complete")


def test_another_run_goes_on_where_the_first_was_broken_off(site: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.etl"
    path.write_bytes(a_trace(77))
    monkeypatch.setattr(sending, "_PIECE_BYTES", 8_192)
    seen: list[int] = []
    with pytest.raises(CollectCancelled, match="go on"):
        send_file(path, Target.parse(site, TOKEN), lambda: len(seen) > 2, on_progress=lambda done, total: seen.append(done))
    assert seen == [0, 8_192, 16_384]
    seen.clear()
    assert send_file(path, Target.parse(site, TOKEN), on_progress=lambda done, total: seen.append(done)).state == "complete"
    assert seen[0] == 24_576


def test_a_server_that_is_away_is_waited_for_and_given_up(file: Path) -> None:
    said: list[str] = []
    with cutting(("127.0.0.1", 1), [0] * 100) as (base, passed), pytest.raises(SendError, match="If something has arrived, it stays"):
        send_file(file, Target.parse(base, TOKEN), on_trouble=said.append, give_up_seconds=20, wait=lambda seconds: None, now=_ticking())
    assert 2 <= len(passed) <= 10, "with pauses that grow"
    assert "does not answer" in said[0]


@pytest.mark.parametrize(
    ("token", "path", "words"),
    [
        ("w" * 20, "", "none of this server's tokens"),
        (None, "", "This server demands a token"),
        (TOKEN, "/elsewhere", "Is the address right|There is no page"),
    ],
)
def test_refusals_are_told_in_the_server_s_words(site: str, file: Path, token: str | None, path: str, words: str) -> None:
    with pytest.raises(SendError, match=words) as error:
        send_file(file, Target.parse(site + path, token))
    assert file.name in str(error.value)


def test_a_server_without_uploads(tmp_path: Path, file: Path) -> None:
    with dashboard(tmp_path / "db", uploads=False) as base, pytest.raises(SendError, match="Uploads are switched off on this server"):
        send_file(file, Target.parse(base, TOKEN))


def test_a_file_that_is_too_large(tmp_path: Path, file: Path) -> None:
    with dashboard(tmp_path / "db", upload_bytes=1000) as base, pytest.raises(SendError, match="takes files of at most 1,000 bytes"):
        send_file(file, Target.parse(base, TOKEN))


def test_a_file_that_is_no_trace(site: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.etl"
    path.write_bytes(b"PK" + bytes(100))
    with pytest.raises(SendError, match=r"cannot be collected there.*not an ETL file"):
        send_file(path, Target.parse(site, TOKEN))


def test_a_missing_file(site: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        send_file(tmp_path / "none.etl", Target.parse(site, TOKEN))


def test_the_token_goes_to_no_other_server(file: Path) -> None:
    asked: list[str] = []

    class Leading(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the library asks for
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/other")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Leading)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(SendError, match="it leads elsewhere"):
            send_file(file, Target.parse(f"http://127.0.0.1:{server.server_port}", TOKEN))
    finally:
        server.shutdown()
        server.server_close()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("traces.example", "is no address"),
        ("ftp://traces.example", "is no address"),
        ("https://user:pass@traces.example", "do not belong into the address"),
        ("http://host:99999", "[Pp]ort"),
    ],
)
def test_odd_addresses(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Target.parse(text, None)


def test_addresses() -> None:
    assert Target.parse("http://h:8350/base/t/abc?token=xyz#a", None) == Target("http://h:8350/base", "xyz")
    assert Target.parse("http://h:8350/?token=xyz", "other").token == "other"
    assert Target.parse("http://h", None).is_open
    assert not Target.parse("http://127.0.0.1:1/", None).is_open
    assert not Target.parse("https://h/", None).is_open


# ----------------------------------------------------------------------------------------------------- the command line


def test_the_verb(site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = tmp_path / "good.etl", tmp_path / "none.etl"
    good.write_bytes(a_trace(5))
    monkeypatch.setenv("SOCKSCOPE_TOKEN", TOKEN)
    assert cli.main(["send", str(good), "--to", site]) == 0
    out = capsys.readouterr().out
    assert out.strip() == f"{out[:12]}  good.etl: {site}/t/{out[:12]}"
    assert cli.main(["send", str(bad), str(good), "--to", site]) == 1
    said = capsys.readouterr()
    assert "no such file" in said.err
    assert "good.etl" in said.out
    assert cli.main(["send", str(good), "--to", "nowhere"]) == 2
    assert "is no address" in capsys.readouterr().err
    assert cli.main(["send", str(good), "--to", "https://127.0.0.1:1", "--ca-file", str(bad)]) == 2
    assert "certificates cannot be read" in capsys.readouterr().err


def test_a_folder_is_watched(
    site: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (90, 91):
        (tmp_path / f"part{n}.etl").write_bytes(a_trace(n))
    (tmp_path / "bad.etl").write_bytes(b"PK" + bytes(500))
    time = Time(iter(()))

    def bounded(place: Path, should_stop: object, **options: Any) -> Iterator[Path]:  # Any: those of the real one
        return settled_files(place, lambda: time.waits >= 8, wait=time.wait, now=time.now, **options)

    monkeypatch.setattr(watch, "settled_files", bounded)
    assert cli.main(["send", "--watch", str(tmp_path), "--to", site, "--token", TOKEN]) == 1
    said = capsys.readouterr()
    assert [line.split("  ")[1].partition(":")[0] for line in said.out.splitlines()] == ["part90.etl", "part91.etl"]
    assert said.err.count("bad.etl") == 1
    assert {"part90.etl", "part91.etl"} <= {name for name, _ in states(root).values()}


@pytest.mark.parametrize("words", [[], ["a.etl", "--watch", "."]])
def test_files_or_a_folder(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["send", *words, "--to", "http://127.0.0.1:1"]) == 2
    assert "name files, or a folder with --watch" in capsys.readouterr().err


def test_an_answer_that_is_no_page_of_ours(file: Path) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the library asks for
            body = json.dumps({"hello": 1}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(SendError, match="Is the address right"):
            send_file(file, Target.parse(f"http://127.0.0.1:{server.server_port}", TOKEN))
    finally:
        server.shutdown()
        server.server_close()

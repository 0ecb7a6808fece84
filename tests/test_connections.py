"""Clients that are slow, or never come to an end: they are ended, and meanwhile everybody else is answered."""

import gzip
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.busy import RequestLimit
from app.connections import MAX_HEAD_BYTES, Patience, protocol
from app.main import create_app
from app.settings import Settings
from tests.build.small_trace import KEY, small_folder

SHORT = Patience(head_seconds=0.6, pace_seconds=0.6, body_bytes=2_000, answer_bytes=20_000, connections=20)
LONG_ANSWER = b"0123456789abcdef" * (1 << 20)
BEGUN_FORM = (
    f"POST /t/{KEY}/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    "Content-Length: 900\r\n\r\ntext="
).encode()
Place = tuple[str, int]


@contextmanager
def listening(app: object, patience: Patience = SHORT) -> Iterator[Place]:
    """A server on a free port in a thread of its own."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # any ASGI application
        host="127.0.0.1",
        port=0,
        http=protocol(patience),
        ws="none",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_config=None,  # so that caplog sees what it says
        log_level="warning",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        thread.join(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with listening(create_app(Settings(database=small_folder(tmp_path_factory.mktemp("small")).root))) as made:
        yield made


async def _long(request: Request) -> Response:
    return PlainTextResponse(LONG_ANSWER)


def ended(connection: socket.socket) -> bytes:
    """What a connection says until the server ends it."""
    got = bytearray()
    try:
        while piece := connection.recv(1 << 16):
            got += piece
    except ConnectionResetError:
        pass
    return bytes(got)


def connect(place: Place) -> socket.socket:
    return socket.create_connection(place, timeout=15)


def ask(place: Place, path: str = "/healthz") -> bytes:
    """One whole request on a connection of its own."""
    with connect(place) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        return ended(connection)


def test_a_head_that_comes_byte_by_byte_is_ended_and_others_are_answered(place: Place) -> None:
    with connect(place) as slow:
        begin = time.monotonic()
        slow.settimeout(0.05)
        got = b""
        for number, byte in enumerate(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 10_000):
            try:
                slow.sendall(bytes([byte]))
                got = slow.recv(1000)
                break
            except TimeoutError:
                assert number % 4 or ask(place).startswith(b"HTTP/1.1 200")
            except ConnectionError:
                break
        assert time.monotonic() - begin < 10
    assert got.startswith(b"HTTP/1.1 408")
    assert b"did not arrive in time" in got


def test_a_connection_that_says_nothing_is_ended_without_a_word(place: Place) -> None:
    with connect(place) as silent:
        assert ended(silent) == b""


def test_a_body_that_never_ends_is_ended(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with connect(place) as slow:
        slow.sendall(BEGUN_FORM)
        assert ended(slow).startswith(b"HTTP/1.1 408")
    assert ask(place).startswith(b"HTTP/1.1 200")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_a_client_that_leaves_amid_its_body_leaves_no_trace_in_the_log(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        with connect(place) as leaving:
            leaving.sendall(BEGUN_FORM)
    assert ask(place).startswith(b"HTTP/1.1 200")
    assert [record.getMessage() for record in caplog.records] == []


def test_who_reads_nothing_of_a_long_answer_is_ended() -> None:
    with listening(Starlette(routes=[Route("/long", _long), Route("/healthz", _long)])) as place, connect(place) as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall(b"GET /long HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        threading.Event().wait(3)  # the time in which it reads nothing
        assert len(ask(place, "/long")) > len(LONG_ANSWER)
        assert len(ended(lazy)) < len(LONG_ANSWER)


def test_who_reads_a_long_answer_steadily_gets_all_of_it() -> None:
    with listening(Starlette(routes=[Route("/long", _long)])) as place, connect(place) as steady:
        steady.sendall(b"GET /long HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        got = 0
        begin = time.monotonic()
        while piece := steady.recv(1 << 18):
            got += len(piece)
            if time.monotonic() - begin < 2 * SHORT.pace_seconds:
                threading.Event().wait(0.05)
        assert got > len(LONG_ANSWER)


def test_a_kept_connection_is_not_ended_between_its_requests(place: Place) -> None:
    with connect(place) as kept:
        for _ in range(8):
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            got = b""
            while not got.endswith(b"ok\n"):
                piece = kept.recv(10_000)
                assert piece, "the server ended the connection"
                got += piece
            threading.Event().wait(SHORT.head_seconds / 4)


def test_a_kept_connection_waits_longer_for_its_next_request_than_for_the_rest_of_one(place: Place) -> None:
    """A client must not send into a connection that is just being closed: it would have no answer."""
    assert Patience().idle_seconds > 4 * Patience().head_seconds
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connect(place) as kept:
        for _ in range(2):
            kept.sendall(request)
            got = b""
            while not got.endswith(b"ok\n"):
                piece = kept.recv(10_000)
                assert piece, "the server ended the connection"
                got += piece
            threading.Event().wait(3 * SHORT.head_seconds)
        kept.sendall(request[:20])
        begin = time.monotonic()
        got = b""
        while b"408" not in got and (piece := kept.recv(10_000)):
            got += piece
        assert b"HTTP/1.1 408" in got
        assert time.monotonic() - begin >= SHORT.head_seconds / 2


def test_with_all_connections_taken_the_one_that_waits_longest_makes_room() -> None:
    patience = Patience(head_seconds=30, pace_seconds=30, connections=10)
    with listening(Starlette(routes=[Route("/long", _long)]), patience) as place:
        silent = [connect(place) for _ in range(10)]
        assert len(ask(place, "/long")) > len(LONG_ANSWER)
        assert ended(silent[0]) == b""
        silent[9].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[9].recv(1)
        for one in silent:
            one.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n", b"431"),
        (b"GET /t/\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /t/x/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /t/x/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"4"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_refused(place: Place, head: bytes, status: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with connect(place) as odd:
        odd.sendall(head)
        got = ended(odd)
    assert got.startswith(b"HTTP/1.1 " + status)
    assert len(got.partition(b"\r\n\r\n")[2]) > 20
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("path", ["//", "///", "//t//", "/t/../..", "*", "http://127.0.0.1//t/", "/t/%00%FF"])
def test_odd_addresses_of_pages_are_not_found(place: Place, path: str) -> None:
    got = ask(place, path)
    assert re.match(rb"HTTP/1.1 (400|404) ", got), got[:100]
    assert b"Not found" in got or b"cannot be used" in got


def test_more_requests_than_the_server_works_on_are_told_so_at_once(tmp_path: Path) -> None:
    release = threading.Event()

    def waiting(request: Request) -> Response:
        release.wait(10)
        return PlainTextResponse("done")

    app = RequestLimit(Starlette(routes=[Route("/wait", waiting)]), most=3)
    with listening(app, Patience(connections=50)) as place:
        held = [connect(place) for _ in range(3)]
        for one in held:
            one.sendall(b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        refused = b""
        while not refused.startswith(b"HTTP/1.1 503"):  # the three may not have arrived yet
            with connect(place) as more:
                more.settimeout(0.3)
                more.sendall(b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                try:
                    refused = more.recv(10_000)
                except TimeoutError:
                    continue
        release.set()
        assert b"Retry-After" in refused.title()
        assert [ended(one)[:12] for one in held] == [b"HTTP/1.1 200"] * 3
        for one in held:
            one.close()


def test_the_answer_to_a_fault_of_ours_is_whole_and_others_are_answered_after_it(tmp_path: Path) -> None:
    """The server may end the connection behind it; what it says before that is complete, compressed or not."""
    app = create_app(Settings(database=small_folder(tmp_path).root))

    @app.get("/fault")
    def fault() -> None:
        raise ZeroDivisionError("a secret detail")

    with listening(app) as place:
        for accepted in ("identity", "gzip"):
            for _ in range(5):
                with socket.create_connection(place, timeout=60) as connection:
                    connection.sendall(
                        f"GET /fault HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: {accepted}\r\nConnection: close\r\n\r\n".encode()
                    )
                    head, _, body = ended(connection).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 500")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                assert length
                assert len(body) == int(length[1])
                text = gzip.decompress(body) if b"content-encoding: gzip" in head.lower() else body
                assert b"This page failed" in text
                assert text.rstrip().endswith(b"</html>")
        with socket.create_connection(place, timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert ended(connection).startswith(b"HTTP/1.1 200")

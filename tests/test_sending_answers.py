"""Sending to what is no dashboard, or answers as none should: a clear sentence each time, no traceback, no hang."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from app import cli
from collector import dashboard
from collector.dashboard import Target
from collector.errors import CollectCancelled, SendError
from collector.sending import send_file
from tests.test_sending import TOKEN

Script = Callable[[int, str], bytes | None]
"""What is sent back for the n-th request, by its method; None: nothing, and the connection stays open."""


@contextmanager
def server(script: Script, *, drip: bool = False, hasty: bool = False) -> Iterator[str]:
    """A server that says what the test wants; with `drip` a byte every 50 ms, `hasty` before it has read more than the head."""
    listener = socket.create_server(("127.0.0.1", 0))
    numbers, open_ones = count(), list[socket.socket]()

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            request = connection.recv(65536)
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
            while len(body) < length and not hasty:
                body += connection.recv(65536)
            said = script(next(numbers), head.split(b" ")[0].decode())
            if said is None:
                return
            for at in range(0, len(said), 1 if drip else len(said) or 1):
                connection.sendall(said[at : at + 1] if drip else said)
                time.sleep(0.05 if drip else 0)
            connection.close()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_ones.append(connection)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in open_ones:
            one.close()


def http(body: str | bytes, status: str = "200 OK", *headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + data


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hang.etl"
    path.write_bytes(bytes(range(256)) * 200)
    return path


def quick(path: Path, base: str, **more: object) -> None:
    """Send without waiting, and give up after some tries."""
    ticks = count()
    options: dict[str, object] = {"give_up_seconds": 20.0, "wait": lambda seconds: None, "now": lambda: next(ticks) / 5}
    send_file(path, Target.parse(base, TOKEN), **options | more)  # type: ignore[arg-type]  # passed on as they are


ARRIVING = '{"state": "arriving", "offset": 0, "key": "abc"}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe\x00",
        "null",
        "[]",
        "[" * 100_000,
        "{}",
        '{"offset": 0}',
        '{"state": "absent"}',
        '{"state": "absent", "offset": "many"}',
        '{"state": "absent", "offset": null}',
        '{"state": "absent", "offset": -1}',
        '{"state": "absent", "offset": true}',
        '{"state": "absent", "offset": 1e99}',
        '{"state": "dancing", "offset": 0}',
        '{"state": "complete", "offset": 0}',
        '{"state": "complete", "offset": 0, "key": "abc", "href": "https://evil.example/"}',
        '{"state": "collecting", "offset": 0, "key": "abc"}',
        '{"state": ["absent"], "offset": 0}',
        "<html>no</html>",
    ],
)
def test_a_state_that_is_none(file: Path, body: str | bytes) -> None:
    with server(lambda n, method: http(body)) as base, pytest.raises(SendError, match="Is the address right") as error:
        quick(file, base)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nshort", "does not answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "does not answer"),
        (http("", "500 Oh"), "answers 500"),
        (http("sleeping\n more", "503 Later", "Retry-After: 99999999"), "sleeping"),
        (http("", "503 Later", "Retry-After: \xb2"), "answers 503"),
        (http("", "503 Later", "Retry-After: -5"), "answers 503"),
    ],
)
def test_what_is_tried_again_is_given_up_in_time(file: Path, answer: bytes, words: str) -> None:
    with server(lambda n, method: answer) as base, pytest.raises(SendError, match=rf"{words}.*Given up") as error:
        quick(file, base)
    assert "send it again" in str(error.value)


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        ("301 Moved", ["Location: https://other.example/uploads?token=x"], r"leads elsewhere \(301, to https://other.example\)"),
        ("302 Found", ["Location: /login"], r"leads elsewhere \(302\)"),
        ("307 Here", [], r"leads elsewhere \(307\)"),
        ("404 Not", [], "it answers 404"),
        ("418 Tea", [], "it answers 418"),
        ("204 Nothing", [], "it answers 204"),
        ("201 Done", [], "it answers 201"),
    ],
)
def test_other_answers_end_it_at_once(file: Path, status: str, headers: list[str], words: str) -> None:
    with server(lambda n, method: http("", status, *headers)) as base, pytest.raises(SendError, match=words) as error:
        quick(file, base)
    assert "token=x" not in str(error.value)


@pytest.mark.parametrize("answer", [b"hello\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/9 200 OK\r\n\r\n"])
def test_what_does_not_speak_http_ends_it_at_once(file: Path, answer: bytes) -> None:
    with server(lambda n, method: answer) as base, pytest.raises(SendError, match="does not speak http"):
        quick(file, base)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http("{}"), "Is the address right"),
        (http('{"offset": -3}'), "Is the address right"),
        (http('{"offset": 0}'), "Nothing more arrives there"),
        (http('{"offset": 0, "sentence": "go back"}', "409 No"), "Nothing more arrives there"),
        (http('{"offset": 0, "sentence": "It is another."}', "422 No"), "It is another. Does something still write it"),
        (http("{}", "301 Away", "Location: http://x/"), "leads elsewhere"),
        (http('{"sentence": "This server demands a token."}', "401 No"), "demands a token"),
        (http('{"sentence": "The disk is full."}', "507 Full"), "The disk is full"),
    ],
)
def test_pieces_that_are_answered_oddly(file: Path, answer: bytes, words: str) -> None:
    with server(lambda n, method: http(ARRIVING) if method == "GET" else answer) as base, pytest.raises(SendError, match=words):
        quick(file, base)


def test_a_refusal_that_comes_before_all_was_sent_is_heard(tmp_path: Path) -> None:
    """Such a server closes the connection on what is still under way; that is not taken for a connection that broke."""
    path = tmp_path / "large.etl"
    path.write_bytes(bytes(16 << 20))
    refusal = http('{"sentence": "Uploads end at 1 MB here."}', "413 Large")
    with (
        server(lambda n, method: http(ARRIVING) if method == "GET" else refusal, hasty=True) as base,
        pytest.raises(SendError, match="Uploads end at 1 MB here"),
    ):
        quick(path, base)


@pytest.mark.parametrize("state", [ARRIVING, '{"state": "absent", "offset": 0}'])
def test_a_server_that_takes_all_and_knows_nothing(file: Path, state: str) -> None:
    size = file.stat().st_size

    def script(n: int, method: str) -> bytes:
        return http(state) if method == "GET" else http(f'{{"offset": {size}}}', "201 Made")

    with server(script) as base, pytest.raises(SendError, match="what had arrived there is gone"):
        quick(file, base)


def test_what_fails_at_once_is_told_and_not_sent_again(file: Path) -> None:
    asked: list[str] = []

    def script(n: int, method: str) -> bytes:
        asked.append(method)
        if method == "PATCH":
            return http(f'{{"offset": {file.stat().st_size}}}', "201 Made")
        return http('{"state": "failed", "offset": 0, "key": "abc", "message": "hang.etl: it is no trace."}')

    with server(script) as base, pytest.raises(SendError, match=r"cannot be collected there: it is no trace\."):
        quick(file, base)
    assert asked == ["GET", "PATCH", "GET"]


def test_what_somebody_cancelled_is_not_sent_again(file: Path) -> None:
    def script(n: int, method: str) -> bytes:
        if method == "PATCH":
            return http(f'{{"offset": {file.stat().st_size}}}', "201 Made")
        state = "cancelled" if n > 2 else "collecting" if n else "absent"
        return http(f'{{"state": "{state}", "offset": 0, "key": "abc", "href": "/u"}}')

    with server(script) as base, pytest.raises(SendError, match="somebody cancelled it there"):
        quick(file, base)


@pytest.mark.parametrize("piece_bytes", ["-5", "0", "null", '"x"', "1e400", "99999999999"])
def test_an_odd_size_of_pieces_is_none(file: Path, piece_bytes: str) -> None:
    def script(n: int, method: str) -> bytes:
        if method == "PATCH":
            return http(f'{{"offset": {file.stat().st_size}}}', "201 Made")
        state = "complete" if n else "absent"
        return http(f'{{"state": "{state}", "offset": 0, "key": "abc", "href": "/t/abc", "piece_bytes": {piece_bytes}}}')

    with server(script) as base:
        sent = send_file(file, Target.parse(base + "/base", TOKEN))
    assert sent.address == f"{base}/base/t/abc", "a server may not know under which path its proxy shows it"


# ---------------------------------------------------------------------------------------------------- time


def test_a_server_that_never_answers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "ANSWER_SECONDS", 0.1)
    with server(lambda n, method: None) as base, pytest.raises(SendError, match=r"does not answer \(.*timed out\)"):
        quick(file, base, give_up_seconds=3.0)


def test_a_server_that_never_comes_to_an_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "REQUEST_SECONDS", 0.5)
    with server(lambda n, method: http(" " * 5000), drip=True) as base, pytest.raises(SendError, match="is too slow: no answer within"):
        quick(file, base, give_up_seconds=1.0)


@pytest.mark.parametrize("drip", [False, True])
def test_cancelling_amid_a_request(file: Path, *, drip: bool) -> None:
    began = time.monotonic()
    with server(lambda n, method: http(" " * 5000) if drip else None, drip=drip) as base, pytest.raises(CollectCancelled):
        send_file(file, Target.parse(base, TOKEN), lambda: time.monotonic() - began > 0.5)
    assert time.monotonic() - began < 20


# ---------------------------------------------------------------------------------------------------- addresses and tokens


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://" + "a" * 70 + ".example", "no name of a machine"),
        ("http://a..b/", "no name of a machine"),
        ("http://host/a b", "characters that belong into none"),
        ("http://host/ü", "characters that belong into none"),
        ("http://ho st/", "characters that belong into none|no name of a machine"),
        ("http://host/\x1b[2J", "characters that belong into none"),
        ("http://[::1", "(?i)ipv6|is no address"),
    ],
)
def test_addresses_that_are_none(file: Path, address: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=words):
        Target.parse(address, None)
    assert cli.main(["send", str(file), "--to", address]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("token", ["sec\nret", "geheim-ü", "a b", "x\x00"])
def test_tokens_that_are_none(file: Path, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["send", str(file), "--to", "http://127.0.0.1:1", "--token", token]) == 2
    err = capsys.readouterr().err
    assert "The token has characters that no token has" in err
    assert token not in err
    if "\0" not in token:
        monkeypatch.setenv("SOCKSCOPE_TOKEN", token)
        assert cli.main(["send", str(file), "--to", "http://127.0.0.1:1"]) == 2


def test_a_token_may_end_with_the_line_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Target.parse("http://h", "secret\n").token == "secret"
    assert Target.parse("http://h", "  ").token is None

"""Requests to a dashboard elsewhere about one file: what it has of it, and a piece more. What answers, and what does not, is told in words.

By the standard library's urllib, which knows the system's proxies and certificates.
"""

import contextlib
import email.message
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote, urlsplit

from collector.errors import CollectCancelled, SendError

__all__ = ["Answer", "Link", "Target", "Unreached", "stop_if"]

ANSWER_SECONDS = 120.0
"""Without a byte from the other side."""
REQUEST_SECONDS = 400.0
"""For a whole request: a piece at the slowest rate that a dashboard takes, and its answer."""
_WATCH_SECONDS = 0.1
_MOST_ANSWER = 1 << 20
_MOST_WORDS = 300
_NO_LONGER_READ = (BrokenPipeError, ConnectionResetError)
_LATER = (408, 423, 425, 429, 500, 502, 503, 504)
_OURS = (200, 201, 409, 422)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_STATES = ("absent", "arriving", "collecting", "complete", "failed", "cancelled")
_WITH_PAGE = ("collecting", "complete")
_OTHER_NAME = 62  # X509_V_ERR_HOSTNAME_MISMATCH of OpenSSL
_NOT_IN_TIME = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


@dataclass(frozen=True, slots=True)
class Target:
    """A dashboard: the address of its first page without a slash at the end, and the token that lets write."""

    address: str
    token: str | None
    context: ssl.SSLContext | None = None

    @classmethod
    def parse(cls, text: str, token: str | None, ca_file: str | None = None) -> "Target":
        """The dashboard of an address as its server prints it; a token in it counts unless one is given. Raises ValueError."""
        text = text.strip()
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text!r} is no address of a dashboard: write it as its server prints it, such as https://host:8350/.")
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{parts.hostname}: a name and a password do not belong into the address. Give the token with --token.")
        if parts.port == 0:
            raise ValueError(f"{text!r}: port 0 is none.")
        path = parts.path.partition("/t/")[0].rstrip("/")
        _check_host(parts.hostname)
        if not _is_plain(path) or not _is_plain(parts.netloc):
            raise ValueError(f"{text!r}: the address has characters that belong into none. Write it as the server prints it.")
        linked = parse_qs(parts.query).get("token", [None])[0]
        context = None
        if parts.scheme == "https":
            try:
                context = ssl.create_default_context(cafile=ca_file)
            except OSError as error:
                raise ValueError(f"{ca_file}: these certificates cannot be read ({error.strerror or error}).") from error
        return cls(f"{parts.scheme}://{parts.netloc}{path}", None, context).with_token(token or linked)

    def with_token(self, token: str | None) -> "Target":
        """The same with a token; spaces around it, as the end of a line of a file, are not its own. Raises ValueError."""
        token = (token or "").strip() or None
        if token is not None and not _is_plain(token):
            raise ValueError("The token has characters that no token has: copy it anew from where the server printed it.")
        return Target(self.address, token, self.context)

    @property
    def is_open(self) -> bool:
        """Whether what is sent can be read on its way, the token included."""
        return self.address.startswith("http://") and urlsplit(self.address).hostname not in _LOOPBACK


def _is_plain(text: str) -> bool:
    """Whether all of it is visible ASCII, as the head of a request takes it."""
    return text.isascii() and all("!" <= c <= "~" for c in text)


def _check_host(name: str) -> None:
    try:
        name.encode("idna")
    except UnicodeError as error:
        raise ValueError(f"{name!r} can be no name of a machine ({error}).") from error


@dataclass(frozen=True, slots=True)
class Answer:
    """What a dashboard says of a file; `state` is empty in answers to pieces, `key` and `href` in those of files that are not there."""

    status: int
    offset: int
    """How much of the file is there."""
    state: str = ""
    key: str = ""
    href: str = ""
    sentence: str = ""
    piece_bytes: int = 0
    """The most that one request should bring; 0 where it does not say."""


class Unreached(Exception):
    """A request without an answer that says yes or no; it may be made again after some seconds."""

    def __init__(self, sentence: str, seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class Link:
    """Requests about one file.

    Args:
        digest: SHA-256 of its bytes.
        name: the file's, for what is said of it.
        should_cancel: asked while a request is under way; once true, its connection is ended. Any thread may ask.
    """

    def __init__(self, target: Target, digest: str, name: str, should_cancel: Callable[[], bool]) -> None:
        self._target, self._address, self._name = target, f"{target.address}/uploads/files/{digest}", name
        self._should_cancel = should_cancel
        self._sockets: list[socket.socket] = []
        self._opener = urllib.request.build_opener(_NoRedirects(), *_handlers(target.context, self._sockets))

    def state(self) -> Answer:
        """What the server has of the file. Raises Unreached, SendError, CollectCancelled."""
        answer = self._ask("GET", None, {})
        if answer.state not in _STATES or (answer.state in _WITH_PAGE and not (answer.key and answer.href.startswith("/"))):
            self._refuse_answer()
        return answer

    def append(self, piece: bytes, *, offset: int, size: int, name: str) -> Answer:
        """Send a piece; the status is 200, 201 when the file is whole, 409 for another place, 422 for other content.

        Raises Unreached, SendError, CollectCancelled.
        """
        headers = {
            "Content-Type": "application/octet-stream",
            "Upload-Offset": str(offset),
            "Upload-Length": str(size),
            "X-File-Name": quote(name.encode("utf-8", "surrogateescape"), safe=""),
        }
        return self._ask("PATCH", piece, headers)

    def page(self, href: str) -> str:
        """The address of a path that the server gave; a server behind a proxy may not know of the proxy's path."""
        parts = urlsplit(self._target.address)
        path = "" if not parts.path or href.startswith(f"{parts.path}/") else parts.path
        return f"{parts.scheme}://{parts.netloc}{path}{href}"

    def _ask(self, method: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        request = urllib.request.Request(self._address, body, headers | {"Accept": "application/json"}, method=method)
        if self._target.token:
            request.add_unredirected_header("Authorization", f"Bearer {self._target.token}")
        status, text, said = self._answered(request)
        if status in _LATER:
            raise Unreached(_sentence(text) or f"{self._target.address} answers {status}.", _seconds_of(said))
        found = _json_of(text)
        if status in _OURS and isinstance(found, dict) and _is_count(found.get("offset")):
            return _answer_of(status, found)
        raise SendError(f"{self._name}: {self._target.address} does not take it: {_why(status, text, said)}")

    def _answered(self, request: urllib.request.Request) -> tuple[int, bytes, email.message.Message]:
        with self._watched() as is_too_slow:
            try:
                with self._opener.open(request, timeout=ANSWER_SECONDS) as answer:
                    text = answer.read(_MOST_ANSWER)
                    if answer.length and len(text) < _MOST_ANSWER:  # of a read with a limit the library does not say so
                        raise http.client.IncompleteRead(text, answer.length)
                    return answer.status, text, answer.headers
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, _rest_of(error), error.headers
            except (OSError, http.client.HTTPException) as error:
                stop_if(self._should_cancel)
                reason = getattr(error, "reason", None)
                cause = reason if isinstance(reason, Exception) else error
                if isinstance(cause, ssl.SSLCertVerificationError):
                    self._refuse_certificate(cause)
                if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
                    raise SendError(
                        f"{self._target.address}: no safe connection comes about ({cause.reason or cause}), so nothing was sent. "
                        "Does this server speak https, at this port?"
                    ) from error
                if is_too_slow():
                    raise Unreached(f"{self._target.address} is too slow: no answer within {REQUEST_SECONDS:,.0f} s.") from error
                if _is_other_protocol(error):
                    raise SendError(f"{self._target.address}: what answers there does not speak http. Is the address right?") from error
                words = _short(str(reason or error) or type(error).__name__)
                raise Unreached(f"{self._target.address} does not answer ({words}).") from error

    @contextlib.contextmanager
    def _watched(self) -> Iterator[Callable[[], bool]]:
        """Ends the connection of a request that is cancelled, or whose other side sends a byte now and then and never comes to an end.

        Gives whether the second has happened.
        """
        over, late = threading.Event(), threading.Event()
        ends = time.monotonic() + REQUEST_SECONDS

        def watch() -> None:
            while not over.wait(_WATCH_SECONDS):
                if time.monotonic() >= ends:
                    late.set()
                if late.is_set() or self._should_cancel():
                    for one in self._sockets:
                        with contextlib.suppress(OSError):
                            socket.socket.shutdown(one, socket.SHUT_RDWR)  # not the TLS one's: the other thread is using that

        watcher = threading.Thread(target=watch, name="sending", daemon=True)
        watcher.start()
        try:
            yield late.is_set
        finally:
            over.set()
            watcher.join()
            self._sockets.clear()

    def _refuse_answer(self) -> NoReturn:
        raise SendError(f"{self._name}: what {self._target.address} answers, no dashboard of sockscope does. Is the address right?")

    def _refuse_certificate(self, error: ssl.SSLCertVerificationError) -> NoReturn:
        match error.verify_code:
            case code if code == _OTHER_NAME:
                advice = "Use the name that the certificate is for."
            case code if code in _NOT_IN_TIME:
                advice = "Look at the clocks of both machines; else the server needs a new one."
            case _:
                advice = "Name the certificate of its authority with --ca-file."
        raise SendError(
            f"{self._target.address}: its certificate is not trusted ({error.verify_message}), so nothing was sent. {advice}"
        ) from error


def _handlers(context: ssl.SSLContext | None, sockets: list[socket.socket]) -> list[urllib.request.BaseHandler]:
    """Handlers whose connections put their sockets into a list, and hear an answer that comes before all was sent."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

        def send(self, data: Any) -> None:  # Any: as the library has it
            if self.sock is None:
                self.connect()
            with contextlib.suppress(*_NO_LONGER_READ):  # what the server has said is read next; where it said nothing, that fails
                super().send(data)

    class Safe(Plain, http.client.HTTPSConnection):
        """The same over TLS."""

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Safe, request, context=context)

    return [Http(), *([Https(context=context)] if context is not None else [])]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token is for this server alone."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def stop_if(should_cancel: Callable[[], bool]) -> None:
    """Raises CollectCancelled once that is wanted."""
    if should_cancel():
        raise CollectCancelled("Cancelled. If something has arrived, it stays there for a day: send the file again to go on.")


def _is_other_protocol(error: Exception) -> bool:
    """Whether a whole first line came and is none of http; a part of one is a connection that broke."""
    is_line = isinstance(error, http.client.BadStatusLine) and str(error).endswith("\n")
    return is_line or isinstance(error, http.client.UnknownProtocol)


def _answer_of(status: int, found: dict[str, Any]) -> Answer:  # Any: JSON
    words = {name: str(found.get(key) or "") for name, key in (("state", "state"), ("key", "key"), ("href", "href"))}
    said = _short(str(found.get("message") or found.get("sentence") or ""))
    piece = found.get("piece_bytes")
    most = piece if isinstance(piece, int) and _is_count(piece) else 0
    return Answer(status, found["offset"], **words, sentence=said, piece_bytes=most)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rest_of(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_MOST_ANSWER)
    except (OSError, http.client.HTTPException):
        return b""


def _json_of(text: bytes) -> Any:  # Any: JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _sentence(text: bytes) -> str:
    """What a server said of itself: the sentence of an answer of ours, else the first line where it is no page."""
    found = _json_of(text)
    if isinstance(found, dict):
        return _short(str(found.get("sentence", "")))
    first = text.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if first.startswith("<") else _short(first)


def _short(text: str) -> str:
    """In one line that fits into a message."""
    return " ".join(text.split())[:_MOST_WORDS]


def _why(status: int, text: bytes, headers: email.message.Message) -> str:
    if 300 <= status < 400:
        parts = urlsplit(str(headers.get("Location", "")))  # without a query: it may hold a token
        where = f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""
        return f"it leads elsewhere ({status}{f', to {where}' if where else ''}). Give the address to which it leads."
    said = _sentence(text) if status >= 400 else ""
    return said or f"it answers {status}, as no dashboard of sockscope does. Is the address right?"


def _seconds_of(headers: email.message.Message) -> float | None:
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else None

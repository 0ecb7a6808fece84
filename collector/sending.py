"""Sends trace files to a dashboard elsewhere, in pieces, and goes on where a broken connection left off.

By the standard library's urllib: one request at a time and no more than a piece in memory, which needs nothing beyond it; it knows the
system's proxies and certificates.
"""

import email.message
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote, urlsplit

from collector.errors import CollectCancelled, SendError
from collector.source import Source

__all__ = ["Sent", "Target", "send_file"]

GIVE_UP_SECONDS = 600.0
"""Without a byte more having arrived."""
_ANSWER_SECONDS = 120.0
_LONGEST_PAUSE = 30.0
_PIECE_BYTES = 4 << 20
_MOST_ANSWER = 1 << 20
_LATER = (408, 423, 425, 429, 500, 502, 503, 504)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Target:
    """A dashboard: the address of its first page without a slash at the end, and the token that lets write."""

    address: str
    token: str | None
    context: ssl.SSLContext | None = None

    @classmethod
    def parse(cls, text: str, token: str | None, ca_file: str | None = None) -> "Target":
        """The dashboard of an address as its server prints it; a token in it counts unless one is given. Raises ValueError."""
        parts = urlsplit(text.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text!r} is no address of a dashboard: write it as its server prints it, such as https://host:8350/.")
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{parts.hostname}: a name and a password do not belong into the address. Give the token with --token.")
        if parts.port == 0:
            raise ValueError(f"{text!r}: port 0 is none.")
        context = None
        if parts.scheme == "https":
            try:
                context = ssl.create_default_context(cafile=ca_file)
            except OSError as error:
                raise ValueError(f"{ca_file}: these certificates cannot be read ({error.strerror or error}).") from error
        path = parts.path.partition("/t/")[0].rstrip("/")
        linked = parse_qs(parts.query).get("token", [None])[0]
        return cls(f"{parts.scheme}://{parts.netloc}{path}", token or linked, context)

    @property
    def is_open(self) -> bool:
        """Whether what is sent can be read on its way, the token included."""
        return self.address.startswith("http://") and urlsplit(self.address).hostname not in _LOOPBACK


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a file: `collecting` or `complete`; `address` is that of its page."""

    key: str
    state: str
    address: str


def send_file(
    path: str | Path,
    target: Target,
    should_cancel: Callable[[], bool] = lambda: False,
    *,
    name: str | None = None,
    wait_for_pages: bool = True,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_trouble: Callable[[str], None] = lambda sentence: None,
    give_up_seconds: float = GIVE_UP_SECONDS,
    wait: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Sent:
    """Send a file that is finished, and wait until it is collected there.

    A broken connection and a busy server are waited for, up to `give_up_seconds` without a byte more; then a later call goes on where this
    one left off, also from another process, as the server knows the file by its content.

    Args:
        name: shown instead of the file's name.
        wait_for_pages: wait until the trace is complete there; else return when the whole file has arrived.
        on_progress: told how many bytes of how many have arrived.
        on_trouble: told in a sentence what is waited for.

    Raises: SourceError, SendError, CollectCancelled.
    """
    with Source.open(path) as source:
        digest = source.sha256(lambda: _stop_if(should_cancel))
        link = _Link(target, f"{target.address}/uploads/files/{digest}", source.name)
        return _Sending(source, link, name or source.name, should_cancel, on_progress, on_trouble, give_up_seconds, wait, now).run(
            wait_for_pages=wait_for_pages
        )


class _Unreached(Exception):
    """A request without an answer that says yes or no; it may be made again after some seconds."""

    def __init__(self, sentence: str, seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class _Link:
    """Requests about one file."""

    def __init__(self, target: Target, address: str, name: str) -> None:
        self._target, self._address, self._name = target, address, name
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if target.context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=target.context))
        self._opener = urllib.request.build_opener(*handlers)

    def state(self) -> dict[str, Any]:  # Any: JSON
        """What the server has of the file. Raises _Unreached, SendError."""
        return self._ask("GET", None, {})[1]

    def append(self, piece: bytes, *, offset: int, size: int, name: str) -> tuple[int, dict[str, Any]]:  # Any: JSON
        """Send a piece; the status is 200, 201 when the file is whole, 409 for another place, 422 for other content.

        Raises _Unreached, SendError.
        """
        headers = {
            "Content-Type": "application/octet-stream",
            "Upload-Offset": str(offset),
            "Upload-Length": str(size),
            "X-File-Name": quote(name.encode("utf-8", "surrogateescape"), safe=""),
        }
        return self._ask("PATCH", piece, headers)

    def page(self, href: object) -> str:
        """The address of a path that the server gave."""
        parts = urlsplit(self._target.address)
        return f"{parts.scheme}://{parts.netloc}{href}"

    def _ask(self, method: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:  # Any: JSON
        request = urllib.request.Request(self._address, body, headers | {"Accept": "application/json"}, method=method)
        if self._target.token:
            request.add_unredirected_header("Authorization", f"Bearer {self._target.token}")
        try:
            with self._opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                status, text, said = answer.status, answer.read(_MOST_ANSWER), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                status, text, said = error.code, _rest_of(error), error.headers
        except ssl.SSLCertVerificationError as error:
            self._refuse_certificate(error)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None)
            if isinstance(reason, ssl.SSLCertVerificationError):
                self._refuse_certificate(reason)
            raise _Unreached(f"{self._target.address} does not answer ({reason or error or type(error).__name__}).") from error
        if status in _LATER:
            raise _Unreached(_sentence(text) or f"{self._target.address} answers {status}.", _seconds_of(said))
        found = _json_of(text)
        if status in (200, 201, 409, 422) and isinstance(found, dict) and ("offset" in found):
            return status, found
        raise SendError(f"{self._name}: {self._target.address} does not take it: {_why(status, text)}")

    def _refuse_certificate(self, error: ssl.SSLCertVerificationError) -> NoReturn:
        raise SendError(
            f"{self._target.address}: its certificate is not trusted ({error.verify_message}), so nothing was sent. "
            "Name the certificate of its authority with --ca-file."
        ) from error


@dataclass(slots=True)
class _Sending:
    """One file on its way."""

    source: Source
    link: _Link
    name: str
    should_cancel: Callable[[], bool]
    on_progress: Callable[[int, int], None]
    on_trouble: Callable[[str], None]
    give_up_seconds: float
    wait: Callable[[float], None]
    now: Callable[[], float]
    begun_anew: int = 0

    def run(self, *, wait_for_pages: bool) -> Sent:
        state = self._patiently(self.link.state)
        while state["state"] in ("absent", "arriving", "failed"):
            state = self._rest(state)
        while wait_for_pages and state["state"] == "collecting":
            self._pause(1.0)
            state = self._patiently(self.link.state)
            if state["state"] == "failed":
                reason = str(state.get("message", "")).removeprefix(f"{self.name}: ")
                raise SendError(f"{self.name}: it has arrived and cannot be collected there: {reason}")
            if state["state"] in ("absent", "arriving"):
                raise SendError(f"{self.name}: it had arrived and is gone from there again: somebody cancelled it. Send it anew.")
        return Sent(str(state["key"]), str(state["state"]), self.link.page(state["href"]))

    def _rest(self, state: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Send what is missing; returns the state behind it."""
        size, offset = self.source.size, int(state["offset"])
        most = min(int(state.get("piece_bytes") or _PIECE_BYTES), _PIECE_BYTES)
        since, pause = self.now(), 1.0
        while True:
            _stop_if(self.should_cancel)
            self.on_progress(offset, size)
            piece = self.source.read_at(offset, min(most, size - offset))
            if len(piece) < min(most, size - offset):
                raise SendError(f"{self.name}: the file became shorter while it was sent. Send it when nothing writes it any more.")
            try:
                status, answer = self.link.append(piece, offset=offset, size=size, name=self.name)
            except _Unreached as error:
                self._give_up_or_wait(error, since, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                now_there = self._patiently(self.link.state)
                if now_there["state"] not in ("absent", "arriving"):
                    return now_there
                if int(now_there["offset"]) > offset:
                    since, pause = self.now(), 1.0
                offset = min(int(now_there["offset"]), size)
                continue
            if status == 201:
                self.on_progress(size, size)
                return self._patiently(self.link.state)
            if status == 422:
                self.begun_anew += 1
                if self.begun_anew > 1:
                    raise SendError(
                        f"{self.name}: {answer.get('sentence') or 'it arrives as another file.'} Does something still write it?"
                    )
            there = min(int(answer["offset"]), size)
            if there > offset:
                since, pause = self.now(), 1.0
            elif status != 422:
                self._give_up_or_wait(_Unreached("Nothing more arrives there."), since, pause)
            offset = there

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:  # Any: JSON
        """An answer, however long the server needs to give one. Raises SendError, CollectCancelled."""
        since, pause = self.now(), 1.0
        while True:
            try:
                return ask()
            except _Unreached as error:
                self._give_up_or_wait(error, since, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _give_up_or_wait(self, error: _Unreached, since: float, pause: float) -> None:
        if self.now() - since >= self.give_up_seconds:
            raise SendError(f"{self.name}: {error} Given up. If something has arrived, it stays for a day: send it again.") from error
        self.on_trouble(str(error))
        self._pause(max(pause, min(error.seconds or 0.0, _LONGEST_PAUSE)))

    def _pause(self, seconds: float) -> None:
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            _stop_if(self.should_cancel)
            self.wait(min(left, 0.2))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token is for this server alone."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def _stop_if(should_cancel: Callable[[], bool]) -> None:
    if should_cancel():
        raise CollectCancelled("Cancelled. If something has arrived, it stays there for a day: send the file again to go on.")


def _rest_of(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_MOST_ANSWER)
    except (OSError, http.client.HTTPException):
        return b""


def _json_of(text: bytes) -> Any:  # Any: JSON
    try:
        return json.loads(text)
    except ValueError:
        return None


def _sentence(text: bytes) -> str:
    """What a server said of itself: the sentence of an answer of ours, else the first line where it is no page."""
    found = _json_of(text)
    if isinstance(found, dict):
        return str(found.get("sentence", ""))
    first = text.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if first.startswith("<") else first[:300]


def _why(status: int, text: bytes) -> str:
    if 300 <= status < 400:
        return f"it leads elsewhere ({status}). Give the address to which it leads."
    said = _sentence(text)
    return said or f"it answers {status}, as no dashboard of sockscope does. Is the address right?"


def _seconds_of(headers: email.message.Message) -> float | None:
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isdigit() else None

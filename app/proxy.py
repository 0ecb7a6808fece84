"""A reverse proxy in front of the server: what it says about the browser, believed only where its address is trusted, and its base path.

A proxy says whom it speaks for in X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host (de facto headers; MDN describes them). Anybody
can send them, so those of other addresses are as if they were not there.
"""

import ipaddress
import re
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BasePath", "Forwarded", "networks_of"]

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(words: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks as `10.0.0.0/8`. Raises ValueError for what is neither."""
    return tuple(ipaddress.ip_network(word.strip().strip("[]"), strict=False) for word in words)


class Forwarded:
    """Puts the browser's address, scheme and host in the place of the proxy's."""

    def __init__(self, app: ASGIApp, trusted: tuple[Network, ...]) -> None:
        self._app, self._trusted = app, trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("client") and self._is_trusted(scope["client"][0]):
            headers = Headers(scope=scope)
            scope = dict(scope)
            client = self._client(headers.getlist("x-forwarded-for"))
            if client is not None:
                scope["client"] = (client, 0)
            scheme = _last(headers.getlist("x-forwarded-proto")).lower()
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
            host = _last(headers.getlist("x-forwarded-host"))
            kept = [(name, value) for name, value in scope["headers"] if name not in _FORWARDED]
            if _HOST.fullmatch(host):
                kept = [(name, value) for name, value in kept if name != b"host"] + [(b"host", host.encode())]
            scope["headers"] = kept
        await self._app(scope, receive, send)

    def _is_trusted(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self._trusted)

    def _client(self, values: list[str]) -> str | None:
        """The last address of the chain that is no proxy of ours: what stands before it, the browser may have written itself."""
        for word in reversed(",".join(values).split(",")):
            address = _address(word.strip())
            if address is None:
                return None
            if not any(address in network for network in self._trusted):
                return str(address)
        return None


class BasePath:
    """Takes the base path off, for proxies that leave it on; those that take it off themselves work as well."""

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        self._app, self._base = app, base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"] == self._base or scope["path"].startswith(self._base + "/")):
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            cut = len(self._base)  # the base path has only characters that stand for themselves in a URL
            scope = {**scope, "path": scope["path"][cut:] or "/", "raw_path": raw[cut:] or b"/"}
        await self._app(scope, receive, send)


def _last(values: list[str]) -> str:
    """The value that the nearest proxy wrote."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address with or without a port; IPv4 also as IPv6 has it."""
    bare = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address

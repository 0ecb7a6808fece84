"""What a server needs to know before it starts; checked once."""

import ipaddress
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from app.proxy import networks_of

__all__ = ["Settings", "SettingsError", "is_loopback"]


_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
_BASE_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")


class SettingsError(ValueError):
    """A setting that cannot work; the message says which and what is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one server.

    `database` is the folder of the traces or the address of a database server, None for the default one. `token` is demanded from
    everybody when it is set; it must be set where the server listens on anything but the loopback address. With `view_token` one can
    look and not write. `allowed_hosts` are further names by which the server may be called, `trusted_proxies` the addresses or networks
    whose word about the browser counts.
    `uploads` says whether browsers may send traces, None: only where nobody but this machine reaches the server; `upload_bytes` is the
    most that one may have. `has_metrics` adds a page for Prometheus; `logs_requests` writes a line for each request; `log_format` is text
    or json. `secret` is what tokens of forms and marks of kept answers are made of: the processes of one server share it.
    """

    database: Path | str | None = None
    host: str = "127.0.0.1"
    port: int = 8350
    token: str | None = None
    view_token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    root_path: str = ""
    query_seconds: float = 8.0
    uploads: bool | None = None
    upload_bytes: int = 8 << 30
    has_metrics: bool = False
    logs_requests: bool = False
    log_format: str = "text"
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False, compare=False)

    def check(self) -> "Settings":
        """The settings themselves. Raises SettingsError for what cannot work."""
        if not 0 <= self.port <= 65_535:
            raise SettingsError(f"port {self.port}: a port is a number from 0 to 65535.")
        for token in (self.token, self.view_token):
            if token is not None and len(token) < 16:
                raise SettingsError("The token is too short: 16 characters or more.")
            if token is not None and not _TOKEN.fullmatch(token):
                raise SettingsError("A token is made of letters, digits and - . _ ~, so that it fits a link and a cookie.")
        if self.view_token is not None and (self.token is None or self.token == self.view_token):
            raise SettingsError("A token for reading needs another one for writing beside it: give one with --token.")
        if self.token is None and not is_loopback(self.host):
            raise SettingsError(
                f"{self.host}: on an address that other machines reach, the server demands a token. Give one with --token, "
                "or listen on 127.0.0.1."
            )
        if self.query_seconds <= 0:
            raise SettingsError("The time limit of a query must be more than 0 seconds.")
        if self.upload_bytes <= 0:
            raise SettingsError("The size limit of an upload must be more than 0 bytes.")
        if self.root_path and not self.root_path.startswith("/"):
            raise SettingsError(f"{self.root_path}: the base path starts with a slash.")
        if self.base_path and not _BASE_PATH.fullmatch(self.base_path):
            raise SettingsError(f"{self.root_path}: the base path is made of letters, digits and - . _ ~ between slashes.")
        try:
            networks_of(self.trusted_proxies)
        except ValueError as error:
            raise SettingsError(f"{error}: name the addresses of proxies as 10.0.0.1 or 10.0.0.0/8.") from error
        return self

    @property
    def takes_uploads(self) -> bool:
        """Whether browsers may send traces."""
        return is_loopback(self.host) and not self.trusted_proxies if self.uploads is None else self.uploads

    @property
    def base_path(self) -> str:
        """The path under which a proxy shows the server, without a slash at its end."""
        return self.root_path.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

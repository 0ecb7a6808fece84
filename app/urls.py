"""Paths of our own pages: by the name of the route, below the base path of a proxy, with a query in a stable order."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.applications import Starlette

from app.assets import static_version

__all__ = ["Urls", "with_query"]

_PLAIN = "@:,/"  # harmless in a query, and links are read by people


def with_query(path: str, query: Mapping[str, str]) -> str:
    """A path with its query string, none when the query is empty."""
    return f"{path}?{urlencode(query, safe=_PLAIN)}" if query else path


class Urls:
    """Writes paths such as `/t/3f…/sockets/0x…@0?from=0`."""

    def __init__(self, app: Starlette, base_path: str) -> None:
        self._app, self.base_path = app, base_path

    def __call__(self, name: str, query: Mapping[str, str] | None = None, /, **parts: object) -> str:
        """The path of a route. Raises starlette.routing.NoMatchFound for a name or parts that no route has."""
        quoted = {key: quote(str(value), safe=_PLAIN.replace("/", "")) for key, value in parts.items()}
        return with_query(self.base_path + str(self._app.url_path_for(name, **quoted)), query or {})

    def static(self, name: str) -> str:
        """The path of a static file, with its version."""
        version = static_version(name)
        return with_query(f"{self.base_path}/static/{name}", {"v": version} if version else {})

    def below(self, trace_key: str, link: str) -> str:
        """The path of a stored link, which is a path below /t/KEY/."""
        return f"{self.base_path}/t/{quote(trace_key)}/{link.lstrip('/')}"

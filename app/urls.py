"""Paths of our own pages: by the name of the route, below the base path of a proxy, with a query in a stable order."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode

from starlette.applications import Starlette
from starlette.requests import Request

from app import clockface
from app.assets import static_version

__all__ = ["Urls", "with_query"]

_PLAIN = "@:,/"  # harmless in a query, and links are read by people
_PLAIN_PART = _PLAIN.replace("/", "")
_MARK = "\0"  # in no path


def with_query(path: str, query: Mapping[str, str]) -> str:
    """A path with more of a query string: what the path has already stays, unless `query` gives it anew."""
    if not query:
        return path
    place, mark, fragment = path.partition("#")
    place, _, had = place.partition("?")
    kept = [(key, value) for key, value in parse_qsl(had, keep_blank_values=True) if key not in query]
    return f"{place}?{urlencode([*kept, *query.items()], safe=_PLAIN)}{mark}{fragment}"


class Urls:
    """Writes paths such as `/t/3f…/sockets/0x…@0?from=0`."""

    def __init__(self, app: Starlette, base_path: str) -> None:
        self._app, self.base_path = app, base_path
        self._patterns: dict[tuple[str, ...], str] = {}

    def __call__(self, name: str, query: Mapping[str, str] | None = None, /, **parts: object) -> str:
        """The path of a route. Raises starlette.routing.NoMatchFound for a name or parts that no route has."""
        texts = [str(value) for value in parts.values()]
        assert all(texts), f"{name}: an empty part"  # would be the path of another page
        pattern = self._patterns.get((name, *parts))
        if pattern is None:
            pattern = self._patterns[(name, *parts)] = self._pattern(name, *parts)
        path = pattern.format(*(quote(text, safe=_PLAIN_PART) for text in texts))
        return with_query(path, _clock_of(path, self.base_path) | dict(query or {}))

    def _pattern(self, name: str, *parts: str) -> str:
        """The path of a route with a gap for each part: to look for the route among all takes longer than all else in a cell of a table."""
        marks = {part: f"{_MARK}{index}{_MARK}" for index, part in enumerate(parts)}
        path = self.base_path + str(self._app.url_path_for(name, **marks))
        path = path.replace("{", "{{").replace("}", "}}")
        for index, mark in enumerate(marks.values()):
            path = path.replace(mark, f"{{{index}}}")
        return path

    def here(self, request: Request) -> str:
        """The path of a request, without its query but for the clock that it asks for."""
        path = self.base_path + request.url.path
        return with_query(path, _clock_of(path, self.base_path))

    def same_page(self, request: Request, parts: Mapping[str, str], query: Mapping[str, str] | None = None) -> str:
        """The path of the page that a request asks for, with other parts in its path and its query."""
        changed = query or {}
        path = self(request.scope["route"].name, **{**request.path_params, **parts}).partition("?")[0]  # the clock is in the query
        given = [(key, value) for key, value in request.query_params.multi_items() if key not in changed] + list(changed.items())
        return f"{path}?{urlencode(given, safe=_PLAIN)}" if given else path

    def static(self, name: str) -> str:
        """The path of a static file, with its version."""
        version = static_version(name)
        return with_query(f"{self.base_path}/static/{name}", {"v": version} if version else {})

    def below(self, trace_key: str, link: str) -> str:
        """The path of a stored link, which is a path below /t/KEY/."""
        path = f"{self.base_path}/t/{quote(trace_key)}/{link.lstrip('/')}"
        return with_query(path, _clock_of(path, self.base_path))


def _clock_of(path: str, base_path: str) -> dict[str, str]:
    """What keeps the clock of the request on other pages of its trace."""
    is_asked = clockface.current() is not None and path.startswith(f"{base_path}/t/")
    return {clockface.CLOCK: "utc"} if is_asked else {}

"""All pages of a trace, found as a browser finds them: by the links from its overview on, some of each kind."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi.testclient import TestClient

from tests.test_app_lists import LISTS, sorts_of

__all__ = ["linked_paths", "list_paths"]

_OF_A_KIND = 2
_HREF = re.compile(r'href="(/t/[^"#]*)')
_THING = re.compile(r"[0-9].*|[0-9A-Fa-f]{8,}|[A-Z]+:.*|(send|recv|accept|connect)\w*:.*")


def linked_paths(client: TestClient, key: str) -> list[str]:
    """Pages that links lead to, two of each kind, and one by each part of a query; other forms of a page are left out."""
    start = f"/t/{key}"
    found, seen, waiting = [], Counter[str](), [start]
    known = {start}
    for path in waiting:  # grows meanwhile
        found.append(path)
        answer = client.get(path, headers={"Accept": "text/html"})
        for link in _links(answer.text):
            kind = _kind_of(link)
            if link not in known and seen[kind] < (1 if "?" in link else _OF_A_KIND):
                seen[kind] += 1
                known.add(link)
                waiting.append(link)
    return found


def list_paths(key: str) -> list[str]:
    """All lists of a trace in each order, both ways."""
    return [
        f"/t/{key}/{name}?sort={sign}{sort.key}"
        for name, module in LISTS.items()
        for sort in sorts_of(module)
        for sign in ("", "-")
        if (name, sign) != ("events", "-")
    ]


def _links(page: str) -> Iterator[str]:
    for text in _HREF.findall(page):
        parts = urlsplit(html.unescape(text))
        query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "format"]
        if len(query) < 2:
            yield parts.path + (f"?{urlencode(query)}" if query else "")


def _kind_of(link: str) -> str:
    """What links have in common that lead to the same kind of page."""
    parts = urlsplit(link)
    path = "/".join("…" if _THING.fullmatch(part) else part for part in parts.path.split("/")[3:])
    return f"{path}?{' '.join(sorted(name for name, _ in parse_qsl(parts.query, keep_blank_values=True)))}"

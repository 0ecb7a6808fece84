"""What the dashboard answers, taken apart for tests."""

import html
import json
import re
from typing import Any

from fastapi.testclient import TestClient

__all__ = ["as_json", "figure_in", "text_of"]


def as_json(client: TestClient, path: str) -> dict[str, Any]:
    """A page as JSON. Any: JSON."""
    answer = client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def figure_in(page: str, name: str) -> dict[str, Any]:
    """The figure that a page embeds under a name. Any: JSON."""
    found = re.search(rf'<script type="application/json" id="{name}-figure">(.*?)</script>', page, re.DOTALL)
    assert found, f"the page has no figure {name}"
    figure: dict[str, Any] = json.loads(found[1])
    return figure


def text_of(page: str) -> str:
    """The words of a page without its markup and scripts, spaces run together."""
    bare = re.sub(r"<script.*?</script>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", bare)))

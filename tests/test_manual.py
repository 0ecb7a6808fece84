"""The documentation under /help: every page is there, as text of ours and never as markup of anybody's."""

import re
import tomllib
from pathlib import Path

import pytest

from app import manual
from tests.build.imported import Imported
from tests.build.served import served


@pytest.mark.parametrize("name", manual.PAGES)
def test_each_page_is_shown_and_comes_with_the_package(sample: Imported, project_root: Path, name: str) -> None:
    with served(sample.folder) as client:
        page = client.get(f"/help/{name}", headers={"Accept": "text/html"})
        listed = client.get("/help", headers={"Accept": "text/html"}).text
    assert page.status_code == 200
    assert f'href="/help/{name}"' in listed
    assert len(re.findall("<h1", page.text)) == 1
    included = tomllib.loads((project_root / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert included["force-include"][f"docs/{name}.md"] == f"app/docs/{name}.md"


def test_every_page_of_the_documentation_is_listed(project_root: Path) -> None:
    assert {path.stem for path in (project_root / "docs").glob("*.md")} == set(manual.PAGES)


def test_raw_markup_is_text_and_links_between_pages_lead_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cli.md").write_text("# Title\n\n<script>x</script> [tables](schema.md#a) [bad](javascript:x)\n\n| a |\n| --- |\n| 1 |\n")
    monkeypatch.setattr(manual, "manual_folder", lambda: tmp_path)
    html = manual.manual_html.__wrapped__("cli")
    assert "&lt;script&gt;" in html
    assert 'href="schema#a"' in html
    assert 'href="javascript' not in html
    assert "<td>1</td>" in html


def test_a_page_that_there_is_not_is_said_so(sample: Imported) -> None:
    with served(sample.folder) as client:
        assert client.get("/help/../../etc", follow_redirects=True).status_code == 404
        answer = client.get("/help/poetry", headers={"Accept": "application/json"})
    assert answer.status_code == 404
    assert "poetry" in answer.text


def test_every_picture_of_the_documentation_is_shown(sample: Imported, project_root: Path) -> None:
    included = tomllib.loads((project_root / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert included["force-include"]["docs/screenshots"] == "app/docs/screenshots"
    with served(sample.folder) as client:
        pictures = {
            source: alt
            for name in manual.PAGES
            for source, alt in re.findall(
                r'<img src="([^"]*)" alt="([^"]*)"', client.get(f"/help/{name}", headers={"Accept": "text/html"}).text
            )
        }
        assert len(pictures) >= 8
        assert all(pictures.values())
        for source in pictures:
            answer = client.get(f"/help/{source}")
            assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), source
            assert answer.content.startswith(b"\x89PNG")
        for name in ("none.png", "..%2F..%2Fpyproject.toml", "..png"):
            assert client.get(f"/help/screenshots/{name}").status_code == 404

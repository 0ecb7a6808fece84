"""What the documents state is what the code does."""

import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def generator(project_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", project_root / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _plain_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delitem(os.environ, "SOCKSCOPE_DATABASE", raising=False)


def test_generated_pages_are_current(generator: ModuleType, project_root: Path) -> None:
    for name, text in generator.pages():
        if name == "cli.md" and sys.version_info[:2] != (3, 11):
            continue  # argparse lays its help out differently from version to version
        assert (project_root / "docs" / name).read_text(encoding="utf-8") == text, f"docs/{name} is out of date: run `make docs`"


def test_links_between_documents_lead_somewhere(project_root: Path) -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [project_root / "README.md", *sorted((project_root / "docs").glob("*.md"))]
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_dependency_has_its_reason(project_root: Path) -> None:
    text = (project_root / "pyproject.toml").read_text(encoding="utf-8")
    reasons = (project_root / "docs" / "dependencies.md").read_text(encoding="utf-8")
    block = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    names = re.findall(r'^\s+"([A-Za-z0-9-]+)', block, re.MULTILINE)
    assert len(names) > 10
    assert [name for name in names if name.removeprefix("types-") not in reasons] == []

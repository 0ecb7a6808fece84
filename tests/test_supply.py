"""What the project is made of: every version pinned, every licence named, and an audit that never takes silence for a clean answer."""

import importlib.util
import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement


@pytest.fixture(scope="module")
def supply(project_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("supply", project_root / ".ci" / "supply.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pins(project_root: Path) -> dict[str, str]:
    lines = (project_root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"([a-z0-9-]+)==([0-9][A-Za-z0-9.+!]*)", line) for line in lines if not line.startswith("#")]
    assert all(found), "a line of constraints.txt pins nothing"
    return {one[1]: one[2] for one in found if one}


def test_every_requirement_is_pinned_to_a_version_that_fits(project_root: Path, pins: dict[str, str], supply: ModuleType) -> None:
    settings = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]
    declared += settings["project"]["optional-dependencies"]["test"]
    wrong = []
    for text in declared:
        wanted = Requirement(text)
        version = pins.get(supply.canonical(wanted.name))
        if version is None or not wanted.specifier.contains(version):
            wrong.append((text, version))
    assert wrong == [], "run `make constraints`"


def test_what_requirements_bring_along_is_pinned_too(pins: dict[str, str], supply: ModuleType) -> None:
    here = supply.closure()
    if any(pins.get(name, version) != version for name, version in here.items()):
        pytest.skip("other versions than the pinned ones are installed here; they may bring other packages along")
    assert [name for name in here if name not in pins] == [], "run `make constraints`"
    assert {"starlette", "pydantic", "greenlet", "markupsafe"} <= set(pins)


def test_every_pinned_package_has_its_licence(project_root: Path, pins: dict[str, str]) -> None:
    text = (project_root / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([0-9][^ ]*) \| [^|]{3,} \|$", text, re.MULTILINE))
    assert rows == pins, "run `make licences`"


def test_make_and_the_check_install_what_is_pinned(project_root: Path) -> None:
    for name in ("Makefile", ".ci/run"):
        text = (project_root / name).read_text(encoding="utf-8")
        assert "--constraint constraints.txt" in text


@pytest.fixture
def parts(supply: ModuleType, project_root: Path) -> dict[str, Any]:
    """A list of parts as CycloneDX has it, of what is installed here."""
    project = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [
        {"name": name.replace("-", "_"), "version": version, "purl": f"pkg:pypi/{name}@{version}", "licenses": [{"license": {"id": "MIT"}}]}
        for name, version in supply.closure(is_plain=True).items()
    ]
    about = {"name": "sockscope", "version": project["version"]}
    return {"bomFormat": "CycloneDX", "metadata": {"component": about}, "components": components}


def test_a_list_of_parts_has_all_that_is_needed(
    supply: ModuleType, parts: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sbom.cdx.json"
    path.write_text(json.dumps(parts))
    assert supply.main(["sbom", str(path)]) == 0
    count = len(parts["components"])
    assert count > 10
    assert capsys.readouterr().out == f"{count} of {count} packages that sockscope needs are listed, and 0 others.\n"
    assert {"fastapi", "numpy", "starlette"} <= set(supply.closure(is_plain=True))
    assert "pytest" not in supply.closure(is_plain=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda parts: parts["components"].pop(), "is missing, or listed otherwise: not at all"),
        (lambda parts: parts["components"][0].update(version="0"), "is missing, or listed otherwise: pkg:pypi/"),
        (lambda parts: parts["components"][0].update(purl="pkg:npm/x@1"), "is missing, or listed otherwise: pkg:npm/x@1"),
        (lambda parts: parts["components"][0].update(licenses=[]), "is listed without a licence"),
        (lambda parts: parts["metadata"]["component"].update(version="0"), "it is no CycloneDX document about sockscope"),
    ],
)
def test_a_part_that_is_not_listed_as_it_is_fails(
    supply: ModuleType, parts: dict[str, Any], capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], object], said: str
) -> None:
    change(parts)
    assert supply.sbom(parts) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("list of parts: ")
    assert said in first


FOUND = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"], "description": ""}
CLEAN = {"name": "a", "version": "1", "vulns": []}
HIT = {"name": "b", "version": "1", "vulns": [FOUND]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("answers", "explained", "status", "said"),
    [
        ([CLEAN], {}, 0, "1 packages checked, 0"),
        ([CLEAN, HIT], {}, 1, "NOT EXPLAINED; mended in 2.0"),
        ([HIT], {"CVE-1": "we never call it"}, 0, "explained: we never call it"),
        ([CLEAN, SKIPPED], {}, 0, "not checked: 1 of 2"),
        ([SKIPPED], {}, 0, "0 packages checked"),
        (None, {}, 0, "not checked"),
    ],
)
def test_an_audit_says_what_was_checked(
    supply: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    answers: list[dict[str, Any]] | None, explained: dict[str, str], status: int, said: str,
) -> None:  # fmt: skip
    out = "" if answers is None else json.dumps({"dependencies": answers})
    monkeypatch.setattr(supply.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, out, ""))
    monkeypatch.setattr(supply, "EXPLAINED", explained)
    assert supply.main(["audit"]) == status
    assert said in capsys.readouterr().out

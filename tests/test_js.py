"""The scripts' own tests, run by node without a browser."""

import shutil
import subprocess
from pathlib import Path

import pytest


def test_the_scripts_pass_their_own_tests(project_root: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    tests = sorted((project_root / "tests" / "js").glob("*.test.js"))
    assert tests
    done = subprocess.run([node, "--test", *map(str, tests)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_one_script_touches_plotly(project_root: Path) -> None:
    scripts = sorted((project_root / "static" / "js").rglob("*.js"))
    assert [path.name for path in scripts if "Plotly." in path.read_text(encoding="utf-8")] == ["chart.js"]


def test_no_script_has_globals_or_writes_markup(project_root: Path) -> None:
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
    for path in sorted((project_root / "static" / "js").rglob("*.js")):
        text = path.read_text(encoding="utf-8")
        assert not [word for word in forbidden if word in text], path.name
        assert "import " in text or "export " in text, f"{path.name} is no module"

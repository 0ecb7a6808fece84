"""Where templates, static files and the plotly script lie: in the installed package, or beside it in a checkout."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

__all__ = ["manual_folder", "plotly_script", "static_folder", "static_version", "template_folder"]

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def template_folder() -> Path:
    """The folder of the templates."""
    return _folder("templates")


def static_folder() -> Path:
    """The folder of style sheets and scripts."""
    return _folder("static")


def manual_folder() -> Path:
    """The folder of the documentation's pages."""
    return _folder("docs")


def plotly_script() -> Path | None:
    """The plotly.js that the installed plotly package carries; None where it carries none."""
    spec = importlib.util.find_spec("plotly")
    for place in (spec.submodule_search_locations or []) if spec else []:
        script = Path(place) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    return None


@cache
def static_version(name: str) -> str:
    """A few digits that change when a static file does, so that browsers may keep it for as long as it is the same."""
    path = static_folder() / name
    return hashlib.sha256(path.read_bytes()).hexdigest()[:10] if path.is_file() else ""

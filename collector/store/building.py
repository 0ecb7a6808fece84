"""The local folder in which traces of a server are built, and what helps where it has no room."""

import hashlib
from pathlib import Path

import platformdirs

__all__ = ["advice_on_room", "building_folder"]


def building_folder(title: str) -> Path:
    """Where the traces of the server of this title are built. Touches nothing."""
    return _all() / hashlib.sha256(title.encode()).hexdigest()[:12]


def advice_on_room(path: Path) -> str:
    """What to do where the disk of this file of a database is full."""
    if _all() in path.parents:
        return "Free some there, where traces for a server are built, or set XDG_CACHE_HOME to a folder with more room."
    return "Free some, or name another folder with --database."


def _all() -> Path:
    return platformdirs.user_cache_path("sockscope", appauthor=False) / "building"

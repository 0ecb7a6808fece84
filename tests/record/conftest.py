"""Fixtures: a Windows that is played."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from collector.record import guardian, readiness
from tests.record.played import WINDOWS_11, Played, build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, built once."""
    return build(tmp_path_factory.mktemp("played"))


@pytest.fixture
def played(library: Path, tmp_path: Path) -> Played:
    """A fresh Windows without sessions."""
    folder = tmp_path / "windows"
    folder.mkdir()
    return Played(library, folder)


@pytest.fixture
def machine(played: Played, library: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A Windows 11 with the toolkit, where the command line runs in this process."""
    monkeypatch.setattr(readiness, "this_machine", lambda: WINDOWS_11)
    monkeypatch.setattr(readiness, "find_toolkit", lambda *_, **__: library)
    monkeypatch.setattr(readiness, "Windows", lambda paths: played.windows)
    monkeypatch.setattr(guardian, "Guardian", lambda *_: nullcontext())  # the tests with processes of their own have one
    return played

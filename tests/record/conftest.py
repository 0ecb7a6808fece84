"""Fixtures: a Windows that is played."""

from pathlib import Path

import pytest

from tests.record.played import Played, build


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

"""Fixtures that every test may use."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of the reference traces beside the project; the test is skipped where it is absent."""
    shared = ROOT.parent / "shared"
    if not (shared / "traces").is_dir():
        pytest.skip("the reference traces are not beside the project")
    return shared

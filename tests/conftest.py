"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.build import Trace
    from tests.build.imported import Imported, ImportTrace

ROOT = Path(__file__).resolve().parent.parent

# How long an example takes is no finding: on a busy machine any may take longer than the 0.2 s that hypothesis allows by default.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switch of `make test-server`."""
    parser.addoption("--server", action="store_true", help="have a PostgreSQL server in the place of folders of traces")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything that opens folders is imported."""
    if config.getoption("--server"):
        # A folder needs no end, so tests made for one leave to the search for garbage what a test of tests/server would close.
        config.addinivalue_line("filterwarnings", "ignore:.*was deleted while still open:ResourceWarning")
        from tests.server.stand_in import stand_in

        stand_in()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The server of a run ends with it."""
    if config.getoption("--server"):
        from tests.server.stand_in import end_server

        end_server()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that have nothing to say about a server."""
    if config.getoption("--server") and collection_path.suffix == ".py":
        from tests.server.left_out import is_left_out

        return is_left_out(collection_path) or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that have nothing to say about a server."""
    if config.getoption("--server"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("folder")])
        items[:] = [item for item in items if not item.get_closest_marker("folder")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """The databases of a module end with it."""
    try:
        return (yield)
    finally:
        if item.config.getoption("--server"):
            from tests.server.stand_in import end_test

            end_test(is_last=nextitem is None or nextitem.path != item.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """End a run that is told to stop, as by `timeout`.

    A verb that a test calls in this process would take the signal for its own, and cancel what the test then misses.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return (yield)
    seen, told = os.pipe()
    os.set_blocking(seen, False)
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    try:
        return (yield)
    finally:
        signal.set_wakeup_fd(before)
        os.close(told)
        with os.fdopen(seen, "rb") as numbers:
            if signal.SIGTERM in (numbers.read() or b""):
                pytest.exit("this run was told to stop by SIGTERM", returncode=128 + signal.SIGTERM)


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


@pytest.fixture
def import_trace(tmp_path: Path) -> ImportTrace:
    """Collects a built trace, or a file, into a temporary folder; gives a database to ask in SQL."""
    from tests.build.imported import collect

    count = 0

    def run(trace: Trace | Path) -> Imported:
        nonlocal count
        count += 1
        folder = tmp_path / f"import{count}"
        folder.mkdir()
        return collect(trace, folder)

    return run


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """The sample trace, collected once."""
    from collector.sample import write_sample
    from tests.build.imported import collect

    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder / "sample.etl")
    return collect(folder / "sample.etl", folder)

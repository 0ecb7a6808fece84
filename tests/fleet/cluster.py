"""A Dask cluster of real processes on this machine, which ends with the test."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from distributed import Client

from tests.fleet.holding import HOLD

__all__ = ["Cluster", "local_cluster", "until"]

ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 300.0


class Cluster:
    """Its scheduler and workers; `hold` is the folder by which tests hold imports, see `holding`."""

    def __init__(self, place: Path, **settings: str) -> None:
        self.hold = place / "hold"
        self.hold.mkdir()
        self._place = place
        self._settings = settings
        self.processes: list[subprocess.Popen[bytes]] = []
        said = place / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(said))
        until(lambda: said.exists() and said.read_text().endswith("}"))
        self.address = str(json.loads(said.read_text())["address"])

    def add_workers(self, count: int, *words: str, has_nanny: bool = False) -> list[subprocess.Popen[bytes]]:
        """Start workers and wait until the scheduler has them; without a nanny each is the process that is given."""
        before = asyncio.run(self.count())
        kind = "--nanny" if has_nanny else "--no-nanny"
        words = words or ("--nthreads", "1")
        started = [
            self._start(
                "dask_worker", self.address, kind, *words, "--preload", "tests.fleet.holding", "--local-directory", str(self._place)
            )
            for _ in range(count)
        ]
        asyncio.run(self.count(before + count))
        return started

    async def count(self, at_least: int = 0) -> int:
        """How many workers there are, once there are so many."""
        async with Client(self.address, asynchronous=True, set_as_default=False) as client:
            if at_least:
                await client.wait_for_workers(at_least, timeout=_PATIENCE_SECONDS)
            return len(client.scheduler_info()["workers"])

    def hold_at(self, key: str) -> Path:
        """Hold the imports of a trace from now on; they go on when the file that this gives is removed."""
        held = self.hold / key
        held.touch()
        return held

    def holder(self, key: str) -> int:
        """The process that waits in the middle of importing a trace, once there is one."""
        until(lambda: any(self.hold.glob(f"{key}.*")))
        (found,) = self.hold.glob(f"{key}.*")
        found.unlink()
        return int(found.suffix[1:])

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def _start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        with (self._place / "cluster.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *words, "--no-dashboard"],
                env=os.environ | {"PYTHONPATH": str(ROOT), HOLD: str(self.hold)} | self._settings,
                cwd=self._place,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process


@contextlib.contextmanager
def local_cluster(place: Path, **settings: str) -> Iterator[Cluster]:
    """A cluster whose files are in a folder, with a scheduler and no worker yet; `settings` are of its environment."""
    cluster = Cluster(place, **settings)
    try:
        yield cluster
    finally:
        cluster.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "what was waited for has not come"
        time.sleep(0.01)

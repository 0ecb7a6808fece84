"""Loaded by the workers of a test's cluster: an import waits, its rows half written, while the test has a file of its key in a folder.

`KEY.PID` beside it says which process waits. It stops waiting when it is told to cancel, too.
"""

import os
import time
from pathlib import Path

from collector import pipeline
from collector.stages import Import

__all__ = ["HOLD", "dask_setup"]

HOLD = "SOCKSCOPE_TEST_HOLD"
"""The variable of the environment that names the folder."""


def dask_setup(_worker: object) -> None:
    """What Dask calls when a worker begins; the rows of any file are inserted by a process of its own there."""
    place, join = Path(os.environ[HOLD]), Import.join

    def held_join(self: Import) -> None:
        held = place / self.key
        if held.exists():
            held.with_suffix(f".{os.getpid()}").touch()
        while held.exists():
            self.stop_if_asked()
            time.sleep(0.01)
        join(self)

    Import.join = held_join  # type: ignore[method-assign] # here imports are held
    pipeline._is_worth_a_process = lambda source: True

"""Any number of timed records in order of time, in bounded memory: sorted runs in a temporary file, read back a stretch at a time."""

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["STRETCH", "TimeSpool"]

Records = NDArray[np.void]

STRETCH = 125_000
"""Records that are in memory at once, about."""
_NEVER = np.iinfo(np.int64).max
_SAMPLE = 1024  # one time of so many is remembered to choose the stretches


class TimeSpool:
    """Takes records of a structured dtype with an int64 field `t`, in any order; a context manager.

    Up to `stretch` records never touch the disk.
    """

    def __init__(self, dtype: np.dtype[np.void], *, border: int, stretch: int = STRETCH) -> None:
        self._dtype = dtype
        self._border = border
        self._stretch = stretch
        self._waiting: list[Records] = []
        self._waiting_count = 0
        self._runs: list[tuple[int, int]] = []
        self._samples: list[NDArray[np.int64]] = []
        self._file: Any = None  # a binary temporary file; its class differs from system to system

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        if self._file is not None:
            self._file.close()

    def add(self, records: Records) -> None:
        """Take records; the array belongs to the spool afterwards."""
        if records.size:
            self._waiting.append(records)
            self._waiting_count += records.size
        if self._waiting_count >= self._stretch:
            self._spill()

    def stretches(self) -> Iterator[tuple[Records, int]]:
        """All records, ascending by `t`, in stretches; each with the time up to which it is complete (exclusive).

        That time is a multiple of 2^border, so no bucket of that width is cut.
        """
        if not self._runs:
            records = self._sorted_waiting()
            if records.size:
                yield records, self._ceiling(int(records["t"][-1]) + 1)
            return
        if self._waiting:
            self._spill()
        runs = [np.memmap(self._file, dtype=self._dtype, mode="r", offset=at, shape=(count,)) for at, count in self._runs]
        cursors = [0] * len(runs)
        heads = np.array(
            [run["t"][0] for run in runs]
        )  # the time at each cursor; records come nearly in order, so few runs share a stretch
        for until in self._untils():
            pieces = []
            for i in np.flatnonzero(heads < until).tolist():
                run, first = runs[i], cursors[i]
                stop = first + int(np.searchsorted(run["t"][first:], until, side="left"))
                pieces.append(np.array(run[first:stop]))
                cursors[i], heads[i] = stop, run["t"][stop] if stop < run.size else _NEVER
            if pieces:
                records = np.concatenate(pieces)
                yield records[np.argsort(records["t"], kind="stable")], until

    def _untils(self) -> list[int]:
        samples = np.sort(np.concatenate(self._samples))
        total = sum(count for _, count in self._runs)
        parts = -(-total // self._stretch)
        chosen = {self._ceiling(int(samples[samples.size * part // parts])) for part in range(1, parts)}
        return sorted(chosen | {self._ceiling(int(samples[-1]) + 1)})

    def _ceiling(self, t: int) -> int:
        return -((-t) >> self._border) << self._border

    def _sorted_waiting(self) -> Records:
        records = np.concatenate(self._waiting) if self._waiting else np.empty(0, dtype=self._dtype)
        self._waiting, self._waiting_count = [], 0
        return records[np.argsort(records["t"], kind="stable")]

    def _spill(self) -> None:
        records = self._sorted_waiting()
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        at = self._runs[-1][0] + self._runs[-1][1] * self._dtype.itemsize if self._runs else 0
        self._file.seek(at)
        self._file.write(records.tobytes())
        self._file.flush()
        self._runs.append((at, records.size))
        self._samples.append(np.append(records["t"][::_SAMPLE], records["t"][-1]))

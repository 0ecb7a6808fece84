"""Virtual memory that processes reserve, commit and give back, as columns."""

import numpy as np

from collector.model.processes import Processes
from collector.model.rows import Rows, rows_of
from collector.schema import DecodedBatch

__all__ = ["VirtualMemory"]

_ALLOC, _FREE = "VirtualAlloc", "VirtualFree"


class VirtualMemory:
    """The events of one trace; the process is in the payload."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._rows = 0

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in one window; gives its rows in time order."""
        parts = [(columns, is_free) for name, is_free in ((_ALLOC, False), (_FREE, True)) if (columns := batch.get(name)) is not None]
        if not parts:
            return {}
        rows = np.concatenate([columns.rows for columns, _ in parts])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]

        def joined(name: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
            values: np.ndarray[tuple[int], np.dtype[np.uint64]] = np.concatenate(
                [columns.numbers(name).astype(np.uint64) for columns, _ in parts]
            )[order]
            return values

        processes = self._processes.of_pids(joined("process_id").astype(np.int64), batch, rows)
        tids = batch.raw.tid[rows]
        made = {
            "n": np.arange(self._rows + 1, self._rows + 1 + rows.size, dtype=np.int64),
            "t_ns": batch.ns[rows],
            "process_n": np.ma.MaskedArray(processes, processes < 0),
            "tid": np.ma.MaskedArray(tids, tids < 0),
            "is_free": np.repeat([is_free for _, is_free in parts], [len(columns) for columns, _ in parts])[order],
            "base": joined("base_address"),
            "size_bytes": np.minimum(joined("region_size"), np.uint64((1 << 63) - 1)),
            "flags": joined("flags").astype(np.int64),
        }
        self._rows += rows.size
        return {"virtual_memory": rows_of("virtual_memory", made, count=int(rows.size))}

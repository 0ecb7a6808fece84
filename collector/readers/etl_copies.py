"""Buffers that stand in a file more than once, as when a file was copied onto its own end: their records are read once.

Two buffers of one session are never equal, as they hold their sequence number and the time of each record.
"""

import hashlib

import numpy as np

from collector.raw import Int64s
from collector.readers.etl_buffers import HEADER_BYTES, BufferIndex
from collector.readers.problems import REPEATED_BUFFER, ProblemLog
from collector.source import Source

__all__ = ["leave_out_copies"]


def leave_out_copies(source: Source, index: BufferIndex, log: ProblemLog) -> None:
    """Take the records out of all copies but the first; they keep their number in the index.

    What is alike by the index is read, so a sound file costs no reading. Raises SourceError.
    """
    seen: set[bytes] = set()
    for number in _alike(index).tolist():
        offset, size = int(index.offset[number]), int(index.size[number])
        if not index.is_packed[number]:
            size = min(size, int(index.filled[number]))
        digest = hashlib.sha256(source.read_at(offset, size)).digest()
        if digest not in seen:
            seen.add(digest)
            continue
        log.add(REPEATED_BUFFER, place=f"buffer {number:,} at byte {offset:,}")
        index.filled[number] = HEADER_BYTES
        for flags in (index.has_ticks, index.has_lost_events, index.has_lost_buffers):
            flags[number] = False


def _alike(index: BufferIndex) -> Int64s:
    """Buffers with records that another one of the file resembles in all that the index knows; ascending."""
    with_records = np.flatnonzero(index.filled > HEADER_BYTES)
    columns = (index.sequence, index.cpu, index.filled, index.size, index.first_ticks)
    if np.unique(index.sequence[with_records]).size == with_records.size:
        return with_records[:0]
    _, group, count = np.unique(np.stack([column[with_records] for column in columns]), axis=1, return_inverse=True, return_counts=True)
    return with_records[count[group.reshape(-1)] > 1]

"""Resizes of blocks as the file has them, with the heap that only the rows of a model name."""

from collections.abc import Iterator

import numpy as np
from sqlalchemy import Connection, select

from collector.model.rows import Rows, block_of
from collector.store.tables import allocation, resize

__all__ = ["resizes_with_heap"]

_CHUNK = 50_000


def resizes_with_heap(connection: Connection) -> Iterator[Rows]:
    """Rows of table resize, in pieces, for who counts them; connected to the unfinished file."""
    a, r = allocation.c, resize.c
    query = select(r.n, r.allocation_n, r.t_ns, r.seq, r.size, r.old_size, a.process_n, a.heap_n)
    found = connection.execute(query.join_from(resize, allocation, (a.trace_id == r.trace_id) & (a.n == r.allocation_n)))
    names = list(found.keys())
    while rows := found.fetchmany(_CHUNK):
        columns = dict(zip(names, np.array([tuple(row) for row in rows], dtype=np.int64).T, strict=True))
        unstored = {name: columns.pop(name) for name in ("process_n", "heap_n")}
        yield {"resize": [block_of("resize", columns, count=len(rows), unstored=unstored)]}

"""The single measurements, each run in a process of its own: one line of JSON on stdout.

python -m bench.runs collect FILE FOLDER [alone]
python -m bench.runs decode FILE
python -m bench.runs count-bytes FILE
python -m bench.runs insert-rows TRACE.db FILE.db
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

__all__ = ["main"]

_ROWS_AT_ONCE = 50_000


def collect(file: str, folder: str, how: str = "") -> dict[str, object]:
    """A whole import; `alone`: without a second process for the rows."""
    from bench.packed import packed_bytes
    from bench.stages import Stopwatch
    from collector import pipeline
    from collector.pipeline import import_trace
    from collector.source import Source
    from collector.store.engine import TraceFolder

    if how == "alone":
        setattr(pipeline, "_BYTES_FOR_A_PROCESS", 1 << 60)  # noqa: B010 - a private number, changed for this measurement alone
    watch = Stopwatch()
    watch.attach()
    begin, used = time.perf_counter(), time.process_time()
    with closing(Source.open(file)) as source:
        report = import_trace(source, TraceFolder(folder))
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    inserting = sum(os.times()[2:4])
    path = TraceFolder(folder).trace_path(report.key)
    rows = {table: count for table, count in report.counts.items() if count}
    events = rows.pop("records")
    return {"key": report.key, "events": events, "seconds": seconds, "cpu": cpu + inserting, "inserting": inserting,
            "stages": watch.stop(), "rows": rows,
            "packed_bytes": packed_bytes(str(path)),
            "file_bytes": Path(file).stat().st_size, "database_bytes": path.stat().st_size}  # fmt: skip


def decode(file: str) -> dict[str, object]:
    """Walk, order and decode alone: all known events into columns, with process and thread of all records, which are then dropped."""
    from collector.decoder import Decoder
    from collector.readers import reader_for
    from collector.source import Source

    begin, used = time.perf_counter(), time.process_time()
    with closing(Source.open(file)) as source:
        reader = reader_for(source)
        decoder, clock = Decoder(header=reader.header), reader.header.clock
        events = known = 0
        for raw in reader.windows():
            batch = decoder.decode(raw, clock)
            assert raw.pid.size == raw.tid.size  # columns of headers are filled when they are asked for
            events += len(raw)
            known += sum(len(columns) for columns in batch.events.values())
    return {"events": events, "known": known, "seconds": time.perf_counter() - begin, "cpu": time.process_time() - used}


def count_bytes(file: str) -> dict[str, object]:
    """Floor (a): read the file and count the bytes that are not 0, the cheapest thing that looks at each of them."""
    import numpy as np

    begin, used = time.perf_counter(), time.process_time()
    found = 0
    memory = np.empty(1 << 20, np.uint8)
    with Path(file).open("rb", buffering=0) as handle:
        while count := handle.readinto(memory.data):
            found += int(np.count_nonzero(memory[:count]))
    return {"found": found, "seconds": time.perf_counter() - begin, "cpu": time.process_time() - used}


def insert_rows(trace: str, target: str) -> dict[str, object]:
    """Floor (b): the very rows of a finished trace by bare `executemany`, from ready tuples, in the order of their keys; then its indexes.

    Reading them out of the finished trace is not counted.
    """
    Path(target).unlink(missing_ok=True)
    insert = index = insert_cpu = index_cpu = 0.0
    rows = 0
    with closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as old, closing(sqlite3.connect(target, isolation_level=None)) as new:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536", "threads = 2"):
            new.execute(f"PRAGMA {pragma}")  # those of the collector
        tables = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
        indexes = old.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid").fetchall()
        for _, sql in tables:
            new.execute(sql)
        for name, _ in tables:
            cursor = old.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - names of our own tables
            statement = f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(cursor.description))})'  # noqa: S608 - see above
            while ready := cursor.fetchmany(_ROWS_AT_ONCE):
                begin, used = time.perf_counter(), time.process_time()
                new.execute("BEGIN")
                new.executemany(statement, ready)
                new.execute("COMMIT")
                insert, insert_cpu = insert + time.perf_counter() - begin, insert_cpu + time.process_time() - used
                rows += len(ready)
        begin, used = time.perf_counter(), time.process_time()
        new.execute("BEGIN")
        for (sql,) in indexes:
            new.execute(sql)
        new.execute("COMMIT")
        index, index_cpu = time.perf_counter() - begin, time.process_time() - used
    size = Path(target).stat().st_size
    Path(target).unlink()
    return {"rows": rows, "seconds": insert + index, "cpu": insert_cpu + index_cpu, "insert": insert_cpu, "index": index_cpu, "bytes": size}


def pages(folder: str, key: str) -> dict[str, object]:
    """The pages of a collected trace."""
    from bench.pages import measure_pages

    return measure_pages(folder, key)


_RUNS: dict[str, Callable[..., dict[str, object]]] = {
    "collect": collect, "decode": decode, "count-bytes": count_bytes, "insert-rows": insert_rows, "pages": pages,
}  # fmt: skip


def main(argv: list[str]) -> int:
    result = _RUNS[argv[0]](*argv[1:])
    peak = next((line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")), None)
    print(json.dumps(result | {"peak_rss": int(peak.split()[1]) * 1024 if peak else None}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""sockscope export: a trace as one file for somebody else."""

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from collector.errors import StoreError
from collector.verbs.arguments import Verbs, add_database, folder_of, new_verb

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope export fd96715a3a6d -o loopback.db
      writes the trace as one SQLite file; its views (v_sockets, v_operations, …) open in any SQLite tool"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "export", "copy a trace into one SQLite file", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write; default: KEY.db in this folder")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Copy one trace. Raises StoreError."""
    from collector.store.catalog import Catalog

    folder = folder_of(args)
    entry = Catalog.existing(folder).find(args.trace)
    source, target = folder.trace_path(entry.key), Path(args.output or f"{entry.key}.db")
    if not source.is_file():
        raise StoreError(f"{entry.key}: this trace is not complete ({entry.state}). Collect its file again.")
    if target.exists() and not args.force:
        print(f"{target}: this file is there already. Name another with -o, or replace it with --force.", file=sys.stderr)
        return 1
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}).") from error
    print(f"Wrote {target} ({target.stat().st_size:,} bytes).")
    return 0

"""sockscope export: a trace as one file for somebody else."""

import argparse
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from collector.errors import StoreError
from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, folder_of, new_verb

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope export fd96715a3a6d -o loopback.db
      writes the trace with its notes as one SQLite file; its views (v_sockets, v_operations, v_notes, …) open in any SQLite tool

  sockscope export fd96715a3a6d --mask
      the same with stand-ins for addresses, names and command lines, in fd96715a3a6d-masked.db; put into the folder `traces` of a
      database, `sockscope serve` shows it"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "export", "copy a trace into one SQLite file", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    parser.add_argument("-o", "--output", metavar="FILE", help="file or folder to write to; default: KEY.db in this folder")
    parser.add_argument("--mask", action="store_true", help="put stand-ins for addresses, names and command lines, the same everywhere")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Copy one trace. Raises StoreError, CollectCancelled."""
    from collector.store.catalog import Catalog
    from collector.store.copying import copy_trace
    from collector.store.masking import MASKED_KEY

    folder = folder_of(args, must_exist=True)
    entry = Catalog.readable(folder).find(args.trace)
    if not folder.has_trace(entry.key):
        raise StoreError(f"{entry.key}: this trace is not complete ({entry.state}). Collect its file again, then export it.")
    name = f"{entry.key}{MASKED_KEY if args.mask else ''}.db"
    target = Path(args.output or name)
    if target.is_dir():
        target /= name
    if target.exists():
        if not target.is_file():
            raise StoreError(f"{target}: this is no ordinary file. Name a file with -o.")
        if target.samefile(folder.trace_path(entry.key)):
            raise StoreError(f"{target}: this is the trace's own file in the database. Name another with -o.")
        if not args.force:
            say(
                f"sockscope export: {target}: this file is there already. Name another with -o, or replace it with --force.",
                file=sys.stderr,
            )
            return 1
    secret = secrets.token_bytes(32) if args.mask else None
    notes = copy_trace(folder, entry.key, target, should_cancel, mask_secret=secret)
    with_notes = f" with {notes:,} {'note' if notes == 1 else 'notes'}" if notes else ""
    say(f"Wrote {target} ({target.stat().st_size:,} bytes){with_notes}.")
    if args.mask:
        say(
            "Masked: addresses, names, command lines. Kept: times, sizes, ports, process ids, statuses, files of Windows. "
            "Read the notes before you give it away: people write what no program knows.",
            file=sys.stderr,
        )
    return 0

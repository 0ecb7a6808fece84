"""sockscope backup: a second folder with the same traces and notes."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, folder_of, new_verb

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope backup /backup/sockscope
      copies the traces that are not there yet, and the catalog with its notes; collectors and servers go on meanwhile
  sockscope serve --database /backup/sockscope
      shows the back-up; to restore, put it in the place of the lost folder"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "backup", "copy what is new to a second folder", EXAMPLE)
    parser.add_argument("target", metavar="FOLDER", help="folder of the back-up; it is made where there is none")
    parser.add_argument("--drop-deleted", action="store_true", help="remove traces from the back-up that were deleted from the database")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Back the folder up. Raises StoreError, CollectCancelled."""
    from collector.store.backup import back_up
    from collector.store.engine import TraceFolder

    folder = folder_of(args, must_exist=True, of_a_server="Of a server pg_dump --schema=sockscope makes a back-up.")
    done = back_up(folder, TraceFolder(Path(args.target)), should_cancel, drops_deleted=args.drop_deleted)
    parts = [f"{len(done.copied):,} trace{'s' * (len(done.copied) != 1)} copied", f"{len(done.there_already):,} there already"]
    if done.deleted:
        parts.append(f"{len(done.deleted):,} deleted from the database, {'removed' if args.drop_deleted else 'kept'}")
    say(f"{args.target}: {', '.join(parts)}.")
    for key in done.left_out:
        say(f"{key}: left out, since it is not whole, or its file is missing or damaged.", file=sys.stderr)
    return 3 if done.left_out else 0

"""sockscope delete: a trace out of the database."""

import argparse
from collections.abc import Callable

from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, new_verb, store_of

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope delete fd96715a3a6d
      removes the trace; the file that it was read from is not touched, and notes come back when it is collected again"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "delete", "delete a trace from the database", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Delete one trace. Raises StoreError."""
    from collector.store.catalog import Catalog

    catalog = Catalog.existing(store_of(args, must_exist=True))
    entry = catalog.find(args.trace)
    catalog.remove(entry.key)
    say(f"Deleted {entry.key}  {entry.name}.")
    return 0

"""sockscope migrate: databases of older versions up to date."""

import argparse
import sys
from collections.abc import Callable

from collector.errors import StoreError
from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, folder_of, new_verb

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope migrate
      brings the catalog and every trace to the version of this program; a trace is changed on a copy that takes its place"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "migrate", "bring the database up to date after an update of sockscope", EXAMPLE)
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Bring everything up to date; a trace that cannot be is named, and the others go on. Raises StoreError."""
    from collector.store.catalog import Catalog
    from collector.store.migrate import upgrade_trace

    folder = folder_of(args, must_exist=True)
    catalog = Catalog.existing(folder)
    changed = failed = 0
    for key in folder.trace_keys():
        try:
            changed += upgrade_trace(folder, key)
        except StoreError as error:
            say(f"sockscope migrate: {error}", file=sys.stderr)
            failed += 1
    total = len(folder.trace_keys())
    filled = catalog.fill()
    entered = f" What {filled} of them {'contains' if filled == 1 else 'contain'} was entered." if filled else ""
    say(f"{changed} of {total} {'trace' if total == 1 else 'traces'} brought up to date; the catalog is current.{entered}")
    return 1 if failed else 0

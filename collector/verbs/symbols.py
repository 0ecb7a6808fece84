"""sockscope symbols: names of functions into a trace that is collected already."""

import argparse
import sys
from collections.abc import Callable

from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, new_verb, store_of

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope symbols fd96715a3a6d C:\build\Release C:\Symbols
      names the functions in the call stacks of the trace, from the symbol files (.pdb) in these folders and those below them;
      a symbol store (name.pdb\ID\name.pdb) is a folder like any other. A file is used only if it has the GUID and age that the
      trace gives for the module. Nothing is downloaded.

exit status: 0 names were found; 1 none were; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "symbols", "name the functions in a trace's call stacks, from symbol files", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="a folder of symbol files (.pdb)")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Write the names that the folders have for one trace. Raises StoreError, SymbolsError, CollectCancelled."""
    from collector.naming import name_trace
    from collector.store.catalog import Catalog
    from collector.symbols import Symbols

    folder = store_of(args, must_exist=True)
    entry = Catalog.existing(folder).find(args.trace)
    with Symbols(args.folders) as symbols:
        naming = name_trace(folder, entry.key, symbols, should_cancel)
    for line in naming.lines:
        say(f"{entry.name}: {line}", file=sys.stderr)
    say(f"{entry.key}  {entry.name}: {naming.summary()}")
    return 0 if naming.files else 1

"""sockscope label: a word of one's own for a trace."""

import argparse
from collections.abc import Callable

from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, new_verb, store_of

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope label fd96715a3a6d before the fix
      the list of traces shows the label in front of the file's name, and it names the trace for other verbs; traces with a label outlive
      sockscope prune. Without words the label is printed, with --clear it is taken away"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "label", "give a trace a label, show it or take it away", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    parser.add_argument("words", metavar="WORDS", nargs="*", help="the label; without any the present one is printed")
    parser.add_argument("--clear", action="store_true", help="take the label away")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Set, print or clear the label of one trace. Raises StoreError."""
    import sys

    from collector.store.catalog import Catalog
    from collector.store.keeping import set_label

    label = " ".join("".join(c if c.isprintable() else " " for c in " ".join(args.words)).split())
    if args.clear and args.words:
        say("sockscope label: --clear takes the label away; give either words or --clear.", file=sys.stderr)
        return 2
    folder = store_of(args, must_exist=True)
    if not args.words and not args.clear:
        entry = Catalog.readable(folder).find(args.trace)
        say(entry.label or f"{entry.key}  {entry.name} has no label.")
        return 0
    catalog = Catalog.existing(folder)
    entry = catalog.find(args.trace)
    set_label(catalog, entry.key, label or None)
    say(f"{entry.key}  {entry.name} is labelled “{label}”." if label else f"{entry.key}  {entry.name} has no label now.")
    return 0

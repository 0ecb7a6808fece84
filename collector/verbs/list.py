"""sockscope list: the traces of the database."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict

from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, new_verb, store_of

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope list
      prints a line for each trace: key, state, start, number of records and sockets, name, and whether data was lost or is damaged"""

_LIMITS = {"data_loss": "data lost", "damage": "damaged"}


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "list", "list the traces of the database", EXAMPLE)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Print the traces, newest first. Raises StoreError."""
    from collector.store.catalog import Catalog

    folder = store_of(args, must_exist=True)
    entries, limits, there = [], {}, set[str]()
    if folder.has_catalog():
        catalog = Catalog.readable(folder)
        entries, limits, there = catalog.entries(), catalog.limits(), set(folder.trace_keys())
    absent = {entry.key for entry in entries if entry.state == "complete" and entry.key not in there}
    if args.json:
        more = {entry.key: {"limits": limits.get(entry.key, ()), "has_file": entry.key in there} for entry in entries}
        print(json.dumps([asdict(entry) | more[entry.key] for entry in entries], indent=2))
        return 0
    if not entries:
        say(f"There are no traces in {folder.title}. Collect one: sockscope collect FILE.etl")
        return 0
    width = max(12, *(len(entry.key) for entry in entries)) + 2
    say(f"{'KEY':<{width}}{'STATE':<13}{'START (UTC)':<21}{'RECORDS':>12}{'SOCKETS':>10}  NAME")
    for entry in entries:
        start = (entry.start_utc or "unknown")[:19].replace("T", " ")
        state = entry.state
        if state == "collecting" and entry.bytes_total:
            state = f"{100 * (entry.bytes_done or 0) // entry.bytes_total} % read"
        records, sockets = (f"{n:,}" if n is not None else "" for n in (entry.records, entry.sockets))
        marks = [_LIMITS[limit] for limit in limits.get(entry.key, ())]
        marks += ["its file is missing: collect it again"] if entry.key in absent else []
        said = "".join(f" ({text})" for text in (", ".join(marks), entry.message) if text)
        say(f"{entry.key:<{width}}{state:<13}{start:<21}{records:>12}{sockets:>10}  {entry.label or entry.name}{said}")
    return 0

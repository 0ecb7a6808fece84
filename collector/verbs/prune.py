"""sockscope prune: old traces out of the database, so that it stays within bounds."""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collector.errors import StoreError
from collector.plain import say
from collector.retention import Candidate, Plan, parse_age, parse_amount, plan
from collector.verbs.arguments import Verbs, add_database, checked, new_verb, store_of

if TYPE_CHECKING:
    from collector.store.catalog import Catalog

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope prune --older-than 30d --keep-bytes 20GB --dry-run
      says which traces would go and why, and deletes none: those collected more than 30 days ago, then the oldest until the files of all
      traces have at most 20 GB. Traces with a label or with notes stay unless --also-labelled is given, those being collected in any case

exit status: 0 done; 1 a trace could not be deleted, or more than --keep-bytes are left; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "prune", "delete old traces, by age or until the rest is small enough", EXAMPLE)
    parser.add_argument("--older-than", type=checked(parse_age), metavar="AGE", help="delete what was collected longer ago: 30d, 12h, 2w")
    parser.add_argument(
        "--keep-bytes", type=checked(parse_amount), metavar="SIZE", help="then delete the oldest until the files have at most this: 20GB"
    )
    parser.add_argument("--also-labelled", action="store_true", help="also traces with a label or with notes")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Say what goes, and delete it; one that cannot be deleted is named, and the others go on. Raises StoreError."""
    from collector.store.catalog import Catalog

    if args.older_than is None and args.keep_bytes is None:
        say("sockscope prune: say what may go, with --older-than 30d or --keep-bytes 20GB.", file=sys.stderr)
        return 2
    folder = store_of(args, must_exist=True)
    catalog = Catalog.readable(folder) if args.dry_run else Catalog.existing(folder)
    if not args.dry_run:
        catalog.settle()
    chosen = plan(
        _candidates(catalog),
        now=datetime.now(UTC),
        older_than=args.older_than,
        keep_bytes=args.keep_bytes,
        also_labelled=args.also_labelled,
    )
    _tell(chosen, is_dry=args.dry_run)
    left, failed = (chosen.bytes_after, 0) if args.dry_run else _delete(catalog, chosen, should_cancel)
    if args.keep_bytes is not None and left > args.keep_bytes:
        say(f"sockscope prune: {left:,} bytes are left, more than the {args.keep_bytes:,} that may stay.", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _tell(chosen: Plan, *, is_dry: bool) -> None:
    """What goes and what stays all the same, a line each."""
    for word, choices in (("would go" if is_dry else "goes", chosen.goes), ("stays", chosen.spared)):
        for one in choices:
            say(f"{word}: {one.trace.key}  {one.trace.label or one.trace.name}, {one.trace.size_bytes:,} bytes: {one.why}")
    if not chosen.goes:
        say(f"No trace goes; {chosen.bytes_before:,} bytes stay.")
    elif is_dry:
        say(f"{len(chosen.goes)} would go, {chosen.bytes_after:,} of {chosen.bytes_before:,} bytes would stay.")


def _delete(catalog: "Catalog", chosen: Plan, should_cancel: Callable[[], bool]) -> tuple[int, int]:
    """Delete what goes; returns the bytes that are left, and how many traces could not be deleted."""
    left, failed, gone = chosen.bytes_before, 0, 0
    for one in chosen.goes:
        if should_cancel():
            say(f"Stopped after {gone} of {len(chosen.goes)}.", file=sys.stderr)
            return left, len(chosen.goes) - gone
        try:
            catalog.remove(one.trace.key)
        except StoreError as error:
            say(f"sockscope prune: {error}", file=sys.stderr)
            failed += 1
            continue
        gone += 1
        left -= one.trace.size_bytes
    if gone:
        say(f"Deleted {gone}; {left:,} of {chosen.bytes_before:,} bytes are left.")
    return left, failed


def _candidates(catalog: "Catalog") -> list[Candidate]:
    from collector.store.keeping import noted
    from collector.store.stores import UNFINISHED

    notes, folder = noted(catalog), catalog.folder
    found = []
    for entry in catalog.entries():
        size_bytes = folder.size_of(entry.key)
        is_busy = entry.state in UNFINISHED or folder.is_being_collected(entry.key)
        collected = _when(entry.finished_utc or entry.collected_utc)
        found.append(Candidate(entry.key, entry.name, entry.label, collected, size_bytes, notes.get(entry.key, 0), is_busy))
    return found


def _when(stored: str) -> datetime:
    """When a trace was collected; one that came with a file from elsewhere and says no time counts as new."""
    try:
        when = datetime.fromisoformat(stored)
    except ValueError:
        return datetime.now(UTC)
    return when if when.tzinfo else when.replace(tzinfo=UTC)

"""sockscope migrate: databases of older versions up to date."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from collector.errors import StoreError
from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, checked, new_verb, store_of

if TYPE_CHECKING:
    from collector.store.engine import TraceFolder
    from collector.store.server import TraceServer

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope migrate
      brings the catalog and every trace to the version of this program; a trace is changed on a copy that takes its place
  sockscope migrate --database postgresql://collector@db/traces --grant-to dashboard
      makes the tables of a server or brings them up to date, and lets the role `dashboard` read them and write notes and labels
  sockscope migrate --database postgresql://collector@coordinator/traces --distribute
      spreads the traces over the servers of a Citus cluster (docs/scale.md)"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "migrate", "bring the database up to date after an update of sockscope", EXAMPLE)
    parser.add_argument(
        "--grant-to", action="append", default=[], metavar="ROLE", help="let a role of the server read, and write notes; may be repeated"
    )
    parser.add_argument(
        "--distribute", action="store_true", help="spread the tables of the server over the Citus cluster that it coordinates"
    )
    parser.add_argument(
        "--shards", type=checked(_shards), metavar="N", help="with --distribute: in how many parts; default: as many as servers hold rows"
    )
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, _should_cancel: Callable[[], bool]) -> int:
    """Bring everything up to date; a trace that cannot be is named, and the others go on. Raises StoreError."""
    from collector.store.engine import TraceFolder

    if args.shards and not args.distribute:
        say("sockscope migrate: --shards goes with --distribute.", file=sys.stderr)
        return 2
    store = store_of(args, must_exist=True)
    if isinstance(store, TraceFolder):
        if args.grant_to:
            say("sockscope migrate: --grant-to is for a server; whom a folder is open to, its permissions say.", file=sys.stderr)
            return 2
        if args.distribute:
            say("sockscope migrate: --distribute is for a server; the traces of a folder are on one machine.", file=sys.stderr)
            return 2
        return _migrate_folder(store)
    from collector.store.server import TraceServer

    assert isinstance(store, TraceServer)
    status = _migrate_server(store, args.grant_to)
    if args.distribute:
        _distribute_server(store, args.shards)
    return status


def _migrate_server(server: "TraceServer", roles: list[str]) -> int:
    is_new = not server.has_catalog()
    server.make()
    is_changed = server.migrate()
    said = "made" if is_new else "brought up to date" if is_changed else "current"
    say(f"{server.title}: the tables are {said}.")
    for role in roles:
        server.grant_to(role)
        say(f"The role {role} may read, and write notes and labels.")
    return 0


def _distribute_server(server: "TraceServer", shards: int | None) -> None:
    done = server.distribute(shards)
    if done.traces or done.catalog:
        say(
            f"Distributed {done.traces} {'table' if done.traces == 1 else 'tables'} of traces over {done.shards} "
            f"{'shard' if done.shards == 1 else 'shards'}, and copied {done.catalog} of the catalog to every server."
        )
    else:
        say(f"The tables are distributed already, over {done.shards} {'shard' if done.shards == 1 else 'shards'}.")


def _shards(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= 64_000:
        raise ValueError(f"{text}: a number of shards from 1 to 64000")
    return number


def _migrate_folder(folder: "TraceFolder") -> int:
    from collector.store.catalog import Catalog
    from collector.store.migrate import upgrade_trace

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

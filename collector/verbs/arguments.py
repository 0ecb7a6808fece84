"""What several verbs have in common on the command line."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from collector.errors import NotAFolder, StoreError
from collector.limits import WhichSocket, parse_moment, parse_which_socket, parse_who
from collector.plain import say

if TYPE_CHECKING:
    from collector.store.catalog import Entry
    from collector.store.engine import TraceFolder
    from collector.store.stores import TraceStore

__all__ = [
    "Verbs",
    "add_database",
    "add_range",
    "add_times",
    "checked",
    "folder_of",
    "new_verb",
    "output_path",
    "refusal",
    "socket_of",
    "store_of",
    "tell_note",
    "whole_trace",
]

T = TypeVar("T")

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def new_verb(verbs: Verbs, name: str, summary: str, example: str) -> argparse.ArgumentParser:
    """A verb whose help ends with a worked example."""
    return verbs.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_database(parser: argparse.ArgumentParser) -> None:
    """The option that names the folder of the traces."""
    parser.add_argument(
        "--database",
        metavar="PLACE",
        help="folder of the traces, or postgresql://USER@HOST/DATABASE; default: $SOCKSCOPE_DATABASE, else a folder in your user data",
    )


def add_range(parts: "argparse._ArgumentGroup") -> None:
    """The options that name processes and a range of time."""
    parts.add_argument(
        "--process",
        action="append",
        default=[],
        type=checked(parse_who),
        metavar="WHO",
        help="a process: PID, PID@NS or app.exe; may be repeated",
    )
    add_times(parts)


def add_times(parts: "argparse._ActionsContainer") -> None:
    """The options that name a range of time."""
    parts.add_argument(
        "--from",
        dest="from_ns",
        type=checked(parse_moment),
        metavar="TIME",
        help="what lasts until then or later: ns since time 0, or 12.5s; a time before 0 is written --from=-5s",
    )
    parts.add_argument("--to", dest="to_ns", type=checked(parse_moment), metavar="TIME", help="what begins then or earlier")


def store_of(args: argparse.Namespace, *, must_exist: bool = False) -> "TraceStore":
    """The folder or the server that the command line or the environment names.

    `must_exist` is for verbs that only look at what is there: a folder that was named and is missing is a mistake, while the default one
    may just not be there yet. Raises NotAFolder, StoreError.
    """
    from collector.store.engine import ENVIRONMENT_VARIABLE
    from collector.store.stores import open_store

    store = open_store(args.database)
    store.check(must_exist=must_exist and bool(args.database is not None or os.environ.get(ENVIRONMENT_VARIABLE)))
    return store


def folder_of(args: argparse.Namespace, *, must_exist: bool = False, of_a_server: str = "Name one with --database.") -> "TraceFolder":
    """The same, for verbs that work with a folder alone. Raises NotAFolder for a server, and says what is to be done with one."""
    from collector.store.engine import TraceFolder

    store = store_of(args, must_exist=must_exist)
    if not isinstance(store, TraceFolder):
        raise NotAFolder(f"{store.title}: this is a server, and sockscope {args.verb} works with a folder. {of_a_server}")
    return store


def output_path(output: str | None, name: str) -> Path:
    """Where a verb writes to: what is named, or a file of this name in the folder that is."""
    target = Path(output or name)
    return target / name if target.is_dir() else target


def refusal(target: Path, folder: "TraceStore", *, force: bool) -> str | None:
    """Why nothing is written there, for what can be helped by --force or another name. Raises StoreError for what cannot.

    Nothing goes into the folder of the traces itself: no force replaces the catalog or another trace, nor those of another folder.
    """
    from collector.store.engine import folder_of_file

    if folder.holds(target):
        raise StoreError(f"{target}: this is within the database itself, {folder.title}. Name a place outside of it with -o.")
    if (other := folder_of_file(target)) is not None:
        raise StoreError(f"{target}: this is a file of another database, {other}. Name a place outside of it with -o.")
    if not target.exists():
        return None
    if not target.is_file():
        raise StoreError(f"{target}: this is no ordinary file. Name a file with -o.")
    return None if force else f"{target}: this file is there already. Name another with -o, or replace it with --force."


def checked(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A parser whose ValueError argparse shows as it is."""

    def run(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return run


def socket_of(text: str) -> WhichSocket:
    """A socket as a user names it. Raises ArgumentTypeError."""
    try:
        return parse_which_socket(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def whole_trace(entry: "Entry", folder: "TraceStore", *, then: str) -> "Entry":
    """The entry of a trace whose file is there. `then` is what can be done once it is collected again. Raises StoreError."""
    if folder.has_trace(entry.key):
        return entry
    if entry.state == "complete":
        raise StoreError(
            f"{entry.key}: the file of this trace is missing: {folder.whereabouts(entry.key)}. Collect {entry.name} again, then {then}."
        )
    raise StoreError(f"{entry.key}: this trace is not complete ({entry.state}). Collect its file again, then {then}.")


def tell_note(sentence: str) -> None:
    """Say on stderr what a user should know of an input, and what is no fault."""
    say(sentence, file=sys.stderr)

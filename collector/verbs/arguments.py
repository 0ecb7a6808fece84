"""What several verbs have in common on the command line."""

import argparse
import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collector.store.engine import TraceFolder

__all__ = ["Verbs", "add_database", "folder_of", "new_verb"]

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
        metavar="FOLDER",
        help="folder of the traces; default: $SOCKSCOPE_DATABASE, else a folder in your user data",
    )


def folder_of(args: argparse.Namespace, *, must_exist: bool = False) -> "TraceFolder":
    """The folder that the command line or the environment names.

    `must_exist` is for verbs that only look at what is there: a folder that was named and is missing is a mistake, while the default one
    may just not be there yet. Raises NotAFolder, StoreError.
    """
    from collector.store.engine import ENVIRONMENT_VARIABLE, TraceFolder

    folder = TraceFolder(args.database)
    folder.check(must_exist=must_exist and bool(args.database is not None or os.environ.get(ENVIRONMENT_VARIABLE)))
    return folder

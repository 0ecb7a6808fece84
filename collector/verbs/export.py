"""sockscope export: a trace, or a part or a view of it, as files for somebody else."""

import argparse
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from collector.limits import Limits
from collector.plain import say
from collector.verbs.arguments import Verbs, add_database, add_range, new_verb, output_path, refusal, socket_of, store_of, whole_trace

if TYPE_CHECKING:
    from collector.store.copying import Change
    from collector.store.stores import TraceStore

__all__ = ["add", "run"]

EXAMPLE = """example:
  sockscope export fd96715a3a6d -o loopback.db
      writes the trace with its notes as one SQLite file; its views (v_sockets, v_operations, v_notes, …) open in any SQLite tool

  sockscope export fd96715a3a6d --mask
      the same with stand-ins for addresses, names and command lines, in fd96715a3a6d-masked.db; put into the folder `traces` of a
      database, `sockscope serve` shows it

  sockscope export fd96715a3a6d --process webproxy.exe --from 10s --to 20s -o part.db
      a part of it, with sums and findings of that part

  sockscope export fd96715a3a6d --view v_operations --socket 0xffffe000a1b2c3d4@1500000 -o operations.csv
      a view of a part as CSV; .jsonl gives JSON lines and .parquet Parquet. Without --view, --as csv writes all views into a folder

  sockscope export fd96715a3a6d --as datasette -o loopback
      a folder for Datasette: `datasette loopback` shows tables that lead to each other, with what their columns hold"""

_SQLITE = "sqlite"
_SUFFIXES = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".db": _SQLITE, ".sqlite": _SQLITE, ".sqlite3": _SQLITE,
}  # fmt: skip
_DATASETTE = "datasette"
_FORMS = (_SQLITE, "csv", "jsonl", "parquet", _DATASETTE)


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "export", "write a trace, a part or a view of it to a file", EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    parser.add_argument("-o", "--output", metavar="FILE", help="file or folder to write to; default: KEY.db in this folder")
    parser.add_argument(
        "--as",
        dest="form",
        choices=_FORMS,
        help="the form; default: by the end of FILE (.csv, .jsonl, .parquet), else sqlite",
    )
    parser.add_argument(
        "--view", action="append", default=[], metavar="NAME", help="a view such as v_operations, as csv, jsonl or parquet; may be repeated"
    )
    parser.add_argument("--mask", action="store_true", help="put stand-ins for addresses, names and command lines, the same everywhere")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parts = parser.add_argument_group("only a part", "links are those of the whole trace, but for a suffix to its key")
    add_range(parts)
    parts.add_argument(
        "--socket",
        action="append",
        default=[],
        type=socket_of,
        metavar="SOCKET",
        help="a socket by its link, 0xENDPOINT@NS, with the heap blocks behind its buffers; may be repeated",
    )
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Write one trace. Raises StoreError, NothingLeft, CollectCancelled."""
    from collector.export.views import VIEWS
    from collector.store.catalog import Catalog
    from collector.store.masking import MASKED_KEY

    form = args.form or ("csv" if args.view else _SQLITE)
    if args.output and not args.form:
        form = _SUFFIXES.get(Path(args.output).suffix.lower(), form)
    limits = Limits(tuple(args.process), args.from_ns, args.to_ns, sockets=tuple(args.socket), done="exported")
    views = list(dict.fromkeys(args.view)) or [*VIEWS]
    is_folder = form == _DATASETTE or (form != _SQLITE and len(views) > 1)
    if wrong := _wrong_usage(args, form, limits, VIEWS) or (_no_folder(args.output) if is_folder else None):
        say(f"sockscope export: {wrong}", file=sys.stderr)
        return 2
    folder = store_of(args, must_exist=True)
    entry = whole_trace(Catalog.readable(folder).find(args.trace), folder, then="export it")
    key = f"{entry.key}{limits.suffix}{MASKED_KEY if args.mask else ''}"
    target = output_path(args.output, _default_name(key, form, views))
    if refused := _refusal(target, folder, is_folder=is_folder, force=args.force):
        say(f"sockscope export: {refused}", file=sys.stderr)
        return 1
    changes = _changes(limits, args.mask, should_cancel)
    if form == _SQLITE:
        from collector.store.copying import copy_trace

        notes = copy_trace(folder, entry.key, target, should_cancel, *changes)
        with_notes = f" with {notes:,} {'note' if notes == 1 else 'notes'}" if notes else ""
        say(f"Wrote {target} ({target.stat().st_size:,} bytes){with_notes}.")
    elif form == _DATASETTE:
        from collector.export.datasette import export_datasette

        numbers = export_datasette(folder, entry.key, target, should_cancel, *changes)
        say(f"Wrote {target} ({len(numbers)} tables, {sum(numbers.values()):,} rows). To look at it: datasette {target}")
    else:
        from collector.export.views import export_views

        numbers = export_views(folder, entry.key, views, form, target, should_cancel, *changes)
        rows = sum(numbers.values())
        what = f"{len(views)} views, {rows:,} rows" if is_folder else f"{rows:,} {'row' if rows == 1 else 'rows'}"
        say(f"Wrote {target} ({what}).")
        if not rows:
            say(f"{', '.join(views)}: nothing of this is in {'that part of ' if limits else ''}the trace.", file=sys.stderr)
    if args.mask:
        say(
            "Masked: addresses, names, command lines. Kept: times, sizes, ports, process ids, statuses, files of Windows. "
            "Read the notes before you give it away: people write what no program knows.",
            file=sys.stderr,
        )
    return 0


def _wrong_usage(args: argparse.Namespace, form: str, limits: Limits, known: tuple[str, ...]) -> str | None:
    """What is wrong with the command line, if anything."""
    if (ending := _strange_ending(args)) is not None:
        known_ends = ", ".join(end for end, of in _SUFFIXES.items() if of != _SQLITE)
        return f"{args.output}: {ending} is the end of no form of a view. There are {known_ends}; or name the form with --as."
    if strange := [view for view in args.view if view not in known]:
        return f"{strange[0]}: there is no such view. There are {', '.join(known)}."
    if args.view and form == _DATASETTE:
        return "--view is for csv, jsonl and parquet; Datasette gets all views as tables."
    if args.view and form == _SQLITE:
        return "--view is for csv, jsonl and parquet; a SQLite file has all views. Leave it out, or name the form with --as."
    if limits.from_ns is not None and limits.to_ns is not None and limits.from_ns > limits.to_ns:
        return "--to is before --from; give a range that runs forward."
    return None


def _strange_ending(args: argparse.Namespace) -> str | None:
    """The end of the name of a view's file that says a form which is not written; a folder may have any name."""
    if args.form or not args.output or len(set(args.view)) != 1 or Path(args.output).is_dir():
        return None
    ending = Path(args.output).suffix
    return ending if ending and ending.lower() not in _SUFFIXES else None


def _no_folder(output: str | None) -> str | None:
    """Why a new folder cannot be meant by a name that is one of a file."""
    if output is None or Path(output).suffix.lower() not in _SUFFIXES or Path(output).is_dir():
        return None
    return (
        f"{output}: this is the name of a file, and a folder of files is to be made. Leave {Path(output).suffix} out, or name one --view."
    )


def _default_name(key: str, form: str, views: list[str]) -> str:
    if form == _SQLITE:
        return f"{key}.db"
    if form == _DATASETTE:
        return f"{key}-{form}"
    return f"{key}-{views[0]}.{form}" if len(views) == 1 else f"{key}-{form}"


def _refusal(target: Path, folder: "TraceStore", *, is_folder: bool, force: bool) -> str | None:
    """Why nothing is written there, for what can be helped by --force or another name. Raises StoreError for what cannot."""
    if is_folder and target.exists() and not folder.holds(target):
        return f"{target}: this is there already. Name another folder with -o, or remove it: what is in a folder is never replaced."
    return refusal(target, folder, force=force)


def _changes(limits: Limits, mask: bool, should_cancel: Callable[[], bool]) -> list["Change"]:
    """What is done to a copy of the trace, in order."""
    changes: list[Change] = []
    if limits:
        from collector.export.slicing import cut

        changes.append(lambda path: cut(path, limits, should_cancel))
    if mask:
        from collector.store.masking import mask_file

        secret = secrets.token_bytes(32)
        changes.append(lambda path: mask_file(path, secret, should_cancel))
    return changes

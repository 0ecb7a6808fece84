"""sockscope collect: traces into the database, with progress, problems and a line for each."""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from collector.errors import AlreadyCollected, CollectCancelled, Severity, StoreError, StoreLocked, TraceError
from collector.limits import KINDS, Limits, Who, parse_moment, parse_who
from collector.plain import plain_line, say
from collector.verbs.arguments import Verbs, add_database, folder_of, new_verb
from collector.verbs.growing import add_growing, follow_file, watch_folder, wrong_usage

if TYPE_CHECKING:
    from collector.pipeline import ImportReport, Progress
    from collector.store.engine import TraceFolder
    from collector.symbols import Symbols

__all__ = ["add", "collect_file", "run", "summary", "tell"]

_OF_ONE_FILE = (AlreadyCollected, StoreLocked)
"""Errors of the database after which other files can still be collected."""

EXAMPLE = r"""example:
  sockscope collect C:\traces\loopback.etl
      reads the trace, stores its sockets, operations and heap blocks, and prints its key;
      `sockscope serve` then shows it at /t/KEY
  sockscope collect --follow C:\traces\running.etl
      shows a trace while its session still records it
  sockscope collect --watch C:\traces
      collects each trace that is put into this folder

exit status: 0 complete; 3 stored, but with loss or damage; 1 not stored, of several files at least one; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "collect", "decode trace files into the database", EXAMPLE)
    parser.add_argument("files", nargs="*", metavar="FILE", help="an .etl file")
    parser.add_argument("--name", help="show the trace under this name instead of the file's (one file only)")
    parser.add_argument("--keep", action="store_true", help="refuse a file that is collected already, instead of replacing its trace")
    parser.add_argument(
        "--symbols",
        action="append",
        default=[],
        metavar="DIR",
        help="name functions from the symbol files (.pdb) in this folder; may be repeated",
    )
    parts = parser.add_argument_group("store only a part", "links are those of the whole trace, but for a suffix to its key")
    parts.add_argument(
        "--process", action="append", default=[], type=_who, metavar="WHO", help="a process: PID, PID@NS or app.exe; may be repeated"
    )
    parts.add_argument(
        "--from",
        dest="from_ns",
        type=_moment,
        metavar="TIME",
        help="what lasts until then or later: ns since time 0, or 12.5s; a time before 0 is written --from=-5s",
    )
    parts.add_argument("--to", dest="to_ns", type=_moment, metavar="TIME", help="what begins then or earlier")
    parts.add_argument("--only", action="append", default=[], choices=KINDS, help="sockets or heap; processes and stacks always")
    add_growing(parser)
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Collect each file; the exit status says whether all were stored, and with several a line names what became of each."""
    if wrong := wrong_usage(args):
        say(f"sockscope collect: {wrong}", file=sys.stderr)
        return 2
    if args.name and len(args.files) > 1:
        say("sockscope collect: --name fits one file only.", file=sys.stderr)
        return 2
    limits = Limits(tuple(args.process), args.from_ns, args.to_ns, tuple(kind for kind in KINDS if kind in args.only))
    if limits.from_ns is not None and limits.to_ns is not None and limits.from_ns > limits.to_ns:
        say("sockscope collect: --to is before --from; give a range that runs forward.", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        symbols = None
        if args.symbols:
            from collector.symbols import Symbols

            symbols = stack.enter_context(Symbols(args.symbols))
        if args.follow:
            return follow_file(args, folder_of(args), should_cancel, symbols, limits)
        if args.watch is not None:
            return watch_folder(args, folder_of(args), should_cancel, symbols, limits)
        return _collect_all(args, should_cancel, symbols, limits)


def _collect_all(args: argparse.Namespace, should_cancel: Callable[[], bool], symbols: "Symbols | None", limits: Limits) -> int:
    folder = folder_of(args)
    complete: list[str] = []
    limited: list[str] = []
    failed: list[str] = []
    left = list(args.files)
    while left:
        file = left.pop(0)
        try:
            report = collect_file(file, folder, should_cancel, keep=args.keep, name=args.name, symbols=symbols, limits=limits)
        except TraceError as error:
            say(str(error), file=sys.stderr)
            failed.append(file)
            if isinstance(error, CollectCancelled) or (isinstance(error, StoreError) and not isinstance(error, _OF_ONE_FILE)):
                break  # the folder is the same for the files to come
            continue
        (limited if report.is_limited else complete).append(file)
        say(summary(report), flush=True)
    if len(args.files) > 1:
        results = (("stored", complete), ("stored with loss or damage", limited), ("not stored", failed), ("not tried", left))
        say("; ".join(f"{len(files):,} {words}: {', '.join(files)}" for words, files in results if files), file=sys.stderr)
    if failed:
        return 1
    return 3 if limited else 0


def collect_file(
    file: str,
    folder: "TraceFolder",
    should_cancel: Callable[[], bool],
    *,
    keep: bool = False,
    name: str | None = None,
    symbols: "Symbols | None" = None,
    limits: Limits | None = None,
) -> "ImportReport":
    """Collect one file with a progress bar on stderr, then say there what limits it. Raises TraceError."""
    from tqdm import tqdm

    from collector.pipeline import import_trace
    from collector.source import Source

    with (
        Source.open(file) as source,
        tqdm(total=source.size, unit="B", unit_scale=True, desc=plain_line(source.name), leave=False, disable=None) as bar,
    ):
        began = time.monotonic()

        def show(progress: "Progress") -> None:
            rate = progress.records / max(time.monotonic() - began, 0.001)
            bar.set_postfix_str(f"{progress.stage}, {progress.records:,} events, {rate:,.0f}/s", refresh=False)
            bar.update(progress.bytes_done - bar.n)

        report = import_trace(source, folder, show, should_cancel, keep=keep, name=name, symbols=symbols, limits=limits)
    tell(report)
    return report


def tell(report: "ImportReport") -> None:
    """Say on stderr what limits a stored trace, and what symbol files gave."""
    for problem in report.problems:
        if problem.severity != Severity.NOTE:
            say(f"{report.name}: {problem.severity.replace('_', ' ')}: {problem.text}", file=sys.stderr)
    if report.naming is not None:
        for line in (*report.naming.lines, report.naming.summary()):
            say(f"{report.name}: symbols: {line}", file=sys.stderr)


def _who(text: str) -> Who:
    try:
        return parse_who(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _moment(text: str) -> int:
    try:
        return parse_moment(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def summary(report: "ImportReport") -> str:
    """One line for a stored trace."""
    nouns = (("process", "process", "processes"), ("socket", "socket", "sockets"), ("operation", "operation", "operations"),
             ("allocation", "allocation", "allocations"), ("finding", "finding", "findings"))  # fmt: skip
    counts = ", ".join(f"{n:,} {one if n == 1 else many}" for table, one, many in nouns if (n := report.counts[table]) or table == "socket")
    return f"{report.key}  {report.name}: {report.counts['records']:,} records, {counts} in {report.seconds:.1f} s"

"""sockscope collect: traces into the database, with progress, problems and a line for each."""

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from collector.errors import PackageError, TraceError
from collector.limits import KINDS, Limits
from collector.plain import say
from collector.retention import parse_amount
from collector.verbs.arguments import Verbs, add_database, add_range, checked, new_verb, store_of, tell_note
from collector.verbs.fleet import add_fleet, collect_by_fleet, wrong_fleet
from collector.verbs.gating import add_gate, verdict_of, wrong_gate
from collector.verbs.growing import add_growing, follow_file, watch_folder, wrong_usage
from collector.verbs.storing import Results, collect_file, collect_source, summary

if TYPE_CHECKING:
    from collector.store.stores import TraceStore
    from collector.symbols import Symbols

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope collect C:\traces\loopback.etl
      reads the trace, stores its sockets, operations and heap blocks, and prints its key;
      `sockscope serve` then shows it at /t/KEY
  sockscope collect kernel.etl sockets.etl heap.etl --as one
      joins the files of sessions that ran at the same time, or the parts of a split one
  tracerpt trace.etl -of XML -o trace.xml
  sockscope collect trace.xml
      where the recording itself is lost; the trust page says what the text does not tell
  sockscope collect --follow C:\traces\running.etl
      shows a trace while its session still records it
  sockscope collect --watch C:\traces
      collects each trace that is put into this folder
  sockscope collect tests.etl --fail-on overlap,freed_in_flight,abort=2 --junit sockscope.xml
      fails a test run that was traced
  sockscope collect /shared/traces --scheduler tcp://10.0.0.5:8786 --database /shared/database
      has the workers of a Dask cluster collect the traces of a folder, a file each

exit status: 0 complete; 3 stored, but with loss or damage, or a check of --fail-on could not be made; 4 a check failed;
1 not stored, of several files at least one; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "collect", "decode trace files into the database", EXAMPLE)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="an .etl file; a .zip, .diagsession, .gz, .cab or .7z with some inside; XML or CSV of tracerpt; text of netsh or xperf; "
        "an event log",
    )
    parser.add_argument("--name", help="show the trace under this name instead of the file's (one file only)")
    parser.add_argument(
        "--as", dest="joined_as", choices=("one",), help="one: all files are of one recording and become one trace, joined on their clocks"
    )
    parser.add_argument("--keep", action="store_true", help="refuse a file that is collected already, instead of replacing its trace")
    parser.add_argument(
        "--symbols",
        action="append",
        default=[],
        metavar="DIR",
        help="name functions from the symbol files (.pdb) in this folder; may be repeated",
    )
    parser.add_argument(
        "--unpack-limit",
        type=checked(parse_amount),
        metavar="SIZE",
        help="no more than this may come out of a package, such as 20GB; in any case no more than 250 times its size, or 1 GB",
    )
    parts = parser.add_argument_group("store only a part", "links are those of the whole trace, but for a suffix to its key")
    add_range(parts)
    parts.add_argument("--only", action="append", default=[], choices=KINDS, help="sockets or heap; processes and stacks always")
    add_gate(parser)
    add_growing(parser)
    add_fleet(parser)
    add_database(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Collect each file; the exit status says whether all were stored, and with several a line names what became of each."""
    if wrong := wrong_usage(args) or wrong_gate(args) or wrong_fleet(args):
        say(f"sockscope collect: {wrong}", file=sys.stderr)
        return 2
    if args.name and len(args.files) > 1 and not args.joined_as:
        say("sockscope collect: --name fits one file only.", file=sys.stderr)
        return 2
    limits = Limits(tuple(args.process), args.from_ns, args.to_ns, tuple(kind for kind in KINDS if kind in args.only))
    if limits.from_ns is not None and limits.to_ns is not None and limits.from_ns > limits.to_ns:
        say("sockscope collect: --to is before --from; give a range that runs forward.", file=sys.stderr)
        return 2
    if args.scheduler is not None:
        return collect_by_fleet(args, store_of(args), should_cancel, limits)
    with contextlib.ExitStack() as stack:
        symbols = None
        if args.symbols:
            from collector.symbols import Symbols

            symbols = stack.enter_context(Symbols(args.symbols))
        if args.follow:
            return follow_file(args, store_of(args), should_cancel, symbols, limits)
        if args.watch is not None:
            return watch_folder(args, store_of(args), should_cancel, symbols, limits)
        folder = store_of(args)
        if args.joined_as:
            try:
                return _collect_as_one(args, folder, should_cancel, symbols, limits)
            except TraceError as error:
                verdict_of(args, 1, (), [(", ".join(args.files), str(error))])
                raise
        return _collect_all(args, folder, should_cancel, symbols, limits)


def _collect_all(
    args: argparse.Namespace, folder: "TraceStore", should_cancel: Callable[[], bool], symbols: "Symbols | None", limits: Limits
) -> int:
    results = Results(named=len(args.files))
    left = list(args.files)
    while left and not results.is_over:
        collect_file(
            left.pop(0),
            folder,
            should_cancel,
            results,
            keep=args.keep,
            name=args.name,
            symbols=symbols,
            limits=limits,
            most_unpacked=args.unpack_limit,
        )
    if results.are_several:
        parts = (*results.parts(), ("not tried", left))
        say("; ".join(f"{len(files):,} {words}: {', '.join(files)}" for words, files in parts if files), file=sys.stderr)
    not_stored = [*results.reasons, *((file, "It was not tried: collecting ended before.") for file in left)]
    return verdict_of(args, results.status, results.reports, not_stored)


def _collect_as_one(
    args: argparse.Namespace, folder: "TraceStore", should_cancel: Callable[[], bool], symbols: "Symbols | None", limits: Limits
) -> int:
    """Collect all files as one trace. Raises TraceError."""
    from collector.packages import traces_in
    from collector.together import one_trace

    def refuse(sentence: str) -> None:
        raise PackageError(f"{sentence} Without it the trace would not be whole.")

    place = folder.unpacking_place()
    with contextlib.ExitStack() as stack:
        sources = []
        for file in args.files:
            with contextlib.closing(
                traces_in(
                    file,
                    place=place,
                    should_cancel=should_cancel,
                    on_fault=refuse,
                    on_note=tell_note,
                    most_bytes=args.unpack_limit,
                )
            ) as found:
                sources += [stack.enter_context(source) for source in found]
        if len(sources) < 2:
            say("sockscope collect: --as one joins two files or more.", file=sys.stderr)
            return 2
        with one_trace(sources, place=place, should_cancel=should_cancel) as source:
            report = collect_source(source, folder, should_cancel, keep=args.keep, name=args.name, symbols=symbols, limits=limits)
    say(summary(report), flush=True)
    return verdict_of(args, 3 if report.is_limited else 0, [report])

"""The parts of `sockscope collect` that wait: --follow for a file that is still written, --watch for a folder that gets files."""

import argparse
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from collector.limits import parse_moment
from collector.plain import say

if TYPE_CHECKING:
    from collector.limits import Limits
    from collector.stages import ImportReport
    from collector.store.stores import TraceStore
    from collector.symbols import Symbols

__all__ = ["add_growing", "follow_file", "seconds", "watch_folder", "wrong_usage"]

_NS = 1_000_000_000


def add_growing(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    waiting = parser.add_argument_group(
        "wait for what is still to come", "Ctrl+C ends it; what was stored so far stays. With --follow the trace is shown while it grows."
    )
    waiting.add_argument(
        "--follow", action="store_true", help="FILE is still being written: collect it again and again until its session has ended"
    )
    waiting.add_argument(
        "--whole", metavar="FILE", help="follow, and collect this file in the end, where it is there then: what is followed is a part of it"
    )
    waiting.add_argument("--while-stdin", action="store_true", help=argparse.SUPPRESS)  # for a recorder: no longer than it lives
    waiting.add_argument("--for", dest="for_seconds", type=seconds, metavar="TIME", help="follow no longer than this: 90s, 10min")
    waiting.add_argument(
        "--idle", dest="idle_seconds", type=seconds, metavar="TIME", help="follow until the file has not grown for so long"
    )
    waiting.add_argument(
        "--watch", metavar="DIR", help="collect each .etl file or package that is put into this folder, once it has come to rest"
    )
    waiting.add_argument(
        "--settle", dest="settle_seconds", type=seconds, metavar="TIME", help="how long a file must not have changed (default: 3s)"
    )


def wrong_usage(args: argparse.Namespace) -> str:
    """What is wrong with how the options go together; empty where nothing is."""
    if args.watch is not None and (args.files or args.follow):
        return "--watch takes a folder and nothing else: leave the files and --follow out."
    if args.watch is not None and args.name:
        return "--name fits one file only, and --watch takes many."
    if args.watch is None and not args.files:
        return "name an .etl file or a package with one, or a folder with --watch."
    if args.follow and len(args.files) > 1:
        return "--follow takes one file."
    if args.joined_as and (args.follow or args.watch is not None):
        return "--as one takes files that are finished: leave --follow and --watch out."
    if args.follow and args.keep:
        return "--keep does not go with --follow: which trace a file becomes is known only when its session has ended."
    if args.whole and not args.follow:
        return "--whole goes with --follow."
    if not args.follow and (args.for_seconds is not None or args.idle_seconds is not None):
        return "--for and --idle go with --follow."
    if args.watch is None and args.settle_seconds is not None:
        return "--settle goes with --watch."
    return ""


def follow_file(
    args: argparse.Namespace, folder: "TraceStore", should_stop: Callable[[], bool], symbols: "Symbols | None", limits: "Limits"
) -> int:
    """Follow one file, and say where it can be seen. Raises TraceError."""
    from collector.follow import follow
    from collector.verbs.storing import summary, tell

    shown: list[str] = []

    def show(report: "ImportReport") -> None:
        if not shown:
            say(f"{report.name}: followed as {report.key}; sockscope serve shows it at /t/{report.key}", file=sys.stderr, flush=True)
        shown.append(report.key)

    ended = follow(
        args.files[0],
        folder,
        _while_stdin(should_stop) if args.while_stdin else should_stop,
        name=args.name,
        symbols=symbols,
        limits=limits,
        whole=args.whole,
        for_seconds=args.for_seconds,
        idle_seconds=args.idle_seconds,
        on_stored=show,
        on_trouble=lambda sentence: say(sentence, file=sys.stderr),
    )
    report = ended.report
    tell(report)
    if not ended.is_whole:
        say(f"{report.name}: the session has not ended; what it had written until now is stored.", file=sys.stderr)
    say(summary(report), flush=True)
    return 3 if report.is_limited else 0


def _while_stdin(should_stop: Callable[[], bool]) -> Callable[[], bool]:
    """Stop also when whoever holds the other end of the standard input has closed it, or is gone."""
    is_closed = threading.Event()

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):  # not by the stream, whose lock would be missed when the program ends
            continue
        is_closed.set()

    threading.Thread(target=wait, name="stdin", daemon=True).start()
    return lambda: is_closed.is_set() or should_stop()


def watch_folder(
    args: argparse.Namespace, folder: "TraceStore", should_stop: Callable[[], bool], symbols: "Symbols | None", limits: "Limits"
) -> int:
    """Collect what is put into a folder until it is told to stop. Raises TraceError where nothing more can be stored."""
    from collector.verbs.storing import Results, collect_file
    from collector.watch import SETTLE_SECONDS, settled_files

    place = Path(args.watch)
    results = Results(is_watching=True)
    settle = args.settle_seconds if args.settle_seconds is not None else SETTLE_SECONDS
    files = settled_files(place, should_stop, settle_seconds=settle, on_trouble=lambda sentence: say(sentence, file=sys.stderr))
    say(f"Watching {place} for traces (Ctrl+C stops it)", file=sys.stderr, flush=True)
    for path in files:
        collect_file(str(path), folder, should_stop, results, symbols=symbols, limits=limits, most_unpacked=args.unpack_limit)
        if results.is_over:
            break
    say("; ".join(f"{len(found):,} {words}" for words, found in results.parts() if found) or "No file was put there.", file=sys.stderr)
    return results.status


def seconds(text: str) -> float:
    try:
        ns = parse_moment(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if ns < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before now.")
    return ns / _NS

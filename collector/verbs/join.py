"""sockscope join: files of sessions that ran at the same time into one trace."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from collector.plain import say
from collector.verbs.arguments import Verbs, new_verb

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope join kernel.etl sockets.etl heap.etl --output all.etl
      puts the records of three sessions of one machine into one file, in the order of their time; `sockscope collect all.etl` then shows
      which heap block a receive writes into. Works on every system. Unlike `xperf -merge` it adds no identities of modules, without which
      symbol files cannot be found.

exit status: 0 the file was written; 3 it was, but records are lost or damaged; 1 it was not; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "join", "put the files of sessions that ran at the same time into one", EXAMPLE)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an .etl file; at least two")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the file to write; it must not be there yet")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Write the joined file. Raises SourceError, FormatError, CollectCancelled."""
    from collector.joining import join_traces

    if len({file.absolute() for file in args.files}) < 2:
        say("sockscope join: name two files or more.", file=sys.stderr)
        return 2
    if args.output.exists():
        say(f"sockscope join: {args.output} is there already: name another file, or move it away.", file=sys.stderr)
        return 2
    joined = join_traces(args.files, args.output, should_cancel)
    for line in joined.lines:
        say(line, file=sys.stderr)
    say(f"Wrote {args.output} ({args.output.stat().st_size:,} bytes, {joined.records:,} records).")
    return 3 if joined.is_limited else 0

"""sockscope inspect: what is in a trace file, without a database."""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from collector.errors import CollectCancelled
from collector.plain import plain_line, say
from collector.verbs.arguments import Verbs, new_verb, tell_note

if TYPE_CHECKING:
    from collector.source import Source

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope inspect C:\traces\loopback.etl
      prints the header, the clock, what was lost or damaged, and a table of providers and events with counts;
      the first thing to attach to a bug report

exit status: 0 complete; 3 with loss or damage; 1 not readable; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "inspect", "say what is in a trace file, without storing anything", EXAMPLE)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="an .etl file, or a package with some inside; XML or CSV of tracerpt; text of netsh or xperf; an event log",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Print the report of one file, or of each trace in a package. Raises TraceError."""
    from collector.packages import traces_in

    status = 0
    faults: list[str] = []
    with contextlib.closing(traces_in(args.file, should_cancel=should_cancel, on_fault=faults.append, on_note=tell_note)) as sources:
        for n, source in enumerate(sources):
            if n and not args.json:
                say("")
            with source:
                status = max(status, _inspect(source, should_cancel, is_json=args.json))
    for fault in faults:
        say(fault, file=sys.stderr)
    return 3 if faults else status


def _inspect(source: "Source", should_cancel: Callable[[], bool], *, is_json: bool) -> int:
    from tqdm import tqdm

    from collector.inspect import inspect_trace

    with tqdm(total=source.size, unit="B", unit_scale=True, desc=plain_line(source.name), leave=False, disable=None) as bar:

        def show(done: int, _total: int) -> None:
            if should_cancel():
                raise CollectCancelled("Cancelled.")
            bar.update(done - bar.n)

        report = inspect_trace(source, on_progress=show)
    if is_json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        for line in report.lines():
            say(line)
    return 3 if report.is_limited else 0

"""sockscope inspect: what is in a trace file, without a database."""

import argparse
import json
from collections.abc import Callable

from collector.errors import CollectCancelled
from collector.plain import plain_line, say
from collector.verbs.arguments import Verbs, new_verb

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope inspect C:\traces\loopback.etl
      prints the header, the clock, what was lost or damaged, and a table of providers and events with counts;
      the first thing to attach to a bug report

exit status: 0 complete; 3 with loss or damage; 1 not readable; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "inspect", "say what is in a trace file, without storing anything", EXAMPLE)
    parser.add_argument("file", metavar="FILE", help="an .etl file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Print the report of one file. Raises TraceError."""
    from tqdm import tqdm

    from collector.inspect import inspect_trace
    from collector.source import Source

    with (
        Source.open(args.file) as source,
        tqdm(total=source.size, unit="B", unit_scale=True, desc=plain_line(source.name), leave=False, disable=None) as bar,
    ):

        def show(done: int, _total: int) -> None:
            if should_cancel():
                raise CollectCancelled("Cancelled.")
            bar.update(done - bar.n)

        report = inspect_trace(source, on_progress=show)
    if args.json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        for line in report.lines():
            say(line)
    return 3 if report.is_limited else 0

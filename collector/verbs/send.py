"""sockscope send: trace files to a dashboard elsewhere, resumable."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import CollectCancelled, TraceError
from collector.plain import plain_line, say
from collector.verbs.arguments import Verbs, new_verb

if TYPE_CHECKING:
    from collector.dashboard import Target

__all__ = ["add", "add_target", "run", "send_files", "target_of"]

TOKEN_VARIABLE = "SOCKSCOPE_TOKEN"

EXAMPLE = r"""example:
  sockscope send C:\traces\hang.etl --to https://traces.example:8350/ --token SECRET
      sends the file to the dashboard there, which collects it, and prints the address of its page;
      broken off, the same command goes on where it was

  sockscope send --watch C:\traces --to https://traces.example:8350/ --token SECRET
      sends the files of a recording that begins a new file now and then, each when it is finished;
      what is there already is not sent again

The dashboard must take uploads: sockscope serve --uploads.

exit status: 0 all are there; 1 at least one is not; 2 wrong usage"""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "send", "send trace files to a dashboard elsewhere", EXAMPLE)
    parser.add_argument("files", nargs="*", metavar="FILE", help="an .etl file that nothing writes any more")
    parser.add_argument("--watch", metavar="DIR", help="send each .etl file of this folder once it has come to rest, until Ctrl+C")
    add_target(parser, is_required=True)
    parser.add_argument("--no-wait", action="store_true", help="end when the files have arrived, before they are collected there")
    parser.set_defaults(run=run)


def add_target(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    """The options that name a dashboard."""
    group = parser.add_argument_group("where to")
    group.add_argument("--to", required=is_required, metavar="URL", help="address of the dashboard, as its server prints it")
    group.add_argument("--token", help=f"its token for writing; default: that of the address, else ${TOKEN_VARIABLE}")
    group.add_argument("--ca-file", metavar="FILE", help="certificates (PEM) that are trusted for https, in place of the system's")


def target_of(args: argparse.Namespace) -> "Target":
    """The dashboard of a command line. Raises ValueError."""
    from collector.dashboard import Target

    target = Target.parse(args.to, args.token, args.ca_file)
    if target.token is None and os.environ.get(TOKEN_VARIABLE):
        target = target.with_token(os.environ[TOKEN_VARIABLE])
    if target.is_open:
        say(f"{target.address}: without https, whoever is on the way can read the trace and the token.", file=sys.stderr)
    return target


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Send each file, or what comes into a folder."""
    if bool(args.files) == (args.watch is not None):
        say("sockscope send: name files, or a folder with --watch.", file=sys.stderr)
        return 2
    try:
        target = target_of(args)
    except ValueError as error:
        say(f"sockscope send: {error}", file=sys.stderr)
        return 2
    if args.watch is None:
        return send_files(args.files, target, should_cancel, wait_for_pages=not args.no_wait)
    from collector.watch import settled_files

    say(f"Watching {args.watch} for .etl files (Ctrl+C stops it)", file=sys.stderr, flush=True)
    status = 0
    for path in settled_files(Path(args.watch), should_cancel, on_trouble=lambda sentence: say(sentence, file=sys.stderr)):
        status |= send_files([str(path)], target, should_cancel, wait_for_pages=not args.no_wait)
    return status


def send_files(files: list[str], target: "Target", should_cancel: Callable[[], bool], *, wait_for_pages: bool = True) -> int:
    """Send files one after the other, with a progress bar each and a line for what became of it; the exit status."""
    from tqdm import tqdm

    from collector.sending import send_file

    failed = 0
    for file in files:
        name = Path(file).name
        said: set[str] = set()

        def trouble(sentence: str, said: set[str] = said) -> None:
            if sentence not in said:
                say(f"{sentence} Trying again.", file=sys.stderr, flush=True)
            said.add(sentence)

        with tqdm(unit="B", unit_scale=True, desc=plain_line(name), leave=False, disable=None) as bar:

            def show(done: int, total: int, bar: Any = bar) -> None:  # Any: tqdm's own, generic without need
                bar.total = total
                bar.update(done - bar.n)

            try:
                sent = send_file(file, target, should_cancel, wait_for_pages=wait_for_pages, on_progress=show, on_trouble=trouble)
            except CollectCancelled:
                raise
            except TraceError as error:
                say(str(error), file=sys.stderr)
                failed += 1
                continue
        say(f"{sent.key}  {name}: {sent.address}{'' if sent.state == 'complete' else ' (being collected)'}", flush=True)
    return 1 if failed else 0

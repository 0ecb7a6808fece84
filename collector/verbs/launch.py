"""sockscope launch: start a program and record it from its first call, on Windows; then collect the trace and print its address."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from collector.plain import say
from collector.verbs.arguments import Verbs, new_verb
from collector.verbs.recording_arguments import add_recording, collect_and_link, exit_status, guarded, plan_of, print_commands, ready, tell

if TYPE_CHECKING:
    from collector.record.calls import Windows
    from collector.record.plan import Plan

__all__ = ["add", "run"]

EXAMPLE = r"""example:
  sockscope launch --heap --winsock C:\app\server.exe --port 8080
      starts the program suspended, starts the sessions, lets it run, and when it ends collects the trace and prints its address;
      options of sockscope come before the program

The program runs with the rights of this prompt, which are an administrator's. Its child processes are not in the heap session.

exit status: 0 complete; 3 recorded, but with loss or damage; 1 nothing recorded; 2 wrong usage. The program's own is told."""


def add(verbs: Verbs) -> None:
    """Declare the verb."""
    parser = new_verb(verbs, "launch", "start a program and record it from its first call (Windows)", EXAMPLE)
    parser.usage = "sockscope launch [OPTIONS] PROGRAM [ARG ...]"
    # One argument, not two: argparse would keep a “--” that is the program's.
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM [ARG ...]",
        help="the program, by its path or as the prompt finds it, and all that it gets",
    )
    what = parser.add_argument_group("what is recorded")
    what.add_argument("--heap", action="store_true", help="its heap; heap and sockets when neither is named")
    what.add_argument("--winsock", action="store_true", help="sockets, of all processes")
    what.add_argument("--no-collect", action="store_true", help="only write the file")
    add_recording(parser)
    parser.set_defaults(run=run, no_kernel=False, duration=None)


def run(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    """Record one run of a program. Raises TraceError."""
    from collector.record.readiness import check_choices, check_plan

    is_both = not (args.heap or args.winsock)
    plan = plan_of(args, winsock=args.winsock or is_both, heap=args.heap or is_both)
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        say("sockscope launch: name a program, after the options.", file=sys.stderr)
        return 2
    try:
        (check_choices if args.print_commands else check_plan)(plan, is_forced=False)
    except ValueError as error:
        say(f"sockscope launch: {error}", file=sys.stderr)
        return 2
    if args.print_commands:
        print_commands(args, plan, words=words)
        return 0
    return _launch(args, plan, words, ready(args, plan, words=words), should_cancel)


def _launch(args: argparse.Namespace, plan: "Plan", words: Sequence[str], windows: "Windows", should_cancel: Callable[[], bool]) -> int:
    from collector.record.plan import Kind
    from collector.record.programs import Program
    from collector.record.results import put_together

    with guarded(windows, plan) as (recorder, guardian):
        for kind in plan.kinds:
            if kind is not Kind.HEAP:
                recorder.start(kind)
        with Program(windows, words, guardian) as program:
            if plan.heap:
                tell("Heap tracing slows the program and writes much.")
                recorder.start(Kind.HEAP, [program.pid])
            program.resume()
            tell(f"{program.name} runs as process {program.pid}, with the rights of this prompt. Ctrl+C ends the recording.")

            def ends() -> str | None:
                if program.has_ended:
                    return f"{program.name} ended with exit code {program.exit_code}."
                return "Ending; the program may go on." if should_cancel() else None

            tell(recorder.watch(ends))
    file = put_together(plan, windows, tell, lambda: False)
    say(f"{file}  {file.stat().st_size:,} bytes")
    is_complete = not recorder.losses.total()
    if not args.no_collect:
        is_complete = collect_and_link(args, [file], lambda: False) and is_complete
    return exit_status(is_complete=is_complete)

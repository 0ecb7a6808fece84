"""What `record` and `launch` have in common: which sessions, how large, into which files; and what is said when this machine cannot."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import RecordError
from collector.plain import say
from collector.record.buffers import HEAP_BUFFERS, KERNEL_BUFFERS, WINSOCK_BUFFERS, Buffers, parse_buffers
from collector.record.plan import Kind, Plan, parse_keywords, parse_name, parse_stacks
from collector.verbs.arguments import add_database, checked

if TYPE_CHECKING:
    from collector.record.calls import Windows
    from collector.record.guardian import Guardian
    from collector.record.losses import LossWatch
    from collector.record.recorder import Recorder

__all__ = [
    "add_recording",
    "collect_and_link",
    "exit_status",
    "guarded",
    "megabytes",
    "plan_of",
    "print_commands",
    "ready",
    "tell",
]

_DEFAULTS = {Kind.KERNEL: KERNEL_BUFFERS, Kind.WINSOCK: WINSOCK_BUFFERS, Kind.HEAP: HEAP_BUFFERS}
_ADDRESS = "http://127.0.0.1:8350/t/"


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The options of both verbs."""
    files = parser.add_argument_group("files")
    files.add_argument("--name", type=checked(parse_name), help="name of the sessions and files (default: the time of now)")
    files.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="folder of the files (default: the current one)")
    files.add_argument("--size-limit", type=checked(megabytes), default=0, metavar="MB", help="end when a file has this size")
    files.add_argument(
        "--circular",
        action="store_true",
        help="keep the newest events instead; old heap blocks then lack their allocation",
    )
    files.add_argument(
        "--flush",
        type=checked(_flush_seconds),
        default=0,
        metavar="SECONDS",
        help="also write buffers that are not full, so that `collect --follow` sees them; makes larger files (default: only full ones)",
    )
    winsock = parser.add_argument_group("Winsock: all processes of the machine, the provider cannot be limited to one")
    winsock.add_argument("--level", type=int, choices=range(1, 6), default=5, help="4 leaves out older sends and receives (default: 5)")
    winsock.add_argument(
        "--keywords", type=checked(parse_keywords), default=0, metavar="WORDS", help="all, a mask such as 0x0c, or names (default: all)"
    )
    heap = parser.add_argument_group("heap: tracing slows the traced process and writes much; one or two processes at a time")
    heap.add_argument(
        "--stacks",
        type=checked(parse_stacks),
        default="alloc,realloc,free,create",
        metavar="KINDS",
        help="call stacks of these heap events, or none (default: alloc,realloc,free,create)",
    )
    heap.add_argument(
        "--kernel-trace-control", metavar="FILE", help="KernelTraceControl.dll of the Windows Performance Toolkit, where it is not found"
    )
    buffers = parser.add_argument_group("buffers: LEAST-MOSTxKB, in memory that cannot be paged out; too few or small ones lose events")
    for kind, usual in _DEFAULTS.items():
        buffers.add_argument(
            f"--{kind}-buffers", type=checked(_buffers_of(usual)), default=usual, metavar="SPEC", help=f"(default: {usual.spec})"
        )
    parser.add_argument(
        "--print-commands",
        action="store_true",
        help="only print the commands of logman, netsh, xperf and wpr that record the same; on every system",
    )
    parser.add_argument("--stop-leftovers", action="store_true", help="stop sessions that an earlier recording left over, without asking")
    add_database(parser)


def plan_of(args: argparse.Namespace, *, winsock: bool, heap: bool, pids: Sequence[int] = ()) -> Plan:
    """What the options say."""
    return Plan(
        name=args.name or f"{datetime.now(UTC):%Y%m%d-%H%M%S}",
        folder=args.output.absolute(),
        kernel=not args.no_kernel,
        winsock=winsock,
        heap=heap,
        pids=tuple(dict.fromkeys(pids)),
        stacks=args.stacks,
        level=args.level,
        keywords=args.keywords,
        buffers={kind: getattr(args, f"{kind}_buffers") for kind in Kind},
        size_limit_mb=args.size_limit,
        is_circular=args.circular,
        duration_s=args.duration,
        flush_s=args.flush,
    )


def print_commands(args: argparse.Namespace, plan: Plan, *, words: Sequence[str] = (), to_stderr: bool = False) -> None:
    """How to record the same without sockscope, into the folder that was named; elsewhere than on Windows none is this folder."""
    from collector.record.commands import blocks

    out = sys.stderr if to_stderr else sys.stdout
    say("The same with the tools of Windows, in a prompt that was started by “Run as administrator”:", file=out)
    if plan.is_live:
        say("They write files and show nothing meanwhile: --live has no equivalent. To look at the files: sockscope collect FILE", file=out)
    if sys.platform == "win32":
        made = blocks(plan, folder=str(plan.folder), words=words)
    else:
        made = blocks(plan, words=words) if args.output == Path() else blocks(plan, folder=str(args.output), words=words)
    for block in made:
        say("", file=out)
        say(f"{block.heading}:", file=out)
        for line in block.lines:
            say(f"  {line}", file=out)


def ready(args: argparse.Namespace, plan: Plan, *, words: Sequence[str] = ()) -> "Windows":
    """The system's functions, when all is there that the plan needs; left-overs are settled.

    Raises: RecordError; what else can be done has been said then.
    """
    import os

    from collector.record.readiness import check_rights, open_windows, this_machine

    try:
        windows = open_windows(this_machine(), plan, args.kernel_trace_control, os.environ)
        check_rights(windows, plan)
    except RecordError as error:
        tell(f"sockscope {args.verb}: {error}")
        print_commands(args, plan, words=words, to_stderr=True)
        raise RecordError("Nothing was recorded.") from error
    _settle_leftovers(windows, plan, is_asked=args.stop_leftovers)
    return windows


def _settle_leftovers(windows: "Windows", plan: Plan, *, is_asked: bool) -> None:
    """Offer to stop sessions of ours that run. Raises RecordError when one has the name of this recording."""
    from collector.record.readiness import leftovers
    from collector.record.sessions import stop_named

    try:
        found = leftovers(windows)
    except RecordError as error:  # not everybody may list sessions who may record sockets
        tell(str(error))
        return
    for name, sessions in found.items():
        tell(
            f"Sessions of a recording named {name} run: {', '.join(s.name for s in sessions)}. "
            "It runs in another console, or it was killed and left them over."
        )
    if found and (is_asked or _is_yes("Stop them?")):
        for name, sessions in found.items():
            for session in reversed(sessions):
                stop_named(windows, session.name)
            tell(f"Stopped {name}.")
    elif plan.name in found:
        raise RecordError(f"This recording has that name, too: `sockscope record --stop {plan.name}`, or choose another --name.")
    elif found:
        tell(f"They go on. To stop them: {'; '.join(f'sockscope record --stop {name}' for name in found)}")


def _is_yes(question: str) -> bool:
    """Ask somebody at a terminal; nobody there is a no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def guarded(windows: "Windows", plan: Plan, losses: "LossWatch | None" = None) -> Iterator[tuple["Recorder", "Guardian"]]:
    """A recorder, and a second process that stops its sessions should this one be killed."""
    from collector.record.guardian import Guardian
    from collector.record.recorder import Recorder

    names = [plan.session_name(kind) for kind in reversed(plan.kinds)]
    with Guardian(names, windows.paths) as guardian, Recorder(windows, plan, tell, losses) as recorder:
        yield recorder, guardian


def collect_and_link(args: argparse.Namespace, files: Sequence[Path], should_cancel: Callable[[], bool]) -> bool:
    """Collect the files of a recording as one trace and print where it can be seen; returns whether nothing in it is lost or damaged.

    Raises TraceError.
    """
    from collector.source import Source
    from collector.together import one_trace
    from collector.verbs.arguments import store_of
    from collector.verbs.storing import collect_source, summary

    folder = store_of(args)
    with ExitStack() as stack:
        sources = [stack.enter_context(Source.open(file)) for file in files]
        source = sources[0]
        if len(sources) > 1:
            source = stack.enter_context(one_trace(sources, place=folder.unpacking_place(), should_cancel=should_cancel))
        report = collect_source(source, folder, should_cancel)
    say(summary(report))
    say(f"{_ADDRESS}{report.key}  (while `sockscope serve` runs)", flush=True)
    return not report.is_limited


def exit_status(*, is_complete: bool) -> int:
    """0, or 3 for a recording with losses."""
    return 0 if is_complete else 3


def tell(line: str) -> None:
    """A line of progress."""
    say(line, file=sys.stderr, flush=True)


def _buffers_of(usual: Buffers) -> Callable[[str], Buffers]:
    return lambda text: parse_buffers(text, usual)


def megabytes(text: str) -> int:
    """A size of a file. Raises ValueError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 4_000_000:
        raise ValueError(f"{text!r} is no size in MB: a whole number from 1 to 4,000,000")
    return int(text)


def _flush_seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 3600:
        raise ValueError(f"{text!r} is no time in seconds: a whole number from 1 to 3,600")
    return int(text)

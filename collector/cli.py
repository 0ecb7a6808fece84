"""The collector's command line: verbs, errors as one line each, exit status, clean cancelling."""

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NoReturn

from collector.errors import CollectCancelled, NotAFolder, NotAServer, TraceError
from collector.plain import plain_line, say
from collector.verbs import VERBS
from collector.verbs.arguments import Verbs

__all__ = ["add_verbs", "main", "new_parser", "run"]

DESCRIPTION = "Socket and heap traces (ETW) of Windows programs: decode them, look at them in the browser."
EXAMPLE = r"""example:
  sockscope collect C:\traces\loopback.etl
  sockscope serve

exit status: 0 complete; 3 complete, with loss or damage; 1 nothing stored; 2 wrong usage; 4 a check of --fail-on failed"""


def main(argv: Sequence[str] | None = None) -> int:
    """The collector alone, without the dashboard: `python -m collector.cli`."""
    parser, verbs = new_parser()
    add_verbs(verbs)
    return run(parser, argv)


def new_parser() -> tuple[argparse.ArgumentParser, Verbs]:
    """The parser of the command, and where its verbs are declared."""
    parser: argparse.ArgumentParser = _Parser(
        prog="sockscope",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version)
    return parser, parser.add_subparsers(title="verbs", dest="verb", required=True)


def add_verbs(verbs: Verbs) -> None:
    """Declare the collector's verbs."""
    for verb in VERBS:
        verb.add(verbs)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> int:
    """Run the verb of a command line; returns the exit status.

    Errors of input and storage become one line on stderr. Ctrl+C asks the verb to stop at the next moment at which it can do so cleanly; a
    second one stops at once.
    """
    try:
        args = parser.parse_args(argv)
    except SystemExit as end:  # argparse has printed the help or what is wrong
        return end.code if isinstance(end.code, int) else 2
    with _cancelling() as should_cancel:
        try:
            status: int = args.run(args, should_cancel)
        except CollectCancelled as error:
            say(str(error), file=sys.stderr)
            return 1
        except (NotAFolder, NotAServer) as error:
            say(f"sockscope {args.verb}: {error}", file=sys.stderr)
            return 2
        except TraceError as error:
            say(f"sockscope {args.verb}: {error}" if str(error) else f"sockscope {args.verb}: {type(error).__name__}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)
            return 1
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output is gone: nobody to tell
            return 1
    return status


@contextlib.contextmanager
def _cancelling() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into a question that the work asks; give the signals back afterwards."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only there may signals be caught
        yield asked.is_set
        return
    signals = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32":
        signals.append(signal.SIGBREAK)  # the only one that another process can send there
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal is closed; a program under nohup does not mind
        signals.append(signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in signals:
        signal.signal(number, ask)
    try:
        yield asked.is_set
    finally:
        for number in signals:
            signal.signal(number, before[number])


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one printable line: a word that it quotes may be the name of a file that somebody else made."""

    def error(self, message: str) -> NoReturn:
        super().error(plain_line(message))


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            say(f"sockscope {version('sockscope')}")
        except PackageNotFoundError:
            print("sockscope (not installed)")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())

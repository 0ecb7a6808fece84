"""The part of `sockscope collect` that has a Dask cluster do the work: --scheduler."""

import argparse
import contextlib
import importlib.util
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectCancelled, FleetError, SourceError, StoreError, TraceError
from collector.plain import say
from collector.verbs.arguments import checked, tell_note
from collector.verbs.gating import verdict_of
from collector.verbs.growing import seconds
from collector.verbs.storing import Bar, Results, say_outcome, tell

if TYPE_CHECKING:
    from collector.fleet.orders import Answer, Order
    from collector.limits import Limits
    from collector.stages import Progress
    from collector.store.stores import TraceStore

__all__ = ["add_fleet", "collect_by_fleet", "wrong_fleet"]

_WAIT_SECONDS = 60.0
_SECONDS_BETWEEN_LOOKS = 1.0
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})")


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    fleet = parser.add_argument_group(
        "have a cluster collect",
        'one file by each worker of a Dask cluster; needs pip install "sockscope[fleet]" on all machines, and files and database under '
        "the same path there. A FILE may be a folder here: all .etl files and packages in it.",
    )
    fleet.add_argument(
        "--scheduler", type=checked(_address), metavar="ADDRESS", help="where the scheduler listens: tcp://HOST:PORT or tls://HOST:PORT"
    )
    fleet.add_argument(
        "--wait", dest="wait_seconds", type=seconds, metavar="TIME", help="how long a cluster without workers is waited for (default: 60s)"
    )


def wrong_fleet(args: argparse.Namespace) -> str:
    """What is wrong with how the options go together; empty where nothing is."""
    if args.scheduler is None:
        return "--wait goes with --scheduler." if args.wait_seconds is not None else ""
    if args.follow or args.watch is not None:
        return "--scheduler takes files that are finished: leave --follow and --watch out."
    if args.joined_as:
        return "--as one makes one trace, which is the work of one machine: leave --scheduler out."
    return ""


def collect_by_fleet(args: argparse.Namespace, store: "TraceStore", should_cancel: Callable[[], bool], limits: "Limits") -> int:
    """Have the workers collect each file; the exit status is as without them. Raises TraceError where nothing can begin."""
    if importlib.util.find_spec("distributed") is None:
        raise FleetError('A cluster is spoken to by the package "distributed", which is missing. Run: pip install "sockscope[fleet]"')
    files = _files_of(args.files)
    if args.name and len(files) > 1:
        say("sockscope collect: --name fits one file only.", file=sys.stderr)
        return 2
    try:
        return _collected(args, files, store, should_cancel, limits)
    except TraceError as error:
        verdict_of(args, 1, (), [(word, str(error)) for word in files.values()])
        raise


def _collected(
    args: argparse.Namespace, files: dict[str, str], store: "TraceStore", should_cancel: Callable[[], bool], limits: "Limits"
) -> int:
    from collector.fleet.running import carried_out

    with _marked(store) as mark:
        orders = _orders(args, files, store, mark, limits)
        shown = _Shown(len(orders))
        wait_seconds = _WAIT_SECONDS if args.wait_seconds is None else args.wait_seconds
        with contextlib.closing(shown):
            answers, trouble = carried_out(args.scheduler, orders, should_cancel, shown, wait_seconds=wait_seconds)
        if trouble:
            say(trouble, file=sys.stderr, flush=True)
        _settle(store, answers.values(), trouble)
    return _ended(args, orders, answers, shown.begun_ones)


def _ended(args: argparse.Namespace, orders: "Sequence[Order]", answers: "dict[int, Answer]", begun: set[int]) -> int:
    """Say what became of all files, in the order in which they were named; gives the exit status."""
    results = Results(named=len(orders))
    for order in orders:
        for outcome in answers[order.number].outcomes if order.number in answers else ():
            results.add(outcome)
    unknown = [order.word for order in orders if order.number not in answers and order.number in begun]
    left = [order.word for order in orders if order.number not in answers and order.number not in begun]
    if results.are_several:
        parts = (*results.parts(), ("not known", unknown), ("not tried", left))
        say("; ".join(f"{len(files):,} {words}: {', '.join(files)}" for words, files in parts if files), file=sys.stderr)
    not_stored = [
        *results.reasons,
        *((file, "It is not known what became of it: its worker did not answer.") for file in unknown),
        *((file, "It was not tried: collecting ended before.") for file in left),
    ]
    return verdict_of(args, 1 if unknown or left else results.status, results.reports, not_stored)


class _Shown:
    """Shows a run: a bar for each file that a worker is at, and lines for what became of them."""

    def __init__(self, named: int) -> None:
        self.begun_ones: set[int] = set()
        self._bars: dict[int, Bar] = {}
        self._results = Results(named=named)
        self._is_cancelled = False

    def note(self, sentence: str) -> None:
        with self._aside():
            tell_note(sentence)

    def begun(self, order: "Order", worker: str) -> None:
        if order.number in self.begun_ones:
            self.note(f"{order.word}: the worker that collected it was lost; now it is collected by {worker}.")
        self.begun_ones.add(order.number)

    def moved(self, order: "Order", progress: "Progress") -> None:
        if order.number not in self._bars:
            self._bars[order.number] = Bar(Path(order.file).name, progress.bytes_total)
        bar = self._bars[order.number]
        bar.expect(progress.bytes_total)
        bar.show(progress)

    def answered(self, order: "Order", answer: "Answer") -> bool:
        if (bar := self._bars.pop(order.number, None)) is not None:
            bar.close()
        with self._aside():
            for sentence in answer.notes:
                tell_note(sentence)
            for outcome in answer.outcomes:
                self._results.add(outcome)
                if isinstance(outcome.error, CollectCancelled):
                    if self._is_cancelled:  # said of one, it holds for all
                        continue
                    self._is_cancelled = True
                if outcome.report is not None:
                    tell(outcome.report)
                say_outcome(outcome, is_one_of_several=self._results.are_several)
        return self._results.is_over

    def close(self) -> None:
        """Take the bars away."""
        for bar in self._bars.values():
            bar.close()

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Lines may be printed: the bars make room for them."""
        from tqdm import tqdm

        with tqdm.external_write_mode():
            yield


def _files_of(words: Sequence[str]) -> dict[str, str]:
    """Absolute paths of what is to be collected, and what the user calls each; a folder stands for the traces in it.

    Raises: SourceError for a folder without any, or that may not be read.
    """
    from collector.packages import SUFFIXES

    found: dict[str, str] = {}
    for word in words:
        names = [word]
        if Path(word).is_dir():
            try:
                names = [
                    str(path) for path in sorted(Path(word).iterdir()) if path.name.lower().endswith((".etl", *SUFFIXES)) and path.is_file()
                ]
            except OSError as error:
                raise SourceError(f"{word}: this folder cannot be looked at ({error.strerror}).") from error
            if not names:
                raise SourceError(f"{word}: there is no .etl file and no package in this folder.")
        for name in names:
            path = os.path.abspath(name)  # noqa: PTH100 - links stay: they may lead elsewhere on another machine
            if path in found:
                tell_note(f"{name}: this file is named twice; it is collected once.")
            else:
                found[path] = name
    return found


@contextlib.contextmanager
def _marked(store: "TraceStore") -> Iterator[str]:
    """Make the database if it is not there, and hold a lock in it, by which workers know that they see the same one. Raises StoreError."""
    from collector.store.catalog import Catalog

    Catalog(store)
    mark = f"fleet-{uuid.uuid4().hex[:12]}"
    with store.collecting(mark, f"{store.title}: another command has the mark {mark}."), _kept(store, mark):
        yield mark


@contextlib.contextmanager
def _kept(store: "TraceStore", mark: str) -> Iterator[None]:
    """Take the lock again whenever a server was restarted: workers that do not see it store nothing."""
    is_over = threading.Event()

    def keep() -> None:
        while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
            with contextlib.suppress(StoreError):  # it is still away
                store.hold_still(mark)

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()


def _orders(args: argparse.Namespace, files: dict[str, str], store: "TraceStore", mark: str, limits: "Limits") -> "list[Order]":
    from collector.fleet.orders import Order
    from collector.stages import program_version

    return [
        Order(
            number=number,
            run=f"sockscope-{mark}",
            version=program_version(),
            word=word,
            file=file,
            database=_seen_from_everywhere(args, store),
            mark=mark,
            keep=args.keep,
            name=args.name,
            symbols=tuple(str(Path(place).absolute()) for place in args.symbols),
            limits=limits,
            most_unpacked=args.unpack_limit,
        )
        for number, (file, word) in enumerate(files.items())
    ]


def _seen_from_everywhere(args: argparse.Namespace, store: "TraceStore") -> str:
    """The database as it is named on any machine."""
    from collector.store.engine import ENVIRONMENT_VARIABLE, TraceFolder

    return str(store.root.absolute()) if isinstance(store, TraceFolder) else args.database or os.environ[ENVIRONMENT_VARIABLE]


def _settle(store: "TraceStore", answers: "Iterable[Answer]", trouble: str) -> None:
    """Clear away what lost workers have left of traces that nobody tried again."""
    from collector.store.catalog import Catalog

    if trouble or any(isinstance(outcome.error, FleetError) for answer in answers for outcome in answer.outcomes):
        with contextlib.suppress(StoreError):  # the next command does it
            Catalog(store).settle()


def _address(text: str) -> str:
    """The address of a scheduler. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3]) < 1 << 16:
        raise ValueError(f"{text!r} is no address of a scheduler, such as tcp://10.0.0.5:8786")
    return text

"""Traces of the files that a user names into the database, with a progress bar and a line for each: what `collect` and --watch share."""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from collector.errors import AlreadyCollected, CollectCancelled, Severity, StoreError, StoreLocked
from collector.plain import plain_line, say
from collector.verbs.arguments import tell_note

if TYPE_CHECKING:
    from collector.collecting import Outcome
    from collector.limits import Limits
    from collector.pipeline import ImportReport, Progress
    from collector.source import Source
    from collector.store.stores import TraceStore
    from collector.symbols import Symbols

__all__ = ["Bar", "Results", "collect_file", "collect_source", "say_outcome", "summary", "tell"]

_OF_ONE_FILE = (AlreadyCollected, StoreLocked)
"""Errors of the database after which other files can still be collected."""


@dataclass(slots=True)
class Results:
    """What became of the traces of some files, by what they are called; `is_over` when no other can be stored either."""

    stored: list[str] = field(default_factory=list)
    limited: list[str] = field(default_factory=list)
    there_already: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    reports: "list[ImportReport]" = field(default_factory=list)
    """Of what was stored, with or without loss."""
    reasons: list[tuple[str, str]] = field(default_factory=list)
    """Files of which something was not stored, and why."""
    is_over: bool = False
    is_watching: bool = False
    """Whether being told to stop is no failure."""
    named: int = 1
    """How many files the user named."""

    @property
    def count(self) -> int:
        return sum(len(files) for _, files in self.parts())

    @property
    def are_several(self) -> bool:
        """Whether a line at the end says what became of each."""
        return self.named > 1 or self.count > 1

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.failed else 3 if self.limited else 0

    def parts(self) -> tuple[tuple[str, list[str]], ...]:
        """Each result in words, and what it befell."""
        return (
            ("stored", self.stored),
            ("stored with loss or damage", self.limited),
            ("there already", self.there_already),
            ("not stored", self.failed),
        )

    def add(self, outcome: "Outcome") -> None:
        """Note what became of a trace."""
        report, error = outcome.report, outcome.error
        if isinstance(error, CollectCancelled) and self.is_watching:
            self.is_over = True
        elif error is not None:
            self.failed.append(outcome.label)
            self.reasons.append((outcome.label, str(error)))
            is_of_store = isinstance(error, StoreError) and not isinstance(error, _OF_ONE_FILE)  # it is the same for the files to come
            self.is_over = self.is_over or is_of_store or isinstance(error, CollectCancelled)
        elif report is None:
            self.there_already.append(outcome.label)
        else:
            (self.limited if report.is_limited else self.stored).append(outcome.label)
            if not self.is_watching:
                self.reports.append(report)


def collect_file(
    file: str,
    folder: "TraceStore",
    should_cancel: Callable[[], bool],
    results: Results,
    *,
    keep: bool = False,
    name: str | None = None,
    symbols: "Symbols | None" = None,
    limits: "Limits | None" = None,
    most_unpacked: int | None = None,
) -> None:
    """Collect the trace of a file, or each of a package, and say of each on stdout what was stored or on stderr why it was not.

    While watching, a trace that is there is left alone. `most_unpacked` is the most bytes that may come out of a package.
    """
    from collector.collecting import outcomes_of

    def tell_fault(sentence: str) -> None:
        say(sentence, file=sys.stderr)
        results.failed.append(file)
        results.reasons.append((file, sentence))

    def import_one(source: "Source", shown: str | None) -> "ImportReport":
        return collect_source(source, folder, should_cancel, keep=keep, name=shown, symbols=symbols, limits=limits)

    suffix = limits.suffix if limits else ""
    with contextlib.closing(
        outcomes_of(
            file,
            folder,
            should_cancel,
            import_one,
            on_fault=tell_fault,
            on_note=tell_note,
            name=name,
            skipped_with=suffix if results.is_watching else None,
            most_unpacked=most_unpacked,
        )
    ) as outcomes:
        for outcome in outcomes:
            results.add(outcome)
            if not (results.is_watching and isinstance(outcome.error, CollectCancelled)):
                say_outcome(outcome, is_one_of_several=results.are_several)
            if results.is_over:
                return


def say_outcome(outcome: "Outcome", *, is_one_of_several: bool) -> None:
    """Say what became of a trace: on stdout what was stored, on stderr why it was not."""
    if is_one_of_several and isinstance(outcome.error, CollectCancelled):
        say("Cancelled.", file=sys.stderr, flush=True)  # what was stored before, the line at the end says
    elif outcome.error is not None:
        say(str(outcome.error), file=sys.stderr, flush=True)
    elif outcome.report is not None:
        say(summary(outcome.report), flush=True)


class Bar:
    """The progress bar of one trace on stderr, where that is a terminal."""

    def __init__(self, name: str, total: int | None) -> None:
        from tqdm import tqdm

        self._bar: tqdm[NoReturn] = tqdm(total=total, unit="B", unit_scale=True, desc=plain_line(name), leave=False, disable=None)
        self._stage = ""

    def show(self, progress: "Progress", rate: str = "") -> None:
        """Move on. A new stage is drawn at once: after reading no bytes count, and tqdm draws only when they do."""
        self._bar.set_postfix_str(f"{progress.stage}, {progress.records:,} events{rate}", refresh=False)
        self._bar.update(progress.bytes_done - self._bar.n)
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._bar.refresh()

    def expect(self, total: int | None) -> None:
        """Have so many bytes be all."""
        self._bar.total = total

    def close(self) -> None:
        self._bar.close()


def collect_source(
    source: "Source",
    folder: "TraceStore",
    should_cancel: Callable[[], bool],
    *,
    keep: bool = False,
    name: str | None = None,
    symbols: "Symbols | None" = None,
    limits: "Limits | None" = None,
) -> "ImportReport":
    """Collect one trace with a progress bar on stderr, then say there what limits it. Raises TraceError."""
    from collector.pipeline import import_trace

    with contextlib.closing(Bar(source.name, source.size)) as bar:
        began = time.monotonic()

        def show(progress: "Progress") -> None:
            bar.show(progress, f", {progress.records / max(time.monotonic() - began, 0.001):,.0f}/s")

        report = import_trace(source, folder, show, should_cancel, keep=keep, name=name, symbols=symbols, limits=limits)
    tell(report)
    return report


def tell(report: "ImportReport") -> None:
    """Say on stderr what limits a stored trace, and what symbol files gave."""
    for problem in report.problems:
        if problem.severity != Severity.NOTE:
            say(f"{report.name}: {problem.severity.replace('_', ' ')}: {problem.text}", file=sys.stderr)
    if report.naming is not None:
        for line in (*report.naming.lines, report.naming.summary()):
            say(f"{report.name}: symbols: {line}", file=sys.stderr)


def summary(report: "ImportReport") -> str:
    """One line for a stored trace."""
    nouns = (("process", "process", "processes"), ("socket", "socket", "sockets"), ("operation", "operation", "operations"),
             ("allocation", "allocation", "allocations"), ("finding", "finding", "findings"))  # fmt: skip
    counts = ", ".join(f"{n:,} {one if n == 1 else many}" for table, one, many in nouns if (n := report.counts[table]) or table == "socket")
    return f"{report.key}  {report.name}: {report.counts['records']:,} records, {counts} in {report.seconds:.1f} s"

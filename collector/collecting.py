"""The traces of one file that a user names, one after the other: what became of each, whoever asked for it."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

from collector.errors import TraceError
from collector.packages import traces_in
from collector.pipeline import ImportReport, trace_key
from collector.source import Source
from collector.store.stores import TraceStore

__all__ = ["Outcome", "outcomes_of"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trace: stored, not stored because of an error, or with neither there already."""

    label: str
    """What it is called among the files of a command."""
    report: ImportReport | None = None
    error: TraceError | None = None


def outcomes_of(
    file: str,
    folder: TraceStore,
    should_cancel: Callable[[], bool],
    import_one: Callable[[Source, str | None], ImportReport],
    *,
    on_fault: Callable[[str], None],
    on_note: Callable[[str], None],
    name: str | None = None,
    skipped_with: str | None = None,
    most_unpacked: int | None = None,
) -> Generator[Outcome, None, None]:
    """Collect the trace of a file, or each of a package.

    Args:
        import_one: collects a source under the name that it is shown with.
        on_fault: told of a part of a package that cannot be had; the rest of it is collected.
        on_note: told what a user should know of an input and what is no fault.
        skipped_with: leave a trace alone that is there, its key having this suffix; None: it is replaced.
        most_unpacked: the most bytes that may come out of a package.
    """
    try:
        with contextlib.closing(
            traces_in(
                file,
                place=folder.unpacking_place(),
                should_cancel=should_cancel,
                on_fault=on_fault,
                on_note=on_note,
                most_bytes=most_unpacked,
            )
        ) as sources:
            for n, source in enumerate(sources):
                label = file if source.name == source.path.name else f"{file}: {source.name.partition(' (in ')[0]}"
                shown = f"{name} ({source.name})" if name and n else name
                with source:
                    try:
                        if skipped_with is not None and folder.has_trace(trace_key(source, should_cancel) + skipped_with):
                            outcome = Outcome(label)
                        else:
                            outcome = Outcome(label, import_one(source, shown))
                    except TraceError as error:
                        outcome = Outcome(label, error=error)
                yield outcome
    except TraceError as error:
        yield Outcome(file, error=error)

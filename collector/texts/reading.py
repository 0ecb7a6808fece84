"""From a text that a tool made of a recording to a trace: the forms, the choice among them, and what the trust page says of one."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from collector.errors import CollectCancelled, EmptyTrace, Problem, SourceError
from collector.readers.problems import DAMAGED_TEXT, EVENT_LOG_FORM, TEXT_FORM
from collector.source import Source
from collector.texts.event_log import EVENT_LOG
from collector.texts.event_xml import EVENT_XML
from collector.texts.form import TextForm, TextInput, Told, encoding_of
from collector.texts.netsh_text import NETSH_TEXT
from collector.texts.tracerpt_csv import TRACERPT_CSV
from collector.texts.transcript import Transcript
from collector.texts.unread import STACK
from collector.texts.xperf_dump import XPERF_DUMP

__all__ = ["FORMS", "form_of", "trace_of_text"]

FORMS: tuple[TextForm, ...] = (EVENT_XML, TRACERPT_CSV, NETSH_TEXT, XPERF_DUMP, EVENT_LOG)


def form_of(start: bytes) -> TextForm | None:
    """The form of a file that starts with these bytes (512); None for what is no such text."""
    return next((form for form in FORMS if form.sniff(start)), None)


def trace_of_text(form: TextForm, source: Source, place: Path | None, should_cancel: Callable[[], bool]) -> Source:
    """The events of a text as a trace, open; its identity is that of the file.

    Raises: SourceError; FormatError for what may not be read; EmptyTrace without an event; CollectCancelled.
    """

    def look() -> None:
        if should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")

    digest = source.sha256(look)
    text = TextInput(source, encoding_of(source.read_at(0, 512)), look)
    pointer_size, is_told = form.pointer_size(text)
    try:
        with closing(_Spooled(Transcript(pointer_size, place))) as spooled:
            transcript = spooled.transcript
            told = form.read(text, transcript)
            if form.is_of_lines and not text.ends_its_last_line():
                told.damage = told.damage or "its last line has no end, so it may be cut"
            if not len(transcript):
                raise _nothing_in(text.name, told, transcript.stacks)
            file = transcript.close(should_cancel)
            size = file.seek(0, 2)
    except OSError as error:
        raise SourceError(f"{source.name}: its events cannot be written to the disk: {error.strerror or error}.") from error
    inferred = "" if is_told else f" That pointers have {pointer_size} bytes is inferred from the values."
    stacks = f" Events of call stacks in it are left out: {transcript.stacks:,}." if transcript.stacks else ""
    details: dict[str, object] = {"form": form.words, "stacks": stacks, "inferred": inferred}
    problems = [
        *source.problems,
        Problem(
            EVENT_LOG_FORM if form is EVENT_LOG else TEXT_FORM,
            details=details,
            own_effect=" ".join(filter(None, (told.lacks, *transcript.lacks()))),
        ),
    ]
    unread = told.unread.damaged + transcript.unread
    if told.damage or unread:
        found = told.damage or "fields or times that cannot be read back"
        problems.append(Problem(DAMAGED_TEXT, max(unread, 1), details={"found": found}))
    return Source(file, source.path, size, name=source.name, digest=digest, problems=problems, told_by=(form.words, source.size))


def _nothing_in(name: str, told: Told, stacks: int) -> EmptyTrace:
    """Why no event of a text was taken over."""
    if stacks:
        told.unread.add(STACK, count=stacks)
    words = told.unread.refusal() or "there is no event in this file."
    return EmptyTrace(f"{name}: {words}{f' Reading ended early: {told.damage}.' if told.damage else ''}", offset=None)


class _Spooled:
    """A transcript that is given back."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript

    def close(self) -> None:
        self.transcript.discard()

"""The questions that people bring to a trace: which of them this one answers, where, and what would have to be recorded for the rest."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.answers import ANSWERS, Answer
from app.deps import OpenTrace, ReadTrace
from app.format import plural
from app.listing import Column, Listing, plain_listing
from app.page import Crumb, Page
from app.queries.coverage import coverage
from app.queries.findings import findings_by_code
from app.recording import AREAS, Command
from app.render import render
from app.views.described import described

__all__ = ["AnswerRow", "Answerable", "AnswersPage", "answerables", "commands_for", "router"]

router = APIRouter()

COLUMNS = (
    Column("question", "Question", "question", keeps=True),
    Column("answer", "Answered", keeps=True),
    Column("lacks", "Not recorded", "optional_text"),
    Column("findings", "Findings", "worst_finding", term="finding"),
    Column("code", "Code", "mono"),
)


@dataclass(frozen=True, slots=True)
class Answerable:
    """A question, and the records that are missing: without `missing` it cannot be answered, without `lacking` only in part."""

    answer: Answer
    missing: tuple[str, ...]
    lacking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A question with its page. `answer` is `in full`, `in part` or `no`; `worst` the link of its worst finding."""

    code: str
    question: str
    link: str
    answer: str
    lacks: str | None
    findings: int
    worst: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersPage(Page):
    """All questions of a trace."""

    listing: Listing
    commands: tuple[Command, ...]
    ways: tuple[Crumb, ...] = field(metadata={"json": False})


def answerables(trace: OpenTrace) -> list[Answerable]:
    """All questions, with what this trace lacks for each."""
    covered = coverage(trace.db)
    return [
        Answerable(
            answer,
            tuple(area.what for area in covered.missing(answer.needs)),
            tuple(area.what for area in covered.missing(answer.helps)),
        )
        for answer in ANSWERS
    ]


def commands_for(trace: OpenTrace, asked: list[Answerable]) -> tuple[Command, ...]:
    """What records the rest: the commands for the questions that this trace cannot answer."""
    covered = coverage(trace.db)
    names = (area.name for one in asked if one.missing for area in covered.missing(one.answer.needs))
    return tuple(dict.fromkeys(AREAS[name].command for name in names))


@router.get("/t/{trace_key}/answers", name="answers", summary="Questions", response_class=HTMLResponse, openapi_extra=described("format"))
def answers(request: Request, trace: ReadTrace) -> Response:
    """The questions that a trace can be asked, whether this one has the records for an answer, and the findings that belong to each."""
    asked = answerables(trace)
    found = findings_by_code(trace.db)
    rows = [_row(one, *found.get(one.answer.code, (0, None))) for one in asked]
    number = sum(not one.missing for one in asked)
    page = AnswersPage(
        title="Questions",
        sentence=f"This trace has the records to answer {number} of {plural(len(asked), 'question')}, some of them in part.",
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="answers",
        listing=plain_listing("answers", trace.urls("answers", trace_key=trace.key), COLUMNS, rows, AnswerRow),
        commands=commands_for(trace, asked),
        ways=(
            Crumb("how large traces are opened", trace.urls("manual", name="performance")),
            Crumb("what a link to a view holds", trace.urls("manual", name="tour")),
            Crumb("which events are decoded, whatever machine they come from", trace.urls("manual", name="events")),
        ),
    )
    return render(request, "answers.html", page)


def _row(one: Answerable, findings: int, worst: str | None) -> AnswerRow:
    lacks = one.missing or one.lacking
    return AnswerRow(
        code=one.answer.code,
        question=one.answer.question,
        link=one.answer.link,
        answer="no" if one.missing else "in part" if one.lacking else "in full",
        lacks=", ".join(lacks) if lacks else None,
        findings=findings,
        worst=worst,
    )

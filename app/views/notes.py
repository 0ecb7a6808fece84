"""Notes on a trace and its things: the list of them, writing one, deleting one."""

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.deps import OpenTrace, ReadTrace
from app.errors import BadRequest, NotFound
from app.forms import TOKEN_FIELD, PostedForm, has_token, keep_author
from app.links import parse_allocation, parse_operation, parse_process, parse_socket
from app.listing import Column, Listing, plain_listing
from app.notes import MAX_NOTES, BadNote, Draft, notes_part
from app.page import Crumb, NoteLine, NotesPart, Page
from app.queries import notes as queries
from app.queries.allocation_page import find_allocation
from app.queries.operations import find_operation
from app.queries.processes import find_process
from app.queries.socket_page import find_socket
from app.queries.who import socket_number
from app.render import render
from app.views.described import described
from collector.errors import StoreError, StoreLocked
from collector.store.stores import TraceStore

__all__ = ["NotePage", "NotesPage", "router"]

router = APIRouter()

_STALE = "This form was older than the server or came without its cookie. Nothing is lost: look at the text and send it again."
_COLUMNS = (Column("object", "About"), Column("t_ns", "Moment", "ended"), Column("author", "By"), Column("text", "Note"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesPage(Page):
    """All notes of a trace."""

    listing: Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePage(Page):
    """A note that was not kept, as it was typed, ready to be sent again."""

    about: NotesPart
    draft: Draft
    trouble: str
    way: Crumb = field(metadata={"json": False})


@router.get("/t/{trace_key}/notes", name="notes", summary="Notes", response_class=HTMLResponse, openapi_extra=described("format"))
def notes(request: Request, trace: ReadTrace) -> Response:
    """What people wrote about this trace and the things in it, the newest first."""
    part = notes_part(request, trace, "", all_below=True)
    number = part.total or 0
    more = f"The newest {len(part.rows)} of {number:,} notes" if number > len(part.rows) else f"{number} note{'' if number == 1 else 's'}"
    older = f" All of them are in the file that sockscope export {trace.key} writes." if number > len(part.rows) else ""
    page = NotesPage(
        title="Notes",
        sentence=part.trouble or f"{more if number else 'No note'} on this trace and the things in it.{older}",
        trace=trace.head,
        crumbs=trace.crumbs(),
        section="notes",
        notes=part,
        listing=plain_listing("notes", trace.urls("notes", trace_key=trace.key), _COLUMNS, part.rows, NoteLine),
    )
    return render(request, "notes.html", page)


@router.post("/t/{trace_key}/notes", name="add_note", summary="Write a note", response_class=HTMLResponse)
def add_note(request: Request, trace: ReadTrace, form: PostedForm) -> Response:
    """Keep a note (`object`, `text`, `author`, `t_ns`); the form's token must come with it."""
    about = _object(trace, form.get("object", ""))
    draft = Draft.of(form)
    if not has_token(request, form.get(TOKEN_FIELD, "")):
        return _again(request, trace, about, draft, 403, _STALE)
    try:
        draft.check()
        t_ns = draft.t_ns
        with _folder(request).catalog(write=True).begin() as db:
            if queries.notes_number(db, trace.key) >= MAX_NOTES:
                raise BadNote(f"This trace has {MAX_NOTES:,} notes, which is the limit: delete some first.")
            queries.add(db, trace.key, about, t_ns=t_ns, author=draft.author, text=draft.text)
    except BadNote as error:
        return _again(request, trace, about, draft, 400, str(error))
    except StoreLocked:
        trouble = "Another program holds the catalog, so this note is not kept yet. Nothing is lost: send it again in a moment."
        return _again(request, trace, about, draft, 503, trouble)
    except StoreError as error:
        return _again(request, trace, about, draft, 503, f"This note is not kept yet: {error}")
    away = RedirectResponse(trace.urls.below(trace.key, about) + "#notes", status_code=303)
    keep_author(request, away, draft.author)
    return away


@router.post("/t/{trace_key}/notes/delete", name="delete_note", summary="Delete a note", response_class=HTMLResponse)
def delete_note(request: Request, trace: ReadTrace, form: PostedForm) -> Response:
    """Delete one note (`note`, `created_utc`); the form's token must come with it."""
    if not has_token(request, form.get(TOKEN_FIELD, "")):
        raise BadRequest("This form was older than the server or came without its cookie. Load the page again and delete the note there.")
    number = form.get("note", "")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise BadRequest("The form names no note.")
    with _folder(request).catalog(write=True).begin() as db:
        about = queries.remove(db, trace.key, int(number), form.get("created_utc", ""))
    if about is None:
        way = Crumb("all notes of this trace", trace.urls("notes", trace_key=trace.key))
        raise NotFound("This note is gone already.", ways=(way,))
    back = trace.urls("notes", trace_key=trace.key) if form.get("back") == "notes" else trace.urls.below(trace.key, about) + "#notes"
    return RedirectResponse(back, status_code=303)


def _again(request: Request, trace: OpenTrace, about: str, draft: Draft, status: int, trouble: str) -> Response:
    """The form again with what was typed, and why the note was not kept."""
    way = Crumb("back to the page without a note", trace.urls.below(trace.key, about))
    page = NotePage(
        title="Note not kept",
        sentence=trouble,
        trace=trace.head,
        crumbs=trace.crumbs(Crumb("notes", trace.urls("notes", trace_key=trace.key))),
        section="overview",
        canonical=way.href,
        about=NotesPart(about, ()),
        draft=draft,
        trouble=trouble,
        way=way,
    )
    return render(request, "note.html", page, status_code=status, headers={"Retry-After": "2"} if status == 503 else {})


def _object(trace: OpenTrace, text: str) -> str:
    """The canonical link of what a note is about: something of this trace. Raises BadRequest, BadLink, NotFound."""
    if len(text) > 300:
        raise BadRequest("The form's object is no link of this trace.")
    found = None
    match text.strip("/").split("/"):
        case [""]:
            return ""
        case ["sockets", name]:
            head = find_socket(trace.db, parse_socket(name))
            found = f"sockets/{head.link}" if head is not None else None
        case ["sockets", name, action]:
            operation = find_operation(trace.db, socket_number(parse_socket(name)), parse_operation(action))
            found = f"sockets/{operation.row.socket}/{operation.row.operation}" if operation is not None else None
        case ["processes", name]:
            process = find_process(trace.db, parse_process(name))
            found = f"processes/{process[1].process}" if process is not None else None
        case ["heap", name, block]:
            process = find_process(trace.db, parse_process(name))
            whole = find_allocation(trace.db, process[0], parse_allocation(block)) if process is not None else None
            found = f"heap/{process[1].process}/{whole.row.allocation}" if process is not None and whole is not None else None
        case _:
            raise BadRequest("Notes hang on a trace, a socket, an operation, a process or an allocation.")
    if found is None:
        raise NotFound(
            f"There is no {text} in this trace, so no note can hang on it.", ways=(Crumb("the trace", trace.urls.below(trace.key, "")),)
        )
    return found


def _folder(request: Request) -> TraceStore:
    folder: TraceStore = request.app.state.folder
    return folder

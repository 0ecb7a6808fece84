"""The label of a trace: a form on its overview, and the part of that page which shows it."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.deps import ReadTrace
from app.errors import BadRequest, NotFound
from app.forms import TOKEN_FIELD, PostedForm, has_token
from app.page import Crumb
from app.queries import labels as queries
from collector.amounts import MOST_LABEL
from collector.errors import StoreError
from collector.store.stores import TraceStore

__all__ = ["LabelPart", "label_part", "router"]

router = APIRouter()


@dataclass(frozen=True, slots=True)
class LabelPart:
    """The label of a page's trace; `trouble` says why it is not known."""

    text: str | None = None
    trouble: str = ""
    most: int = MOST_LABEL


def label_part(request: Request, key: str) -> LabelPart:
    """The label of a trace. A page does not depend on the catalog: without one, or while it is locked, it comes without the label."""
    folder: TraceStore = request.app.state.folder
    if not folder.has_catalog():
        return LabelPart()
    try:
        with folder.catalog().connect() as db:
            return LabelPart(queries.label_of(db, key))
    except StoreError as error:
        return LabelPart(trouble=f"The label cannot be read now: {error}")


@router.post("/t/{trace_key}/label", name="set_label", summary="Label a trace", response_class=HTMLResponse)
def set_label(request: Request, trace: ReadTrace, form: PostedForm) -> Response:
    """Give the trace a label (`label`; empty takes it away); the form's token must come with it."""
    if not has_token(request, form.get(TOKEN_FIELD, "")):
        raise BadRequest("This form was older than the server or came without its cookie. Load the page again and set the label there.")
    label = " ".join("".join(c if c.isprintable() else " " for c in form.get("label", "")).split())
    if len(label) > MOST_LABEL:
        raise BadRequest(f"This label has {len(label):,} characters; at most {MOST_LABEL} are kept.")
    folder: TraceStore = request.app.state.folder
    with folder.catalog(write=True).begin() as db:
        is_known = queries.set_label(db, trace.key, label or None)
    if not is_known:
        way = Crumb("the trace", trace.urls("overview", trace_key=trace.key))
        raise NotFound("The catalog does not know this trace yet: restart the server, or run sockscope list where it is.", ways=(way,))
    return RedirectResponse(trace.urls("overview", trace_key=trace.key), status_code=303)

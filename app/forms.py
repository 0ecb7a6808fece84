"""Forms that write: only our own pages may send them, and only from the browser that asked for the page.

Two checks, each enough against a page elsewhere: the browser says where a request comes from (`Sec-Fetch-Site`, else `Origin`), and each
form carries a token that fits a cookie of the same browser. Requests with GET never write.
"""

import hmac
import secrets
from typing import Annotated
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.access import MAY_WRITE

__all__ = [
    "AUTHOR_COOKIE",
    "TOKEN_COOKIE",
    "TOKEN_FIELD",
    "TOKEN_HEADER",
    "TOKEN_PLACE",
    "FormSlot",
    "FormTokens",
    "PageForm",
    "PostedForm",
    "check_origin",
    "has_token",
    "keep_author",
]

TOKEN_FIELD = "form_token"
TOKEN_HEADER = "x-form-token"
AUTHOR_COOKIE = "sockscope_author"
TOKEN_COOKIE = "sockscope_form"
TOKEN_PLACE = secrets.token_hex(24).encode()
"""Stands for the token in an answer that is kept; nobody sees it."""

_MAX_FORM_BYTES = 64 << 10
_MAX_FIELDS = 20
_YEAR_SECONDS = 365 * 24 * 3600


class FormTokens:
    """The tokens of one server: what fits a cookie can be computed only here, and only until the server ends."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token_of(self, cookie: str) -> str:
        """A token that fits a cookie. No two are alike: a page is compressed, and its length must not tell the token to one who guesses."""
        code = self._code_of(cookie)
        pad = secrets.token_bytes(len(code))
        return (pad + _xor(pad, code)).hex()

    def fits(self, token: str, cookie: str) -> bool:
        """Whether a token was made for a cookie."""
        try:
            masked = bytes.fromhex(token)
        except ValueError:
            return False
        half = len(masked) // 2
        return hmac.compare_digest(_xor(masked[:half], masked[half:]), self._code_of(cookie))

    def _code_of(self, cookie: str) -> bytes:
        return hmac.digest(self._secret, cookie.encode(), "sha256")


class FormSlot:
    """Says that the answer will be kept: its forms have a place for the token, which is filled whenever the answer leaves."""

    NAME = "sockscope.form_slot"

    def __init__(self) -> None:
        self.is_asked = False


class PageForm:
    """What a template needs for a form. Asking for the token makes a cookie where the browser has none."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._cookie = request.cookies.get(TOKEN_COOKIE, "")
        self._is_new = False
        self._slot: FormSlot | None = request.scope.get(FormSlot.NAME)

    @property
    def cookie(self) -> str:
        """What the tokens of this browser belong to; empty while it has nothing."""
        return self._cookie

    @property
    def token(self) -> str:
        if self._slot is not None:
            self._slot.is_asked = True
            return TOKEN_PLACE.decode()
        if not self._cookie:
            self._cookie, self._is_new = secrets.token_urlsafe(24), True
        return _tokens(self._request).token_of(self._cookie)

    @property
    def may_write(self) -> bool:
        """Whether forms that write are worth showing: not to somebody whose link only shows."""
        return bool(self._request.scope.get(MAY_WRITE, True))

    @property
    def author(self) -> str:
        """The name under which this browser wrote last."""
        return unquote(self._request.cookies.get(AUTHOR_COOKIE, ""))[:200]

    def keep(self, response: Response) -> None:
        """Hand a new cookie to the browser. Lax: a link from elsewhere must not replace it, or open forms would be refused."""
        if self._is_new:
            _set_cookie(self._request, response, TOKEN_COOKIE, self._cookie, strict=False)


def keep_author(request: Request, response: Response, author: str) -> None:
    """Remember a name for the next form."""
    _set_cookie(request, response, AUTHOR_COOKIE, quote(author, safe=""), strict=True)


def check_origin(request: Request) -> None:
    """Refuse what another site sends. Raises HTTPException 403.

    A program that is no browser says neither where it comes from; it still needs the token.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin")
        is_ours = origin is None or _place(origin) == _place(f"{request.url.scheme}://{request.headers.get('host', '')}")
    if not is_ours:
        raise HTTPException(403, "This form was sent by another site, so nothing was written. Open the page here and send it from there.")


def has_token(request: Request, token: str) -> bool:
    """Whether a token fits the cookie that came with it."""
    cookie = request.cookies.get(TOKEN_COOKIE, "")
    return bool(cookie) and _tokens(request).fits(token, cookie)


async def posted_form(request: Request) -> dict[str, str]:
    """The fields of a plain form of ours, the last of each name. Raises HTTPException 400, 403, 413, 415. The token is not checked yet."""
    check_origin(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise HTTPException(415, "This is no form: send application/x-www-form-urlencoded.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_FORM_BYTES:
            raise HTTPException(413, f"This form is too long: at most {_MAX_FORM_BYTES:,} bytes.")
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError as error:
        raise HTTPException(400, f"This form cannot be read: at most {_MAX_FIELDS} fields.") from error


PostedForm = Annotated[dict[str, str], Depends(posted_form)]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def _tokens(request: Request) -> FormTokens:
    tokens: FormTokens = request.app.state.form_tokens
    return tokens


def _place(url: str) -> tuple[str, int | None] | None:
    """Host and port of a URL without those that its scheme implies; a proxy in front of us may have changed the scheme."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "", None if parts.port in (80, 443) else parts.port) if parts.hostname else None
    except ValueError:
        return None


def _set_cookie(request: Request, response: Response, name: str, value: str, *, strict: bool) -> None:
    response.set_cookie(
        name,
        value,
        max_age=_YEAR_SECONDS,
        httponly=True,
        samesite="strict" if strict else "lax",
        secure=request.url.scheme == "https",
        path=request.app.state.urls.base_path or "/",
    )

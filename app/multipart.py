"""Takes the one file out of a browser's multipart form while it arrives; nothing of it is kept in memory.

Source: RFC 7578 (multipart/form-data) and RFC 2046, section 5.1.1: parts stand between lines of two dashes and the boundary, each with a
head, an empty line and its bytes; the line break before a boundary belongs to the boundary.
"""

import re
from collections.abc import Iterator

__all__ = ["BadForm", "FileForm", "boundary_of"]

_MAX_HEAD = 8 << 10
_MAX_FIELD = 4 << 10
_MAX_PARTS = 20
_NAME = re.compile(rb';\s*(name|filename)="((?:[^"\\\r\n]|\\.)*)"', re.IGNORECASE)
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))', re.IGNORECASE)


class BadForm(ValueError):
    """These bytes are no multipart form of ours."""


def boundary_of(content_type: str) -> bytes:
    """The boundary that a content type names. Raises BadForm."""
    found = _BOUNDARY.search(content_type)
    if not found:
        raise BadForm("The form names no boundary between its parts.")
    return (found[1] or found[2]).encode("latin-1", "replace")


class FileForm:
    """Reads a form piece by piece. `fields` are the plain fields so far, `file_name` the name of the first file once it has begun."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, str] = {}
        self.file_name: str | None = None
        self.is_complete = False
        self._mark = b"\r\n--" + boundary
        self._kept = bytearray(b"\r\n")  # the first boundary needs no line break before it
        self._parts = 0
        self._part: str | None = None  # a plain field's name; "" is the file, None a part that nobody wants
        self._field = bytearray()
        self._step = self._body

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece of the form; gives the bytes of the file in it. Raises BadForm."""
        self._kept += piece
        while not self.is_complete:
            before = (len(self._kept), self._step)
            found = self._step()
            if found:
                yield found
            if (len(self._kept), self._step) == before:
                return
        self._kept.clear()

    def _body(self) -> bytes:
        """Bytes up to the next boundary; what could be the beginning of one is left for the next piece."""
        at = self._kept.find(self._mark)
        size = at if at >= 0 else max(len(self._kept) - len(self._mark) + 1, 0)
        found = bytes(self._kept[:size])
        del self._kept[: size + len(self._mark) if at >= 0 else size]
        if self._part:
            self._field += found
            if len(self._field) > _MAX_FIELD:
                raise BadForm(f"A field of the form is longer than {_MAX_FIELD:,} bytes.")
        if at >= 0:
            self._end_part()
            self._step = self._line
        return found if self._part == "" else b""

    def _end_part(self) -> None:
        if self._part:
            self.fields[self._part] = self._field.decode("utf-8", "replace")
            self._field.clear()

    def _line(self) -> bytes:
        """The rest of a boundary's line."""
        if len(self._kept) < 2:
            return b""
        if self._kept[:2] == b"--":
            self.is_complete = True
        elif self._kept[:2] != b"\r\n":
            raise BadForm("A boundary of the form is not followed by a line break.")
        self._step = self._head
        return b""

    def _head(self) -> bytes:
        """A part's head; what is between it and the next boundary is its content."""
        at = self._kept.find(b"\r\n\r\n")
        if at > _MAX_HEAD or (at < 0 and len(self._kept) > _MAX_HEAD):
            raise BadForm(f"The head of a part is longer than {_MAX_HEAD:,} bytes.")
        if at < 0:
            return b""
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise BadForm(f"The form has more than {_MAX_PARTS} parts.")
        names = {found[1].lower(): found[2].decode("utf-8", "replace") for found in _NAME.finditer(bytes(self._kept[:at]))}
        del self._kept[: at + 4]
        self._part = names.get(b"name") or None
        if b"filename" in names:
            self._part = "" if self.file_name is None else None
            self.file_name = names[b"filename"] if self.file_name is None else self.file_name
        self._step = self._body
        return b""

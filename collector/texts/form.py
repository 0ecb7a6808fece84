"""What every text form is read by: how it is told apart, its bytes as characters or lines, what its reader says beside the events."""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.source import Source
from collector.texts.transcript import Transcript
from collector.texts.unread import Unread

__all__ = ["PIECE_BYTES", "TextForm", "TextInput", "Told", "beginning_of", "encoding_of"]

PIECE_BYTES = 256 << 10
_SAMPLE_BYTES = 4 << 20
_MOST_LINE = 1 << 20  # a payload of 64 KB in hexadecimal, and a hundred columns
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}encoding=["']([A-Za-z0-9_.-]{1,40})["']""")


@dataclass(slots=True)
class Told:
    """What a reader says beside the events: why it could not read on, events that it did not take over, what this text cannot say.

    `lacks` is sentences for the trust page.
    """

    damage: str = ""
    lacks: str = ""
    unread: Unread = field(default_factory=Unread)


@dataclass(frozen=True, slots=True)
class TextInput:
    """An open text; `look` raises CollectCancelled when nobody wants it any more."""

    source: Source
    encoding: str
    look: Callable[[], None]

    @property
    def name(self) -> str:
        return self.source.name

    def sample(self) -> str:
        """The first 4 MB."""
        return codecs.decode(self.source.read_at(0, _SAMPLE_BYTES), self.encoding, "replace")

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """All characters in pieces, each with whether it is the last; bytes that are none become U+FFFD. Raises SourceError."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        for offset in range(0, self.source.size, PIECE_BYTES):
            self.look()
            piece = self.source.read_at(offset, PIECE_BYTES)
            is_last = offset + len(piece) >= self.source.size
            text = decoder.decode(piece, is_last)
            yield text.lstrip("\ufeff") if offset == 0 else text, is_last

    def ends_its_last_line(self) -> bool:
        """Whether the last line has its end, as tools write it; the last value of one without may be cut. Raises SourceError."""
        last = self.source.read_at(max(0, self.source.size - 2), 2)
        return last.rstrip(b"\0").endswith(b"\n")

    def lines(self) -> Iterator[str | None]:
        """Lines without their ends, NUL as U+FFFD; None for one of more than a million characters. Raises SourceError."""
        rest, is_long = "", False
        for text, is_last in self.pieces():
            *whole, rest = (rest + text.replace("\0", "\ufffd")).split("\n")
            for line in whole:
                yield None if is_long or len(line) > _MOST_LINE else line.rstrip("\r")
                is_long = False
            if len(rest) > _MOST_LINE:
                rest, is_long = "", True
            if is_last and (rest or is_long):
                yield None if is_long else rest.rstrip("\r")


class TextForm(NamedTuple):
    """One form: what it is called in "was read from …", whether a file that starts with some bytes (512 of them, or all) is of it, how
    many bytes its pointers have and whether it says so, its reader, and whether a line is an event. Both raise SourceError, FormatError and
    CollectCancelled.
    """

    words: str
    sniff: Callable[[bytes], bool]
    pointer_size: Callable[[TextInput], tuple[int, bool]]
    read: Callable[[TextInput, Transcript], Told]
    is_of_lines: bool = False


def beginning_of(start: bytes) -> str:
    """The characters that a file starts with, without marks and blanks before them."""
    return codecs.decode(start, encoding_of(start), "ignore").lstrip("\ufeff \r\n\t")


def encoding_of(start: bytes) -> str:
    """The encoding of a text by its first bytes: its mark, its zero bytes, what its XML declares; else UTF-8."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if start.startswith(mark):
            return name
    if start[1:2] == b"\0":
        return "utf-16-le"
    if start[:1] == b"\0":
        return "utf-16-be"
    declared = _DECLARED.match(start[:512].lstrip())
    name = declared[1].decode() if declared else "utf-8"
    try:
        known = codecs.lookup(name)
        is_text = known.name not in ("utf-16", "utf-32", "utf-7") and bool(known.decode(b"<", "strict")[0] == "<")
    except (LookupError, ValueError, AssertionError):
        return "utf-8"
    return known.name if is_text else "utf-8"  # a file that was saved anew may still say UTF-16

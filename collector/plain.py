"""Text of a trace on a terminal, in a log or in a table: one line, whatever is in it, and nothing that steers the program that shows it.

Names of processes, files and providers come from whoever made the trace; a line break in one would forge a line of output, an escape
sequence could change the terminal, a bidirectional mark could show a name backwards, a spreadsheet would take some for formulas.
"""

import re
import sys
from typing import TextIO

__all__ = ["inert_cell", "plain_line", "say", "storable", "visible_text"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")

# C0 and C1 controls but for tab and line break; marks that turn the direction of text (Unicode UAX #9); invisible characters; surrogates.
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")


def plain_line(text: str) -> str:
    """The text with everything that is not printable as an escape such as `\\x1b`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_text(text: str) -> str:
    """The text with controls, marks of direction and invisible characters as escapes such as `\\u202e`; line breaks and tabs stay."""
    if text.isprintable():  # none of these is; asked of thousands of texts a page
        return text
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def inert_cell(text: str) -> str:
    """The text of a cell of CSV: what a spreadsheet would take for a formula gets an apostrophe before it."""
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text


def storable(text: str) -> str:
    """The text with lone surrogates as escapes: names of files may have bytes that are no text, which a database does not take."""
    return text.encode("utf-8", "backslashreplace").decode()


def say(line: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print one line; characters that the stream cannot write become escapes, too."""
    stream = file if file is not None else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(plain_line(line).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=flush)

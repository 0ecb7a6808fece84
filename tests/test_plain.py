"""Text of a trace on a terminal: one line, nothing that steers it, whatever the stream can write."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.plain import plain_line, say, visible_text


@given(st.text(st.characters(codec=None)))
def test_any_text_is_one_printable_line(text: str) -> None:
    line = plain_line(text)
    assert line.isprintable()
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a.exe", "a.exe"),
        ("größe – 1 µs", "größe – 1 µs"),
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\nsockscope: forged\r\n", "a\\nsockscope: forged\\r\\n"),
        ("exe.\u202etxt", "exe.\\u202etxt"),
        ("\ud800", "\\ud800"),
        ("a\0b", "a\\x00b"),
    ],
)
def test_what_steers_a_terminal_is_an_escape(text: str, shown: str) -> None:
    assert plain_line(text) == shown


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_stream_can_write_it(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    say("名前 – \x1b\ud800 …", file=stream)
    stream.flush()
    assert raw.getvalue().count(b"\n") == 1
    assert b"\x1b" not in raw.getvalue()


@given(st.text(st.characters(codec=None)))
def test_visible_text_keeps_lines_and_hides_nothing(text: str) -> None:
    shown = visible_text(text)
    assert shown.count("\n") == text.count("\n")
    assert not set(shown) & set("\0\x1b\x9b\u202e\u2066\u200f\ufeff\ud800")
    assert visible_text(shown) == shown

"""Query string ⇄ conditions ⇄ English, for filters and their values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import column

from app import filters as f
from app.filters import BadFilter, Filter, parse_conditions

SIZE: Filter = Filter("min", f.parse_bytes, lambda v: column("size") >= v, "of {} or more", "Size", show=str)
HIDE = Filter("unused", f.one_of(("hide", "only")), lambda v: column("used"), "without the unused", "Unused", default="hide")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500", 1500),
        ("64 KiB", 65_536),
        ("1.5 MB", 1_500_000),
        ("2k", 2000),
        ("1,000", 1000),
        ("1,234,567.5 kB", 1_234_567_500),
        ("0", 0),
        ("0.0015 kB", 1),
    ],
)
def test_sizes_are_read_with_their_units(text: str, value: int) -> None:
    assert f.parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "x", "-1", "1 parsec", "1e9", "9" * 30, "1.2.3", "12,5", "1,0000", "1,000.5,3", "1,,000"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        f.parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3 ms", -3_000_000),
        ("12.345 s", 12_345_000_000),
        ("+12.345 678 s", 12_345_678_000),
        ("2 min", 120 * 10**9),
        ("1.5us", 1500),
    ],
)
def test_times_are_nanoseconds_or_have_a_unit(text: str, value: int) -> None:
    assert f.parse_time(text) == value


@pytest.mark.parametrize("text", ["12,5s", "12,5 s", "1,5", ",5 s"])
def test_a_comma_is_no_decimal_point(text: str) -> None:
    with pytest.raises(ValueError, match="nanoseconds"):
        f.parse_time(text)


@pytest.mark.parametrize("text", ["12.000", "+12.000", "1.5", "0.5 ns"])
def test_decimals_need_a_unit_that_can_be_divided(text: str) -> None:
    with pytest.raises(ValueError, match="needs a unit"):
        f.parse_time(text)
    with pytest.raises(ValueError, match="needs a unit"):
        f.parse_bytes("1.5 B")


def test_a_time_span_is_not_negative() -> None:
    assert f.parse_duration("200 ms") == 200_000_000
    with pytest.raises(ValueError, match="0 or more"):
        f.parse_duration("-1 s")


def test_words_of_a_vocabulary_may_be_several() -> None:
    read = f.one_of(("send", "recv"))
    assert read("recv, send,recv") == ("recv", "send")
    for text in ("sand", "", ",", "send;recv"):
        with pytest.raises(ValueError, match="send, recv"):
            read(text)


def test_words_that_exclude_each_other_come_alone() -> None:
    read = f.one_word(("hide", "only"))
    assert read("only") == "only"
    for text in ("maybe", "hide,only", ""):
        with pytest.raises(ValueError, match="hide or only; leave it empty for all"):
            read(text)


def test_conditions_say_what_they_do() -> None:
    where = parse_conditions((SIZE, HIDE), {"min": "2 kB", "other": "x"})
    assert where.in_words() == "of 2000 or more, without the unused"
    assert [str(clause) for clause in where.clauses()] == ["size >= :size_1", "used"]
    assert where.query() == {"min": "2 kB"}
    assert where.value("min") == 2000
    assert where.value("nothing") is None
    assert where.is_narrowed


def test_a_default_can_be_switched_off() -> None:
    where = parse_conditions((HIDE,), {"unused": ""})
    assert where.items == ()
    assert where.query() == {"unused": ""}
    held = parse_conditions((HIDE,), {})
    assert not held.is_narrowed
    assert held.query() == {}
    assert held.without("unused") == {"unused": ""}


def test_a_bad_value_names_its_filter() -> None:
    with pytest.raises(BadFilter, match=r"min=abc: a size") as caught:
        parse_conditions((SIZE,), {"min": "abc"})
    assert (caught.value.key, caught.value.text) == ("min", "abc")
    with pytest.raises(BadFilter, match="at most"):
        parse_conditions((SIZE,), {"min": "1" * 5000})


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_bad_filter(text: str) -> None:
    for parse in (f.parse_bytes, f.parse_time, f.parse_duration, f.parse_count, f.parse_text, f.yes_no, f.one_of(("a", "b"))):
        one = Filter("key", parse, lambda v: column("x") == v, "{}", "X")
        try:
            where = parse_conditions((one,), {"key": text})
        except BadFilter:
            continue
        assert len(where.items) == (1 if text.strip() else 0)

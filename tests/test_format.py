"""Values become text in one place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import format as fmt

THIN = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1004, "1.00 kB"),
        (9994, "9.99 kB"),
        (9995, "10.0 kB"),
        (12_400_000, "12.4 MB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (1 << 40, "1.10 TB"),
        (-2048, "−2.05 kB"),
        (None, "unknown"),
    ],
)
def test_sizes_have_three_digits(value: int | None, text: str) -> None:
    assert fmt.bytes_text(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (123_456, "123 µs"),
        (1_500_000, "1.50 ms"),
        (35_000_000_000, "35.0 s"),
        (60_000_000_000, "1.00 min"),
        (3_600_000_000_000, "1.00 h"),
        (90_000_000_000_000, "1.04 d"),
        (-1_500_000, "−1.50 ms"),
        (None, "unknown"),
    ],
)
def test_durations_have_three_digits_in_the_largest_unit(ns: int | None, text: str) -> None:
    assert fmt.duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (12_345_678_000, f"+12.345{THIN}678 s"),
        (12_345_678_999, f"+12.345{THIN}678 s"),
        (0, f"+0.000{THIN}000 s"),
        (-1_000, f"−0.000{THIN}001 s"),
        (1_234_567_000_000_000, f"+1{THIN}234{THIN}567.000{THIN}000 s"),
        (None, "unknown"),
    ],
)
def test_moments_are_seconds_of_the_trace_to_the_microsecond(ns: int | None, text: str) -> None:
    assert fmt.time(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(5, f"+0.000{THIN}000{THIN}005 s"), (-5, f"−0.000{THIN}000{THIN}005 s"), (1_500_000_000, f"+1.500{THIN}000 s"), (None, "unknown")],
)
def test_a_moment_can_be_said_whole(ns: int | None, text: str) -> None:
    assert fmt.time_whole(ns) == text


def test_the_ends_of_a_range_are_told_apart() -> None:
    assert fmt.time_span(2, 9) == f"from +0.000{THIN}000{THIN}002 s to +0.000{THIN}000{THIN}009 s"
    assert fmt.time_span(1_000_000_001, 2_000_000_001) == f"from +1.000{THIN}000 s to +2.000{THIN}000 s"


def test_a_moment_has_a_date_where_the_trace_has_a_start() -> None:
    assert fmt.absolute(1_500_000_000, "2025-03-04T10:00:00.000000Z") == "2025-03-04 10:00:01.500000 UTC"
    assert fmt.absolute(1, None) is None
    assert fmt.absolute(1, "not a date") is None
    assert fmt.absolute(1 << 62, "9999-12-31T23:59:59Z") is None


def test_a_status_is_shown_in_all_its_spellings() -> None:
    assert fmt.status(0xC000020D) == "STATUS_CONNECTION_RESET 0xC000020D · WSAECONNRESET 10054"
    assert fmt.status(0xC000020D - (1 << 32)) == fmt.status(0xC000020D)
    assert fmt.status(0xEEEE1234).startswith("0xEEEE1234")
    assert fmt.status_short(0xC000020D) == "CONNECTION_RESET"
    assert fmt.status(None) == fmt.status_short(None) == "unknown"


def test_addresses_are_unsigned_hex_text() -> None:
    stored = 0xFFFF9A0C2A001010 - (1 << 64)
    assert str(fmt.to_address(stored)) == "0xffff9a0c2a001010"
    assert fmt.address(stored) == "0xffff9a0c2a001010"
    assert fmt.to_address(None) is None


@given(st.integers(min_value=0, max_value=(1 << 64) - 1))
def test_an_address_survives_the_database(value: int) -> None:
    assert fmt.to_address(fmt.stored_address(value)) == value
    assert -(1 << 63) <= fmt.stored_address(value) < 1 << 63


@given(st.integers(min_value=0, max_value=10**18))
def test_the_text_of_a_size_is_never_far_from_it(value: int) -> None:
    number, unit = fmt.bytes_text(value).replace(THIN, "").split(" ")
    size = float(number) * 1000 ** ("B", "kB", "MB", "GB", "TB", "PB", "EB").index(unit)
    assert abs(size - value) <= value * 0.006


def test_counts_take_their_noun() -> None:
    assert fmt.plural(1, "socket") == "1 socket"
    assert fmt.plural(1234, "process", "processes") == f"1{THIN}234 processes"
    assert fmt.words("open_at_end") == "open at end"
    assert (fmt.flag(True), fmt.flag(False), fmt.flag(None)) == ("yes", "no", "unknown")


def test_names_may_break_between_their_words_and_short_ones_do_not() -> None:
    assert fmt.breakable("AfdConnectIndicationWithAddress") == ["Afd", "Connect", "Indication", "With", "Address"]
    assert fmt.breakable("203.0.113.150:49200") == ["203.0.113.150:", "49200"]
    assert fmt.breakable("HeapAlloc") == ["HeapAlloc"]
    assert fmt.breakable(7010) == ["7010"]


def test_fields_of_a_record_are_words() -> None:
    assert fmt.fields('{"address_family": 2, "cq": "0x1f", "absent": null}') == "address family 2, cq 0x1f"


def test_rates_have_no_exponent() -> None:
    assert (fmt.per_second(5001, 10**9), fmt.per_second(42, 10**9), fmt.per_second(2, 15 * 10**9)) == ("5000", "41", "0.0667")
    assert (fmt.per_second(1, 10**9), fmt.per_second(9, 10**8)) == (None, None)

"""Status names and the errors that programs see, against the rules of the two severity bits and the published pairs."""

import json
from pathlib import Path

import pytest

from collector.ntstatus import (
    STATUSES,
    WINSOCK_ERRORS,
    is_error,
    is_warning,
    is_would_block,
    meaning_of,
    name_of,
    parse_status,
    win32_of,
    winsock_of,
    wsa_of,
)

RESET, ABORTED, CANCELLED, OVERFLOW = 0xC000020D, 0xC0000241, 0xC0000120, 0x80000005


@pytest.mark.parametrize(
    ("status", "name", "winsock", "win32"),
    [
        (0xC000020D, "STATUS_CONNECTION_RESET", ("WSAECONNRESET", 10054), ("ERROR_NETNAME_DELETED", 64)),
        (0xC0000241, "STATUS_CONNECTION_ABORTED", ("WSAECONNABORTED", 10053), ("ERROR_CONNECTION_ABORTED", 1236)),
        (0xC0000120, "STATUS_CANCELLED", ("WSA_OPERATION_ABORTED", 995), ("ERROR_OPERATION_ABORTED", 995)),
        (0xC0000209, "STATUS_TOO_MANY_ADDRESSES", ("WSAENOBUFS", 10055), ("ERROR_TOO_MANY_NAMES", 68)),
        (0xC0000043, "STATUS_SHARING_VIOLATION", ("WSAEADDRINUSE", 10048), ("ERROR_SHARING_VIOLATION", 32)),
        (0xC0000236, "STATUS_CONNECTION_REFUSED", ("WSAECONNREFUSED", 10061), ("ERROR_CONNECTION_REFUSED", 1225)),
        (0x80000005, "STATUS_BUFFER_OVERFLOW", ("WSAEMSGSIZE", 10040), ("ERROR_MORE_DATA", 234)),
        (0xC000A013, "STATUS_PROTOCOL_NOT_SUPPORTED", ("WSAEINVAL", 10022), None),
    ],
)
def test_a_status_has_a_name_and_the_errors_that_programs_see(
    status: int, name: str, winsock: tuple[str, int], win32: tuple[str, int] | None
) -> None:
    error = winsock_of(status)

    assert name_of(status) == name
    assert error is not None
    assert (error.name, error.number) == winsock
    assert wsa_of(status) == winsock[1]
    assert win32_of(status) == win32


def test_a_signed_status_is_the_same_status() -> None:
    assert name_of(RESET - (1 << 32)) == "STATUS_CONNECTION_RESET"
    assert is_error(RESET - (1 << 32))


def test_success_shows_no_error() -> None:
    assert name_of(0) == "STATUS_SUCCESS"
    assert winsock_of(0) is None
    assert winsock_of(0x4000000F) is None


def test_what_is_unknown_has_no_name() -> None:
    assert name_of(0xC0001234) is None
    assert meaning_of(0xC0001234) is None
    assert win32_of(0xC0001234) is None
    assert wsa_of(0x00001234) is None


def test_winsock_reports_unknown_failures_as_invalid_argument() -> None:
    assert wsa_of(0xC0001234) == 10022


def test_a_status_may_carry_an_error_number_in_its_lower_half() -> None:
    assert wsa_of(0xC0072746) == 10054
    error = winsock_of(0xC0072746)
    assert error is not None
    assert error.name == "WSAECONNRESET"


@pytest.mark.parametrize(
    ("status", "error", "warning"),
    [
        (0x00000000, False, False),
        (0x40000010, False, False),
        (0x80000005, False, True),
        (0xBFFFFFFF, False, True),
        (0xC0000000, True, False),
    ],
)
def test_the_top_two_bits_say_how_bad_it_is(status: int, error: bool, warning: bool) -> None:
    assert is_error(status) == error
    assert is_warning(status) == warning


def test_not_now_is_an_ordinary_answer() -> None:
    assert is_would_block(0xC00000A3)
    assert not is_would_block(RESET)
    assert not is_would_block(0xC0001234)


@pytest.mark.parametrize(
    "text",
    ["0xC000020D", "0xc000020d", " c000020d ", "STATUS_CONNECTION_RESET", "status_connection_reset", "3221225997", "-1073741299"],
)
def test_a_status_is_understood_in_all_its_spellings(text: str) -> None:
    assert parse_status(text) == (RESET,)


@pytest.mark.parametrize("text", ["10053", "WSAECONNABORTED", "wsaeconnaborted", "0x2745", "0x80072745"])
def test_an_error_number_means_every_status_behind_it(text: str) -> None:
    assert parse_status(text) == (0xC000013B, 0xC000020F, ABORTED)


def test_the_number_of_a_completion_port_error_is_understood() -> None:
    assert CANCELLED in parse_status("995")
    assert RESET in parse_status("64")
    assert parse_status("ERROR_MORE_DATA") == (OVERFLOW,)


def test_a_status_that_we_do_not_know_is_taken_as_it_is() -> None:
    assert parse_status("0xC0001234") == (0xC0001234,)
    assert parse_status("0") == (0,)


@pytest.mark.parametrize("text", ["", "443", "game.exe", "0x", "0x1ff9a0c11223080", "99999999999", "-2147483649", "10099"])
def test_other_texts_are_no_status(text: str) -> None:
    assert parse_status(text) == ()


def test_every_name_finds_its_own_status() -> None:
    assert all(parse_status(status.name) == (value,) for value, status in STATUSES.items())


def test_every_winsock_error_of_a_status_has_a_name() -> None:
    assert {status.winsock for status in STATUSES.values()} - {None} <= set(WINSOCK_ERRORS)


@pytest.mark.shared
def test_the_tables_hold_what_the_notes_list(shared_dir: Path) -> None:
    codes = json.loads((shared_dir / "facts" / "winsock-codes.json").read_text(encoding="utf-8"))
    listed = [
        (int(e["value"], 16), e["name"], e["wsa_code"] or None, (e["completion_port_error"] or {}).get("code"))
        for e in codes["ntstatus"]["values"]
    ]
    errors = {e["code"]: e["name"] for e in (*codes["wsa_errors"]["values"], *codes["wsa_errors"]["also"])}

    assert [(s.value, s.name, s.winsock, s.win32) for s in STATUSES.values()] == listed
    assert {number: error.name for number, error in WINSOCK_ERRORS.items()} == errors

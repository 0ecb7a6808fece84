"""Socket addresses: from bytes to the one spelling."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.sockaddr import AF_HYPERV, AF_INET, AF_INET6, AF_UNIX, AF_VSOCK, from_ipv4, from_ipv6, from_sockaddr


def ipv6(text: str, port: int, scope: int = 0) -> bytes:
    return AF_INET6.to_bytes(2, "little") + port.to_bytes(2, "big") + bytes(4) + bytes.fromhex(text) + scope.to_bytes(4, "little")


def test_an_ipv4_address_has_its_octets_and_its_port_in_network_order() -> None:
    address = from_sockaddr(bytes.fromhex("0200 01bb c0000201 0000000000000000"))

    assert address is not None
    assert (address.text, address.family, address.port, address.scope_id) == ("192.0.2.1:443", AF_INET, 443, 0)
    assert address.ip == bytes(10) + bytes.fromhex("ffff c0000201")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (ipv6("fe80000000000000 0000000000000001", 53, 7), "[fe80::1%7]:53"),
        (ipv6("20010db8000000000000000000000053", 53), "[2001:db8::53]:53"),
        (ipv6("00000000000000000000ffffc0000235", 53), "[::ffff:192.0.2.53]:53"),
        (ipv6("0" * 32, 5353), "[::]:5353"),
        (ipv6("0" * 32, 5353)[:24], "[::]:5353"),
    ],
)
def test_an_ipv6_address_stands_in_brackets_with_its_zone(raw: bytes, text: str) -> None:
    address = from_sockaddr(raw)
    assert address is not None
    assert address.text == text


def test_other_families_have_spellings_of_their_own() -> None:
    machine, service = UUID(int=1), UUID(int=2)
    hyperv = AF_HYPERV.to_bytes(2, "little") + bytes(2) + machine.bytes_le + service.bytes_le
    vsock = AF_VSOCK.to_bytes(2, "little") + bytes(2) + (1024).to_bytes(4, "little") + (3).to_bytes(4, "little")

    assert [getattr(from_sockaddr(raw), "text", None) for raw in (hyperv, vsock)] == [f"vm {machine} service {service}", "vsock 3:1024"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"C:\\temp\\app.sock\0\0\0", "C:\\temp\\app.sock"),
        (b"\0\0\0", "unix unnamed"),
        (b"", "unix unnamed"),
        (b"\0agent\0", "unix @agent"),
    ],
)
def test_a_local_socket_is_its_path(path: bytes, text: str) -> None:
    address = from_sockaddr(AF_UNIX.to_bytes(2, "little") + path)
    assert address is not None
    assert (address.text, address.ip, address.port) == (text, None, None)


@pytest.mark.parametrize("raw", [b"", b"\2", bytes(16), bytes(28)])
def test_no_bytes_and_no_family_are_no_address(raw: bytes) -> None:
    assert from_sockaddr(raw) is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (bytes.fromhex("0200 01bb c00002"), "family 2: 01bbc00002"),
        (ipv6("0" * 32, 53)[:23], "family 23: 0035" + "00" * 19),
        (bytes.fromhex("2000 0a0b"), "family 32: 0a0b"),
    ],
)
def test_what_cannot_be_read_is_shown_as_it_is(raw: bytes, text: str) -> None:
    address = from_sockaddr(raw)
    assert address is not None
    assert (address.text, address.ip) == (text, None)


def test_all_local_addresses_are_told_apart() -> None:
    assert from_ipv4(bytes(4), 80).is_any
    assert from_ipv6(bytes(16), 80).is_any
    assert not from_ipv4(bytes([127, 0, 0, 1]), 80).is_any


@given(st.binary(max_size=140))
def test_any_bytes_give_an_address_or_none(raw: bytes) -> None:
    address = from_sockaddr(raw)
    assert address is None or (address.text and (address.ip is None or len(address.ip) == 16))

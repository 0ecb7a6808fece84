"""The natural names of things in URLs are written and read the same way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import links
from app.format import Address

ADDRESSES = st.integers(min_value=0, max_value=(1 << 64) - 1)
TIMES = st.integers(min_value=-(1 << 62), max_value=1 << 62)


@given(ADDRESSES, TIMES)
def test_a_socket_link_reads_back(endpoint: int, ns: int) -> None:
    link = links.socket_link(endpoint, ns, ns + 1)
    assert links.parse_socket(link) == links.SocketLink(Address(endpoint), ns)
    assert str(links.parse_socket(link)) == link


@given(st.integers(min_value=0, max_value=(1 << 32) - 1), TIMES)
def test_a_process_link_reads_back(pid: int, ns: int) -> None:
    assert links.parse_process(links.process_link(pid, None, None, ns)) == links.ProcessLink(pid, None, ns)


@given(ADDRESSES, ADDRESSES, TIMES)
def test_an_allocation_link_reads_back(heap: int, address: int, ns: int) -> None:
    assert links.parse_allocation(links.allocation_link(heap, address, None, ns)) == links.AllocationLink(
        Address(heap), Address(address), ns
    )


@given(st.sampled_from(["send", "recvmsg"]), ADDRESSES, TIMES)
def test_an_operation_link_reads_back(kind: str, buffer: int, ns: int) -> None:
    assert links.parse_operation(links.operation_link(kind, buffer, None, ns)) == links.OperationLink(kind, Address(buffer), ns)


def test_a_link_takes_the_creation_where_it_is_known() -> None:
    assert links.socket_link(0x10, 5, 9) == "0x10@5"
    assert links.socket_link(0x10, None, 9) == "0x10@9"
    assert links.process_link(None, 0x20, None, 7) == "0x20@7"
    assert links.operation_link("send", None, None, 7) == "send:0x0@7"


def test_bare_hex_is_accepted() -> None:
    assert links.parse_address("FFFF9A0C2A001010") == 0xFFFF9A0C2A001010
    assert links.parse_socket("0xAB").ns is None


@pytest.mark.parametrize("text", ["", "0x", "0xg", "1" * 17, "12 34", "0x1@", "0x1@x", "0x1@99999999999999999999", "@5", "../etc"])
def test_what_names_no_socket_is_refused(text: str) -> None:
    with pytest.raises(links.BadLink):
        links.parse_socket(text)


@pytest.mark.parametrize("text", ["", "name", "-5@0", "12345678901@0", "4@"])
def test_what_names_no_process_is_refused(text: str) -> None:
    with pytest.raises(links.BadLink):
        links.parse_process(text)


@pytest.mark.parametrize("text", ["send@5", "send:0x1", "se nd:0x1@5", "send:zz@5"])
def test_what_names_no_operation_is_refused(text: str) -> None:
    with pytest.raises(links.BadLink):
        links.parse_operation(text)

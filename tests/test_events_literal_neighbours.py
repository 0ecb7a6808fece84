"""Literal records of the events that merely help: the network stack, name resolution, the Winsock catalog, virtual memory.

Each payload is written out from the layouts that public traces, manifests and the MOF classes have, one group of hex digits a field;
first as a record of a 64-bit process, then of a 32-bit one.
"""

import pytest

from collector.events import NEIGHBOUR_EVENTS
from collector.events.heap import MEMORY
from collector.events.names import DNS_CLIENT, NAME_RESOLUTION, WINSOCK_CATALOG
from collector.events.network import KERNEL_NETWORK, NETWORK_EVENTS, TCP_CLASS, TCPIP, UDP_CLASS
from tests.literals import Literal, Value, check, classic, hexed, ip

_HERE6, _THERE6 = "20014898 00f00026 b18ee85f db5d08e8", "20014898 00e00081 7cb900ab 0cd5e6af"
_ENDS4: dict[str, Value] = {"pid": 4120, "size": 512, "daddr": ip("192.0.2.10"), "saddr": ip("10.0.0.5"), "dport": 443, "sport": 50001}
_HEX4 = "18100000 00020000 c000020a 0a000005 01bb c351"
_ENDS6: dict[str, Value] = {
    "pid": 4, "size": 372, "daddr": hexed(_THERE6), "saddr": hexed(_HERE6), "dport": 445, "sport": 64025,
}  # fmt: skip
_HEX6 = f"04000000 74010000 {_THERE6} {_HERE6} 01bd fa19"
_NUMBERS: dict[str, Value] = {"seqnum": 7, "connid": 0xFFFF9A0C11223344}
_TAIL64, _TAIL32 = "07000000 443322110c9affff", "07000000 44332211"
_TIMES: dict[str, Value] = {"startime": 0x796, "endtime": 0x796, **_NUMBERS}
_OPTIONS: dict[str, Value] = {
    "mss": 1460, "sackopt": 1, "tsopt": 0, "wsopt": 1, "rcvwin": 65_535, "rcvwinscale": 8, "sndwinscale": -1, **_NUMBERS,
}  # fmt: skip
_OPTIONS_HEX = "b405 0100 0000 0100 ffff0000 0800 ffff"
_TAILS: dict[str, tuple[str, dict[str, Value]]] = {
    "Send": ("96070000 96070000", _TIMES),
    "Connect": (_OPTIONS_HEX, _OPTIONS),
    "Accept": (_OPTIONS_HEX, _OPTIONS),
}
_TCP = {"Send": 10, "Receive": 11, "Connect": 12, "Disconnect": 13, "Retransmit": 14, "Accept": 15, "Reconnect": 16, "Copy": 18}


def _kernel() -> list[Literal]:
    found = []
    for what, opcode in _TCP.items():
        more, values = _TAILS.get(what, ("", _NUMBERS))
        for form, number, ends, head in (("", opcode, _ENDS4, _HEX4), ("IPv6", opcode + 16, _ENDS6, _HEX6)):
            wide, narrow = f"{head} {more} {_TAIL64}", f"{head} {more} {_TAIL32}"
            found.append(classic(TCP_CLASS, number, 2, f"TcpIp{what}{form}", wide, narrow, {**ends, **values}))
            found.append(_modern(KERNEL_NETWORK, number, f"KernelNetworkTcp{what}{form}", wide, narrow, ends))
    for what, opcode in (("Send", 10), ("Receive", 11)):
        for form, extra, ends, head in (("", 0, _ENDS4, _HEX4), ("IPv6", 16, _ENDS6, _HEX6)):
            wide, narrow = f"{head} {_TAIL64}", f"{head} {_TAIL32}"
            found.append(classic(UDP_CLASS, opcode + extra, 2, f"UdpIp{what}{form}", wide, narrow, {**ends, **_NUMBERS}))
            found.append(_modern(KERNEL_NETWORK, opcode + 32 + extra, f"KernelNetworkUdp{what}{form}", wide, narrow, ends))
    return found


def _modern(provider: object, number: int, name: str, hex64: str, hex32: str, values: dict[str, Value]) -> Literal:
    return Literal(provider, number, 0, False, name, hex64, hex32, values)  # type: ignore[arg-type]  # a UUID


_LOCAL, _REMOTE = "0200c3510a000005 0000000000000000", "1700bb01 00000000 20010db8000000000000000000000010 00000000"
_ADDRESSES: dict[str, Value] = {
    "local_address_length": 16,
    "local_address": hexed(_LOCAL),
    "remote_address_length": 28,
    "remote_address": hexed(_REMOTE),
}
_ADDRESSES_HEX = f"10000000 {_LOCAL} 1c000000 {_REMOTE}"
_TCB32, _TCB = "10000055", 0xFFFF9A0C55000010


def _stack() -> list[Literal]:
    found = []
    tcb64 = "100000550c9affff"
    for schema in NETWORK_EVENTS:
        if schema.provider != TCPIP:
            continue
        names = [field.name for field in schema.fields if field.name != "more"]
        values: dict[str, Value] = {}
        hexes: list[str] = []
        if schema.name == "TcpConnectionSummary1477":
            wide = "".join(f"{i:02x}" + "00" * 7 for i in range(1, 7)) + "".join(f"{i:02x}000000" for i in range(7, 17))
            wide += "11000000 12000000 1300000000000000 14000000 15000000 1600000000000000 17000000 18000000 1900000000000000"
            wide += "1a00000000000000" + "".join(f"{i:02x}000000" for i in range(27, 34))
            values = {"tcb": _TCB, **{name: i for i, name in enumerate(names[1:34], start=1)}, **_ADDRESSES}
            found.append(
                _modern(
                    TCPIP, 1477, schema.name, f"{tcb64} {wide} {_ADDRESSES_HEX}", f"{_TCB32} {wide} {_ADDRESSES_HEX}",
                    values,
                )
            )  # fmt: skip
            continue
        for narrow in (False, True):
            parts = []
            for i, name in enumerate(name for name in names if "address" not in name):
                parts.append((_TCB32 if narrow else tcb64) if name == "tcb" else f"{i + 1:02x}000000")
                values[name] = _TCB if name == "tcb" else i + 1
            if "local_address" in names:
                parts.insert(names.index("local_address_length"), _ADDRESSES_HEX)
                values |= _ADDRESSES
            hexes.append(" ".join(parts))
        found.append(_modern(TCPIP, schema.number, schema.name, hexes[0], hexes[1], {name: values[name] for name in names}))
    return found


def _text(value: str) -> str:
    return (value + "\0").encode("utf-16-le").hex()


_QUERY: dict[str, Value] = {"query_name": "a.example", "query_type": 1}
_QUERY_HEX = f"{_text('a.example')} 01000000"
_RESULTS = "type:  5 b.example;::ffff:192.0.2.10;"
_GUID = "a01a0fe7 8bab cf11 8ca3 00805f48a192"
_ENTRY: dict[str, Value] = {
    "lsp_name": "Filter", "catalog": 64, "installer": "setup.exe", "guid": hexed(_GUID), "category": 1007,
}  # fmt: skip
_ENTRY_HEX = f"{_text('Filter')} 40000000 73657475702e65786500 {_GUID} ef030000"


def _same(provider: object, number: int, name: str, hexes: str, values: dict[str, Value]) -> Literal:
    return _modern(provider, number, name, hexes, hexes, values)


CASES: tuple[Literal, ...] = (
    *_kernel(),
    *_stack(),
    _same(
        DNS_CLIENT,
        3008,
        "DnsQueryCompleted",
        f"{_QUERY_HEX} 0040000000000000 00000000 {_text(_RESULTS)}",
        {**_QUERY, "query_options": 0x4000, "query_status": 0, "query_results": _RESULTS},
    ),
    _same(
        DNS_CLIENT,
        3018,
        "DnsCacheLookup",
        f"{_QUERY_HEX} 0040000000000000 00000000 {_text(_RESULTS)}",
        {**_QUERY, "query_options": 0x4000, "status": 0, "query_results": _RESULTS},
    ),
    _same(
        DNS_CLIENT,
        3020,
        "DnsQueryResponse",
        f"{_QUERY_HEX} 02000000 03000000 00000000 {_text(_RESULTS)}",
        {**_QUERY, "network_index": 2, "interface_index": 3, "status": 0, "query_results": _RESULTS},
    ),
    *(
        _same(
            NAME_RESOLUTION,
            number,
            name,
            f"{_text('a.example')} 00000000 {_text('192.0.2.10:0;')}",
            {"node_name": "a.example", "status": 0, "result": "192.0.2.10:0;"},
        )
        for number, name in ((1001, "WinsockGaiEnd"), (1004, "WinsockGaiExEnd"))
    ),
    *(
        _same(WINSOCK_CATALOG, number, name, _ENTRY_HEX, _ENTRY)
        for number, name in ((1, "LspInstalled"), (2, "LspRemoved"), (3, "LspDisabled"))
    ),
    _same(WINSOCK_CATALOG, 4, "WinsockCatalogReset", "20000000", {"catalog": 32}),
    *(
        classic(
            MEMORY,
            opcode,
            2,
            name,
            "00003412ff7f0000 0000100000000000 18100000 00300000",
            "00003412 00001000 18100000 00300000",
            {"base_address": 0x7FFF12340000, "region_size": 0x100000, "process_id": 4120, "flags": 0x3000},
        )
        for opcode, name in ((98, "VirtualAlloc"), (99, "VirtualFree"))
    ),
)


@pytest.mark.parametrize("pointer_size", [8, 4])
@pytest.mark.parametrize("literal", CASES, ids=str)
def test_a_record_decodes_to_its_values(literal: Literal, pointer_size: int) -> None:
    check(literal, pointer_size)


def test_every_event_has_a_literal_record() -> None:
    assert {case.name for case in CASES} == {schema.name for schema in NEIGHBOUR_EVENTS}

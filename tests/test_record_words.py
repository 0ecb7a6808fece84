"""Records of a socket in plain words."""

import pytest

from app.format import Status
from app.queries.record_words import left_out_words, record_words


@pytest.mark.parametrize(
    ("event", "side", "fields", "address", "status", "text"),
    [
        (1000, 0, {"address_family": 2, "socket_type": 1, "protocol": 6, "process_id": 4312}, None, 0,
         "creation begins: IPv4, stream, TCP, process id 4312"),
        (1000, 1, {"address_family": 23, "socket_type": 2, "protocol": 17}, None, 0, "created: IPv6, datagram, UDP"),
        (1, None, {"address_family": 99, "protocol": None}, None, None, "created: address family 99"),
        (1030, 0, {}, "0.0.0.0:0", 0, "bind begins to 0.0.0.0:0"),
        (1030, 1, {}, "10.20.0.5:49680", 0, "bound to 10.20.0.5:49680"),
        (1029, 1, {}, None, 0xC0000209, "bind failed: STATUS_TOO_MANY_ADDRESSES 0xC0000209 · WSAENOBUFS 10055"),
        (40, None, {}, None, None, "bind failed"),
        (1002, 1, {}, None, 0, "cleanup done"),
        (1037, 1, {"backlog": 8}, None, 0, "listening: backlog 8"),
        (1032, 2, {"reason": 7}, None, None, "aborted by Winsock, reason 7: pending data at disconnect"),
        (1032, 3, {"reason": 4}, None, None, "aborted by the transport, reason 4: probably transport disconnect"),
        (8, None, {}, None, None, "aborted by the transport, reason unknown"),
        (1033, 4, {"buffer_length": 981, "reason": 2}, "203.0.113.40:27015", None,
         "datagram of 981 B from 203.0.113.40:27015 dropped, reason 2: no buffer space"),
        (33, None, {"packet_size": 99, "reason": 1}, None, None, "datagram of 99 B dropped, reason 1"),
        (1035, 4, {"option": 2, "value": 1}, None, 0, "FIONBIO set to 1"),
        (1035, 4, {"option": 77, "value": None}, None, 0, "option 77 set to unknown"),
        (3004, 3, {"buffer": "0x0", "buffer_length": 864}, "203.0.113.40:27015", None, "864 B arrived from 203.0.113.40:27015"),
        (3000, 3, {}, None, 0xC000009A, "connection request from unknown: STATUS_INSUFFICIENT_RESOURCES 0xC000009A · WSAENOBUFS 10055"),
        (3006, 3, {}, None, 0, "the peer disconnected"),
        (3007, 3, {"send_backlog": 131072}, None, None, "send backlog 131 kB"),
        (4001, None, {"registration_domain": "0xffff9a0c50000000"}, None, None, "registration domain 0xffff9a0c50000000"),
        (4099, 0, {}, None, None, "call begins"),
    ],
)  # fmt: skip
def test_a_record_says_what_happened(
    event: int, side: int | None, fields: dict[str, object], address: str | None, status: int | None, text: str
) -> None:
    assert record_words(event, side, fields, address, None if status is None else Status(status)) == text


def test_what_is_not_counted_says_why() -> None:
    assert left_out_words("send", 180, "double_count") == "send of 180 B, not counted: the transport's part of a send that is counted"

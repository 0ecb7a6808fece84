"""Words that tools of Windows write for numbers: what the manifest of the socket provider calls the values of its fields."""

from collections.abc import Mapping

__all__ = ["WORDS"]

WORDS: Mapping[str, Mapping[str, int]] = {
    "SocketType": {"sock_stream": 1, "sock_dgram": 2, "sock_raw": 3, "sock_rdm": 4, "sock_seqpacket": 5},
    "SocketOption": {
        "so_oobinline": 1,
        "fionbio": 2,
        "so_rcvbuf": 6,
        "so_sndbuf": 7,
        "sio_enable_circular_queueing": 9,
        "sio_udp_connreset": 11,
        "afd_ipv6_v6only": 13,
        "ipv6_v6only": 13,
        "sio_udp_netreset": 15,
    },
    "DropReason": {
        "datagram source address does not match connected address": 1,
        "insufficient local buffer space": 2,
        "buffer allocation failed": 3,
        "insufficient local buffer space - circular queueing enabled": 4,
        "indicated datagram too large - integer overflow": 5,
    },
    "RioNotificationType": {"none": 0, "event": 1, "iocp": 2},
}
"""Number by word in small letters, by the name of the enumeration; from the message tables of ws2_32.dll, 6.0 to 10.0."""

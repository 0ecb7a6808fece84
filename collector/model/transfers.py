"""Which events post and complete transfers, and of which kind (winsock-semantics 4.1, 4.2)."""

from collector.model.socket_state import Kind

__all__ = ["DATAGRAMS_ONLY", "DOCUMENTED_COMPLETIONS", "DOCUMENTED_FAILURES", "DOCUMENTED_POSTS", "OPTIONAL_EXITS", "SENDING", "TRANSFERS"]

SENDING = (True, False, True, False, True, False, True, False)
"""By kind: whether it sends; a connect counts as sending."""

TRANSFERS = {
    1003: Kind.SEND,
    1004: Kind.RECV,
    1005: Kind.SENDTO,
    1006: Kind.RECVFROM,
    1007: Kind.SENDTO,
    1009: Kind.RECVFROM,
    1011: Kind.SENDMSG,
    1012: Kind.RECVMSG,
    1013: Kind.SENDMSG,
    1015: Kind.RECVMSG,
}
"""Modern events, each of which tells of post and completion."""
OPTIONAL_EXITS = frozenset({1005, 1007, 1011, 1013})
"""Those that may be posted without ever being completed."""

DOCUMENTED_POSTS = {18: Kind.SEND, 19: Kind.RECV, 20: Kind.RECVFROM, 21: Kind.SENDTO, 22: Kind.SENDTO}
DOCUMENTED_COMPLETIONS = {23: Kind.RECV, 24: Kind.SEND, 25: Kind.SENDMSG, 26: Kind.RECVFROM, 27: Kind.RECVFROM, 28: Kind.SENDTO}
DOCUMENTED_FAILURES = {
    9: (((Kind.SEND,), (Kind.SENDTO,)), Kind.SEND),
    10: (((Kind.SEND, Kind.SENDTO),), Kind.SENDMSG),
    11: (((Kind.RECV,),), Kind.RECV),
    12: (((Kind.RECVFROM,),), Kind.RECVFROM),
}
"""Groups of kinds whose request may have failed, the first before the second, and the kind when there is none."""
DATAGRAMS_ONLY = frozenset({20, 21, 22, 26, 27, 28, 33, 34, 38, 39})
"""Events that only datagram sockets log."""

"""The vocabularies of the product: the words behind small numbers in the tables.

A column that holds one of these stores the index of the word; the SQL views and the pages show the word. Words are only ever
added at the end.
"""

__all__ = [
    "BUFFER_CLASSES",
    "CERTAINTIES",
    "END_REASONS",
    "FAMILIES",
    "FINDING_KINDS",
    "HEAP_FINDINGS",
    "IO_FINDINGS",
    "MATCHES",
    "OPERATION_KINDS",
    "ORIGINS",
    "OUTCOMES",
    "PROTOCOLS",
    "SOCKET_TYPES",
    "SPACES",
    "TRANSPORT_DEEDS",
    "TRANSPORT_SOURCES",
    "word_at",
]

OPERATION_KINDS = ("connect", "accept", "send", "recv", "sendto", "recvfrom", "sendmsg", "recvmsg")
OUTCOMES = ("completed", "failed", "cancelled", "rejected", "sent", "ended_with_socket", "ended_by_exit", "unknown_end", "in_flight")
MATCHES = ("none", "activity", "thread", "buffer", "kernel_order", "fifo")
SPACES = ("none", "user", "kernel")
BUFFER_CLASSES = (
    "kernel",
    "heap_chained",
    "heap_overrun",
    "heap",
    "image",
    "stack",
    "freed_block",
    "heap_untracked",
    "virtual",
    "unknown",
    "zero_length",
)
CERTAINTIES = ("certain", "possible")
ORIGINS = ("alloc", "realloc_move", "realloc_standalone", "adopted")
END_REASONS = ("freed", "realloc_moved", "heap_destroyed", "process_exit", "superseded", "heap_superseded")
FAMILIES = {1: "unix", 2: "ipv4", 23: "ipv6", 32: "bluetooth", 34: "hyperv", 40: "vsock"}
"""Windows address families by number; others are shown as `family 17`."""
SOCKET_TYPES = {0: "none", 1: "stream", 2: "dgram", 3: "raw", 4: "rdm", 5: "seqpacket"}
PROTOCOLS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 58: "icmpv6", 113: "pgm", 255: "raw"}
"""Protocols by number; others are shown as `protocol 41`."""

TRANSPORT_SOURCES = ("TcpIp", "UdpIp", "Microsoft-Windows-Kernel-Network", "Microsoft-Windows-TCPIP")
"""Providers whose events tell what the network stack did."""
TRANSPORT_DEEDS = (
    "connect",
    "accept",
    "disconnect",
    "retransmit",
    "reconnect",
    "connect requested",
    "connected",
    "connect failed",
    "connect timed out",
    "refused by a reset",
    "reset received",
    "ended by a SYN",
    "SYN retransmitted",
    "accept rejected",
    "close requested",
    "abort requested",
    "abort done",
    "disconnect done",
    "shut down",
    "retransmissions gave up",
    "keep-alives gave up",
    "disconnect timed out",
    "closed window timed out",
    "FIN-WAIT-2 timed out",
    "aborted by the system",
    "state",
    "there already",
    "summary",
)
"""What the network stack said of a connection."""


def word_at(words: tuple[str, ...], index: int | None) -> str | None:
    """The word behind a stored number; None stays None, a number without a word is shown as it is."""
    if index is None:
        return None
    return words[index] if 0 <= index < len(words) else f"unknown {index}"


FINDING_KINDS: tuple[str, ...] = (
    "aborted", "bind_failed", "buffer_deregistered_in_use", "buffer_overlap", "closed_in_flight", "connect_failed", "datagram_reset",
    "datagrams_dropped", "double_free", "free_after_destroy", "free_never_allocated", "free_wrong_heap", "freed_in_flight", "half_closed",
    "held_growth", "listener_overrun", "never_completed", "overruns_block", "ports_exhausted", "posted_after_free", "receive_too_small",
    "repeated_errors", "reused_in_flight", "shrunk_in_flight", "small_write_stall", "stale_connection", "unclosed_sockets",
    "unread_at_close",
)  # fmt: skip
"""All kinds of findings."""
HEAP_FINDINGS = frozenset(
    ("double_free", "free_after_destroy", "free_never_allocated", "free_wrong_heap", "freed_in_flight", "held_growth", "overruns_block",
     "posted_after_free", "reused_in_flight", "shrunk_in_flight")
)  # fmt: skip
"""Kinds of findings that only records of the heap can show."""
IO_FINDINGS = frozenset(("freed_in_flight", "overruns_block", "posted_after_free", "reused_in_flight", "shrunk_in_flight"))
"""Those among them that need records of sockets, too."""

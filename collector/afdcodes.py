"""What the numbers in socket events mean, each with how sure we are of it.

Abort reasons and locations are private to the driver: their names come from the order of its message texts, from public notes on one
build, and from what an expert tool has observed. `certain` here says that the meaning was confirmed at the place in the driver that logs
it, `possible` that it follows from the position alone or that two sources disagree.
"""

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ABORT_REASONS",
    "DATAGRAM_DROP_REASONS",
    "DOUBLE_COUNT_LOCATIONS",
    "LISTENER_ABORTS",
    "OPTIONS",
    "PROGRESS_LOCATION",
    "RELIABLE_LOCATIONS",
    "RELIABLE_UNLESS_SYSTEM",
    "SIDED_ABORTS",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "STATUS_CANCELLED",
    "STATUS_PENDING",
    "STATUS_WOULD_BLOCK",
    "TRANSPORT_ABORTS",
    "AbortReason",
    "DropReason",
    "EnterExit",
    "Keyword",
    "SocketOption",
    "fails_at_entry",
    "is_error",
    "option_name",
]

STATUS_CANCELLED = 0xC0000120
STATUS_WOULD_BLOCK = 0xC00000A3
STATUS_PENDING = 0x103


def is_error(status: int) -> bool:
    """Whether an NTSTATUS (unsigned) says failure; warnings such as a truncated datagram do not."""
    return status >= 0xC0000000


def fails_at_entry(status: int) -> bool:
    """Whether a request was refused when it entered: any status with the top bit set."""
    return status >= 0x80000000


class EnterExit(IntEnum):
    """Field EnterExit of the events from 1000 up."""

    ENTER = 0
    EXIT = 1
    INTERNAL = 2
    TRANSPORT = 3
    AFD = 4


class Keyword(IntEnum):
    """Bits of the header keyword, set per event by the driver."""

    DATAGRAM = 0x1
    STREAM = 0x2
    WINSOCK = 0x4
    TRANSPORT = 0x8
    FAST_PATH = 0x10
    BUFFERED = 0x20
    REGISTERED_IO = 0x40


@dataclass(frozen=True, slots=True)
class AbortReason:
    """A reason number of the events 7, 8 and 1032."""

    number: int
    name: str
    certainty: str
    meaning: str
    next_step: str


ABORT_REASONS = {
    reason.number: reason
    for reason in (
        AbortReason(
            1,
            "flush_receives_failed",
            "certain",
            "On close, receives that the transport still held could not be thrown away.",
            "See which receives were in flight when cleanup began, and whether another thread was still receiving.",
        ),
        AbortReason(
            2,
            "abortive_disconnect_requested",
            "certain",
            "The program or one of its libraries asked for a reset.",
            "See the stack and thread of the abort. SO_LINGER is not traced.",
        ),
        AbortReason(
            3,
            "shutdown_receive_with_data",
            "certain",
            "The receive side was shut down while unread data was waiting.",
            "Compare the bytes that arrived with those received; read to the end of the stream first.",
        ),
        AbortReason(
            4,
            "transport_disconnect",
            "possible",
            "The transport reported a reset: from the peer, from a device in between, or from its own timeout.",
            "See the status of the last operations: 0xC000020D is a reset, 0xC00000B5 a timeout.",
        ),
        AbortReason(
            5,
            "accepted_not_associated",
            "possible",
            "A connection at a listener broke before it had a socket.",
            "It is reported on the listener: see its backlog and how many accepts were posted.",
        ),
        AbortReason(
            6,
            "disconnect_failed",
            "certain",
            "An orderly close could not even be started.",
            "See the status of the sends before it, and memory pressure.",
        ),
        AbortReason(
            7,
            "pending_data_at_disconnect",
            "certain",
            "The socket was closed with unread data, with requests outstanding, or because its process ended.",
            "Compare the bytes that arrived with those received, and see what was in flight at the close.",
        ),
        AbortReason(
            8,
            "invalid_buffer_fast_receive",
            "possible",
            "Memory given to a receive was no longer valid while data was copied into it.",
            "See the receive before it and the heap events of its address.",
        ),
        AbortReason(
            9,
            "accept_failed",
            "certain",
            "An incoming connection could not be completed for an accept.",
            "It is reported on the listener, which stays usable.",
        ),
        AbortReason(
            10,
            "buffer_allocation_failed",
            "certain",
            "The kernel had no memory for data that arrived.",
            "Look for 0xC000009A around this time.",
        ),
        AbortReason(
            11,
            "counter_overflow",
            "possible",
            "A byte counter overflowed or, more likely, data arrived after receiving was shut down; the sources disagree.",
            "See whether the socket was shut down before, and whether the peer kept sending.",
        ),
        AbortReason(
            12,
            "data_after_receive_shutdown",
            "possible",
            "The peer kept sending after receiving was shut down; the sources disagree about 11 and 12.",
            "See which side of the protocol is to close first.",
        ),
        AbortReason(
            13,
            "data_during_cleanup",
            "certain",
            "The peer was still sending when the socket was closed.",
            "Shut down sending, read to the end of the stream, then close.",
        ),
        AbortReason(
            14,
            "receive_failed",
            "certain",
            "A receive that the transport held failed.",
            "See the status of the last receive.",
        ),
        AbortReason(
            15,
            "send_failed",
            "certain",
            "Data that a send had already been told was taken could not be delivered.",
            "See the transport's completions of buffered sends and their status.",
        ),
        AbortReason(
            16,
            "send_cancelled",
            "possible",
            "A send was cancelled half way, after which a stream cannot go on.",
            "See who cancels: a timeout, a thread that ends with requests pending.",
        ),
        AbortReason(
            17,
            "transmit_cancelled",
            "possible",
            "The transmission of a file was cancelled half way.",
            "See who cancels it.",
        ),
        AbortReason(
            18,
            "abort_during_connect_indication",
            "possible",
            "The peer gave up while its connection request was handled.",
            "See how long accepts take; probes and scanners do this too.",
        ),
        AbortReason(
            19,
            "plug_and_play",
            "possible",
            "The network interface or its address went away.",
            "See whether several sockets with this local address were aborted together.",
        ),
    )
}

TRANSPORT_ABORTS = frozenset({4, 18})

SIDED_ABORTS = frozenset({7, 8})
"""Events that say by their id which side aborted: Winsock, the transport."""
"""Reasons of event 1032 that the transport gave; every other one is Winsock's."""
LISTENER_ABORTS = frozenset({5, 9})
"""Reasons that may be reported on a listener, for a connection that never got a socket; the listener lives on."""


@dataclass(frozen=True, slots=True)
class DropReason:
    """A reason number of the events 1033, 33 and 34; the manifest names it for 1033 alone."""

    number: int
    name: str
    meaning: str


DATAGRAM_DROP_REASONS = {
    reason.number: reason
    for reason in (
        DropReason(1, "source_mismatch", "The socket is connected and the datagram came from somebody else."),
        DropReason(2, "no_buffer_space", "The receive buffer was full: the program reads too slowly."),
        DropReason(3, "allocation_failed", "The kernel had no memory for the datagram."),
        DropReason(4, "no_buffer_space_circular", "The buffer was full and the oldest datagram made room."),
        DropReason(5, "too_large", "The size indicated does not fit."),
    )
}


@dataclass(frozen=True, slots=True)
class SocketOption:
    """One of the eight options that are traced."""

    number: int
    name: str
    meaning: str


OPTIONS = {
    option.number: option
    for option in (
        SocketOption(1, "SO_OOBINLINE", "non-zero: out-of-band data stays in the stream"),
        SocketOption(2, "FIONBIO", "non-zero: calls do not block"),
        SocketOption(6, "SO_RCVBUF", "bytes of the receive buffer"),
        SocketOption(7, "SO_SNDBUF", "bytes of the send buffer; 0: sends stay in flight until the peer acknowledges them"),
        SocketOption(9, "SIO_ENABLE_CIRCULAR_QUEUEING", "non-zero: a full buffer loses its oldest datagram"),
        SocketOption(11, "SIO_UDP_CONNRESET", "0: unreachable ports are not reported as a reset"),
        SocketOption(13, "IPV6_V6ONLY", "0: IPv4 too"),
        SocketOption(15, "SIO_UDP_NETRESET", "0: expired datagrams are not reported"),
    )
}
SO_RCVBUF = 6
SO_SNDBUF = 7


def option_name(number: int) -> str | None:
    """Name of a traced option, None for a number that the manifest does not name."""
    option = OPTIONS.get(number)
    return None if option is None else option.name


DOUBLE_COUNT_LOCATIONS = frozenset({3024, 3073})
"""Exits at which the transport finishes what the driver had copied; the send itself was finished before."""
PROGRESS_LOCATION = 5021
"""An enter of a connect that only reports progress."""

RELIABLE_LOCATIONS = frozenset(
    {
        *(1002, 1006, 1012, 1013, 1015),
        *(3003, 3014, 3044, 3045, 3047, 3051, 3058, 3100, 3200, 3201),
        *(4106, 4109, 4110, 4111, 4115, 4116, 4117, 4118, 4122, 4200, 4201),
        *(5023, 5031, 5502),
        *(7010, 7022),
        *(8000, 8004),
    }
)
"""Locations that run in a thread of the socket's own process, as an expert tool has observed."""
RELIABLE_UNLESS_SYSTEM = frozenset({2000, 2001})
"""As above, but under process id 4 they say nothing."""

"""What is kept of a socket and of a request while it is open; rules about them live in the modules that use them."""

from collections import deque

from collector.model.afd_table import Event
from collector.model.overlaps import Membership
from collector.model.owners import Owner

__all__ = ["DGRAM", "STREAM", "Kind", "Operation", "Peer", "Socket"]

STREAM, DGRAM = 1, 2
_DOCUMENTED = 1000  # below: events of the first generation


class Kind:
    """Kinds of operations: indexes into words.OPERATION_KINDS."""

    CONNECT = 0
    ACCEPT = 1
    SEND = 2
    RECV = 3
    SENDTO = 4
    RECVFROM = 5
    SENDMSG = 6
    RECVMSG = 7


class Peer:
    """What a datagram socket exchanged with one address."""

    __slots__ = ("bytes_received", "bytes_sent", "dropped", "receives", "sends")

    def __init__(self) -> None:
        self.bytes_sent = self.bytes_received = self.sends = self.receives = self.dropped = 0


class Socket:
    """One life of an endpoint address. Addresses are numbers of table `address`, 0 for unknown."""

    __slots__ = (
        "accept_inferred",
        "accepted_from",
        "bytes_indicated",
        "bytes_received",
        "bytes_sent",
        "close_stack",
        "close_tid",
        "closed_by",
        "closed_ns",
        "connection_indicated",
        "connection_received",
        "connections",
        "create_seen",
        "create_stack",
        "create_tid",
        "created_ns",
        "destroyed_ns",
        "end",
        "endpoint",
        "errors",
        "family",
        "first_ns",
        "is_aborted",
        "is_disconnected",
        "is_over",
        "is_registered_io",
        "is_shut_down",
        "is_void",
        "last_disconnect_ns",
        "last_error",
        "last_ns",
        "last_traffic_ns",
        "listener",
        "local",
        "n",
        "open",
        "over_cpu",
        "over_ns",
        "over_ticks",
        "owner",
        "peers",
        "protocol",
        "receive_buffer",
        "receives",
        "remote",
        "requested",
        "sends",
        "type",
        "type_inferred",
        "unanswered",
    )

    def __init__(self, n: int, e: Event, owner: Owner) -> None:
        self.n = n
        self.endpoint = e.endpoint
        self.owner = owner
        self.first_ns = self.last_ns = e.ns
        self.family: int | None = None
        self.type: int | None = None
        self.protocol: int | None = None
        self.type_inferred = False
        self.create_seen = False
        self.created_ns: int | None = None
        self.closed_ns: int | None = None
        self.closed_by: int | None = None
        self.destroyed_ns: int | None = None
        self.end: str | None = None
        self.is_over = False
        self.over_ticks = 0
        self.over_ns = 0
        self.over_cpu = 0
        self.is_void = False
        self.local = self.requested = self.remote = 0
        self.connections = 0
        self.listener = False
        self.accepted_from: int | None = None
        self.accept_inferred = False
        self.bytes_sent = self.bytes_received = self.bytes_indicated = 0
        self.sends = self.receives = self.errors = 0
        self.last_error: int | None = None
        self.create_stack: int | None = None
        self.close_stack: int | None = None
        self.create_tid: int | None = None
        self.close_tid: int | None = None
        self.is_registered_io = False
        # values of the present connection
        self.connection_indicated = self.connection_received = 0
        self.is_aborted = self.is_disconnected = self.is_shut_down = False
        self.last_disconnect_ns: int | None = None
        self.last_traffic_ns: int | None = None
        self.receive_buffer: int | None = None
        # what is open; made when first needed
        self.open: dict[int, Operation] = {}
        self.unanswered: deque[Operation] | None = None
        self.peers: dict[int, Peer] | None = None

    def saw_type(self, number: int) -> None:
        """The type as a keyword or a kind of event gives it away; a create knows better."""
        if self.type is None:
            self.type, self.type_inferred = number, True

    def created(self, e: Event) -> None:
        """What a create says of the socket."""
        self.family, self.type, self.protocol = e.y, e.z, e.w
        self.type_inferred = False

    def begin_connection(self) -> None:
        """Values of one connection start anew."""
        self.connection_indicated = self.connection_received = 0
        self.is_aborted = self.is_disconnected = self.is_shut_down = False
        self.last_disconnect_ns = None

    def is_over_before(self, e: Event) -> bool:
        """Whether the life was over when the record was made; at the very tick of the end, on another processor, nobody can say."""
        return self.is_over and not (e.ticks == self.over_ticks and e.cpu != self.over_cpu)

    def peer(self, address: int) -> Peer:
        """Totals of one peer."""
        if self.peers is None:
            self.peers = {}
        peer = self.peers.get(address)
        if peer is None:
            peer = self.peers[address] = Peer()
        return peer


class Operation:
    """A request in flight. `lane` is the socket and the direction as one number; `posted` are the columns of its post."""

    __slots__ = (
        "activity",
        "buffer",
        "buffer_inferred",
        "count",
        "fast",
        "header_activity",
        "is_documented",
        "is_open",
        "is_optional",
        "is_transfer",
        "kind",
        "lane",
        "length",
        "match_buffer",
        "match_space",
        "n",
        "ns",
        "overlap",
        "peer",
        "posted",
        "request_buffer",
        "sending",
        "socket",
        "space",
        "stack",
        "ticks",
        "tid",
    )

    def __init__(self, n: int, socket: Socket, kind: int, sending: bool, e: Event) -> None:
        self.n = n
        self.socket = socket
        self.kind = kind
        self.sending = sending
        self.lane = socket.n * 2 + sending
        self.is_transfer = kind >= Kind.SEND
        self.is_documented = e.id < _DOCUMENTED
        self.is_optional = False
        self.is_open = True
        self.ticks = e.ticks
        self.ns = e.ns
        self.posted = (e.id, e.tid, e.pid, e.cpu, e.location, e.seq)
        self.tid = e.tid
        self.header_activity = e.activity
        self.activity = 0 if e.activity == e.endpoint else e.activity
        self.buffer = self.match_buffer = e.buffer
        self.space = self.match_space = e.space
        self.length = e.length
        self.count = e.buffer_count
        self.fast = e.fast
        self.peer = e.address
        self.stack = e.stack
        self.buffer_inferred = False
        self.request_buffer: int | None = None
        self.overlap: Membership | None = None

    @property
    def place(self) -> tuple[int, int, int]:
        """Number of the owner, number of the socket, unsigned address of the endpoint."""
        socket = self.socket
        return socket.owner.n, socket.n, socket.endpoint & 0xFFFFFFFFFFFFFFFF

"""What is kept of a socket and of a request while it is open; rules about them live in the modules that use them."""

from collections import OrderedDict

from collector.model.afd_table import Event
from collector.model.in_flight import Membership
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
        "first_cpu",
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
        "receiving",
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
        self.first_cpu = e.cpu
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
        self.receiving = 0  # receives among them
        self.unanswered: OrderedDict[int, Operation] | None = None  # datagram sends whose exit may come, by number
        self.peers: dict[int, Peer] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing but its making is known."""
        has_address = self.local or self.remote or self.connections or self.listener
        return self.create_seen and not (has_address or self.sends or self.receives or self.open or self.is_over)

    @property
    def is_untouched(self) -> bool:
        """Whether it is a stream socket without a connection: nothing can arrive there."""
        is_used = self.connections or self.remote or self.listener or self.sends or self.receives or self.open
        return self.create_seen and self.type == STREAM and not (is_used or self.is_over)

    def saw_type(self, number: int) -> None:
        """The type as a keyword or a kind of event gives it away; a create knows better."""
        if self.type is None:
            self.type, self.type_inferred = number, True

    def created(self, e: Event) -> None:
        """What a create says of the socket."""
        self.family, self.type, self.protocol = e.y, e.z, e.w
        self.type_inferred = False

    def began_with(self, e: Event) -> bool:
        """Whether its first record is of the tick of another processor's create: then that may well be the earlier one."""
        return not self.create_seen and self.first_ns == e.ns and self.first_cpu != e.cpu

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
    """A request in flight.

    Three records tell of it, nearly always one and the same: `began` is the first, `post` has what its completion will show again, and
    `memory` has its user buffer. They differ when a fast attempt went before (winsock-semantics 7.10).
    """

    __slots__ = ("began", "is_open", "is_optional", "kind", "lane", "memory", "n", "overlap", "peer", "post", "sending", "socket")

    def __init__(self, n: int, socket: Socket, kind: int, sending: bool, e: Event) -> None:
        self.n = n
        self.socket = socket
        self.kind = kind
        self.sending = sending
        self.lane = socket.n * 2 + sending
        """Socket and direction as one number."""
        self.began = self.post = self.memory = e
        self.is_open = True
        self.is_optional = False
        self.peer = e.address
        self.overlap: Membership | None = None

    @property
    def is_transfer(self) -> bool:
        """Whether it moves data."""
        return self.kind >= Kind.SEND

    @property
    def is_documented(self) -> bool:
        """Whether it was posted by an event of the first generation."""
        return self.post.id < _DOCUMENTED

    @property
    def only_sets_peer(self) -> bool:
        """Whether it is a documented connect of a datagram socket, which needs no completion."""
        return self.kind == Kind.CONNECT and self.socket.type == DGRAM and self.is_documented

    @property
    def activity(self) -> int:
        """What the ActivityId of its completion will be, 0 where it says nothing."""
        post = self.post
        return 0 if post.activity == post.endpoint else post.activity

    @property
    def is_inferred(self) -> bool:
        """Whether its buffer is that of the attempt before it."""
        return self.memory is not self.post and self.memory.buffer != self.post.buffer

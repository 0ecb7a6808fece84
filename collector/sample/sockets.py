"""A socket as the programs of the sample use it, and the records that the driver logs for it.

Calls that take time are scenes to be run with `yield from`. Requests of the fast path show the program's buffer and end in the calling
thread; requests that wait show a descriptor in the kernel, an ActivityId, and end in whatever thread runs then. The layouts of the
calls and the meaning of the locations are those of the provider's manifest and of published notes on the driver.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.etlwriter.events import activity_of, afd_keyword, schema_of
from collector.etlwriter.items import stack_trace
from collector.etlwriter.payloads import Value
from collector.etlwriter.records import NO_GUID
from collector.sample.machine import Context, Frames, Machine, Steps, Thread

__all__ = ["Option", "Pending", "Socket", "Status"]

_ENTER, _EXIT, _INTERNAL, _TRANSPORT, _BY_AFD = range(5)


class Option:
    """Socket options that the provider logs."""

    NON_BLOCKING = 2
    RECEIVE_BUFFER = 6
    SEND_BUFFER = 7
    UDP_RESET = 11


class Status:
    """NTSTATUS values that the scenes use."""

    SUCCESS = 0
    BUFFER_OVERFLOW = 0x8000_0005
    SHARING_VIOLATION = 0xC000_0043
    WOULD_BLOCK = 0xC000_00A3
    TIMEOUT = 0xC000_00B5
    CANCELLED = 0xC000_0120
    TOO_MANY_ADDRESSES = 0xC000_0209
    ADDRESS_EXISTS = 0xC000_020A
    RESET = 0xC000_020D
    REFUSED = 0xC000_0236
    UNREACHABLE = 0xC000_023D
    ABORTED = 0xC000_0241


@dataclass(slots=True, eq=False)
class Pending:
    """A request that waits."""

    name: str
    location: int
    buffer: int
    buffer_count: int
    length_bytes: int
    activity: int
    is_fast: bool = False


@dataclass(slots=True, eq=False)
class Socket:
    """One socket of a thread's program."""

    machine: Machine
    thread: Thread
    is_datagram: bool = False
    family: int = 2
    endpoint: int = 0
    created_us: float | None = None
    pending: list[Pending] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------------ life

    def open(self, stack: Frames = ()) -> Steps:
        """socket(): enter and exit of the create."""
        self.endpoint = self.machine.take_endpoint()
        self.created_us = self.machine.now
        values: dict[str, Value] = {
            "address_family": self.family,
            "socket_type": 2 if self.is_datagram else 1,
            "protocol": 17 if self.is_datagram else 6,
            "process_id": self.thread.program.pid,
            "status": 0,
        }
        self._log("AfdCreate", _ENTER, 1006, values, stack=stack)
        yield 9
        self._log("AfdCreate", _EXIT, 1013, values)
        yield 12

    def bind(self, local: str, *, requested: str | None = None, status: int = 0, stack: Frames = ()) -> Steps:
        """bind(): asks for `requested`, gets `local`, or fails with a status and no address."""
        self._log("AfdBindWithAddress", _ENTER, 7010, {"status": 0, "address": requested or local}, stack=stack)
        yield 6
        if status:
            self._log("AfdBind", _EXIT, 0, {"status": status})
        else:
            self._log("AfdBindWithAddress", _EXIT, 7022, {"status": 0, "address": local})
        yield 10

    def connect(self, remote: str, *, took_us: float, status: int = 0, is_ex: bool = False, stack: Frames = ()) -> Steps:
        """connect() or ConnectEx(): its end is logged by the system."""
        name, location = ("AfdConnectEx", 5031) if is_ex else ("AfdConnect", 5023)
        values: dict[str, Value] = {"buffer": 0, "buffer_length": 0, "status": 0, "address": remote}
        self._log(name + "WithAddress", _ENTER, location, values, stack=stack)
        yield took_us
        self._log(name, _EXIT, 0, {"status": status}, context=self.machine.elsewhere())
        yield 30

    def option(self, option: int, value: int) -> Steps:
        """A socket option that the provider logs."""
        self._log("AfdOption", _BY_AFD, 0, {"option": option, "value": value, "status": 0})
        yield 4

    def close(self, *, stack: Frames = (), destroyed_after_us: float = 8, context: Context | None = None) -> Steps:
        """closesocket(): what still waits is cancelled between enter and exit of the cleanup."""
        self._log("AfdCleanup", _ENTER, 2002, {"status": 0}, context=context, stack=stack)
        yield 3
        for request in list(self.pending):
            self.complete(request, 0, status=Status.CANCELLED, context=context or self.thread.context)
            yield 2
        yield from self.finish_close(destroyed_after_us=destroyed_after_us, context=context)

    def finish_close(self, *, destroyed_after_us: float = 8, context: Context | None = None) -> Steps:
        """The rest of closing, from the exit of the cleanup on."""
        self._log("AfdCleanup", _EXIT, 2003, {"status": 0}, context=context)
        yield destroyed_after_us
        self._log("AfdClose", _ENTER, 2000, {"status": 0}, context=context)
        yield 3
        self._log("AfdClose", _EXIT, 2001, {"status": 0}, context=context)
        self.machine.release_endpoint(self.endpoint)
        yield 15

    def begin_close(self) -> Steps:
        """Only the enter of the cleanup."""
        self._log("AfdCleanup", _ENTER, 2002, {"status": 0})
        yield 3

    def abort(self, reason: int, location: int, *, context: Context | None = None) -> None:
        enter_exit = _TRANSPORT if reason == 4 else _INTERNAL
        self._log("AfdAbort", enter_exit, location, {"reason": reason}, context=context)

    # ------------------------------------------------------------------------------------------------ fast path

    def send(self, length_bytes: int, buffer: int, *, is_delivered: bool = True, stack: Frames = ()) -> Steps:
        """send() of data that the kernel copies; the transport reports later that the copy went out."""
        values = self._data(length_bytes, buffer)
        self._log("AfdSend", _ENTER, 3047, values, is_fast=True, stack=stack)
        yield 4
        self._log("AfdSend", _EXIT, 3051, values, is_fast=True)
        if is_delivered:
            copied = self._data(length_bytes, self.machine.take_request())
            context = Context(0, 0, self.machine.elsewhere().cpu)
            later = self.machine.about(18_000)
            self._log("AfdSend", _EXIT, 3073, copied, is_buffered=True, context=context, after_us=later)
        yield 8

    def receive(self, capacity: int, got: int, buffer: int, *, stack: Frames = ()) -> Steps:
        """recv() of data that is there."""
        self._log("AfdReceive", _ENTER, 4115, self._data(capacity, buffer), is_fast=True, stack=stack)
        yield 3
        self._log("AfdReceive", _EXIT, 4116, self._data(got, buffer), is_fast=True)
        yield 7

    def receive_nothing(self, capacity: int) -> Steps:
        """recv() that would block: no buffer is captured, and the length of the answer is that of the question."""
        self._log("AfdReceive", _ENTER, 4115, self._data(capacity, 0, count=0), is_fast=True)
        yield 2
        self._log("AfdReceive", _EXIT, 4116, self._data(capacity, 0, count=0, status=Status.WOULD_BLOCK), is_fast=True)
        yield 4

    # ------------------------------------------------------------------------------------------------ requests that wait

    def post_receive(self, capacity: int, buffer: int | None = None, *, stack: Frames = ()) -> Pending:
        """An overlapped receive. Without a buffer it shows a kernel descriptor and an ActivityId, as requests that wait do."""
        if buffer is None:
            activity = self.machine.take_request()
            return self._post(Pending("AfdReceive", 4114, self.machine.take_request(), 1, capacity, activity), 4106, stack)
        return self._post(Pending("AfdReceive", 4123, buffer, 1, capacity, 0, is_fast=True), 4115, stack)

    def post_send(self, length_bytes: int, buffer: int | None = None, *, buffer_count: int = 1, stack: Frames = ()) -> Pending:
        """An overlapped send that waits, for want of a send buffer in the kernel."""
        if buffer is None:
            activity = self.machine.take_request()
            return self._post(Pending("AfdSend", 3023, self.machine.take_request(), 1, length_bytes, activity), 3003, stack)
        return self._post(Pending("AfdSend", 3018, buffer, buffer_count, length_bytes, 0, is_fast=True), 3058, stack)

    def post_queued(self, length_bytes: int, queue: int) -> Pending:
        """A send of registered I/O: no buffer, and the queue as ActivityId."""
        return self._post(Pending("AfdSend", 3062, 0, 1, length_bytes, queue), 0, ())

    def complete(self, request: Pending, length_bytes: int, *, status: int = 0, context: Context | None = None) -> None:
        """The end of a request, in whatever thread runs now."""
        self.pending.remove(request)
        values = self._data(length_bytes, request.buffer, count=request.buffer_count, status=status)
        context = context or self.machine.elsewhere()
        self._log(request.name, _EXIT, request.location, values, context=context, activity=request.activity)

    def _post(self, request: Pending, location: int, stack: Frames) -> Pending:
        values = self._data(request.length_bytes, request.buffer, count=request.buffer_count)
        self._log(request.name, _ENTER, location, values, is_fast=request.is_fast, activity=request.activity, stack=stack)
        self.pending.append(request)
        return request

    # ------------------------------------------------------------------------------------------------ datagrams

    def send_to(self, length_bytes: int, buffer: int, peer: str, *, has_exit: bool = True, stack: Frames = ()) -> Steps:
        """sendto(); the driver does not always log its exit."""
        values = {**self._data(length_bytes, buffer), "address": peer}
        self._log("AfdSendMessageWithAddress", _ENTER, 3100, values, is_fast=True, stack=stack)
        yield 5
        if has_exit:
            self._log("AfdSendMessageWithAddress", _EXIT, 3200, values, is_fast=True)
            yield 6

    def receive_from(self, capacity: int, got: int, buffer: int, peer: str, *, status: int = 0, stack: Frames = ()) -> Steps:
        """recvfrom() of a datagram that is there: the enter has no address, the exit has."""
        self._log("AfdReceiveFrom", _ENTER, 4200, self._data(capacity, buffer), is_fast=True, stack=stack)
        yield 1
        values = {**self._data(got, buffer, status=status), "address": peer}
        self._log("AfdReceiveFromWithAddress", _EXIT, 4201, values, is_fast=True)
        yield 6

    def receive_message(self, capacity: int) -> Pending:
        """An overlapped receive of a datagram."""
        request = Pending("AfdReceiveMessage", 4052, self.machine.take_request(), 1, capacity, self.machine.take_request())
        return self._post(request, 0, ())

    def message_received(self, request: Pending, got: int, peer: str, *, status: int = 0) -> None:
        """The end of such a receive."""
        self.pending.remove(request)
        values = {**self._data(got, request.buffer, status=status), "address": peer}
        context, activity = self.machine.elsewhere(), request.activity
        self._log("AfdReceiveMessageWithAddress", _EXIT, 4052, values, context=context, activity=activity)

    def drop(self, length_bytes: int, peer: str, reason: int) -> None:
        values: dict[str, Value] = {"buffer": 0, "buffer_length": length_bytes, "address": peer, "reason": reason}
        self._log("AfdDatagramDropWithAddress", _BY_AFD, 0, values, context=self.machine.elsewhere())

    # ------------------------------------------------------------------------------------------------ the network

    def data_arrives(self, length_bytes: int, peer: str | None = None) -> None:
        values: dict[str, Value] = {"buffer": 0, "buffer_length": length_bytes}
        context = Context(0, 0, self.machine.elsewhere().cpu)
        if peer is None:
            self._log("AfdDataIndication", _TRANSPORT, 0, values, context=context)
        else:
            self._log("AfdDataIndicationWithAddress", _TRANSPORT, 0, {**values, "address": peer}, context=context)

    def peer_closes(self) -> None:
        self._log("AfdDisconnect", _TRANSPORT, 0, {"status": 0}, context=Context(0, 0, self.machine.elsewhere().cpu))

    # ------------------------------------------------------------------------------------------------ listeners

    def listen(self, backlog: int, *, stack: Frames = ()) -> Steps:
        self._log("AfdListen", _ENTER, 0, {"backlog": backlog, "status": 0}, stack=stack)
        yield 5
        self._log("AfdListen", _EXIT, 0, {"backlog": backlog, "status": 0})
        yield 9

    def post_accept(self, *, stack: Frames = ()) -> None:
        """AcceptEx(): waits for a connection."""
        self._log("AfdAcceptEx", _ENTER, 0, {"status": 0}, stack=stack)

    def connection_arrives(self, peer: str, backlog: int) -> None:
        values: dict[str, Value] = {"status": 0, "address": peer, "current_backlog": backlog}
        self._log("AfdConnectIndicationWithAddress", _TRANSPORT, 6500, values, context=self.machine.elsewhere())

    def connection_refused(self) -> None:
        self._log("AfdConnectIndication", _TRANSPORT, 6502, {"status": 0xC000_009A}, context=self.machine.elsewhere())

    def accepted(self, by: "Socket", peer: str, backlog: int) -> None:
        """The end of AcceptEx(): `by` is connected now."""
        values: dict[str, Value] = {
            "buffer": 0,
            "buffer_length": 0,
            "status": 0,
            "address": peer,
            "accept_endpoint": by.endpoint,
            "current_backlog": backlog,
        }
        self._log("AfdAcceptExWithAddress", _EXIT, 6101, values, context=self.machine.elsewhere())

    # ------------------------------------------------------------------------------------------------ records

    @staticmethod
    def _data(length_bytes: int, buffer: int, *, count: int = 1, status: int = 0) -> dict[str, Value]:
        return {"buffer_count": count, "buffer": buffer, "buffer_length": length_bytes, "status": status}

    def _log(
        self,
        name: str,
        enter_exit: int,
        location: int,
        values: Mapping[str, Value],
        *,
        context: Context | None = None,
        is_fast: bool = False,
        is_buffered: bool = False,
        activity: int = 0,
        stack: Frames = (),
        after_us: float = 0,
    ) -> None:
        keyword = afd_keyword(schema_of(name).number, is_datagram=self.is_datagram, is_fast=is_fast, is_buffered=is_buffered)
        socket: dict[str, Value] = {
            "enter_exit": enter_exit,
            "location": location,
            "process": self.thread.program.eprocess,
            "endpoint": self.endpoint,
        }
        self.machine.log(
            name,
            {**socket, **values},
            context or self.thread.context,
            after_us=after_us,
            keyword=keyword,
            activity=activity_of(activity) if activity else NO_GUID,
            items=(stack_trace(stack),) if stack else (),
        )

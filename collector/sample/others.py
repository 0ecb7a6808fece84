"""Scenes of the other programs: a name service, an old scanner of 32 bits, a load generator, and an editor with a known process id."""

from collector.etlwriter.events import afd_keyword, schema_of
from collector.sample.heaps import Heap
from collector.sample.machine import SECOND, Machine, Steps
from collector.sample.programs import Cast, Stacks
from collector.sample.sockets import Option, Socket, Status

__all__ = ["Others"]

_RESOLVERS = ("192.0.2.53:53", "[2001:db8::53]:53", "[fe80::1%7]:53")
_STORM_SERVER = "192.0.2.60:9000"
_CONNECTIONS = 90


class Others:
    """Programs with a scene or two each."""

    def __init__(self, machine: Machine, cast: Cast) -> None:
        self.machine, self.cast = machine, cast
        self.storm: list[Socket] = []

    def names(self) -> Steps:
        """A datagram socket from before the trace, with several peers; one answer says that nobody listens at the peer's port."""
        machine = self.machine
        socket = Socket(machine, self.cast.names.thread("resolver"), is_datagram=True, family=23)
        socket.endpoint = machine.take_endpoint()
        yield from socket.option(Option.UDP_RESET, 1)
        n = 0
        while True:
            peer = _RESOLVERS[n % 3]
            waiting = socket.receive_message(4096)
            yield 10
            yield from socket.send_to(machine.random.randrange(34, 70), 0x1A4_0F20_3000, peer, has_exit=n % 4 != 0)
            if n == 17:
                yield 900
                socket.message_received(waiting, 0, peer, status=Status.RESET)
            else:
                yield machine.about(14_000)
                size = machine.random.randrange(80, 420)
                socket.data_arrives(size, peer)
                yield 9
                socket.message_received(waiting, size, peer)
            n += 1
            yield machine.about(1_400_000)

    def poll(self) -> Steps:
        """select() of an old program, as the documented events log it: a call has a process and a thread, but no socket."""
        machine, thread = self.machine, self.cast.scan.thread("main")
        process = self.cast.scan.eprocess
        while True:
            values = {"process": process, "handle_count": 3, "timeout": -5_000_000}
            machine.log("SelectPosted", values, thread.context)
            yield machine.about(480_000, 0.05)
            machine.log("SelectCompleted", {"process": process, "endpoint": 0, "error": 0}, thread.context)
            yield machine.about(300_000)

    def old_heap(self) -> Steps:
        """Heap records of a 32-bit process: pointers of four bytes in the same file."""
        machine, program = self.machine, self.cast.scan
        thread, stacks = program.thread("main"), Stacks(program)
        heap = Heap(machine, program, 0x00C8_0000)
        page, line = stacks.of("alloc", "ScanPage", "ScanAll"), stacks.of("alloc", "ScanLine", "ScanPage", "ScanAll")
        while True:
            block = heap.alloc(2048, thread, page)
            yield machine.about(2_000)
            for _ in range(3):
                short = heap.alloc(132, thread, line)
                yield machine.about(900)
                heap.free(short, thread)
                yield machine.about(700)
            heap.free(block, thread, stacks.of("free", "ScanPage", "ScanAll"))
            yield machine.about(1_300_000)

    def load(self) -> Steps:
        """A load generator takes ports until none is left, and is killed with its connections open."""
        machine, program = self.machine, self.cast.storm
        threads = [program.thread("main"), program.thread("load 1"), program.thread("load 2")]
        stacks = Stacks(program)
        create, bind = stacks.of("socket", "Client.Open", "Load.Run"), stacks.of("bind", "Client.Open", "Load.Run")
        heap = Heap(machine, program, 0x2F0_5530_0000)
        for n in range(_CONNECTIONS):
            socket = Socket(machine, threads[n % 3])
            yield from socket.open(create if n % 8 == 0 else ())
            yield from socket.bind(f"10.20.0.5:{machine.take_port()}", requested="0.0.0.0:0", stack=bind if n % 8 == 0 else ())
            yield from socket.connect(_STORM_SERVER, took_us=machine.about(4_000))
            heap.alloc(1024, threads[n % 3], stacks.of("alloc", "Client.NewBuffer", "Client.Open", "Load.Run"))
            yield 20
            socket.post_receive(1024)
            self.storm.append(socket)
            yield machine.about(20_000)
        failures = [Status.TOO_MANY_ADDRESSES] * 40 + [Status.ADDRESS_EXISTS] * 3 + [Status.SHARING_VIOLATION]
        for status in failures:
            socket = Socket(machine, threads[0])
            yield from socket.open()
            local = "0.0.0.0:8443" if status == Status.SHARING_VIOLATION else "0.0.0.0:0"
            yield from socket.bind(local, status=status, stack=bind if status == Status.TOO_MANY_ADDRESSES else ())
            yield from socket.close()
            yield machine.about(15_000)

    def kill(self) -> Steps:
        """The load generator is ended: its sockets are closed and aborted by the system in its own last thread."""
        context = self.cast.storm.thread("main").context
        for socket in self.storm:
            yield from socket.begin_close()
            socket.abort(7, 8000, context=context)
            yield 2
            for request in list(socket.pending):
                socket.complete(request, 0, status=Status.CANCELLED, context=context)
                yield 2
            yield from socket.finish_close(context=context)
        self.cast.storm.end_us = self.machine.now
        self.cast.storm.exit_status = 1

    def registered_io(self) -> Steps:
        """Registered I/O: its sends show the queue instead of a buffer; a buffer is taken away while it is used."""
        machine, thread = self.machine, self.cast.catalog.thread("metrics")
        socket = Socket(machine, thread)
        yield from socket.open()
        yield from socket.bind("10.20.0.5:49720", requested="0.0.0.0:0")
        yield from socket.connect("192.0.2.99:4317", took_us=2_500)
        keyword = afd_keyword(4000)
        domain, queue, state, buffer = (machine.take_request() for _ in range(4))

        def log(name: str, **values: int) -> None:
            schema = schema_of(name)
            machine.log(name, {**{f.name: 0 for f in schema.fields}, **values}, thread.context, keyword=keyword)

        log("AfdRioCreateRegistrationDomain", registration_domain=domain)
        log("AfdRioCreateCq", cq=queue, registration_domain=domain, entry_count=64, buffer_size=4096, notification_type=2)
        log("AfdRioCreateRqPair", endpoint=socket.endpoint, rio_state=state, registration_domain=domain, send_entry_count=32)
        log("AfdRioRegisterBuffer", buffer=buffer, registration_domain=domain, user_address=0x22A_0010_0000, buffer_size=65_536)
        yield 50
        for _ in range(6):
            sending = socket.post_queued(1400, queue)
            yield machine.about(900)
            socket.complete(sending, 1400)
            yield machine.about(2_000_000)
        log("AfdRioDeregisterBuffer", buffer=buffer, references=2)
        yield 40
        log("AfdRioCloseRioState", rio_state=state)
        yield from socket.close()

    def edit(self) -> Steps:
        """Another program has the process id of the one that was killed: its socket is not that one's."""
        socket = Socket(self.machine, self.cast.notes.thread("main"))
        yield from socket.open()
        yield from socket.bind("10.20.0.5:50900", requested="0.0.0.0:0")
        yield from socket.connect("198.51.100.44:443", took_us=24_000)
        for _ in range(4):
            yield from socket.send(350, 0x25A_0000_1000)
            yield SECOND
        yield from socket.close()

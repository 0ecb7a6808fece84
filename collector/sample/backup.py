"""Scenes of a backup program with overlapped requests and mistakes in how it uses its buffers."""

from collector.sample.heaps import Heap
from collector.sample.machine import SECOND, Machine, Steps, Thread
from collector.sample.programs import Cast, Stacks
from collector.sample.sockets import Option, Socket

__all__ = ["BACKUP_SERVER", "Backup"]

BACKUP_SERVER = "192.0.2.77:873"
_CHUNK = 32_768


class Backup:
    """The program with its private heap, and two connections to its server."""

    def __init__(self, machine: Machine, cast: Cast) -> None:
        self.machine, self.program = machine, cast.backup
        self.stacks = Stacks(cast.backup)
        self.thread = cast.backup.thread("copier")
        self.heap = Heap(machine, cast.backup, 0x2D3_7710_0000)
        self.data = Socket(machine, self.thread)
        self.control = Socket(machine, cast.backup.thread("control"))

    def run(self) -> Steps:
        """The whole job: connect, copy, and one mistake after the other between the copies."""
        self.heap.create(self.thread)
        yield 40
        for socket, port in ((self.data, 49_710), (self.control, 49_711)):
            yield from socket.open(self.stacks.of("socket", "Link.Open", "Job.Run"))
            yield from socket.option(Option.SEND_BUFFER, 0)
            yield from socket.bind(f"10.20.0.5:{port}", requested="0.0.0.0:0")
            yield from socket.connect(BACKUP_SERVER, took_us=12_000)
        for at, mistake in (
            (21, self._receive_over_send()),
            (24, self._send_twice()),
            (27, self._send_from_receive()),
            (33, self._free_too_early()),
            (36, self._run_past_the_end()),
            (38, self._many_buffers()),
            (39, self._use_after_free()),
            (41, self._shrink()),
            (43, self._elsewhere()),
        ):
            while self.machine.now < at * SECOND:
                yield from self._copy()
            yield from mistake
        while self.machine.now < 54 * SECOND:
            yield from self._copy()
        for socket in (self.data, self.control):
            yield from socket.close(destroyed_after_us=40)

    def _alloc(self, size: int, what: str) -> int:
        return self.heap.alloc(size, self.thread, self.stacks.of("alloc", "Buffer.New", what, "Job.Run"))

    def _free(self, address: int, what: str, thread: Thread | None = None) -> None:
        self.heap.free(address, thread or self.thread, self.stacks.of("free", "Buffer.Delete", what, "Job.Run"))

    def _copy(self) -> Steps:
        """Right: allocate, send, wait for the end, free; then wait for the answer."""
        machine = self.machine
        buffer = self._alloc(_CHUNK, "Copy.Chunk")
        yield 30
        request = self.data.post_send(_CHUNK, buffer, stack=self.stacks.of("send", "Link.Send", "Copy.Chunk", "Job.Run"))
        yield machine.about(9_000)
        self.data.complete(request, _CHUNK)
        yield 25
        self._free(buffer, "Copy.Chunk")
        answer = self.data.post_receive(512)
        yield machine.about(3_000)
        self.data.data_arrives(96)
        yield 8
        self.data.complete(answer, 96)
        yield machine.about(200_000)

    def _receive_over_send(self) -> Steps:
        """A receive on the control connection ends inside the part of the buffer that is being sent."""
        buffer, part = self._alloc(_CHUNK, "Copy.Reuse"), 4096
        yield 20
        stack = self.stacks.of("send", "Link.Send", "Copy.Reuse", "Job.Run")
        sending = self.data.post_send(_CHUNK - part, buffer + part, stack=stack)
        yield 2_000
        stack = self.stacks.of("recv", "Link.Receive", "Copy.Reuse", "Job.Run")
        receiving = self.control.post_receive(2 * part, buffer, stack=stack)
        yield 3_000
        self.control.complete(receiving, 640)
        yield 2_000
        self.data.complete(sending, _CHUNK - part)
        yield 30
        self._free(buffer, "Copy.Reuse")
        yield 100_000

    def _send_twice(self) -> Steps:
        """The same buffer goes to both connections at once, and a part of it again."""
        buffer = self._alloc(_CHUNK, "Copy.Mirror")
        yield 20
        stack = self.stacks.of("send", "Link.Send", "Copy.Mirror", "Job.Run")
        first = self.data.post_send(_CHUNK, buffer, stack=stack)
        yield 400
        second = self.control.post_send(_CHUNK, buffer, stack=stack)
        yield 400
        third = self.control.post_send(2048, buffer + 8192, stack=stack)
        yield 6_000
        self.data.complete(first, _CHUNK)
        yield 900
        self.control.complete(second, _CHUNK)
        yield 500
        self.control.complete(third, 2048)
        yield 30
        self._free(buffer, "Copy.Mirror")
        yield 100_000

    def _send_from_receive(self) -> Steps:
        """A send takes its data from the middle of a buffer that a receive still fills."""
        buffer = self._alloc(8192, "Relay.Forward")
        yield 20
        receiving = self.control.post_receive(8192, buffer, stack=self.stacks.of("recv", "Link.Receive", "Relay.Forward", "Job.Run"))
        yield 5_000
        sending = self.control.post_send(1024, buffer + 2048, stack=self.stacks.of("send", "Link.Send", "Relay.Forward", "Job.Run"))
        yield 1_500
        self.control.complete(sending, 1024)
        yield 4_000
        self.control.complete(receiving, 3072)
        yield 30
        self._free(buffer, "Relay.Forward")
        yield 100_000

    def _free_too_early(self) -> Steps:
        """Another thread frees the buffer of a waiting receive; the block is handed out again before the receive ends."""
        buffer = self._alloc(4096, "Session.Read")
        yield 20
        receiving = self.control.post_receive(4096, buffer, stack=self.stacks.of("recv", "Link.Receive", "Session.Read", "Job.Run"))
        yield 500_000
        self._free(buffer, "Session.Cancel", self.program.thread("control"))
        yield 400_000
        again = self._alloc(4096, "Index.Page")
        yield 1_100_000
        self.control.complete(receiving, 812)
        yield 5_000
        self._free(again, "Index.Page")
        yield 100_000

    def _run_past_the_end(self) -> Steps:
        """A receive of 4,096 bytes into a block of 3,584."""
        buffer = self._alloc(3584, "Catalog.Read")
        yield 20
        receiving = self.control.post_receive(4096, buffer, stack=self.stacks.of("recv", "Link.Receive", "Catalog.Read", "Job.Run"))
        yield 30_000
        self.control.complete(receiving, 3900)
        yield 40
        self._free(buffer, "Catalog.Read")
        yield 100_000

    def _many_buffers(self) -> Steps:
        """One send of three buffers: only the first address and the total are logged."""
        parts = [self._alloc(size, "Copy.Gather") for size in (64, 4096, 4096)]
        yield 20
        stack = self.stacks.of("send", "Link.SendParts", "Copy.Gather", "Job.Run")
        sending = self.data.post_send(8256, parts[0], buffer_count=3, stack=stack)
        yield 8_000
        self.data.complete(sending, 8256)
        yield 25
        for part in parts:
            self._free(part, "Copy.Gather")
            yield 3
        yield 100_000

    def _use_after_free(self) -> Steps:
        """A send of a block that was freed just before."""
        buffer = self._alloc(1536, "Report.Write")
        yield 400
        self._free(buffer, "Report.Write")
        yield 15
        yield from self.control.send(1200, buffer, stack=self.stacks.of("send", "Link.Send", "Report.Write", "Job.Run"))
        yield 100_000

    def _shrink(self) -> Steps:
        """The block of a waiting receive is made smaller in place."""
        buffer = self._alloc(16_384, "Session.Trim")
        yield 20
        receiving = self.control.post_receive(16_384, buffer, stack=self.stacks.of("recv", "Link.Receive", "Session.Trim", "Job.Run"))
        yield 50_000
        self.heap.resize(buffer, 2048, self.thread, self.stacks.of("realloc", "Buffer.Trim", "Session.Trim", "Job.Run"))
        yield 50_000
        self.control.complete(receiving, 1400)
        yield 40
        self._free(buffer, "Session.Trim")
        yield 100_000

    def _elsewhere(self) -> Steps:
        """Sends from the stack and from static data: no heap block is behind them."""
        for buffer in (self.thread.stack_base - 0x3000, self.program.modules[0].base + 0x5_2000):
            yield from self.data.send(300, buffer)
            yield 20_000

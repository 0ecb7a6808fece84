"""Scenes of a bookkeeping service: leaks, a peak, churn, and mistakes with the heap. Its stacks come by key."""

from collector.sample.heaps import Heap, StackKeys
from collector.sample.machine import SECOND, Machine, Steps
from collector.sample.programs import Cast, Stacks

__all__ = ["Ledger"]


class Ledger:
    """The service with its process heap, which is older than the trace, and two private ones."""

    def __init__(self, machine: Machine, cast: Cast, keys: StackKeys) -> None:
        self.machine = machine
        self.stacks = Stacks(cast.ledger)
        self.heap = Heap(machine, cast.ledger, 0x1B7_9C60_0000, keys)
        self.private = Heap(machine, cast.ledger, 0x1B7_A200_0000, keys)
        self.vouchers = Heap(machine, cast.ledger, 0x1B7_B480_0000, keys)
        self.main = cast.ledger.thread("main")
        self.worker = cast.ledger.thread("poster")
        self.reporter = cast.ledger.thread("reporter")

    def begin(self) -> Steps:
        """Blocks of before the trace are freed: nobody knows their size."""
        self.heap.snapshot(self.main)
        yield 15
        self.heap.ranges(self.main)
        yield 200_000
        for n in range(18):
            self.heap.free(0x1B7_9C40_0000 + 0x250 * n, self.main, self.stacks.of("free", "Startup.Done", "Service.Main"))
            yield self.machine.about(400)

    def leak_entries(self) -> Steps:
        """Seven blocks of 96 bytes a second that nobody frees."""
        stack = self.stacks.of("alloc", "Entry.New", "Journal.Append", "Poster.Run")
        while True:
            self.heap.alloc(96, self.worker, stack)
            yield self.machine.about(145_000)

    def leak_statements(self) -> Steps:
        """A block of 4,096 bytes every two seconds, kept in a cache that only grows."""
        stack = self.stacks.of("alloc", "Statement.New", "StatementCache.Add", "Poster.Run")
        while True:
            yield self.machine.about(2 * SECOND, 0.1)
            self.heap.alloc(4096, self.worker, stack)

    def churn(self) -> Steps:
        """Blocks that live for microseconds, and a list that grows by moving."""
        machine, thread = self.machine, self.worker
        parse = [self.stacks.of("alloc", name, "Parse.Row", "Poster.Run") for name in ("Text.New", "Number.New", "Date.New", "Row.New")]
        grow = self.stacks.of("realloc", "List.Grow", "Parse.Row", "Poster.Run")
        rows = self.heap.alloc(256, thread, self.stacks.of("alloc", "List.New", "Poster.Run"))
        size = 256
        while True:
            for n in range(8):
                block = self.heap.alloc(machine.random.randrange(16, 90), thread, parse[n % 4])
                yield machine.about(25)
                self.heap.free(block, thread)
                yield machine.about(60)
            size = size * 2 if size < 16_384 else 256
            rows = self.heap.move(rows, size, thread, grow)
            yield machine.about(850_000)

    def report(self) -> Steps:
        """Six megabytes for a second and a half: the peak of the trace."""
        stack = self.stacks.of("alloc", "Table.New", "Report.Build", "Reporter.Run")
        blocks = []
        for _ in range(96):
            blocks.append(self.heap.alloc(65_536, self.reporter, stack))
            yield self.machine.about(4_000)
        yield 1.1 * SECOND
        for block in blocks:
            self.heap.free(block, self.reporter, self.stacks.of("free", "Table.Delete", "Report.Done", "Reporter.Run"))
            yield self.machine.about(500)

    def temporary_heap(self) -> Steps:
        """A private heap is destroyed with twelve blocks in it."""
        thread = self.reporter
        self.private.create(thread)
        blocks = []
        for n in range(60):
            blocks.append(self.private.alloc(200 + 16 * (n % 9), thread, self.stacks.of("alloc", "Cell.New", "Sheet.Load", "Reporter.Run")))
            yield self.machine.about(60_000)
        for block in blocks[:48]:
            self.private.free(block, thread)
            yield self.machine.about(30_000)
        self.private.destroy(thread)

    def mistakes(self) -> Steps:
        """A block freed twice, a block freed through the wrong heap, an address that was never allocated."""
        thread = self.worker
        self.vouchers.create(thread)
        yield 900
        block = self.heap.alloc(320, thread, self.stacks.of("alloc", "Voucher.New", "Voucher.Post", "Poster.Run"))
        yield 700
        self.heap.free(block, thread, self.stacks.of("free", "Voucher.Delete", "Voucher.Post", "Poster.Run"))
        yield 300
        self.heap.free(block, self.reporter, self.stacks.of("free", "Voucher.Delete", "Undo.Drop", "Reporter.Run"))
        self.heap.free_places[320].pop()  # two threads freed it, but it is one place
        yield SECOND
        block = self.heap.alloc(480, thread, self.stacks.of("alloc", "Voucher.Copy", "Voucher.Post", "Poster.Run"))
        yield 500
        self.vouchers.free(block, thread, self.stacks.of("free", "Voucher.Delete", "Voucher.Post", "Poster.Run"))
        yield 400
        self.heap.free(block, thread)
        yield SECOND
        self.vouchers.free(self.vouchers.handle + 0x3_F0D0, thread)

"""The machine of the sample: one clock, programs with threads and modules, and everything that was logged.

Scenes are generators that give back how many microseconds they wait. All of them run against one queue, so that the state of heaps,
addresses and stack keys is that of the moment. No two records have the same time stamp: the scenes say what comes first.
"""

import heapq
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias, Unpack
from uuid import NAMESPACE_DNS, UUID, uuid5

from collector.clock import Clock, ClockKind
from collector.etlwriter import Record
from collector.etlwriter.events import HeaderValues, record_of
from collector.etlwriter.payloads import Values

__all__ = ["CPUS", "LENGTH_US", "SECOND", "Context", "Frames", "Logged", "Machine", "Module", "Program", "Steps", "Thread"]

SECOND = 1_000_000
"""Microseconds."""
LENGTH_US = 60 * SECOND
CPUS = 4

Steps: TypeAlias = Generator[float, None, None]
"""A scene: each value is a time to wait in microseconds."""
Frames: TypeAlias = tuple[int, ...]
"""Return addresses, innermost first."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a record is written: what its header says of process and thread, and the processor."""

    pid: int
    tid: int
    cpu: int


@dataclass(frozen=True, slots=True)
class Module:
    """An image file; its symbol file has an identity made from its name."""

    name: str
    folder: str
    size: int
    timestamp: int
    base: int

    @property
    def nt_path(self) -> str:
        return f"\\Device\\HarddiskVolume3{self.folder}\\{self.name}"

    @property
    def pdb_name(self) -> str:
        return self.name.rsplit(".", 1)[0] + ".pdb"

    @property
    def pdb_guid(self) -> UUID:
        return uuid5(NAMESPACE_DNS, self.pdb_name + ".sample")

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.size


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a program and the top of its stack, which is 256 KiB."""

    program: "Program"
    tid: int
    cpu: int
    name: str
    stack_base: int

    @property
    def context(self) -> Context:
        return Context(self.program.pid, self.tid, self.cpu)


@dataclass(slots=True, eq=False)
class Program:
    """One process. Without a start it ran before the trace began, without an end it still runs."""

    pid: int
    eprocess: int
    image: str
    command_line: str
    modules: tuple[Module, ...]
    parent: int
    session: int = 1
    pointer_size: int = 8
    start_us: float | None = None
    end_us: float | None = None
    exit_status: int = 0
    threads: list[Thread] = field(default_factory=list)

    def thread(self, name: str) -> Thread:
        """The thread of that name; a new one the first time."""
        for thread in self.threads:
            if thread.name == name:
                return thread
        n = len(self.threads)
        base = (0x9A_0000 + n * 0x10_0000) if self.pointer_size == 4 else 0x4F_7B00_0000 + n * 0x10_0000
        made = Thread(self, self.pid + 4 * (n + 1), (self.pid // 4 + n) % CPUS, name, base)
        self.threads.append(made)
        return made


@dataclass(frozen=True, slots=True, order=True)
class Logged:
    """A record with its place."""

    ticks: int
    cpu: int
    record: Record = field(compare=False)


class Machine:
    """Runs scenes and keeps what they log."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # 2025-06-03, 09:30:00 UTC
        self.clock = Clock(
            ClockKind.QPC, start_ticks=4_711_000_000_000, ticks_per_second=10_000_000, start_filetime=133_934_166_000_000_000
        )
        self.now: float = 0
        self.logged: list[Logged] = []
        self.programs: list[Program] = []
        self._queue: list[tuple[float, int, Steps]] = []
        self._turn = 0
        self._ticks: set[int] = set()
        self._endpoints: list[int] = []
        self._next_endpoint = 0xFFFF_C40E_8A00_2A30
        self._next_request = 0xFFFF_C40E_9300_0010
        self._next_port = 49_664

    # ------------------------------------------------------------------------------------------------ scenes

    def start(self, scene: Steps, *, at_us: float) -> None:
        """Let a scene begin at a time."""
        self._turn += 1
        heapq.heappush(self._queue, (at_us, self._turn, scene))

    def run(self, until_us: float = LENGTH_US) -> None:
        """Run all scenes up to a time; what they would do later does not happen."""
        while self._queue and self._queue[0][0] < until_us:
            self.now, _, scene = heapq.heappop(self._queue)
            try:
                wait = next(scene)
            except StopIteration:
                continue
            self.start(scene, at_us=self.now + wait)
        self.now = until_us

    def about(self, us: float, spread: float = 0.25) -> float:
        """A time near `us`, rounded to the clock's ticks."""
        return round(us * self.random.uniform(1 - spread, 1 + spread), 1)

    # ------------------------------------------------------------------------------------------------ logging

    def log(
        self, name: str, values: Values, context: Context, *, after_us: float = 0, pointer_size: int = 8, **header: Unpack[HeaderValues]
    ) -> int:
        """Log an event some time from now; gives its time stamp."""
        ticks = self.take_ticks(after_us)
        self.log_at(ticks, name, values, context, pointer_size=pointer_size, **header)
        return ticks

    def take_ticks(self, after_us: float = 0) -> int:
        """The first time stamp from then on that no record has."""
        ticks = self.clock.start_ticks + round((self.now + after_us) * 10)
        while ticks in self._ticks:
            ticks += 1
        self._ticks.add(ticks)
        return ticks

    def log_at(
        self, ticks: int, name: str, values: Values, context: Context, *, pointer_size: int = 8, **header: Unpack[HeaderValues]
    ) -> None:
        """Log an event at a time stamp that others may have as well."""
        header = {"pid": context.pid, "tid": context.tid, **header}
        record = record_of(name, values, ticks=ticks, pointer_size=pointer_size, **header)
        self.logged.append(Logged(ticks, context.cpu, record))

    def elsewhere(self) -> Context:
        """Some thread that happens to run when the system completes a request: idle, the system's, or any program's."""
        choice = self.random.random()
        if choice < 0.55:
            return Context(0, 0, self.random.randrange(CPUS))
        if choice < 0.8:
            return Context(4, 4 * self.random.randrange(20, 60), self.random.randrange(CPUS))
        program = self.random.choice([p for p in self.programs if p.threads and p.start_us is None])
        return self.random.choice(program.threads).context

    # ------------------------------------------------------------------------------------------------ addresses

    def take_endpoint(self) -> int:
        """The address of a new socket object, now and then one that was released."""
        if self._endpoints and self.random.random() < 0.35:
            return self._endpoints.pop()
        self._next_endpoint += 0x800
        return self._next_endpoint

    def release_endpoint(self, endpoint: int) -> None:
        self._endpoints.append(endpoint)

    def take_request(self) -> int:
        """The address of a kernel object of an I/O request or its descriptor, from a ring of 64."""
        self._next_request += 0x120
        if self._next_request > 0xFFFF_C40E_9300_0010 + 64 * 0x120:
            self._next_request = 0xFFFF_C40E_9300_0010 + 0x120
        return self._next_request

    def take_port(self) -> int:
        """The next port of the dynamic range."""
        self._next_port += 1
        return self._next_port

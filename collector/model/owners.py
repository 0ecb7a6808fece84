"""Whose socket it is: process objects as the socket events name them, each tied to a process by the best source that the trace has.

The rules are winsock-semantics 2: the kernel's own process events come first, then the process id that a create carries, then the header
of records at locations known to run in the caller's thread, then that of documented calls. A process id learned later holds for the
earlier records of the same process object; a process object used again begins a new owner.
"""

from collector.model.afd_table import Event, PidSource
from collector.model.processes import ProcessEnd, Processes
from collector.model.rows import Row
from collector.schema import DecodedBatch

__all__ = ["Owner", "Owners"]

_ADDRESS_MASK = (1 << 64) - 1
_KERNEL = 0  # the kernel's own events, better than PidSource.CREATE
_WORDS = {_KERNEL: "kernel", PidSource.CREATE: "create", PidSource.LOCATION: "location", PidSource.HEADER: "header"}


class Owner:
    """One process instance behind a process object; `process_n` and `pid` are None while nothing has named them."""

    __slots__ = ("contradictions", "eprocess", "first_ns", "first_seq", "n", "pid", "process_n", "source")

    def __init__(self, n: int, eprocess: int, seq: int, ns: int) -> None:
        self.n = n
        self.eprocess = eprocess
        self.first_seq = seq
        self.first_ns = ns
        self.process_n: int | None = None
        self.pid: int | None = None
        self.source: int | None = None
        self.contradictions = 0

    @property
    def pid_source(self) -> str | None:
        """The source in words; None while the process is unknown."""
        return None if self.source is None else _WORDS[self.source]


class Owners:
    """The owners of one trace, numbered from 1 in the order of first sight."""

    def __init__(self, processes: Processes) -> None:
        self.all: list[Owner] = []
        self._processes = processes
        self._current: dict[int, Owner] = {}
        self._ends: dict[int, ProcessEnd] = {}

    def advance(self, batch: DecodedBatch) -> None:
        """Learn which processes end in a window; before and after its events, as naming a process may show the end of one before it."""
        self._ends.update((end.process_n, end) for end in self._processes.ends_in(batch))

    def of(self, e: Event) -> Owner:
        """The owner of a record's process object."""
        return self._current.get(e.process) or self._open(e)

    def of_caller(self, e: Event) -> Owner:
        """As `of`, for what only a living process can do: when it has ended and the kernel knows the next one, that is the owner."""
        owner = self._current.get(e.process)
        if owner is None:
            return self._open(e)
        if self._ends and self._is_over(owner, e) and self._kernel(e) not in (None, owner.process_n):
            return self._open(e)
        return owner

    def settled(self, process: int, first_seq: int, last_seq: int) -> Owner | None:
        """The owner of a process object if that is the same for all its records from one to another, creates with another id apart."""
        owner = self._current.get(process)
        if owner is None or owner.process_n in self._ends:
            return None
        address = process & _ADDRESS_MASK
        known = {self._processes.by_eprocess(address, seq) for seq in (first_seq, last_seq)}
        return owner if known <= {None, owner.process_n} else None

    def knows(self, e: Event) -> bool:
        """Whether a header says of its process object what is known already (0.2 µs; nearly all do)."""
        owner = self._current.get(e.process)
        return owner is not None and owner.pid == e.pid and owner.source is not None and owner.source <= e.source > PidSource.CREATE

    def learn(self, e: Event) -> None:
        """Take the process id that a record names for its process object (`e.source` says how)."""
        if e.source == PidSource.CREATE:
            self._learn_from_create(e)
            return
        owner = self.of(e)
        if owner.pid is None:
            self._name(owner, e, e.pid)
        elif owner.pid != e.pid:
            owner.contradictions += 1  # a handle may be used by another process: its header differs rightly
        elif owner.source is not None and owner.source > e.source:
            owner.source = e.source

    def end_of(self, owner: Owner) -> ProcessEnd | None:
        """How an owner's process ended, None where it lives on or is unknown."""
        return None if owner.process_n is None else self._ends.get(owner.process_n)

    def finish(self) -> list[Row]:
        """Rows of table `owner`, with what the rundown at the end has told."""
        for owner in self.all:
            late = self._processes.by_eprocess_late(owner.eprocess & _ADDRESS_MASK, owner.first_seq)
            if late is not None and (owner.source is None or owner.source > PidSource.CREATE):
                pid = self._processes.pid_of(late)
                owner.contradictions += owner.pid is not None and owner.pid != pid
                owner.process_n, owner.pid, owner.source = late, pid, _KERNEL
        return [(o.n, o.eprocess, o.process_n, o.pid_source, o.contradictions, o.first_ns) for o in self.all]

    def _learn_from_create(self, e: Event) -> None:
        owner = self.of(e)
        kernel = self._kernel(e)
        is_other = kernel is not None and owner.process_n is not None and kernel != owner.process_n
        if is_other or self._is_over(owner, e) or (kernel is None and owner.pid is not None and owner.pid != e.x):
            owner = self._open(e)
        if owner.source == _KERNEL:
            owner.contradictions += owner.pid != e.x
        elif owner.pid is None or owner.source != PidSource.CREATE:
            self._name(owner, e, e.x)

    def _name(self, owner: Owner, e: Event, pid: int) -> None:
        kernel = self._kernel(e)
        if kernel is not None:
            owner.process_n, owner.pid, owner.source = kernel, self._processes.pid_of(kernel), _KERNEL
            owner.contradictions += owner.pid != pid
            return
        owner.pid, owner.source = pid, e.source
        owner.process_n = self._processes.of_pid(pid, e.seq, e.ns, _WORDS[e.source])

    def _open(self, e: Event) -> Owner:
        owner = Owner(len(self.all) + 1, e.process, e.seq, e.ns)
        kernel = self._kernel(e)
        if kernel is not None:
            owner.process_n, owner.pid, owner.source = kernel, self._processes.pid_of(kernel), _KERNEL
        self.all.append(owner)
        self._current[e.process] = owner
        return owner

    def _kernel(self, e: Event) -> int | None:
        return self._processes.by_eprocess(e.process & _ADDRESS_MASK, e.seq)

    def _is_over(self, owner: Owner, e: Event) -> bool:
        end = self.end_of(owner)
        return end is not None and end.ticks < e.ticks

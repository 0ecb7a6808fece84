"""One run of the stages over one trace, from the reader's windows to the rows of a complete file: the only place where they meet."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from uuid import UUID

from collector.decoder import Decoder, Tally, VersionKey
from collector.errors import CollectCancelled, Problem, Severity, StoreLocked, StoreUnreachable
from collector.inventory import Inventory
from collector.limits import Limits
from collector.memory import give_back
from collector.model.address_names import AddressNames
from collector.model.catalog_changes import CatalogChanges
from collector.model.counting import Counting
from collector.model.findings import Finding, findings
from collector.model.heap_io import join_buffers
from collector.model.heap_resizes import resizes_with_heap
from collector.model.heaps import Heaps
from collector.model.kept import KeptRecords
from collector.model.machine import Machine
from collector.model.processes import Processes
from collector.model.rows import Rows, rows_of
from collector.model.socket_sums import socket_sums
from collector.model.sockets import Sockets
from collector.model.stacks import Stacks
from collector.model.trace_row import end_of_trace, live_key, trace_row
from collector.model.transport import Transport
from collector.model.transport_join import join_transport
from collector.model.virtual_memory import VirtualMemory
from collector.naming import Naming, find_names, write_names
from collector.problems import STORED_IN_PART, Misread, ProblemRow, decoding_problems, inventory_problems, problem_rows, seen_in
from collector.raw import Reader
from collector.store.catalog import Catalog, now_utc
from collector.store.copies import FindingCopy, ProblemCopy
from collector.store.frames import RowsAside
from collector.store.writer import TraceWriter
from collector.symbols import Symbols

__all__ = ["Import", "ImportReport", "Progress", "ignore", "never", "program_version"]

_SECONDS_BETWEEN_NOTES = 1.0
_CHANGING = ("transport_flow", "transport_event", "stack_frame")
"""Tables that passes change once their rows are there."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import has come. `stage` is reading, joining, naming, indexing or checking; bytes count only while reading."""

    stage: str
    bytes_done: int
    bytes_total: int
    records: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import stored."""

    key: str
    name: str
    counts: dict[str, int]
    """Rows by table; `records` is the number of records in the file."""
    problems: list[ProblemRow]
    findings: list[FindingCopy]
    seconds: float
    naming: Naming | None = None
    """What symbol files gave, where there were some."""

    @property
    def is_limited(self) -> bool:
        """Whether records were lost or damaged, so that answers may be wrong without saying so everywhere."""
        return any(p.severity in (Severity.DATA_LOSS, Severity.DAMAGE) for p in self.problems)


def ignore(progress: Progress) -> None:
    """Takes progress and does nothing with it."""


def never() -> bool:
    """Never cancels."""
    return False


def program_version() -> str:
    """The version of this program, as installed."""
    try:
        return version("sockscope")
    except PackageNotFoundError:
        return "unknown"


class Import:
    """One run of the stages over one trace."""

    def __init__(
        self,
        reader: Reader,
        writer: TraceWriter,
        catalog: Catalog,
        key: str,
        on_progress: Callable[[Progress], None],
        should_cancel: Callable[[], bool],
        symbols: Symbols | None,
        limits: Limits,
        *,
        state: str = "complete",
        followed_as: str | None = None,
    ) -> None:
        """`state` is what the trace is once its file is in place: complete, or live or interrupted for one that was followed; `followed_as`
        the key that leads to it from then on, None: the one that its own header gives.
        """
        self.reader, self.writer, self.catalog, self.key = reader, writer, catalog, key
        self.state = state
        self.live_key = (followed_as or "").removesuffix(limits.suffix) or live_key(reader.header)
        self.on_progress, self.should_cancel, self.symbols, self.limits = on_progress, should_cancel, symbols, limits
        header, clock, losses = reader.header, reader.header.clock, reader.losses
        self.clock = clock
        self.decoder = Decoder(header=header)
        self.inventory = Inventory(clock)
        self.kept = KeptRecords()
        self.machine = Machine()
        self.processes = Processes(clock)
        self.stacks = Stacks(self.processes, clock)
        self.sockets = Sockets(self.processes, self.stacks, clock, losses, header)
        self.heaps = Heaps(self.processes, self.stacks, clock, losses)
        self.transport, self.names, self.catalog_changes = Transport(), AddressNames(), CatalogChanges()
        self.virtual_memory = VirtualMemory(self.processes)
        self.model_problems: list[Problem] = []
        self.records = 0
        self.first_ns = self.last_ns = 0
        self.collected_utc = now_utc()
        self._noted = time.monotonic()

    def run(self, name: str, started: float, *, size_bytes: int | None = None) -> ImportReport:
        """All stages in their order; returns when the trace is in place. `size_bytes` is that of the file, None: of what is read."""
        self.read()
        self.limits.check(min(0, self.first_ns), max(self.end_ns(), self.last_ns))
        self.join()
        naming = self.name_frames()
        problems = self.find_problems()
        self.tell("indexing")
        self.writer.index()
        self.tell("checking")
        found = self.find_findings()
        trace = trace_row(
            self.reader.header,
            key=self.key,
            name=name,
            records=self.records,
            end_ns=self.end_ns(),
            collected_utc=self.collected_utc,
            collector_version=program_version(),
            state=self.state,
            followed_as=self.live_key,
            machine=self.machine.name,
        )
        self.writer.write(trace.rows())
        self.writer.finish()
        counts = self.writer.counts | {"records": self.records}
        copies = [FindingCopy(f.kind, f.severity, f.count, f.title, f.link) for f in found]
        kept = ("name", "start_utc", "end_ns", "events_lost", "buffers_lost", "collected_utc", "collector_version")
        entry: dict[str, object] = {column: getattr(trace, column) for column in kept}
        entry |= {"bytes_done": None, "bytes_total": None, "size_bytes": self.reader.bytes_total if size_bytes is None else size_bytes}
        if self.state == "complete":
            entry["live_key"] = self.live_key + self.limits.suffix
        self.catalog.complete(self.key, entry | self.totals(), [_copy(p) for p in problems], copies, state=self.state)
        return ImportReport(self.key, name, counts, problems, copies, time.monotonic() - started, naming)

    def read(self) -> None:
        """Windows → rows."""
        for raw in self.reader.windows():
            batch = self.decoder.decode(raw, self.clock)
            self.inventory.add(batch)
            self.machine.advance(raw)
            if not self.records:
                self.first_ns = int(batch.ns[0])
            self.records += len(raw)
            self.last_ns = int(batch.ns[-1])
            self.writer.write(self.kept.advance(batch))
            for model in self.models():
                self.writer.write(model.advance(batch))
                self.stop_if_asked()  # a window of many records takes a second
            self.tell("reading")
        for rows in self.endings():
            self.writer.write(rows)
            self.tell("reading")
        self.model_problems = [*self.sockets.problems, *self.stacks.problems, *self.heaps.problems, *self.names.problems]
        del self.processes, self.stacks, self.sockets, self.heaps, self.transport, self.names, self.virtual_memory
        give_back()  # the other process may need much now

    def models(self) -> Iterator[Processes | Stacks | Sockets | Heaps | Transport | AddressNames | CatalogChanges | VirtualMemory]:
        """Those whose rows are wanted, in their order."""
        yield self.processes
        yield self.stacks
        if self.limits.wants("sockets"):
            yield self.sockets
            yield self.transport
            yield self.names
            yield self.catalog_changes
        if self.limits.wants("heap"):
            yield self.heaps
            yield self.virtual_memory

    def endings(self) -> Iterator[Rows]:
        """What is left of each model when the windows are over; a later one may ask an earlier one for what it finished with."""
        yield self.processes.finish()
        self.stacks.settle_all()
        yield from self.sockets.finish_parts()
        yield self.transport.finish()
        yield self.names.finish()
        yield from self.heaps.finish_parts()
        yield from self.stacks.finish_parts()  # it takes longer to make these rows than to insert them: blocks that never ended go first

    def join(self) -> None:
        """What can be said only once all rows are there: what was counted on their way, and the passes over the unfinished file."""
        with RowsAside() as aside:
            with self.writer.counting(first_ns=self.first_ns, changing=_CHANGING) as settled:
                self.tell("joining")
                for rows in join_buffers(settled, self.clock, self.reader.losses):
                    aside.put(rows)
                    self.tell("joining")
            for rows in chain(aside.taken(), self.joined()):
                self.writer.write(rows)
                self.tell("joining")

    def joined(self) -> Iterator[Rows]:
        """What those passes find that change what is there, or need what was counted."""
        join_transport(self.writer.connection)
        if self.limits:
            with Counting() as counted:
                for rows in chain(self.writer.limit(self.limits), resizes_with_heap(self.writer.connection)):
                    counted.take(rows)
                yield from counted.finish(first_ns=self.first_ns)
        yield from socket_sums(self.writer.connection)

    def name_frames(self) -> Naming | None:
        """Functions of stack frames, from symbol files; stored, and handed back."""
        if self.symbols is None:
            return None
        self.tell("naming")
        naming = find_names(self.writer.connection, self.symbols, self.should_cancel)
        write_names(self.writer.connection, naming, self.should_cancel)
        return naming

    def find_problems(self) -> list[ProblemRow]:
        """What limits the answers, of all stages; stored, and handed back."""
        counts = self.inventory.counts()
        providers = {c.provider: c.provider_name for c in counts}
        self.writer.write({"event_count": self.inventory.rows()})
        decoder = self.decoder
        problems: list[Problem] = [
            *self.reader.problems,
            *decoding_problems(
                damaged=_misread(decoder.damaged, providers),
                unknown=_misread(decoder.unknown, providers),
                newer=_misread(decoder.newer, providers),
                longer=_misread(decoder.trailing, providers),
                passed_over=_misread(decoder.passed_over, providers),
                kept=self.kept.kept,
                left_out=self.kept.left_out,
                layouts=decoder.embedded.damaged,
            ),
            *([Problem(STORED_IN_PART, details={"what": self.limits.words})] if self.limits else []),
            *self.model_problems,
            *inventory_problems(seen_in(counts), has_stacks=self.writer.counts["stack"] > 0),
        ]
        rows = problem_rows(problems, self.clock)
        names = [f.name for f in fields(ProblemRow)]
        columns = {name: [getattr(row, name) for row in rows] for name in names}
        self.writer.write({"problem": rows_of("problem", {"n": range(1, len(rows) + 1), **columns}, count=len(rows))})
        return rows

    def find_findings(self) -> list[Finding]:
        """What the program did that is worth a look; stored, and handed back."""
        with self.writer.checked():
            found = findings(self.writer.connection, end_ns=self.end_ns(), has_losses=self.reader.losses.has_any)
        names = [f.name for f in fields(Finding)]
        columns = {name: [getattr(finding, name) for finding in found] for name in names}
        self.writer.write({"finding": rows_of("finding", {"n": range(1, len(found) + 1), **columns}, count=len(found))})
        return found

    def end_ns(self) -> int:
        """Where the trace ends."""
        return end_of_trace(self.reader.header, self.last_ns, is_cut=self.reader.losses.reaches_end)

    def totals(self) -> dict[str, int]:
        """Columns of the catalog's entry."""
        counts = self.writer.counts
        nouns = {"processes": "process", "sockets": "socket", "operations": "operation", "allocations": "allocation"}
        return {"records": self.records} | {column: counts[table] for column, table in nouns.items()}

    def stop_if_asked(self) -> None:
        """Raises CollectCancelled."""
        if self.should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")

    def tell(self, stage: str) -> None:
        """Report progress, to the caller every time and to the catalog once a second. Raises CollectCancelled."""
        self.stop_if_asked()
        reader = self.reader
        self.on_progress(Progress(stage, reader.bytes_done, reader.bytes_total, self.records))
        if time.monotonic() - self._noted >= _SECONDS_BETWEEN_NOTES:
            self._noted = time.monotonic()
            with contextlib.suppress(StoreLocked, StoreUnreachable):  # a page shows older progress for a while, no more
                self.catalog.progress(self.key, bytes_done=reader.bytes_done, bytes_total=reader.bytes_total, counts=self.totals())
                self.catalog.known_so_far(self.key, [_copy(row) for row in problem_rows(reader.problems, self.clock)])


def _copy(row: ProblemRow) -> ProblemCopy:
    return ProblemCopy(*(getattr(row, f.name) for f in fields(ProblemCopy)))


def _misread(tallies: Mapping[VersionKey, Tally], names: Mapping[UUID, str | None]) -> list[Misread]:
    """The decoder's counts, with names that a user can look up."""
    return [
        Misread(
            f"{names.get(key.provider) or key.provider} {'opcode' if key.is_classic else 'id'} {key.number} version {number}",
            tally.count,
            tally.first_ticks,
            tally.last_ticks,
            tally.place,
        )
        for (key, number), tally in tallies.items()
    ]

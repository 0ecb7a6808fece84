"""Whose event it is: the instances of process ids, with what the kernel events say about each.

An instance is one life of a process id. Kernel starts and ends delimit it; without them there is one instance per id. Instances are
numbered from 0 in the order in which they are met, and a number once given is final: it is the row number in the table `process`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import FILETIME_PER_SECOND, NS_PER_SECOND, Clock
from collector.model.modules import Module, Modules
from collector.model.process_events import Deed, ProcessRecord, process_records
from collector.model.process_lives import Life, Lives
from collector.model.rows import Rows, rows_of, signed
from collector.model.threads import Threads, ThreadStack
from collector.raw import HeaderKind, RawEvents
from collector.schema import DecodedBatch

__all__ = ["KERNEL", "ProcessEnd", "Processes"]

Int64s: TypeAlias = NDArray[np.int64]

KERNEL = -1
"""Stands for the kernel where modules are asked for, and for "no process" among process numbers."""
_SOURCES = ("heap", "header", "location", "create", "kernel")  # from weak to strong
_MAY_BE_LATE = ("header", "location")  # what the kernel logs for a process that has just ended
_EVENT_KINDS = (HeaderKind.EVENT32, HeaderKind.EVENT64)


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """An instance is over at this record. Without `is_seen` its end was lost: the id was taken by another process here."""

    process_n: int
    seq: int
    ticks: int
    ns: int
    is_seen: bool = True


class Processes:
    """The processes of one trace.

    Records of one tick have no order between processors: a record at the very tick of an end still belongs to the instance that ends,
    one at the tick of a start to the instance that starts.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives = Lives()
        self._modules = Modules()
        self._threads = Threads()
        self._ends: list[ProcessEnd] = []

    # ------------------------------------------------------------------------------------------------ asked by models

    def of_pids(self, pids: Int64s, batch: DecodedBatch, rows: Int64s) -> Int64s:
        """The instance of each header process id at its row.

        Args:
            pids: int64, shape (m,); -1 where the header has none.
            batch: the window advanced last.
            rows: int64, shape (m,), ascending; rows of the window that the ids belong to.

        Returns: int64, shape (m,); process numbers, -1 for no process. Instances that nothing has named before are opened here, by
        source "heap" for the headers of classic events and "header" for others.
        """
        found = np.full(pids.size, KERNEL, dtype=np.int64)
        if not pids.size:
            return found
        raw = batch.raw
        source = "header" if int(raw.kind[rows[0]]) in _EVENT_KINDS else "heap"
        narrow = pids.astype(np.uint16) if pids.min() >= 0 and pids.max() < 1 << 16 else pids  # 16 bits sort ten times as fast
        order = np.argsort(narrow, kind="stable")
        grouped = pids[order]
        begins = np.concatenate([[0], np.flatnonzero(np.diff(grouped)) + 1, [grouped.size]]).tolist()
        for begin, end in pairwise(begins):
            pid = int(grouped[begin])
            if pid >= 0:
                where = order[begin:end]
                found[where] = self._of_rows(pid, batch, rows[where], source)
        return found

    def of_pid(self, pid: int, seq: int, ns: int, source: str) -> int:
        """The instance of a process id at one record, opened if need be; `source` is heap, header, location, create or kernel."""
        life, _ = self._at(pid, seq, source)
        return self._saw(life, seq, ns, source).n

    def by_eprocess(self, eprocess: int, seq: int) -> int | None:
        """The instance whose process object this is at a record, as far as the kernel events up to now say; None without one."""
        life = self._lives.by_eprocess(eprocess, seq)
        return None if life is None else life.n

    def by_eprocess_late(self, eprocess: int, seq: int) -> int | None:
        """As `by_eprocess`, asked once all windows are in: the rundown at the end names processes that ran all along."""
        return self.by_eprocess(eprocess, seq)

    def ends_in(self, batch: DecodedBatch) -> list[ProcessEnd]:
        """Instances that ended in the window advanced last, in order. Ask after `of_pids`, which may find instances that ended in it."""
        first, beyond = batch.raw.first_seq, batch.raw.first_seq + len(batch.raw)
        return sorted((end for end in self._ends if first <= end.seq < beyond), key=lambda end: end.seq)

    def pid_of(self, n: int) -> int | None:
        """Process id of an instance, None for the kernel's number."""
        return self._lives.all[n].pid if 0 <= n < len(self._lives.all) else None

    def modules(self, n: int) -> Sequence[Module]:
        """Images of an instance (or of KERNEL), in the order in which they were met; more may follow, and names of volumes at the end."""
        return self._modules.of(n)

    def thread_stacks(self, n: int) -> Sequence[ThreadStack]:
        """User stacks of the threads of an instance, as far as they are known."""
        return self._threads.of(n)

    # ------------------------------------------------------------------------------------------------ fed by the pipeline

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in the kernel events of a window; hands on no rows, as all are written at the end."""
        self._ends = []
        raw = batch.raw
        for record in process_records(batch):
            life = self._apply(raw, record)
            life.source = _SOURCES.index("kernel")
            life.learn(record)
            self._learn_exit(life, record)
            self._lives.bind(life, record.eprocess)
        self._threads.advance(batch, self._owner)
        self._modules.advance(batch, self._owner)
        return {}

    def finish(self) -> Rows:
        """Rows of the tables process, thread and module; after this nothing may be advanced."""
        self._modules.finish()
        lives = self._lives.all
        process = rows_of(
            "process",
            {
                "n": [life.n for life in lives],
                "pid": [life.pid for life in lives],
                "eprocess": [signed(life.eprocess) for life in lives],
                "parent_pid": [life.parent_pid for life in lives],
                "image": [life.image for life in lives],
                "command_line": [life.command_line for life in lives],
                "start_ns": [life.start_ns for life in lives],
                "end_ns": [life.end_ns for life in lives],
                "first_ns": [life.first_ns for life in lives],
                "start_seen": [life.start_seen for life in lives],
                "end_seen": [life.end_seen for life in lives],
                "pid_source": [_SOURCES[life.source] for life in lives],
                "session": [life.session for life in lives],
                "exit_status": [life.exit_status for life in lives],
                "pointer_size": [life.pointer_size for life in lives],
            },
            count=len(lives),
        )
        return {"process": process, "thread": self._threads.rows(), "module": self._modules.rows()}

    # ------------------------------------------------------------------------------------------------ lives

    def _owner(self, pid: int, seq: int, ns: int, *, is_late: bool = False, is_sight: bool = True) -> int:
        """Process number of a kernel event; `is_late` for what may follow the end of its process, not `is_sight` for what tells of a
        life that has been there for long."""
        life, _ = self._at(pid, seq, "header" if is_late else "kernel")
        life.source = _SOURCES.index("kernel")
        if is_sight:
            self._saw(life, seq, ns, "kernel")
        return life.n

    def _of_rows(self, pid: int, batch: DecodedBatch, rows: Int64s, source: str) -> Int64s:
        """Instances of one process id at ascending rows; loops over instances, not over rows."""
        raw = batch.raw
        seqs = rows + raw.first_seq
        found = np.empty(rows.size, dtype=np.int64)
        at = 0
        while at < rows.size:
            seq = int(seqs[at])
            life, until = self._at(pid, seq, source)
            stop = rows.size if until is None else max(int(np.searchsorted(seqs, until)), at + 1)
            self._saw(life, seq, int(batch.ns[rows[at]]), source)
            if source == "heap":
                life.saw_pointers(int(raw.pointer_size[rows[at:stop]].min()))
            found[at:stop] = life.n
            at = stop
        return found

    def _at(self, pid: int, seq: int, source: str) -> tuple[Life, int | None]:
        """The life of a process id at a record, and the record before which that holds; opened where there is none."""
        life, before, after = self._lives.at(pid, seq)
        if life is not None:
            return life, life.end_seq
        if before is not None and source in _MAY_BE_LATE:
            return before, after.begin_seq if after is not None else None
        life = self._lives.open(pid, after=before, before=after)
        if after is not None:
            self._ends.append(ProcessEnd(life.n, after.begin_seq, after.begin_ticks, after.first_ns, is_seen=False))
        return life, life.end_seq

    def _saw(self, life: Life, seq: int, ns: int, source: str) -> Life:
        """A record named this life: remember the first sight and the best source."""
        life.source = max(life.source, _SOURCES.index(source))
        if not life.start_seen and (life.first_seq is None or seq < life.first_seq):
            life.first_seq, life.first_ns = seq, ns
        return life

    def _apply(self, raw: RawEvents, record: ProcessRecord) -> Life:
        """Find or open the life that a kernel event speaks of."""
        last = self._lives.last(record.pid)
        if record.deed is Deed.START:
            return self._start(raw, record, last)
        known = self._lives.of_object(record.pid, record.eprocess)
        if known is None and record.eprocess is None and record.deed is Deed.END and last is not None and last.end_seen:
            known = last
        if known is not None and not known.is_open:
            return known  # its end is known: only the object is still there, or the end is told twice
        if last is not None and last.is_open and None not in (last.eprocess, record.eprocess) and last.eprocess != record.eprocess:
            if record.deed is Deed.DEFUNCT:
                return self._lives.open_dead(record.pid, record.seq, record.ns)
            self._end_unseen(last, record)  # its end and the start of this one were lost
        if last is None or not last.is_open:
            last = self._lives.open(record.pid, after=last, before=None)
        if record.deed is Deed.END:
            last.end_seq = raw.first_seq + int(np.searchsorted(raw.ticks, record.ticks, side="right"))
            last.end_ns, last.over_ns, last.end_seen = record.ns, record.ns, True
            self._ends.append(ProcessEnd(last.n, record.seq, record.ticks, record.ns))
        elif record.deed is Deed.DEFUNCT:
            self._end_unseen(last, record)
        if record.deed is Deed.RUNDOWN_START:
            self._saw(last, record.seq, record.ns, "kernel")
        elif last.first_seq is None:
            last.first_seq = record.seq  # it was there before; first_ns says since when at the earliest
        return last

    def _learn_exit(self, life: Life, record: ProcessRecord) -> None:
        """The end that a defunct process tells of itself; it may lie before the trace."""
        if record.exit_filetime and self._clock.start_filetime and life.end_ns is None:
            life.end_ns = (record.exit_filetime - self._clock.start_filetime) * NS_PER_SECOND // FILETIME_PER_SECOND

    def _end_unseen(self, life: Life, record: ProcessRecord) -> None:
        life.end_seq, life.over_ns = record.seq, record.ns
        self._ends.append(ProcessEnd(life.n, record.seq, record.ticks, record.ns, is_seen=False))

    def _start(self, raw: RawEvents, record: ProcessRecord, last: Life | None) -> Life:
        if last is not None and last.is_open:
            self._end_unseen(last, record)
            begin = record.seq
        else:
            begin = raw.first_seq + int(np.searchsorted(raw.ticks, record.ticks, side="left"))
            if last is not None and last.end_seq is not None:
                begin = min(max(begin, last.end_seq), record.seq)
                last.end_seq = min(last.end_seq, begin)
        life = self._lives.open(record.pid, after=last, before=None)
        life.begin_seq, life.begin_ticks = begin, record.ticks
        life.start_ns = life.first_ns = record.ns
        life.first_seq, life.start_seen = record.seq, True
        return life

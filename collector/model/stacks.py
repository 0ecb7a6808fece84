"""Call stacks: which event has which, each distinct one stored once, frames as module and offset.

Rows carry a small number (`*_stack_ref`) for a process, its images at that time, and the pieces of the stack. What a piece means may be
told as late as at the end of the trace, so the table `stack_ref` resolves the numbers there.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.clock import Clock
from collector.errors import Problem, ProblemKind, Severity
from collector.model.processes import Processes
from collector.model.rows import Rows, gathered, signed
from collector.model.stack_contexts import Contexts, FrameTable
from collector.model.stack_inside import InsideStacks
from collector.model.stack_matching import Expected, Matcher, StackRecords, names_a_record, who_of
from collector.model.stack_pieces import KERNEL_32, KERNEL_64, PieceKind, Pieces
from collector.model.waiting import Waiting
from collector.schema import DecodedBatch

__all__ = ["HASH_DIGITS", "USUAL_KINDS", "Stacks"]

Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

HASH_DIGITS = 16
USUAL_KINDS = frozenset({0, 2, 3})
"""Heap records that sessions usually ask stacks for: allocations, reallocations, creations (numbers of heap_records)."""

_REFERENCES = {"StackWalk": PieceKind.ANY, "StackKeyKernel": PieceKind.KERNEL, "StackKeyUser": PieceKind.USER}
_DEFINITIONS = ("StackKeyCreate", "StackKeyDelete", "StackKeyRundown")
_MAX_WAITING = 500_000
_ROWS_AT_ONCE = 1 << 14
_MAX_NAMED = 200_000
_NEVER, _FOREVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max

UNMATCHED_STACKS = ProblemKind(
    "unmatched_stacks",
    Severity.LIMIT,
    "{count} stack records name an event that is not in the trace.",
    "Some events have no stack.",
    "Events may have been lost; a live session must ask for raw time stamps.",
    one="1 stack record names an event that is not in the trace.",
)
UNDEFINED_STACK_KEYS = ProblemKind(
    "undefined_stack_keys",
    Severity.LIMIT,
    "{count} stack records refer to a cached stack that the trace does not define.",
    "These stacks are incomplete or missing.",
    "Stop the session in the regular way: it writes its cached stacks when it ends.",
    one="1 stack record refers to a cached stack that the trace does not define.",
)


class Stacks:
    """The call stacks of one trace.

    Per window: `advance`; then models say which of their records may have a stack (`expect`), and ask for those up to
    `settled_ticks`, which can no more change (`refs_of`).
    """

    def __init__(self, processes: Processes, clock: Clock) -> None:
        self._processes, self._clock = processes, clock
        self._hold = clock.ticks_per_second
        self._pieces, self._contexts, self._matcher = Pieces(), Contexts(), Matcher(USUAL_KINDS)
        self._inside = InsideStacks(self._pieces)
        self._key_pieces: Int64s = np.zeros(0, dtype=np.int64)
        self._expected = Waiting(5)
        self._recent = Waiting(2)
        self._records: list[StackRecords] = []
        self._settled: tuple[Int64s, Int64s] = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._refs: dict[tuple[int, ...], int] = {}
        self._unmatched = 0
        self._first_unmatched: int | None = None
        self._last_unmatched: int | None = None
        self._last_ticks = _NEVER + 1
        self.settled_ticks = _NEVER
        """Events up to this time have the stacks that they will have."""
        self.problems: list[Problem] = []
        """What limits the answers; complete after `finish`."""

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in the stack records of a window; hands on no rows, as all are written at the end."""
        raw = batch.raw
        self._contexts.advance(batch)
        self._inside.advance(batch)
        records = self._take_in(batch)
        named = records.event_ticks
        is_in_time = (named >= records.ticks - self._hold) & (named <= records.ticks + self._hold) & (named > self.settled_ticks)
        self._report(records.only(~is_in_time))
        self._records.append(records.only(is_in_time))
        is_stack = np.zeros(len(raw), dtype=np.bool_)
        for name in (*_REFERENCES, *_DEFINITIONS):
            if (columns := batch.get(name)) is not None:
                is_stack[columns.rows] = True
        others = np.flatnonzero(~is_stack)
        self._recent.add(raw.ticks[others], who_of(raw.pid[others], raw.tid[others]))
        if len(raw):
            until = int(raw.ticks[-1]) - self._hold - 1
            if self._expected.count > _MAX_WAITING:  # more events than memory allows: wait a shorter time
                until = max(until, self._expected.ticks_at(_MAX_WAITING) - 1)
            # The models have not said yet what this window has, and a tick can go on from one window to the next.
            self._settle(max(min(until, self._last_ticks - 1), self.settled_ticks))
            self._last_ticks = int(raw.ticks[-1])
        return {}

    def expect(self, batch: DecodedBatch, rows: Int64s, pids: Int64s, processes: Int64s, kinds: Int8s) -> None:
        """Say which records of the window advanced last may have a stack record; columns of one length, rows ascending.

        Args:
            pids: process ids of the headers.
            processes: process row numbers.
            kinds: any small number for the kind of event: sessions ask for stacks by kind.
        """
        raw = batch.raw
        contexts = self._contexts.of(batch, rows, pids, processes)
        self._expected.add(raw.ticks[rows], raw.first_seq + rows, who_of(pids, raw.tid[rows]), contexts, kinds.astype(np.int64))

    def refs_of(self, seqs: Int64s) -> Int64s:
        """The stacks of expected records that were settled last, -1 for none; int64, shape of `seqs`."""
        known, refs = self._settled
        if not known.size:
            return np.full(seqs.size, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, seqs), known.size - 1)
        return np.where(known[at] == seqs, refs[at], -1)

    def extended_refs(self, batch: DecodedBatch) -> Int64s:
        """The stack inside each record of the window advanced last, for events that we read; int64, shape (n,), -1 for none."""
        raw = batch.raw
        found = np.full(len(raw), -1, dtype=np.int64)
        rows, pieces = self._inside.parts(self._key_pieces)
        if not rows.size:
            return found
        own = np.unique(rows)
        contexts = self._contexts.of(batch, own, raw.pid[own], np.full(own.size, -1, dtype=np.int64))
        found[own] = self._refs_for(np.searchsorted(own, rows), pieces, contexts, set())
        return found

    def settle_all(self) -> None:
        """Give all events their stacks once the windows are over: from then on models may ask for those of the last ones."""
        if self.settled_ticks != _FOREVER:
            self._settle(_FOREVER)
            self._inside.finish()

    def finish(self) -> Rows:
        """Rows of the tables stack, stack_frame and stack_ref; see `finish_parts`."""
        return gathered(self.finish_parts())

    def finish_parts(self) -> Iterator[Rows]:
        """As `finish`, in pieces of bounded size; after `Processes.finish`, as the rundown at the end names images."""
        self.settle_all()
        yield from self._rows()
        if self._unmatched:
            self.problems.append(Problem(UNMATCHED_STACKS, self._unmatched, self._first_unmatched, self._last_unmatched))
        if undefined := self._pieces.undefined_uses():
            self.problems.append(Problem(UNDEFINED_STACK_KEYS, undefined))

    # ------------------------------------------------------------------------------------------------ records

    def _take_in(self, batch: DecodedBatch) -> StackRecords:
        """Definitions and references of a window."""
        raw = batch.raw
        defined = [columns for name in _DEFINITIONS if (columns := batch.get(name)) is not None]
        rows, (keys, is_created, pieces) = _by_row(
            [c.rows for c in defined],
            [c.numbers("stack_key").astype(np.uint64) for c in defined],
            [np.full(len(c), c.name == "StackKeyCreate") for c in defined],
            [self._pieces.intern(c.ragged("frames"), raw.pointer_size[c.rows]) for c in defined],
        )
        keyed = [c for name in ("StackKeyKernel", "StackKeyUser") if (c := batch.get(name)) is not None]
        use_rows, (use_keys, use_kinds) = _by_row(
            [*(c.rows for c in keyed), self._inside.key_rows],
            [*(c.numbers("stack_key").astype(np.uint64) for c in keyed), self._inside.keys],
            [*(np.full(len(c), _REFERENCES[c.name], dtype=np.int64) for c in keyed), np.full(self._inside.keys.size, PieceKind.ANY)],
        )
        uses = use_keys.astype(np.uint64), raw.ticks[use_rows], use_kinds.astype(np.int64)
        used = self._pieces.define(keys.astype(np.uint64), raw.ticks[rows], pieces.astype(np.int64), is_created.astype(np.bool_), uses)
        self._key_pieces = used[use_kinds == PieceKind.ANY]
        walked = batch.get("StackWalk")
        referring = [*keyed, *([walked] if walked is not None else [])]
        piece_of = np.full(len(raw), -1, dtype=np.int64)
        piece_of[use_rows] = used
        if walked is not None:
            piece_of[walked.rows] = self._pieces.intern(walked.ragged("frames"), raw.pointer_size[walked.rows])
        at, (ticks, pids, tids) = _by_row(
            [c.rows for c in referring],
            *[[c.numbers(name) for c in referring] for name in ("event_time_stamp", "stack_process", "stack_thread")],
        )
        return StackRecords(ticks.astype(np.int64), who_of(pids.astype(np.int64), tids.astype(np.int64)), piece_of[at], raw.ticks[at])

    # ------------------------------------------------------------------------------------------------ matching

    def _settle(self, until: int) -> None:
        """Give the events up to a time their stacks."""
        self.settled_ticks = until
        events = Expected(*self._expected.take(until))
        recent_ticks, recent_who = self._recent.take(until)
        ready = [records.only(records.event_ticks <= until) for records in self._records]
        self._records = [left for records in self._records if (left := records.only(records.event_ticks > until)).who.size]
        self._settled = np.zeros(0, np.int64), np.zeros(0, np.int64)
        ready = [records for records in ready if records.who.size]
        if not ready:
            return
        records = StackRecords(*(np.concatenate(columns) for columns in zip(*(r.columns() for r in ready), strict=True)))
        found, is_shared = self._matcher.match(events, records)
        missing = records.only(found < 0)
        self._report(missing.only(~names_a_record(recent_ticks, recent_who, missing)))
        hit = np.flatnonzero(found >= 0)
        if not hit.size:
            return
        order = hit[np.argsort(found[hit], kind="stable")]
        owners, index = np.unique(found[order], return_inverse=True)
        shared = set(np.unique(index[is_shared[order]]).tolist())
        self._settled = events.seqs[owners], self._refs_for(index, records.pieces[order], events.contexts[owners], shared)

    def _refs_for(self, owner: Int64s, pieces: Int64s, contexts: Int64s, shared: set[int]) -> Int64s:
        """The number of the stack of each owner.

        Args:
            owner: index into `contexts` of each piece, ascending; every owner has a piece.
            shared: owners whose pieces may be those of several events: of each part the last one counts.

        Returns: int64, shape of `contexts`.
        """
        begins = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        sizes = np.diff(np.append(begins, owner.size))
        first = pieces[begins]
        second = np.where(sizes == 2, pieces[np.minimum(begins + 1, pieces.size - 1)], -1)
        second[second == first] = -1
        refs = np.empty(contexts.size, dtype=np.int64)
        odd = np.flatnonzero(sizes > 2).tolist()
        if shared:
            odd = sorted(shared.union(odd))
        for i in odd:
            own = pieces[begins[i] : begins[i] + sizes[i]].tolist()
            refs[i] = self._ref((int(contexts[i]), *(self._last_of_each(own) if i in shared else dict.fromkeys(own))))
        is_plain = np.ones(contexts.size, dtype=np.bool_)
        is_plain[odd] = False
        plain = np.flatnonzero(is_plain)
        table, which = _distinct(contexts[plain], first[plain], second[plain])
        known = [self._ref(row if row[2] >= 0 else row[:2]) for row in table]
        refs[plain] = np.array(known, dtype=np.int64)[which]
        return refs

    def _last_of_each(self, pieces: list[int]) -> list[int]:
        """Of the kernel part, the user part and whole stacks the last one each, in their order."""
        kept: list[int] = []
        covered: frozenset[PieceKind] = frozenset()
        for piece in reversed(pieces):
            parts = self._pieces.parts(piece)
            if not parts & covered:
                kept.insert(0, piece)
                covered |= parts
        return kept

    def _ref(self, key: tuple[int, ...]) -> int:
        return self._refs.setdefault(key, len(self._refs))

    def _report(self, unmatched: StackRecords) -> None:
        if unmatched.who.size:
            first, last = int(unmatched.ticks.min()), int(unmatched.ticks.max())
            self._unmatched += int(unmatched.who.size)
            self._first_unmatched = first if self._first_unmatched is None else min(self._first_unmatched, first)
            self._last_unmatched = last if self._last_unmatched is None else max(self._last_unmatched, last)

    # ------------------------------------------------------------------------------------------------ rows

    def _rows(self) -> Iterator[Rows]:
        """Each distinct stack once; loops over the distinct numbers (2 µs each, 40 for a stack that is new)."""
        stacks: dict[str, int] = {}
        tables: dict[int, FrameTable] = {}
        named: dict[tuple[int, ...], int] = {}
        stored = 0
        rows: Rows = {"stack": [], "stack_frame": [], "stack_ref": []}
        for (context, *pieces), ref in self._refs.items():
            if context not in tables:
                tables[context] = self._contexts.table(context, self._processes)
            key = id(tables[context]), *pieces  # processes share stacks whose images are at the same addresses, as systems load theirs
            if key not in named:
                if len(named) > _MAX_NAMED:
                    named.clear()
                frames, is_complete = self._frames(pieces)
                found = tables[context].name(frames)
                text = "\n".join([frame.text for frame in found])
                digest = sha256(f"{text}\n{'' if is_complete else '?'}".encode()).hexdigest()[:HASH_DIGITS]
                named[key] = stacks.setdefault(digest, len(stacks))
                if len(stacks) > stored:
                    n, stored = stored, len(stacks)
                    rows["stack"].append((n, digest, len(frames), is_complete))
                    rows["stack_frame"] += [
                        (n, i, signed(frame.address), frame.module or None, signed(frame.offset) if frame.module else None, None)
                        for i, frame in enumerate(found)
                    ]
            rows["stack_ref"].append((ref, named[key]))
            if len(rows["stack_frame"]) + len(rows["stack_ref"]) > _ROWS_AT_ONCE:
                yield rows
                rows = {"stack": [], "stack_frame": [], "stack_ref": []}
        yield rows

    def _frames(self, pieces: list[int]) -> tuple[list[int], bool]:
        """Kernel frames, then user frames, each innermost first; and whether every piece is known."""
        kernel: list[UInt64s] = []
        user: list[UInt64s] = []
        is_complete, seen = True, set()
        for piece in pieces:
            frames, is_known, is_narrow = self._pieces.frames(piece)
            is_complete &= is_known
            if frames.tobytes() in seen:
                continue
            seen.add(frames.tobytes())
            is_kernel = frames >= np.uint64(KERNEL_32 if is_narrow else KERNEL_64)
            kernel.append(frames[is_kernel])
            user.append(frames[~is_kernel])
        return np.concatenate([*kernel, *user]).tolist(), is_complete


def _by_row(rows: list[Int64s], *columns: list[NDArray[np.generic]]) -> tuple[Int64s, list[NDArray[np.generic]]]:
    """Parts of a window as one, in the order of its rows."""
    if not rows:
        return np.zeros(0, dtype=np.int64), [np.zeros(0, dtype=np.int64) for _ in columns]
    joined = np.concatenate(rows)
    order = np.argsort(joined, kind="stable")
    return joined[order], [np.concatenate(column)[order] for column in columns]


def _distinct(contexts: Int64s, first: Int64s, second: Int64s) -> tuple[list[tuple[int, int, int]], Int64s]:
    """The distinct triples, and which of them each one is. Packed into one number where it holds them: sorting that is much faster."""
    if not contexts.size:
        return [], np.zeros(0, dtype=np.int64)
    width = int(max(first.max(), second.max())) + 2
    if (int(contexts.max()) + 1) * width * width < 1 << 62:
        packed, which = np.unique((contexts * width + first) * width + second + 1, return_inverse=True)
        return [(p // width // width, p // width % width, p % width - 1) for p in packed.tolist()], which
    table, which = np.unique(np.stack([contexts, first, second], axis=1), axis=0, return_inverse=True)
    return [(c, p, q) for c, p, q in table.tolist()], which.reshape(-1)

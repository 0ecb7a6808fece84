"""What spans the traces of a folder: which there are, what state each is in, and copies of their problems and findings.

A trace's entry says `collecting` while a living collector builds it. When that collector died, the entry returns to `complete` if an
older file of the trace is still in place, else it becomes `interrupted`. It says `live` while a collector follows a session that records;
when that one died, what it has stored up to then stays, as `interrupted`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import Connection, Engine, delete, insert, select, update
from sqlalchemy.schema import CreateTable

from collector.errors import StoreError, StoreReadOnly
from collector.store import dialects
from collector.store.contents import Contents, read_contents, store_contents
from collector.store.copies import FindingCopy, ProblemCopy, read_back
from collector.store.copying import notes_in
from collector.store.engine import TraceFolder, check_version, stored_version
from collector.store.migrate import upgrade_catalog
from collector.store.stores import UNFINISHED, TraceStore, settled_state
from collector.store.tables import CATALOG, CATALOG_VERSION, catalog_finding, catalog_problem, note, trace_entry
from collector.store.views import create_catalog_views
from collector.store.writer import stamp

__all__ = ["Catalog", "Entry", "now_utc"]

FOLLOWED_IN_PART = "Following ended before the session did: what came later is not here. Collect the file when the session has ended."
_ENDED_EARLY = "The collector ended before it was done. Collect the file again."
_LEAST_OF_KEY = 4
"""Characters of a key's beginning that name a trace."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One trace of the folder, as the list shows it. Times in ns, sizes in bytes; None is unknown."""

    key: str
    name: str
    label: str | None
    state: str
    path: str | None
    size_bytes: int | None
    start_utc: str | None
    end_ns: int | None
    records: int | None
    processes: int | None
    sockets: int | None
    operations: int | None
    allocations: int | None
    events_lost: int | None
    buffers_lost: int | None
    bytes_done: int | None
    bytes_total: int | None
    message: str | None
    live_key: str | None
    collector_pid: int | None
    collected_utc: str
    finished_utc: str | None
    collector_version: str | None
    machine: str | None
    problems: int | None
    losses: int | None
    findings: int | None
    high_findings: int | None
    names_left_out: int | None
    statuses_left_out: int | None
    reasons_left_out: int | None


class Catalog:
    """The catalog of a folder, open for writing; each method is one short transaction.

    Creates the folder and the catalog, and brings an older catalog up to date. Raises StoreError, StoreLocked, StoreTooNew.
    """

    def __init__(self, folder: TraceStore, *, is_written: bool = True) -> None:
        self.folder, self._is_written = folder, is_written
        if not is_written:
            self.engine: Engine = folder.catalog()
            return
        folder.make()
        self.engine = _of_folder(folder) if isinstance(folder, TraceFolder) else folder.catalog(write=True)

    @classmethod
    def existing(cls, folder: TraceStore) -> Self:
        """The catalog of a folder that has one. Raises StoreError for others."""
        if not folder.has_catalog():
            raise StoreError(f"{folder.title}: there are no traces here yet. Collect one: sockscope collect FILE.etl")
        return cls(folder)

    @classmethod
    def readable(cls, folder: TraceStore) -> Self:
        """The catalog of a folder that has one, brought up to date if it may be written, else for reading alone.

        Raises StoreError, StoreTooNew, StoreTooOld.
        """
        try:
            catalog = cls.existing(folder)
            catalog.settle()
            return catalog
        except StoreReadOnly:
            return cls(folder, is_written=False)

    # ------------------------------------------------------------------------------------------------ collecting

    def begin(self, key: str, *, name: str, path: str, size_bytes: int, version: str, state: str = "collecting") -> None:
        """Say that this process collects the trace now, or follows it. What an earlier collection found stays until `complete`."""
        values = {
            "name": name,
            "state": state,
            "path": path,
            "size_bytes": size_bytes,
            "bytes_done": 0,
            "bytes_total": size_bytes,
            "message": None,
            "collector_pid": os.getpid(),
        }
        with self.engine.begin() as connection:
            if connection.execute(select(trace_entry.c.key).where(trace_entry.c.key == key)).first():
                connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(values))
            else:
                connection.execute(insert(trace_entry).values(key=key, collected_utc=now_utc(), collector_version=version, **values))

    def progress(self, key: str, *, bytes_done: int, bytes_total: int, counts: dict[str, int]) -> None:
        """Write down how far a collection has come.

        `counts` are columns of the entry known so far; they are left alone while an older file of the trace is there.
        """
        values: dict[str, object] = {"bytes_done": bytes_done, "bytes_total": bytes_total}
        if not self.folder.has_trace(key):
            values |= counts
        with self.engine.begin() as connection:
            connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(values))

    def complete(
        self,
        key: str,
        values: dict[str, object],
        problems: Sequence[ProblemCopy],
        findings: Sequence[FindingCopy],
        *,
        state: str = "complete",
    ) -> None:
        """The trace's file is in place: replace what the entry says, with copies of its problems and findings, and what it contains.

        `state` is `live` while more is to come, `interrupted` where more will not.
        """
        contents = self._contents(key)
        with self.engine.begin() as connection:
            done: dict[str, object] = {"state": state, "message": FOLLOWED_IN_PART if state == "interrupted" else None}
            done |= {"collector_pid": os.getpid() if state == "live" else None, "finished_utc": None if state == "live" else now_utc()}
            connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(values | done))
            _copy_problems(connection, key, problems)
            connection.execute(delete(catalog_finding).where(catalog_finding.c.key == key))
            if findings:
                rows = [
                    {"key": key, "n": n, "kind": f.kind, "severity": f.severity, "count": f.count, "title": f.title, "link": f.link}
                    for n, f in enumerate(findings, start=1)
                ]
                connection.execute(insert(catalog_finding), rows)
            high = sum(f.severity == "high" for f in findings)
            counted = {"findings": len(findings), "high_findings": high}
            connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(counted))
            store_contents(connection, key, contents)

    def fill(self) -> int:
        """Enter what those traces contain of which the catalog does not know it yet; returns how many there were."""
        e = trace_entry.c
        with self.engine.connect() as connection:
            unknown = list(connection.execute(select(e.key).where(e.names_left_out.is_(None)).order_by(e.key)).scalars())
        filled = 0
        for key in unknown:
            contents = self._contents(key)
            if contents is not None:
                with self.engine.begin() as connection:
                    store_contents(connection, key, contents)
                filled += 1
        return filled

    def _contents(self, key: str) -> Contents | None:
        """What a trace contains; None where its file cannot be asked."""
        try:
            with self.folder.trace(key).connect() as connection:
                return read_contents(connection)
        except StoreError:
            return None

    def known_so_far(self, key: str, problems: Sequence[ProblemCopy]) -> None:
        """Copy the problems of a trace that is still being collected; not while an older file of it is there."""
        if self.folder.has_trace(key):
            return
        with self.engine.begin() as connection:
            _copy_problems(connection, key, problems)

    def interrupt(self, key: str, message: str) -> None:
        """This process gave up: an older file keeps its state, else the trace is interrupted."""
        with self.engine.begin() as connection:
            _give_up(connection, key, message, has_trace=self.folder.has_trace(key))

    def settle(self) -> int:
        """Look after traces whose collector died, and after trace files that nobody entered; returns how many there were."""
        with self.engine.connect() as connection:
            states = {row.key: row.state for row in connection.execute(select(trace_entry.c.key, trace_entry.c.state))}
        settled = 0
        for key in sorted({key for key, state in states.items() if state in UNFINISHED} | (set(self.folder.trace_keys()) - set(states))):
            if self.folder.is_being_collected(key):
                continue
            settled += 1
            if not self._adopt(key):
                self.interrupt(key, _ENDED_EARLY)
            self.folder.clear_part(key)
        self.folder.clear_locks()
        return settled

    def abandon(self, live: str, message: str) -> None:
        """This process follows a trace no longer; what was stored of it stays."""
        with self.engine.begin() as connection:
            _give_up(connection, live, message, has_trace=False)

    def close_live(self, live: str, key: str | None) -> None:
        """Forget a trace that was followed, and delete its file; notes on it go to the trace that it became, where it became one.

        Whoever asks holds its lock. Raises StoreError when the file cannot be deleted.
        """
        with self.engine.begin() as connection:
            if key is not None:
                connection.execute(update(note).where(note.c.key == live).values(key=key))
            connection.execute(delete(trace_entry).where(trace_entry.c.key == live))
        self.folder.remove_trace(live)

    def _adopt(self, key: str) -> bool:
        """Enter a finished trace file by what it says of itself; returns whether there is one that this program can read."""
        try:
            with self.folder.trace(key).connect() as connection:
                entry, problems, findings = read_back(connection)
                notes = notes_in(connection)
        except StoreError:
            return False
        state = "interrupted" if entry.pop("state") != "complete" else "complete"
        if entry.get("live_key"):
            entry["live_key"] = f"{entry['live_key']}{''.join(key.partition('-')[1:])}"  # a part of a trace has a suffix
        with self.engine.begin() as connection:
            if not connection.execute(select(trace_entry.c.key).where(trace_entry.c.key == key)).first():
                connection.execute(insert(trace_entry).values(key=key, **entry, state=state))
            if notes and not connection.execute(select(note.c.n).where(note.c.key == key)).first():
                connection.execute(insert(note), notes)
        self.complete(key, entry, problems, findings, state=state)
        return True

    # ------------------------------------------------------------------------------------------------ reading, removing

    def entries(self) -> list[Entry]:
        """All traces, newest first; those whose collector died as `settle` would leave them, where nothing may be written."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(trace_entry).order_by(trace_entry.c.collected_utc.desc(), trace_entry.c.key)).all()
        entries = [Entry(**row._mapping) for row in rows]
        return entries if self._is_written else [self._seen(entry) for entry in entries]

    def _seen(self, entry: Entry) -> Entry:
        """An entry with the state that its trace is in, whatever a collector could no more write down."""
        state = settled_state(self.folder, entry.key, entry.state)
        if state == entry.state:
            return entry
        return replace(entry, state=state, message=_ENDED_EARLY if state == "interrupted" else entry.message)

    def limits(self) -> dict[str, tuple[str, ...]]:
        """What the traces lack that is more than a note: `data_loss`, `damage`, by their keys; none for a whole one."""
        p = catalog_problem.c
        wanted = select(p.key, p.severity).where(p.severity.in_(("data_loss", "damage"))).distinct().order_by(p.key, p.severity.desc())
        found: dict[str, tuple[str, ...]] = {}
        with self.engine.connect() as connection:
            for row in connection.execute(wanted):
                found[row.key] = (*found.get(row.key, ()), row.severity)
        return found

    def find(self, word: str) -> Entry:
        """The trace that a user means: by key, the beginning of a key, label or file name. Raises StoreError for none or several."""
        entries = self.entries()
        for matches in (
            [e for e in entries if e.key == word],
            [e for e in entries if word in (e.label, e.name)],
            [e for e in entries if len(word) >= _LEAST_OF_KEY and e.key.startswith(word)],
        ):
            if len(matches) == 1:
                return matches[0]
            if matches:
                keys = ", ".join(e.key for e in matches)
                raise StoreError(f"{word}: several traces match ({keys}). Name one by its key.")
        short = f" The beginning of a key is at least {_LEAST_OF_KEY} characters." if len(word) < _LEAST_OF_KEY else ""
        raise StoreError(f"{word}: there is no such trace in {self.folder.title}.{short} See them with: sockscope list")

    def remove(self, key: str) -> None:
        """Forget a trace and delete its file; notes on it stay, for the day the same file is collected again.

        Raises StoreLocked while it is being collected, StoreError when the file cannot be deleted.
        """
        with self.folder.collecting(key, f"Trace {key} is being collected. Stop that first."):
            self.folder.remove_trace(key)
            with self.engine.begin() as connection:
                connection.execute(delete(trace_entry).where(trace_entry.c.key == key))


def now_utc() -> str:
    """This moment, ISO 8601 in UTC with seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _of_folder(folder: TraceFolder) -> Engine:
    """The catalog of a folder, created or brought up to date where that is due."""
    engine = dialects.writing_engine(folder.catalog_path)
    _create(engine)
    if stored_version(engine, folder.catalog_path) != CATALOG_VERSION:
        upgrade_catalog(engine, folder.catalog_path)
    check_version(engine, folder.catalog_path, CATALOG_VERSION)
    return engine


def _create(engine: Engine) -> None:
    with engine.begin() as connection:
        names = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        if names:
            return
        for table in CATALOG.sorted_tables:
            connection.execute(CreateTable(table))
        for table in CATALOG.sorted_tables:
            for index in table.indexes:
                index.create(connection)
        create_catalog_views(connection)
        stamp(connection, CATALOG_VERSION)


def _copy_problems(connection: Connection, key: str, problems: Sequence[ProblemCopy]) -> None:
    connection.execute(delete(catalog_problem).where(catalog_problem.c.key == key))
    columns = [c.name for c in catalog_problem.columns if c.name not in ("key", "n")]
    rows = [{"key": key, "n": n} | {name: getattr(p, name) for name in columns} for n, p in enumerate(problems, start=1)]
    if rows:
        connection.execute(insert(catalog_problem), rows)
    losses = sum(p.severity in ("data_loss", "damage") for p in problems)
    counted = {"problems": len(problems), "losses": losses}
    connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(counted))


def _give_up(connection: Connection, key: str, message: str, *, has_trace: bool) -> None:
    values: dict[str, object] = {"collector_pid": None, "bytes_done": None, "bytes_total": None}
    values |= (
        {"state": "complete", "message": None} if has_trace else {"state": "interrupted", "message": message, "finished_utc": now_utc()}
    )
    connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(values))

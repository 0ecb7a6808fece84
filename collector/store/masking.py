"""A copy of a trace in which nothing names its machine or its people: every text column by what it holds.

A new column with text belongs into one of the tables below; a test goes through all columns and finds those that were forgotten.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    or_,
    select,
    update,
)

from collector.errors import CollectCancelled
from collector.masks import Masks, is_public_name
from collector.store import dialects
from collector.store.tables import CATALOG, TRACE

__all__ = ["APART", "KEPT", "MASKED_KEY", "MASKED_KIND", "mask_file", "masked_columns"]

MASKED_KEY = "-masked"
"""What the key of the trace gets, so that both can be in one database."""

MASKED_KIND = "masked"

# Texts of our own, and those that are the same on every machine.
KEPT = {
    "trace": ("state", "start_utc", "clock", "os_build", "collected_utc", "collector_version", "key"),
    "event_count": ("provider", "header_kind"),
    "problem": ("kind", "severity", "effect", "advice"),
    "finding": ("kind", "severity", "certainty", "code"),
    "process": ("pid_source",), "owner": ("pid_source",), "socket": ("end",), "stack_use": ("what",), "heap_class": ("what",),
    "skipped": ("kind", "reason"),
    "abort": ("reason_name", "reason_certainty", "initiator", "during"),
    "overlap": ("pair", "range", "certainty", "scope", "severity"),
    "drop": ("reason_name", "reason_certainty"), "listen_event": ("what",), "option": ("name",), "raw_event": ("provider", "place", "why"),
    "socket_rollup": ("scope",), "heap_gauge": ("what",), "heap_counter": ("name",), "heap_anomaly": ("kind",),
    "transport_flow": ("match",), "address_name": ("source",), "catalog_change": ("what", "provider"),
    "heap_rollup": ("scope",), "io_finding": ("kind", "reason", "certainty"), "note": ("key", "object", "created_utc"),
}  # fmt: skip

APART = (("stack_frame", "symbol"), ("raw_event", "payload"), ("module", "pdb_guid"))
"""Columns that are masked in a way of their own."""

_HEADER_NAMES = {"session_name": "session", "file_name": "session", "machine": "machine"}
_PIECE = 5_000

Mask = Callable[[str], str] | Callable[[bytes], bytes]

_scratch = MetaData()
_old = Table("mask_text", _scratch, Column("old", Text, primary_key=True), Column("new", Text), sqlite_with_rowid=False)
_old_bytes = Table(
    "mask_bytes", _scratch, Column("old", LargeBinary, primary_key=True), Column("new", LargeBinary), sqlite_with_rowid=False
)


def mask_file(path: Path, secret: bytes, should_cancel: Callable[[], bool]) -> None:
    """Mask a trace's file in place; what was there before is in none of its bytes afterwards. Raises CollectCancelled, StoreError."""
    masks = Masks(secret)
    engine = dialects.bulk_engine(path, should_cancel=should_cancel)
    try:
        with engine.begin() as connection:
            _scratch.create_all(connection)
            has_notes = inspect(connection).has_table("note")
            _learn(connection, masks)
            known = _known_names(connection)
            frame = TRACE.tables["stack_frame"].c
            modules = connection.scalars(select(frame.module).where(frame.module.is_not(None)).distinct())
            private = or_(frame.module.is_(None), frame.module.not_in([name for name in modules if is_public_name(name)]))
            _mask_column(connection, TRACE.tables["stack_frame"], "symbol", masks.symbol, private)
            for table, column, mask in masked_columns(masks, known, has_notes=has_notes):
                if should_cancel():
                    raise CollectCancelled("Cancelled. Nothing was exported.")
                _mask_column(connection, table, column, mask)
            _forget(connection, has_notes=has_notes)
            _say_so(connection)
            _scratch.drop_all(connection)
        with engine.connect() as connection:
            dialects.shrink(connection)
    finally:
        engine.dispose()


def masked_columns(
    masks: Masks, known: frozenset[str], *, has_notes: bool
) -> Iterator[tuple[Table, str, Callable[[str], str] | Callable[[bytes], bytes]]]:
    """Every column to mask, the names before the texts that speak of them."""
    t = TRACE.tables
    yield t["address"], "text", masks.address
    yield t["address"], "ip", masks.ip
    yield t["remote_sum"], "text", masks.address
    yield t["transport_flow"], "local_ip", masks.ip
    yield t["transport_flow"], "remote_ip", masks.ip
    yield t["transport_flow"], "local", masks.address
    yield t["transport_flow"], "remote", masks.address
    yield t["address_name"], "ip", masks.ip
    yield t["address_name"], "address", masks.address
    yield t["address_name"], "name", lambda text: masks.name(text, "host")
    yield t["catalog_change"], "name", lambda text: masks.name(text, "provider")
    yield t["catalog_change"], "installer", masks.file
    yield t["process"], "image", masks.file
    yield t["process"], "command_line", lambda text: masks.name(text, "command")
    yield t["thread"], "name", lambda text: masks.name(text, "thread")
    yield t["module"], "file", masks.file
    yield t["module"], "pdb_name", masks.file
    yield t["stack_frame"], "module", masks.file
    yield t["stack"], "hash", masks.stack_hash
    yield t["trace"], "name", masks.file
    yield t["trace"], "header", lambda text: _header(text, masks)
    yield t["event_count"], "provider_name", lambda text: _of_program(text, "provider", masks, known)
    yield t["event_count"], "event_name", lambda text: _of_program(text, "event", masks, known)
    for table, column in (("finding", "title"), ("finding", "text"), ("problem", "text"), ("problem", "place")):
        yield t[table], column, masks.text
    yield t["finding"], "link", masks.link
    yield t["socket_event"], "fields", masks.json
    yield t["heap_gauge"], "fields", masks.json
    if has_notes:
        note = CATALOG.tables["note"]
        yield note, "text", masks.text
        yield note, "object", masks.link
        yield note, "author", lambda text: masks.name(text, "author")


def _learn(connection: Connection, masks: Masks) -> None:
    """All names of the trace, since any of its texts may speak of them."""
    t = TRACE.tables

    def distinct(table: str, column: str) -> list[str]:
        wanted = t[table].c[column]
        return [str(value) for value in connection.scalars(select(wanted).where(wanted.is_not(None)).distinct())]

    for table, column in (("process", "image"), ("module", "file"), ("module", "pdb_name"), ("stack_frame", "module"), ("trace", "name")):
        for value in distinct(table, column):
            masks.learn(value, masks.file(value))
            cut = re.split(r"[\\/]", value)[-1]
            masks.learn(cut, masks.file(cut))
    for value in distinct("process", "command_line"):
        masks.learn(value, masks.name(value, "command"))
    for value in distinct("thread", "name"):
        masks.learn(value, masks.name(value, "thread"))
    for value in distinct("stack", "hash"):
        masks.learn(value, masks.stack_hash(value))
    address = t["address"].c
    for value in connection.scalars(select(address.text).where(address.ip.is_(None))):  # IP addresses are found by their form
        masks.learn(value, masks.address(value))
    frames = t["stack_frame"].c
    named = select(frames.module, frames.symbol).where(frames.symbol.is_not(None)).distinct()
    for module, symbol in connection.execute(named):
        if not (module and is_public_name(module)):
            masks.learn(symbol, masks.symbol(symbol))
            masks.learn(symbol.partition("+0x")[0], masks.symbol(symbol.partition("+0x")[0]))
    known = _known_names(connection)
    for kind in ("provider", "event"):
        for value in distinct("event_count", f"{kind}_name"):
            masks.learn(value, _of_program(value, kind, masks, known))
    for value in distinct("trace", "header"):
        with contextlib.suppress(ValueError):
            header = json.loads(value)
            for key, kind in _HEADER_NAMES.items():
                if isinstance(header, dict) and header.get(key):
                    masks.learn(header[key], masks.name(header[key], kind))


def _header(text: str, masks: Masks) -> str:
    """The header of the log file: the names in it, and what is learnt in the rest."""
    try:
        value = json.loads(text)
    except ValueError:
        return masks.text(text)
    names = {key: masks.name(value[key], kind) for key, kind in _HEADER_NAMES.items() if isinstance(value, dict) and value.get(key)}
    return masks.json(json.dumps(value | names)) if names else masks.json(text)


def _of_program(text: str, kind: str, masks: Masks, known: frozenset[str]) -> str:
    """Providers and events that only the trace names are those of programs; what this program or Microsoft names is the same anywhere."""
    return text if text in known or text.startswith("Microsoft-") else masks.name(text, kind)


def _known_names(connection: Connection) -> frozenset[str]:
    c = TRACE.tables["event_count"].c
    rows = connection.execute(select(c.provider_name, c.event_name).where(c.known.is_(True)).distinct())
    return frozenset(str(name) for row in rows for name in row if name)


def _mask_column(
    connection: Connection,
    table: Table,
    column: str,
    mask: Mask,
    *conditions: ColumnElement[bool],
) -> None:
    """Replace the values of a column: one stand-in for each distinct value, then all rows in one statement."""
    wanted = table.c[column]
    scratch = _old_bytes if isinstance(wanted.type, LargeBinary) else _old
    rows = []
    for value in connection.scalars(select(wanted).where(wanted.is_not(None), *conditions).distinct()):
        masked = mask(value)
        if masked != value:
            rows.append({"old": value, "new": masked})
    for start in range(0, len(rows), _PIECE):
        connection.execute(insert(scratch), rows[start : start + _PIECE])
    if rows:
        stand_in = select(scratch.c.new).where(scratch.c.old == wanted).scalar_subquery()
        connection.execute(update(table).where(wanted.in_(select(scratch.c.old)), *conditions).values({column: stand_in}))
        connection.execute(delete(scratch))


def _forget(connection: Connection, *, has_notes: bool) -> None:
    """What has no stand-in: identities of private files, bytes of records that were not decoded. And the key of the trace."""
    t = TRACE.tables
    module = t["module"]
    public = [name for name in connection.scalars(select(module.c.file).distinct()) if is_public_name(name)]
    gone = {"pdb_guid": None, "pdb_age": None, "timestamp": None}
    connection.execute(update(module).where(module.c.file.not_in(public)).values(gone))
    connection.execute(update(t["raw_event"]).values(payload=None))
    key: str = connection.execute(select(t["trace"].c.key)).scalar_one()
    connection.execute(update(t["trace"]).values(key=key + MASKED_KEY))
    if has_notes:
        connection.execute(update(CATALOG.tables["note"]).values(key=key + MASKED_KEY))


def _say_so(connection: Connection) -> None:
    """A line on the trace's page of trust."""
    problem = TRACE.tables["problem"]
    n = connection.execute(select(func.coalesce(func.max(problem.c.n), 0))).scalar_one() + 1
    line = {
        "kind": MASKED_KIND,
        "severity": "note",
        "count": 1,
        "text": "This trace was exported with stand-ins for addresses, names and command lines.",
        "effect": "Equal stand-ins mean equal originals within this export. Bytes of records that were not decoded are left out.",
        "advice": "Whoever has the recorded file can collect it and find the same times, processes and sockets under their own names.",
    }
    connection.execute(insert(problem).values(trace_id=1, n=n, **line))

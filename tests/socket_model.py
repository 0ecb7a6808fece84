"""Runs the socket model alone over built events: no file, no database, windows cut wherever a test likes."""

from collections.abc import Iterable, Sequence
from typing import Any

from collector.decoder import Decoder
from collector.errors import Problem
from collector.etlwriter.events import schema_of
from collector.losses import Losses
from collector.model.endpoints import KEPT
from collector.model.plain_window import PLAIN_FROM
from collector.model.processes import Processes
from collector.model.rows import Block, Rows, unfolded
from collector.model.sockets import Sockets
from collector.model.stacks import Stacks
from collector.raw import HeaderKind, TraceHeader
from collector.store.tables import ROW_COLUMNS
from collector.words import MATCHES, OPERATION_KINDS, OUTCOMES, SPACES
from tests.build.events import Event
from tests.raw_events import CLOCK, Record, raw_events

__all__ = ["Model", "model", "record_of"]

_WORDS = {"kind": OPERATION_KINDS, "outcome": OUTCOMES, "match": MATCHES, "space": SPACES}


class Model:
    """The rows of a run by table, each as a dict by column; numbers that stand for words are words, addresses are texts."""

    def __init__(self, rows: Rows, problems: Sequence[Problem]) -> None:
        self.problems = {problem.kind.name: problem.count for problem in problems}
        self.tables = {
            table: sorted((dict(zip(ROW_COLUMNS[table], row, strict=True)) for row in unfolded(found)), key=lambda r: list(r.values())[:2])
            for table, found in rows.items()
        }
        self.in_blocks = {table: sum(len(line) for line in found if isinstance(line, Block)) for table, found in rows.items()}
        """How many rows came as blocks of columns."""
        texts = {row["n"]: row["text"] for row in self.tables.get("address", ())}
        for row in self.table("operation"):
            for column, words in _WORDS.items():
                row[column] = None if row[column] is None else words[row[column]]
        for table, columns in (
            ("operation", ("peer_n",)),
            ("socket", ("local_n", "remote_n")),
            ("peer", ("address_n",)),
            ("drop", ("source_n",)),
            ("listen_event", ("peer_n",)),
            ("bind_failure", ("requested_n",)),
            ("socket_event", ("address_n",)),
        ):
            for row in self.table(table):
                for column in columns:
                    row[column.removesuffix("_n")] = texts.get(row[column])

    # A cell may be a number, a text, a flag or nothing, so values are compared rather than typed.
    def table(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table, by number."""
        return self.tables.get(name, [])

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of a table."""
        return [tuple(row[column] for column in columns) for row in self.table(table)]

    def one(self, table: str, *columns: str) -> tuple[Any, ...]:
        """Some columns of the only row of a table."""
        (row,) = self.rows(table, *columns)
        return row


def model(
    *events: Event | Iterable[Event],
    on_cpu: Sequence[int] | None = None,
    cuts: Iterable[int] = (),
    losses: Losses | None = None,
    pointer_size: int = 8,
    kept: int = KEPT,
    plain_from: int | None = PLAIN_FROM,
) -> Model:
    """Run the model over events in time order; equal times keep the order given.

    Args:
        on_cpu: processor of each event, all on processor 0 when left out; of equal times the lower processor comes first.
        kept: sockets that are over and stay out of the archive.
        plain_from: records of a window from which on plain ones go through arrays, None for never.
        cuts: numbers of records before which a new window begins.
    """
    listed = [event for item in events for event in ([item] if isinstance(item, Event) else item)]
    cpus = on_cpu or [0] * len(listed)
    records = [record_of(event, cpu, pointer_size) for event, cpu in zip(listed, cpus, strict=True)]
    records.sort(key=lambda record: (record.ticks or 0, record.cpu))
    header = TraceHeader(CLOCK, pointer_size, 4, "10.0", 19045, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", "", False, False, False, True)
    decoder, processes = Decoder(header=header), Processes(CLOCK)
    stacks = Stacks(processes, CLOCK)
    sockets = Sockets(processes, stacks, CLOCK, losses or Losses(), header, kept=kept, plain_from=plain_from)
    providers: list[Any] = []
    everything: Rows = {}
    begins = sorted({0, *(cut for cut in cuts if 0 < cut < len(records))})
    for begin, end in zip(begins, [*begins[1:], len(records)], strict=True):
        batch = decoder.decode(raw_events(records[begin:end], first_seq=begin, providers=providers), CLOCK)
        _add(everything, processes.advance(batch))
        stacks.advance(batch)
        _add(everything, sockets.advance(batch))
    _add(everything, processes.finish())
    _add(everything, sockets.finish())
    return Model(everything, sockets.problems)


def record_of(event: Event, cpu: int = 0, pointer_size: int = 8) -> Record:
    """An event as a record of a window."""
    schema = schema_of(event.name, event.header.get("version"))
    built = event.records(pointer_size, CLOCK)[0]
    return Record(
        provider=schema.provider,
        payload=built.payload,
        event_id=None if schema.is_classic else schema.number,
        opcode=schema.number if schema.is_classic else 0,
        version=built.version,
        pointer_size=event.pointer_size or pointer_size,
        ticks=built.ticks,
        pid=built.pid,
        tid=built.tid,
        kind=HeaderKind.SYSTEM64 if schema.is_classic else None,
        keyword=built.keyword,
        activity=int.from_bytes(built.activity.bytes_le[:8], "little"),
        cpu=cpu,
    )


def _add(everything: Rows, rows: Rows) -> None:
    for table, found in rows.items():
        everything.setdefault(table, []).extend(found)

"""The name of the machine that was traced."""

from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select

from collector.model.machine import Machine
from collector.pipeline import import_trace
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.tables import trace_entry
from tests.raw_events import Record, raw_events

CONFIG = UUID("01853a65-418f-4f36-aefc-dc0f1d2fd235")
OTHER = UUID(int=7)


def described(name: str, *, opcode: int = 10, provider: UUID = CONFIG, cut: int | None = None) -> Record:
    payload = bytes(range(20)) + name.encode("utf-16-le", "surrogatepass").ljust(512, b"\0") + b"d\0" * 148
    return Record(provider, payload[:cut], opcode=opcode, version=3)


@pytest.mark.parametrize(
    ("records", "name"),
    [
        ([described("BUILD-7")], "BUILD-7"),
        ([described(""), described("B"), described("C")], "B"),
        ([described("x", opcode=11), described("y", provider=OTHER)], None),
        ([described("ABC", cut=19), described("ABC", cut=20)], None),
        ([described("ABC", cut=24)], "AB"),
        ([described("A" * 256)], "A" * 256),
        ([described("\ud800x")], "\ufffdx"),
        ([], None),
    ],
)
def test_the_first_name_of_a_window_counts(records: list[Record], name: str | None) -> None:
    machine = Machine()
    machine.advance(raw_events([Record(OTHER, b"", opcode=10)]))
    machine.advance(raw_events(records, providers=[OTHER]))

    assert machine.name == name


def test_a_later_window_changes_nothing() -> None:
    machine = Machine()
    for name in ("first", "second"):
        machine.advance(raw_events([described(name)]))

    assert machine.name == "first"


@pytest.mark.shared
def test_a_public_trace_says_its_machine(shared_dir: Path, tmp_path: Path) -> None:
    file = next(shared_dir.rglob("net.4.5.2.x64.etl"))
    folder = TraceFolder(tmp_path)
    with closing(Source.open(file)) as source:
        key = import_trace(source, folder).key

    with Catalog(folder).engine.connect() as connection:
        machine = connection.execute(select(trace_entry.c.machine).where(trace_entry.c.key == key)).scalar_one()
    assert machine
    assert len(machine) == 11

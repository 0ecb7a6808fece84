"""Connections that read a server: only read, end what takes too long, and mean one trace, whose rows stay while they are read."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, Integer, func, select, text, type_coerce

from collector.errors import StoreError, StoreReadOnly, StoreSlow, StoreUnreachable
from collector.store import postgresql
from collector.store.loading import attach_partitions, load_rows
from collector.store.server_reading import TRACE_LOCKS, engine_of_trace, reading_engine
from collector.store.server_tables import create_schema, trace_load
from collector.store.tables import THIS_TRACE, TRACE
from tests.build.imported import Imported

_socket, _operation, _event_count = (TRACE.tables[name] for name in ("socket", "operation", "event_count"))
OLD, NEW = 3, 4


@pytest.fixture
def writer(server_url: str, sample: Imported) -> Engine:
    """Connections that write to a database with one trace, `KEY`, and its rows twice: as OLD, which is current, and as NEW."""
    engine = postgresql.writing_engine(postgresql.server_url(server_url))
    with engine.begin() as connection:
        create_schema(connection)
        for number in (OLD, NEW):
            attach_partitions(connection, load_rows(connection, sample.path, number, lambda: False), number)
        connection.execute(trace_load.insert().values(number=OLD, key="KEY", is_current=True, size_bytes=0))
    return engine


@pytest.fixture
def reader(server_url: str, writer: Engine) -> Iterator[Engine]:
    """Connections that read it."""
    engine = reading_engine(postgresql.server_url(server_url), limit_seconds=0.2)
    yield engine
    engine.dispose()


def test_a_statement_means_the_trace_of_its_connection(reader: Engine, sample: Imported) -> None:
    numbers = select(_socket.c.trace_id, func.count()).where(_socket.c.trace_id == THIS_TRACE).group_by(_socket.c.trace_id)
    with engine_of_trace(reader, "KEY").connect() as db:
        assert db.execute(numbers).all() == [(OLD, sample.one("SELECT count(*) FROM socket"))]


def test_the_rows_that_are_read_stay_when_the_trace_is_replaced(reader: Engine, writer: Engine) -> None:
    which = select(_socket.c.trace_id).distinct().where(_socket.c.trace_id == THIS_TRACE)
    take = text(f"SELECT pg_try_advisory_xact_lock({TRACE_LOCKS}, {OLD})")
    with engine_of_trace(reader, "KEY").connect() as db:
        assert db.execute(which).scalar_one() == OLD
        with writer.begin() as connection:
            connection.execute(trace_load.update().values(number=NEW))
            assert not connection.execute(take).scalar_one()
        assert db.execute(which).scalar_one() == OLD
    with writer.begin() as connection:
        assert connection.execute(take).scalar_one()
    with engine_of_trace(reader, "KEY").connect() as db:
        assert db.execute(which).scalar_one() == NEW


def test_a_trace_that_is_not_there_is_said_by_its_key(reader: Engine) -> None:
    with engine_of_trace(reader, "OTHER").connect() as db, pytest.raises(StoreError, match="Trace OTHER is not in this database"):
        db.execute(select(_socket.c.n).where(_socket.c.trace_id == THIS_TRACE))


def test_sums_are_integers_and_means_are_not(reader: Engine, sample: Imported) -> None:
    sums = select(func.sum(_operation.c.bytes), func.avg(_operation.c.bytes)).where(_operation.c.trace_id == THIS_TRACE)
    with engine_of_trace(reader, "KEY").connect() as db:
        total, mean = db.execute(sums).one()
    assert (total, type(total)) == (sample.one("SELECT sum(bytes) FROM operation"), int)
    assert mean == pytest.approx(sample.one("SELECT avg(bytes) FROM operation"))


def test_flags_can_be_asked_for_as_numbers(reader: Engine, sample: Imported) -> None:
    is_known = type_coerce(_event_count.c.known, Integer)
    wanted = select(func.count()).where(_event_count.c.trace_id == THIS_TRACE, is_known >= 1)
    with engine_of_trace(reader, "KEY").connect() as db:
        assert db.execute(wanted).scalar_one() == sample.one("SELECT count(*) FROM event_count WHERE known >= 1")
        assert set(db.execute(select(is_known).where(_event_count.c.trace_id == THIS_TRACE)).scalars()) <= {0, 1}


def test_a_nul_in_a_text_that_is_asked_for_is_what_is_stored_in_its_place(reader: Engine) -> None:
    with reader.connect() as db:
        assert db.execute(select(func.concat("a\0b", ""))).scalar_one() == "a\ufffdb"
        assert db.execute(select(trace_load.c.key).where(trace_load.c.key == "KEY\0")).all() == []


def test_nothing_can_be_written(reader: Engine) -> None:
    with reader.connect() as db, pytest.raises(StoreReadOnly):
        db.execute(trace_load.delete())


def test_a_statement_that_takes_too_long_is_ended(reader: Engine) -> None:
    with reader.connect() as db, pytest.raises(StoreSlow, match="Narrow the time range"):
        db.execute(text("SELECT pg_sleep(60)"))


def test_a_server_that_is_not_there_is_said(tmp_path: str) -> None:
    pytest.importorskip("psycopg")
    engine = reading_engine(postgresql.server_url(f"postgresql://user@/db?host={tmp_path}"), limit_seconds=1)
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        engine.connect()

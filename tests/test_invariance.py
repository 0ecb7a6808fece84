"""What changes nothing: the size of the windows, the order of the buffers in the file, their packing; and what damage may at most do."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.clock import Clock
from collector.errors import TraceError
from collector.etlwriter import Compression, EtlWriter, Session
from collector.readers import ReaderKind
from collector.readers.etl import EtlReader, is_etl
from collector.sample import write_sample
from collector.sample.machine import Logged
from collector.sample.story import sample_machine
from tests.build import Trace, afd, heap, system
from tests.build.imported import Imported, collect

NOT_OF_THE_RECORDS = ("v_trace", "v_problems")
"""Views that say when and from what file a trace was collected."""


def contents(db: Imported) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every view that the records alone decide."""
    found = {}
    for (view,) in db.rows("select name from sqlite_master where type = 'view'"):
        if view not in NOT_OF_THE_RECORDS:
            names = [name for _, name, *_ in db.rows(f"pragma table_info({view})")]
            columns = ", ".join(f'"{name}"' for name in names)
            found[view] = sorted(db.rows(f"select {columns} from {view}"), key=repr)
    return found


def assert_same(one: Imported, other: Imported) -> None:
    first, second = contents(one), contents(other)
    assert first.keys() == second.keys()
    assert len(first["v_operations"]) > 1000
    assert [view for view in first if first[view] != second[view]] == []


@pytest.fixture(scope="module")
def single_buffers(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """The sample, read in windows of one buffer."""
    folder = tmp_path_factory.mktemp("windows")
    write_sample(folder / "sample.etl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collector.readers.READERS", (ReaderKind(is_etl, partial(EtlReader, window_buffers=1)),))
        return collect(folder / "sample.etl", folder)


def test_the_size_of_the_windows(sample: Imported, single_buffers: Imported) -> None:
    assert_same(single_buffers, sample)


@cache
def sample_records() -> tuple[Clock, tuple[Logged, ...]]:
    """The clock and the records of the sample."""
    machine = sample_machine()
    return machine.clock, tuple(sorted(machine.logged))


def rewritten(path: Path, session: Session, *, flush_every: int = 0) -> Path:
    """The records of the sample in a file of another make, without the layouts that a merge puts in."""
    with path.open("w+b") as out:
        writer = EtlWriter(out, session, flush_every=flush_every)
        for entry in sample_records()[1]:
            writer.add(entry.record, entry.cpu)
        writer.close()
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """The records of the sample in a plain file."""
    folder = tmp_path_factory.mktemp("plain")
    return collect(rewritten(folder / "plain.etl", sample_session()), folder)


def sample_session() -> Session:
    clock, _ = sample_records()
    return Session(clock=clock, buffer_size=16 * 1024, end_ticks=clock.start_ticks + 600_000_000)


def as_compressed(path: Path) -> Path:
    return rewritten(path, replace(sample_session(), compression=Compression.XPRESS))


def as_windows7(path: Path) -> Path:
    return rewritten(path, replace(sample_session(), buffer_size=32 * 1024, is_windows7=True))


def as_flushed_often(path: Path) -> Path:
    return rewritten(path, sample_session(), flush_every=2_000_000)


def with_buffers_reversed(path: Path) -> Path:
    data = rewritten(path, sample_session()).read_bytes()
    size = 16 * 1024
    path.write_bytes(data[:size] + b"".join(reversed([data[i : i + size] for i in range(size, len(data), size)])))
    return path


@pytest.mark.parametrize("make", [as_compressed, as_windows7, as_flushed_often, with_buffers_reversed], ids=lambda make: make.__name__)
def test_the_make_of_the_file(plain: Imported, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    assert_same(collect(make(tmp_path / "other.etl"), tmp_path), plain)


# ---------------------------------------------------------------------------------------------------- damage


def small_trace() -> Trace:
    """A bit of everything: processes, images, stacks, sockets, heap."""
    who = {"endpoint": 0xFFFF_9A0C_2A00_2010}
    return (
        Trace(buffer_size=2048)
        .cpu(
            0, system.process_rundown(), system.thread(user_stack_limit=0x1000, user_stack_base=0x9000), system.image(base=0x7FF6_0000_0000)
        )
        .cpu(0, afd.opened(at_us=10), afd.connected(at_us=20), afd.sent(at_us=40), afd.received(at_us=50, stack=(0x7FF6_0000_1000,)))
        .cpu(0, heap.create(at_us=60), heap.alloc(at_us=61, stack=(0x7FF6_0000_2000,)), heap.free(at_us=70), afd.closed(at_us=80))
        .cpu(1, afd.opened(at_us=100, socket_type=2, **who), afd.drop(at_us=120, **who), afd.closed(at_us=130, **who))  # type: ignore[arg-type]
        .cpu(1, heap.alloc(at_us=140, address=0x1A_2000), heap.realloc(at_us=141, old=0x1A_2000, new=0x1A_3000, new_size=9, old_size=64))
    )


def assert_ends_well(trace: Trace, folder: Path) -> None:
    """A trace is stored and every view answers, or the error is one that we tell."""
    try:
        db = collect(trace, folder)
    except TraceError:
        return
    assert db.one("select count(*) from v_trace") == 1
    for (view,) in db.rows("select name from sqlite_master where type = 'view'"):
        db.rows(f"select * from {view}")


SIZE = len(small_trace().bytes())
PIPELINE = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PIPELINE
@given(flips=st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 255)), min_size=1, max_size=30))
def test_flipped_bytes_end_in_a_trace_or_in_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]
) -> None:
    trace = small_trace()
    for offset, mask in flips:
        trace.flip(offset, mask)
    folder = tmp_path_factory.mktemp("flipped")

    assert_ends_well(trace, folder)


@PIPELINE
@given(
    wrong=st.lists(
        st.tuples(st.sampled_from((0, 1, 4, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 63, (1 << 64) - 1)), st.integers(9, SIZE // 8 - 1)), max_size=8
    )
)
def test_numbers_at_their_limits(tmp_path_factory: pytest.TempPathFactory, wrong: list[tuple[int, int]]) -> None:
    """Whole words of the file replaced: times, addresses and lengths that no machine has."""
    trace = small_trace()
    for number, word in wrong:
        trace.overwrite(8 * word, number.to_bytes(8, "little"))
    folder = tmp_path_factory.mktemp("wrong")

    assert_ends_well(trace, folder)

"""A session that is read in real time, played: what is delivered becomes the trace that a file of the same session would be."""

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from collector.errors import RecordError
from collector.readers.etl import EtlReader
from collector.record.backlog import Backlog, Copied
from collector.record.buffers import WINSOCK_BUFFERS
from collector.record.constants import Code
from collector.record.consumer import Consumer
from collector.record.live_file import FLUSH_SECONDS, HELD_SECONDS, LiveFile, disk_form
from collector.record.plan import SessionPlan
from collector.record.sessions import start_winsock
from collector.record.structures import TRACE_LOGFILE_HEADER
from collector.source import Source
from tests.build import Trace, afd, system
from tests.build.imported import Imported, collect
from tests.record.delivered import delivered, header_of, played_form
from tests.record.played import Played
from tests.test_invariance import contents

SESSION = SessionPlan("sockscope-x-winsock", None, WINSOCK_BUFFERS, is_real_time=True)
COUNTS = "SELECT provider, event_id, opcode, version, sum(count), min(first_ns), max(last_ns) FROM v_event_counts GROUP BY 1, 2, 3, 4"


def a_file(place: Path) -> Path:
    events = [afd.sent(at_us=200 + 20 * n, length_bytes=100 + n, buffer=0x1000 + n, duration_us=15) for n in range(60)]
    trace = Trace().cpu(0, system.process_start(at_us=1), afd.opened(at_us=10), *events[::2]).cpu(1, *events[1::2])
    return trace.write(place / "file.etl")


def assert_same(one: Path, other: Path, place: Path, *, is_one_session: bool = True) -> None:
    """Two files make traces that say the same but for which kinds of header their records had.

    Records of several sessions with the same time stamp have no order, so which place each got among all is not compared then.
    """
    found: list[Imported] = []
    for n, path in enumerate((one, other)):
        (place / str(n)).mkdir()
        found.append(collect(path, place / str(n)))
    assert found[0].rows(COUNTS) == found[1].rows(COUNTS)
    first, second = (contents(db) if is_one_session else unplaced(db) for db in found)
    del first["v_event_counts"], second["v_event_counts"]
    assert [view for view in second if first[view] != second[view]] == []


def unplaced(db: Imported) -> dict[str, list[tuple[object, ...]]]:
    """The contents without the column that numbers records."""
    rows = contents(db)
    for view in rows:
        names = [name for _, name, *_ in db.rows(f"pragma table_info({view})")]
        if "seq" in names:
            at = names.index("seq")
            rows[view] = sorted(((*row[:at], *row[at + 1 :]) for row in rows[view]), key=repr)
    return rows


class Clock:
    """Seconds that pass when they are told to."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def written(path: Path, header: TRACE_LOGFILE_HEADER, batches: list[list[Copied]], *, each: float = 0.5) -> LiveFile:
    """The file that batches make, with some seconds before each."""
    clock = Clock()
    live = LiveFile(path, "live", header, now=clock)
    for batch in batches:
        clock.seconds += each
        live.take(batch)
    live.close()
    return live


@pytest.mark.shared
@pytest.mark.parametrize("name", ["story-mixed.etl", "story-32.etl"])
def test_a_story_in_real_time_is_that_of_its_file(played: Played, shared_dir: Path, tmp_path: Path, name: str) -> None:
    story = shared_dir / "traces" / name
    (tmp_path / "records").write_bytes(played_form(delivered(story)))
    played.records(tmp_path / "records", bytes(header_of(story)))
    backlog = Backlog()
    consumer = Consumer(played.windows, "sockscope-x-winsock", backlog.lane())
    played.answer("OpenTraceW", Code.ERROR_SUCCESS)
    header = consumer.open()
    consumer.run()
    consumer.close()
    assert (backlog.dropped, consumer.failed) == (0, 0)

    live = written(tmp_path / "live.etl", header, [backlog.take(10**9)])

    assert live.unwritable == 0
    assert_same(live.path, story, tmp_path)


def test_a_session_that_does_not_run(played: Played) -> None:
    consumer = Consumer(played.windows, "sockscope-x-winsock", Backlog().lane())
    with pytest.raises(RecordError, match=r"The session sockscope-x-winsock cannot be read.*4201"):
        consumer.open()
    with pytest.raises(RecordError, match="was not opened"):
        consumer.run()
    consumer.close()
    assert played.named("CloseTrace") == []


@pytest.mark.parametrize("handle", [0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF], ids=["64 bits", "32 bits"])
def test_a_handle_of_all_ones_says_that_it_cannot_be_read(played: Played, handle: int) -> None:
    """Of the width that a handle had before: 32-bit programs get the second."""
    start_winsock(played.windows, SESSION, level=5, keywords=0)
    played.answer("OpenTraceW", Code.ERROR_ACCESS_DENIED)
    played.give_reading_handle(handle)
    consumer = Consumer(played.windows, SESSION.name, Backlog().lane())
    with pytest.raises(RecordError, match=r"cannot be read.*ERROR_ACCESS_DENIED \(5\)"):
        consumer.open()
    consumer.close()
    assert played.named("CloseTrace") == []


@pytest.mark.parametrize("handle", [0, 0x7FFF_FFFF, 0xFFFF_FFFE])
def test_every_other_handle_is_one(played: Played, tmp_path: Path, handle: int) -> None:
    """Also 0, which for a session is none."""
    file = a_file(tmp_path)
    (tmp_path / "records").write_bytes(played_form(delivered(file)))
    played.give_reading_handle(handle)
    backlog, consumer = opened(played, tmp_path, file)
    consumer.run()
    consumer.close()
    assert len(backlog.take()) == sum(1 for _ in delivered(file))
    assert [call.arguments["handle"] for call in played.calls if call.name in ("ProcessTrace", "CloseTrace")] == [handle, handle]


def test_a_record_survives_the_memory_that_it_was_in(played: Played, tmp_path: Path) -> None:
    file = a_file(tmp_path)
    (tmp_path / "records").write_bytes(played_form(delivered(file)))
    backlog, consumer = opened(played, tmp_path, file)
    consumer.run()
    assert backlog.take() == list(delivered(file))
    (opening,) = played.named("OpenTraceW")
    assert opening.text("logger") == "sockscope-x-winsock"
    assert opening.arguments["file"] is None
    assert opening.arguments["mode"] == 0x100 | 0x1000 | 0x10000000
    (processing,) = played.named("ProcessTrace")
    assert (processing.arguments["count"], processing.arguments["from"], processing.arguments["to"]) == (1, 0, 0)


def opened(played: Played, tmp_path: Path, file: Path, most_bytes: int = 1 << 30) -> tuple[Backlog, Consumer]:
    """A session that is being read, with the records that the test has written."""
    played.records(tmp_path / "records", bytes(header_of(file)))
    start_winsock(played.windows, SESSION, level=5, keywords=0)
    backlog = Backlog(most_bytes)
    consumer = Consumer(played.windows, "sockscope-x-winsock", backlog.lane())
    assert bytes(consumer.open()) == bytes(header_of(file))
    return backlog, consumer


@pytest.mark.parametrize("code", [Code.ERROR_SUCCESS, Code.ERROR_CTX_CLOSE_PENDING])
def test_the_end(played: Played, tmp_path: Path, code: Code) -> None:
    file = a_file(tmp_path)
    _, consumer = opened(played, tmp_path, file)
    played.answer("CloseTrace", code)
    consumer.close()
    consumer.close()
    assert [call.arguments["handle"] for call in played.named("CloseTrace")] == [0x9000]


def test_reading_that_ends_with_an_error(played: Played, tmp_path: Path) -> None:
    _, consumer = opened(played, tmp_path, a_file(tmp_path))
    played.answer("ProcessTrace", Code.ERROR_CANCELLED, 998)
    consumer.run()
    with pytest.raises(RecordError, match=r"ended too early.*998"):
        consumer.run()


def test_what_has_no_room_is_counted_and_told_in_the_file(played: Played, tmp_path: Path) -> None:
    file = a_file(tmp_path)
    (tmp_path / "records").write_bytes(played_form(delivered(file)))
    backlog, consumer = opened(played, tmp_path, file, most_bytes=20_000)
    consumer.run()
    backlog.end()
    records, kept = list(delivered(file)), backlog.take()
    assert backlog.dropped == len(records) + 2 - len(kept) > 0
    assert kept[:-2] == records[: len(kept) - 2]
    ends = [int.from_bytes(head[16:24], "little") for head, _, _ in kept[-2:]]
    assert ends == [int.from_bytes(head[16:24], "little") for head, _, _ in (records[len(kept) - 2], records[-1])]

    live = LiveFile(tmp_path / "live.etl", "live", header_of(file))
    live.lose(backlog.dropped, 3)
    live.take(kept)
    with Source.open(live.path) as source:
        growing = EtlReader(source)
        assert (growing.header.events_lost, growing.header.is_closed) == (backlog.dropped, False), "told while it grows"
    live.lose(backlog.dropped + 1, 4)
    live.close()
    with Source.open(live.path) as source:
        header = EtlReader(source).header
    clock = header.clock
    assert (header.events_lost, header.buffers_lost, header.is_closed) == (backlog.dropped + 1, 4, True)
    db = collect(live.path, tmp_path)
    assert db.rows("select kind, count, first_ns, last_ns from v_problems where kind like 'lost%' order by kind") == [
        ("lost_buffers", 4, None, None),
        ("lost_events", backlog.dropped + 1, *(clock.ns_of(ticks) for ticks in ends)),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_records_of_several_sessions_are_put_in_order(tmp_path: Path, seed: int) -> None:
    file, chance = a_file(tmp_path), random.Random(seed)
    records = list(delivered(file))
    streams: list[list[Copied]] = [[], []]
    for record in records:
        streams[struct.unpack_from("<H", record[0], 80)[0]].append(record)  # each processor's records by a session of its own
    batches: list[list[Copied]] = []
    while any(streams):  # none is ahead of the other by more than the records are held back
        batch: list[Copied] = []
        for stream in chance.sample(streams, 2):
            size = chance.randint(0, 15)
            batch += stream[:size]
            del stream[:size]
        batches.append(batch)

    live = written(tmp_path / "live.etl", header_of(file), batches, each=0.1)

    assert_same(live.path, file, tmp_path)


def test_what_is_later_than_that_is_still_in_its_place(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    records = list(delivered(file))
    late, others = records[20:24], records[:20] + records[24:]
    live = written(tmp_path / "live.etl", header_of(file), [others, [], [], [], [], [], late], each=1.0)
    assert_same(live.path, file, tmp_path)


def test_the_file_grows_as_records_come(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path), Clock()
    live = LiveFile(tmp_path / "live.etl", "live", header_of(file), now=clock)
    sizes = []
    for record in delivered(file):
        clock.seconds += 0.5
        live.take([record])
        sizes.append(live.path.stat().st_size)
    assert sizes[-1] > sizes[0] > 0
    assert all(later >= earlier for earlier, later in pairwise(sizes))
    with Source.open(live.path) as source:
        reader = EtlReader(source)
        assert not reader.header.is_closed
        shown = sum(len(window) for window in reader.windows())
    missing = len(list(delivered(file))) - shown
    assert 0 < missing <= 2 * (HELD_SECONDS + FLUSH_SECONDS) + 2
    live.close()


def test_a_session_without_events(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    live = written(tmp_path / "live.etl", header_of(file), [])
    with Source.open(live.path) as source:
        assert EtlReader(source).header.is_closed


def test_a_record_too_large_for_a_file_is_counted(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    records = list(delivered(file))
    head, _, items = records[5]
    with pytest.raises(ValueError, match="65,535"):
        disk_form((head, bytes(65_500), items))
    live = written(tmp_path / "live.etl", header_of(file), [[*records, (head, bytes(65_500), items)]])
    assert live.unwritable == 1

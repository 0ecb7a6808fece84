"""The bulk path writes what the plain path writes."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from collector.clock import Clock, ClockKind
from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.addresses import sockaddr_bytes
from collector.etlwriter.bulk import RecordBlock, payload_dtype, record_block, write_blocks
from collector.etlwriter.events import activity_of, record_of, schema_of
from collector.etlwriter.payloads import Value
from collector.etlwriter.records import record_bytes
from collector.raw import HeaderKind
from collector.readers import reader_for
from collector.source import Source

START = 1000
SESSION = Session(buffer_size=2048, clock=Clock(ClockKind.QPC, START, 10_000_000, 133_800_768_000_000_000))
PEER = "192.0.2.1:80"

Rows = list[tuple[int, int, int, int, bytes]]


def read(path: Path) -> Rows:
    """Processor, time, thread, buffer and bytes of all records behind the header buffer."""
    with closing(Source.open(path)) as source:
        return [
            (int(raw.cpu[i]), int(raw.ticks[i]), int(raw.tid[i]), int(raw.buffer[i]), raw.payload_bytes(i))
            for raw in reader_for(source).windows()
            for i in range(len(raw))
            if raw.buffer[i]
        ]


def sends(ticks: list[int]) -> RecordBlock:
    n = len(ticks)
    address = np.frombuffer(sockaddr_bytes(PEER), np.uint8)
    return record_block(
        "AfdSendMessageWithAddress",
        np.array(ticks, np.int64),
        {
            "enter_exit": 0,
            "location": 3100,
            "process": 0xFFFF_9A0C_1122_3080,
            "endpoint": 0xFFFF_9A0C_2A00_1010 + np.arange(n, dtype=np.uint64),
            "buffer_count": 1,
            "buffer": 0x1D2_A446_0000,
            "buffer_length": np.arange(n),
            "status": 0,
            "address_len": 16,
            "address": address,
        },
        pids=4120,
        tids=np.arange(n),
        activities=0xFFFF_9A0C_4100_0A20,
        keyword=5,
    )


def allocs(ticks: list[int], *, pointer_size: int = 8) -> RecordBlock:
    n = len(ticks)
    columns: dict[str, ArrayLike] = {
        "heap_handle": 0x1A_0000,
        "alloc_size": 16 + np.arange(n),
        "alloc_address": 0x1A_1000 + 16 * np.arange(n),
        "source_id": 2,
    }
    return record_block("HeapAlloc", np.array(ticks, np.int64), columns, pids=100, tids=7, pointer_size=pointer_size)


def test_a_block_has_the_bytes_of_its_records() -> None:
    values: dict[str, Value] = {
        "enter_exit": 0,
        "location": 3100,
        "process": 0xFFFF_9A0C_1122_3080,
        "endpoint": 0xFFFF_9A0C_2A00_1011,
        "buffer_count": 1,
        "buffer": 0x1D2_A446_0000,
        "buffer_length": 1,
        "status": 0,
        "address": PEER,
    }
    activity = activity_of(0xFFFF_9A0C_4100_0A20)
    record = record_of("AfdSendMessageWithAddress", values, ticks=START + 9, pid=4120, tid=1, activity=activity, keyword=5)

    assert sends([START, START + 9]).rows[1].tobytes() == record_bytes(record)


def test_stacks_have_no_ids_in_their_header() -> None:
    columns = {"event_time_stamp": START, "stack_process": 100, "stack_thread": 7, "stack_key": 0xFF}
    block = record_block("StackKeyUser", np.array([START + 5]), columns, pids=100, tids=7)

    record = record_of("StackKeyUser", {k: int(v) for k, v in columns.items()}, ticks=START + 5)
    assert block.rows[0].tobytes() == record_bytes(record)


ticks = st.lists(st.integers(0, 40), max_size=60).map(lambda steps: [START + sum(steps[: i + 1]) for i in range(len(steps))])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=ticks, second=ticks, third=ticks)
def test_blocks_are_merged_by_time(tmp_path: Path, first: list[int], second: list[int], third: list[int]) -> None:
    blocks = [sends(first), allocs(second), allocs(third, pointer_size=4)]
    with (tmp_path / "bulk.etl").open("w+b") as out:
        writer = EtlWriter(out, SESSION)
        write_blocks(writer, 2, blocks)
        writer.close()

    got = read(tmp_path / "bulk.etl")

    want = sorted((int(t), n, i) for n, block in enumerate(blocks) for i, t in enumerate(block.ticks))
    assert [(tick, payload) for _, tick, _, _, payload in got] == [(t, payload_of(blocks[n], i)) for t, n, i in want]
    assert {cpu for cpu, *_ in got} <= {2}
    assert sorted({buffer for *_, buffer, _ in got}) == list(range(1, writer.buffers_written))


def payload_of(block: RecordBlock, row: int) -> bytes:
    """Payload of a record, which ends with it."""
    record = bytes(block.rows[row])
    return record[80:] if record[2] == HeaderKind.EVENT64 else record[32:]


def test_plain_and_bulk_records_share_a_file(tmp_path: Path) -> None:
    free = {"heap_handle": 0x1A_0000, "free_address": 0x1A_1000, "source_id": 2}
    with (tmp_path / "t.etl").open("w+b") as out:
        writer = EtlWriter(out, SESSION)
        writer.add(record_of("HeapFree", free, ticks=START + 1, tid=1))
        write_blocks(writer, 0, [allocs([START + 2, START + 3])])
        writer.add(record_of("HeapFree", free, ticks=START + 4, tid=2))
        with pytest.raises(ValueError, match="processor 0: a record at tick 1,003"):
            write_blocks(writer, 0, [allocs([START + 3])])
        writer.close()

    assert [(tick - START, tid) for _, tick, tid, _, _ in read(tmp_path / "t.etl")] == [(1, 1), (2, 7), (3, 7), (4, 2)]


def test_events_without_a_fixed_size_have_no_block() -> None:
    with pytest.raises(ValueError, match="ProcessStart: user_sid has no fixed width"):
        payload_dtype(schema_of("ProcessStart"), pointer_size=8)
    with pytest.raises(KeyError, match="heap_handle"):
        record_block("HeapDestroy", np.array([START]), {})


def test_nothing_is_written_for_no_records(tmp_path: Path) -> None:
    with (tmp_path / "t.etl").open("w+b") as out:
        writer = EtlWriter(out, SESSION)
        write_blocks(writer, 0, [allocs([])])
        writer.close()

    assert writer.buffers_written == 1

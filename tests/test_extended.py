"""Extended items: stacks, related activities, security ids, and single items."""

import struct
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from collector.extended import find_items, guid_of, items_of, related_activities, sids, stack_keys, stacks
from collector.raw import ItemType, RawEvents
from collector.readers import reader_for
from collector.source import Source
from tests.etl_bytes import START_TICKS, buffer, event, items, system, trace

T = START_TICKS
RELATED = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
SYSTEM_SID = bytes.fromhex("010100000000000512000000")
USER_SID = bytes.fromhex("010500000000000515000000a065cf7e784b9b5fe77c8770e9030000")


def window(folder: Path, *records: bytes) -> RawEvents:
    path = folder / "built.etl"
    path.write_bytes(trace(buffer(records, size=4096), buffer_size=4096))
    with Source.open(path) as source:
        (raw,) = reader_for(source).windows()
    return raw


def stack64(*frames: int, match_id: int = 0) -> tuple[int, bytes]:
    return ItemType.STACK64, struct.pack(f"<Q{len(frames)}Q", match_id, *frames)


def stack32(*frames: int, match_id: int = 0) -> tuple[int, bytes]:
    return ItemType.STACK32, struct.pack(f"<Q{len(frames)}I", match_id, *frames)


def test_stacks_of_both_widths(tmp_path: Path) -> None:
    raw = window(
        tmp_path,
        event(T + 1),
        event(T + 2, extended=items(stack64(0xFFFFF80000001000, 0x7FF600000010))),
        system(T + 3),
        event(T + 4, extended=items((1, RELATED.bytes_le), stack32(0x401000, 0x77001234, 0x10, match_id=9)), kind=18),
        event(T + 5, extended=items(stack64())),
    )
    found = stacks(raw)

    assert raw.ticks[found.rows].tolist() == [T + 2, T + 4, T + 5]
    assert found.match_ids.tolist() == [0, 9, 0]
    assert [found.frames.row(i).tolist() for i in range(3)] == [[0xFFFFF80000001000, 0x7FF600000010], [0x401000, 0x77001234, 0x10], []]


def test_a_record_with_two_stacks_has_two_rows(tmp_path: Path) -> None:
    raw = window(tmp_path, event(T + 1, extended=items(stack64(1, 2, match_id=5), (2, SYSTEM_SID), stack64(3))))
    found = stacks(raw)
    assert found.rows.tolist() == [1, 1]
    assert [found.frames.row(i).tolist() for i in range(2)] == [[1, 2], [3]]


def test_odd_bytes_behind_the_last_frame_are_no_frame(tmp_path: Path) -> None:
    raw = window(tmp_path, event(T + 1, extended=items((6, bytes(8) + struct.pack("<Q", 77) + b"rest"))))
    assert stacks(raw).frames.row(0).tolist() == [77]


def test_stack_items_too_short_for_a_match_id_are_left_out(tmp_path: Path) -> None:
    raw = window(tmp_path, event(T + 1, extended=items((6, bytes(7)))))
    assert len(stacks(raw).frames) == 0


def test_stack_keys(tmp_path: Path) -> None:
    raw = window(
        tmp_path,
        event(T + 1, extended=items((18, struct.pack("<QQ", 7, 0xFFFF800012345678)))),
        event(T + 2, extended=items((17, struct.pack("<QII", 8, 0x12345678, 0xEEEEEEEE)))),
    )
    rows, match_ids, keys = stack_keys(raw)
    assert (rows.tolist(), match_ids.tolist(), keys.tolist()) == ([1, 2], [7, 8], [0xFFFF800012345678, 0x12345678])


def test_related_activities(tmp_path: Path) -> None:
    raw = window(tmp_path, event(T + 1), event(T + 2, extended=items((1, RELATED.bytes_le))), event(T + 3, extended=items((1, bytes(8)))))
    rows, halves = related_activities(raw)
    assert rows.tolist() == [2]
    assert UUID(bytes_le=halves[0].tobytes()) == RELATED


def test_security_ids_as_text(tmp_path: Path) -> None:
    raw = window(
        tmp_path,
        event(T + 1, extended=items((2, SYSTEM_SID))),
        event(T + 2, extended=items((2, USER_SID))),
        event(T + 3, extended=items((2, b"\x01\x09" + bytes(10)))),  # announces nine parts, has one
    )
    assert list(sids(raw)) == [(1, "S-1-5-18"), (2, "S-1-5-21-2127521184-1604012920-1887927527-1001")]


def test_the_items_of_one_record(tmp_path: Path) -> None:
    raw = window(tmp_path, event(T + 1, extended=items((3, b"\x02\0\0\0"), (11, b"schema"), (14, RELATED.bytes_le))), system(T + 2))
    found = list(items_of(raw, 1))

    assert [(item.type, item.data) for item in found] == [(3, b"\x02\0\0\0"), (11, b"schema"), (14, RELATED.bytes_le)]
    assert [guid_of(item) for item in found] == [None, None, RELATED]
    assert list(items_of(raw, 2)) == []


def test_a_window_without_items(tmp_path: Path) -> None:
    raw = window(tmp_path, system(T + 1))
    assert find_items(raw).rows.size == 0
    assert len(stacks(raw).frames) == 0
    assert related_activities(raw)[1].shape == (0, 2)
    assert list(sids(raw)) == []


def test_items_can_be_asked_for_some_rows_alone(tmp_path: Path) -> None:
    raw = window(tmp_path, *(event(T + n, extended=items(stack64(n))) for n in range(1, 6)))
    found = find_items(raw, np.array([2, 4]))
    assert found.rows.tolist() == [2, 4]
    assert stacks(raw, found).frames.values.tolist() == [2, 4]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "count"), [("net.4.5.2.x64", 655), ("diaghub.user_paged.1", 176)])
def test_stack_items_of_real_files(shared_dir: Path, name: str, count: int) -> None:
    """Counts of the README there; every stack begins at an address of code, in one of the two halves of the address space."""
    number = 0
    with Source.open(shared_dir / "traces" / "real" / f"{name}.etl") as source:
        for raw in reader_for(source).windows():
            found = stacks(raw)
            number += found.rows.size
            assert (np.diff(found.frames.starts) > 0).all()
            high = found.frames.values >> np.uint64(47)
            assert np.isin(high, (0, 0x1FFFF)).all()
    assert number == count

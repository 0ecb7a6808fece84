"""Signs of lost records, and the moments in which they place the loss."""

from pathlib import Path

import pytest

from collector.losses import END_OF_TIME
from tests.etl_bytes import BUFFER_BYTES, START_TICKS, buffer, lost_marker, six, system, trace
from tests.etl_reading import read_bytes

T = START_TICKS


def test_losses_that_nothing_places_may_be_anywhere(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, trace(buffer([system(T + 10)]), events_lost=41, buffers_lost=0))
    assert reading.losses.is_everywhere
    problem = reading.problem("lost_events")
    assert (problem.count, problem.first_ticks) == (41, None)


def test_a_flag_places_a_loss_in_its_buffer(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 20)], sequence=1, flags=0x22),
            buffer([system(T + 30), system(T + 40)], sequence=2, flags=0x24),
            events_lost=3,
            buffers_lost=1,
        ),
    )
    assert reading.losses.spans == [(T + 10, T + 20), (T + 30, T + 40)]
    assert not reading.losses.is_everywhere
    lost = reading.problem("lost_events")
    assert (lost.count, lost.first_ticks, lost.last_ticks) == (3, T + 10, T + 20)
    assert reading.problem("lost_buffers").count == 1


def test_one_loss_in_three_signs_is_counted_once(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path,
        trace(
            buffer([system(T + 10), system(T + 15), lost_marker(T + 20)], sequence=1, flags=0x22),
            buffer([system(T + 30)], sequence=2),
            events_lost=3,
        ),
    )
    assert reading.losses.spans == [(T + 20, T + 20)]
    assert not reading.losses.is_everywhere
    assert (reading.problem("lost_events").count, reading.problem("lost_events").first_ticks) == (3, T + 20)


@pytest.mark.parametrize(("opcode", "kind"), [(32, "lost_events"), (33, "lost_buffers"), (34, "lost_buffers")])
def test_markers_alone_count_what_the_header_does_not(tmp_path: Path, opcode: int, kind: str) -> None:
    reading = read_bytes(tmp_path, trace(buffer([lost_marker(T + 10, opcode), lost_marker(T + 20, opcode), lost_marker(T + 25, 31)])))
    assert reading.losses.spans == [(T + 10, T + 10), (T + 20, T + 20)]
    assert reading.kinds == {kind}
    assert reading.problem(kind).count == 2


def test_a_hole_without_a_gap_in_the_sequence_may_be_anywhere(tmp_path: Path) -> None:
    buffers = six()
    reading = read_bytes(tmp_path, b"".join([*buffers[:3], b"\x55" * BUFFER_BYTES, *buffers[3:]]))
    assert reading.losses.is_everywhere


def test_a_cut_file_lacks_everything_after_the_last_buffers(tmp_path: Path) -> None:
    buffers = [buffer([system(T + 10 * n)], cpu=n % 2, sequence=n) for n in range(1, 6)]
    reading = read_bytes(tmp_path, trace(*buffers)[:-100])
    assert reading.losses.spans == [(T + 40, END_OF_TIME)]

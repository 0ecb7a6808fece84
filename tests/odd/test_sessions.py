"""Several files of one session that did not go together: each is collected as it is, with its losses where they were."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import main
from collector.clock import FILETIME_PER_SECOND, Clock, ClockKind
from collector.store.engine import TraceFolder
from tests.build import Trace, afd
from tests.build.served import served
from tests.odd.collected import ALL_SENDS, collected, six_sends

Capture = pytest.CaptureFixture[str]
MS = 1_000_000


def with_losses() -> Trace:
    """Six sends; between the second and the third events were lost, between the fourth and the fifth whole buffers."""
    return six_sends(name="one").lose_events(7, at_us=2500).lose_buffers(2, at_us=4500)


def keys_of(database: Path) -> list[str]:
    return TraceFolder(database).trace_keys()


def test_two_files_with_losses_and_gaps_are_two_traces_that_say_where(tmp_path: Path, capsys: Capture) -> None:
    first = with_losses().write(tmp_path / "first.etl")
    second = six_sends(name="one").lose_events(3, at_us=5500).drop_buffer(2).write(tmp_path / "second.etl")
    database = tmp_path / "database"

    assert main(["collect", str(first), str(second), "--database", str(database)]) == 3
    said = capsys.readouterr().err
    assert "first.etl: data loss: Events lost by the session: 7" in said
    assert "second.etl: data loss: Events lost by the session: 3" in said
    assert len(keys_of(database)) == 2
    with served(TraceFolder(database)) as client:
        found = {}
        for trace in client.get("/?format=json").json()["listing"]["rows"]:
            problems = client.get(f"/t/{trace['key']}/trust?format=json").json()["problems"]
            found[trace["name"]] = {one["kind"]: (one["count"], one["first_ns"], one["last_ns"]) for one in problems}
    assert found["first.etl"]["lost_events"] == (7, 2_500_000, 2_500_000)
    count, low, high = found["first.etl"]["lost_buffers"]
    assert count == 2
    assert 4 * MS <= low <= high <= 5 * MS + 50_000
    assert found["second.etl"]["lost_events"] == (3, 5_500_000, 5_500_000)
    assert "buffers_missing" in found["second.etl"]


@pytest.mark.parametrize(
    ("part", "is_said"),
    [("", True), ("?to=2ms", False), ("?from=2.4ms&to=2.6ms", True), ("?from=2.6ms&to=3.9ms", False), ("?from=5.2ms", False)],
)
def test_a_loss_is_said_in_the_range_where_it_was(tmp_path: Path, capsys: Capture, part: str, *, is_said: bool) -> None:
    assert collected(with_losses().bytes(), tmp_path, capsys).status == 3
    (key,) = keys_of(tmp_path / "database")
    with served(TraceFolder(tmp_path / "database")) as client:
        page = client.get(f"/t/{key}/operations{part}").text
    assert ("Data was lost in this range" in page) == is_said


USUAL = Trace().clock
CLOCKS = {
    "another frequency": replace(USUAL, ticks_per_second=3_000_000),
    "system time": Clock(ClockKind.SYSTEM_TIME, USUAL.start_filetime, FILETIME_PER_SECOND, USUAL.start_filetime),
    "a start an hour earlier by the same counter": replace(USUAL, start_filetime=USUAL.start_filetime - 36_000_000_000),
    "a counter that began anew": replace(USUAL, start_ticks=17),
    "no start time": replace(USUAL, start_filetime=0),
}


@pytest.mark.parametrize("clock", list(CLOCKS.values()), ids=list(CLOCKS))
def test_files_whose_clocks_disagree_are_each_as_their_own_says(tmp_path: Path, capsys: Capture, clock: Clock) -> None:
    database = tmp_path / "database"
    one, other = six_sends().write(tmp_path / "one.etl"), six_sends(clock=clock).write(tmp_path / "other.etl")
    assert main(["collect", str(one), str(other), "--database", str(database)]) == 0, capsys.readouterr().err
    times = []
    for key in keys_of(database):
        with TraceFolder(database).trace(key).connect() as db:
            rows = db.exec_driver_sql("SELECT posted_ns, bytes, outcome FROM v_operations WHERE kind = 'send' ORDER BY posted_ns").all()
        assert [(row.bytes, row.outcome) for row in rows] == [(length, outcome) for _, length, outcome in ALL_SENDS]
        times.append([row.posted_ns for row in rows])
    assert times[0] == pytest.approx(times[1], abs=400), "relative times need no common clock"


def test_the_same_session_twice_is_one_trace(tmp_path: Path, capsys: Capture) -> None:
    paths = [six_sends().write(tmp_path / name) for name in ("a.etl", "b.etl")]
    assert main(["collect", *map(str, paths), "--database", str(tmp_path / "database")]) == 0
    assert len(keys_of(tmp_path / "database")) == 1
    assert "2 stored: " in capsys.readouterr().err


def test_a_gap_on_one_processor_leaves_the_others_alone(tmp_path: Path, capsys: Capture) -> None:
    trace = six_sends()
    for k in range(1, 4):
        trace.cpu(1, afd.sent(at_us=7000 + 100 * k, length_bytes=7, buffer=0x9000, endpoint=0xFFFF_8000_0000_9000, duration_us=10))
    found = collected(trace.drop_buffer(3).bytes(), tmp_path, capsys)
    assert [send for send in found.sends if send[1] == 7] == [(9, 7, "completed")] * 3
    assert [send for send in found.sends if send[1] != 7] == [send for send in ALL_SENDS if send[0] != 3]
    assert "buffers_missing" in found.kinds

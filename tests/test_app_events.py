"""The list of all records: in time order, none twice, none left out, wherever a page begins."""

from pathlib import Path

from tests.build.database import BUILT_KEY, built_database
from tests.build.served import served

S = 1_000_000_000
ENDED_WITH_SOCKET, COMPLETED, REJECTED = 5, 0, 3

SOCKETS: list[dict[str, object]] = [
    {"endpoint": 0x10, "first_ns": 0, "last_ns": 43 * S, "closed_ns": 30 * S, "destroyed_ns": 30 * S, "end": "closed"},
    {"endpoint": 0x20, "first_ns": 0, "last_ns": 60 * S, "end": "open_at_end"},
]


def operation(socket_n: int, posted: int | None, completed: int | None, end: int | None, **more: object) -> dict[str, object]:
    """A receive by the seconds of its two records."""
    return {
        "socket_n": socket_n,
        "kind": 3,
        "posted_ns": None if posted is None else posted * S,
        "completed_ns": None if completed is None else completed * S,
        "end_ns": None if end is None else end * S,
        "posted_event": None if posted is None else 1004,
        "completed_event": None if completed is None else 1004,
        "posted_seq": None if posted is None else posted * 10,
        "completed_seq": None if completed is None else completed * 10 + 5,
    } | more


OPERATIONS = [
    operation(1, 1, 2, 2),
    operation(1, 3, 43, 30, outcome=ENDED_WITH_SOCKET),  # completed long after the close
    operation(2, 4, 50, 50),  # in flight for long
    operation(2, 5, None, None, outcome=8),  # in flight at the end
    operation(2, 6, 6, 6, outcome=REJECTED, posted_seq=60, completed_seq=60),  # one record is both
    operation(2, None, 44, 44),  # posted before the trace
    operation(1, 29, 42, 30, outcome=ENDED_WITH_SOCKET),
]
OTHERS: list[dict[str, object]] = [
    {"socket_n": 2, "t_ns": 41 * S, "seq": 411, "event": 1000},
    {"socket_n": 1, "t_ns": 43 * S, "seq": 436, "event": 1001},
]
LEFT_OUT: list[dict[str, object]] = [{"socket_n": 2, "t_ns": 45 * S, "kind": "send", "event": 1003, "reason": "double_count"}]


def times(tmp_path: Path, query: str, *, limit: int = 100) -> list[tuple[int, str]]:
    """Second and part of each record of a query, page by page."""
    rows: dict[str, list[dict[str, object]]] = {"socket": SOCKETS, "operation": OPERATIONS, "socket_event": OTHERS, "skipped": LEFT_OUT}
    seen: list[tuple[int, str]] = []
    with served(built_database(tmp_path, rows)) as client:
        url: str | None = f"/t/{BUILT_KEY}/events?limit={limit}&format=json&{query}"
        while url is not None:
            listing = client.get(url).json()["listing"]
            seen += [(row["t_ns"] // S, row["what"]) for row in listing["rows"]]
            url = listing["next"]
    return seen


ALL = [
    (1, "recv posted"),
    (2, "recv completed"),
    (3, "recv posted"),
    (4, "recv posted"),
    (5, "recv posted"),
    (6, "recv posted and over"),
    (29, "recv posted"),
    (41, "event"),
    (42, "recv completed"),
    (43, "recv completed"),
    (43, "event"),
    (44, "recv completed"),
    (45, "send, not counted: double count"),
    (50, "recv completed"),
]


def test_all_records_come_in_time_order(tmp_path: Path) -> None:
    assert times(tmp_path, "") == ALL


def test_pages_of_any_size_have_the_same_records(tmp_path: Path) -> None:
    whole = times(tmp_path, "")
    assert times(tmp_path / "one", "", limit=1) == whole
    assert times(tmp_path / "three", "", limit=3) == whole


def test_a_range_has_what_happened_in_it(tmp_path: Path) -> None:
    whole = times(tmp_path, "")
    for begin, end in ((0, 60), (6, 42), (41, 43), (43, 43), (44, 60), (46, 60)):
        shown = times(tmp_path / f"{begin}-{end}", f"from={begin * S}&to={end * S}", limit=2)
        assert shown == [record for record in whole if begin <= record[0] <= end]


def test_the_records_of_one_socket_are_found_by_it(tmp_path: Path) -> None:
    first = [1, 2, 3, 29, 42, 43, 43]
    assert [second for second, _ in times(tmp_path, "endpoint=0x10")] == first
    assert [second for second, _ in times(tmp_path / "at", "endpoint=0x10@0", limit=2)] == first
    assert [second for second, _ in times(tmp_path / "late", f"endpoint=0x10&from={42 * S}")] == [42, 43, 43]

"""The page of sends: which sockets send slowly, in which sizes, how far apart, how many at once, with which buffer and backlog."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from collector.words import OPERATION_KINDS, OUTCOMES
from tests.build.answers import as_json, text_of
from tests.build.database import built_database
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

MS = 1_000_000
SEND, RECEIVE = OPERATION_KINDS.index("send"), OPERATION_KINDS.index("recv")
DONE, FAILED = OUTCOMES.index("completed"), OUTCOMES.index("failed")


def send(socket: int, at_ms: int, took_ms: int | None, size: int, *, kind: int = SEND, outcome: int = DONE) -> dict[str, object]:
    ended = None if took_ms is None else (at_ms + took_ms) * MS
    return {
        "socket_n": socket, "kind": kind, "outcome": outcome, "bytes": size, "posted_len": size, "status": 0, "posted_ns": at_ms * MS,
        "completed_ns": ended, "end_ns": ended,
    }  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """Two sockets. The first has two sends in flight at once at 40 ms; what failed, was received or never ended does not count."""
    operations = [
        send(1, 10, 5, 100),
        send(1, 20, 30, 2_000),
        send(2, 30, 1, 70_000),
        send(1, 40, 1, 3_000),
        send(1, 45, 900, 5, kind=RECEIVE),
        send(1, 46, 900, 0, outcome=FAILED),
        send(2, 50, 2, 70_000),
    ]
    event = {"owner_n": 1, "cpu": 0, "pid": 4242, "tid": 11, "event": 3007, "enter_exit": 3}
    rows: dict[str, list[dict[str, object]]] = {
        **{name: SMALL[name] for name in ("event_count", "process", "owner", "address")},
        "socket": [
            SMALL["socket"][0] | {"sends": 4, "closed_ns": None, "destroyed_ns": None},
            SMALL["socket"][0] | {"endpoint": 0x5000, "sends": 2, "first_ns": 20 * MS, "created_ns": 20 * MS},
        ],
        "operation": operations,
        "option": [
            {"socket_n": 1, "t_ns": 11 * MS, "option": 7, "name": "SO_SNDBUF", "value": 4096},
            {"socket_n": 1, "t_ns": 12 * MS, "option": 7, "name": "SO_SNDBUF", "value": 8192},
            {"socket_n": 1, "t_ns": 13 * MS, "option": 6, "name": "SO_RCVBUF", "value": 1},
        ],
        "socket_event": [
            event | {"socket_n": 1, "t_ns": 15 * MS, "seq": 1, "fields": '{"send_backlog": 500}'},
            event | {"socket_n": 1, "t_ns": 16 * MS, "seq": 2, "fields": '{"send_backlog": 300}'},
        ],
    }
    return served(built_database(tmp_path, rows, key=KEY))


def test_q12_a_socket_shows_how_it_sends(client: TestClient) -> None:
    first, second = as_json(client, f"/t/{KEY}/sends")["listing"]["rows"]
    assert (first["sends"], first["bytes"], first["mean_bytes"], first["small_sends"]) == (3, 5_100, 1_700, 1)
    assert (first["latency_ns"], first["mean_latency_ns"], first["mean_gap_ns"]) == (30 * MS, 12 * MS, 15 * MS)
    assert (first["most_in_flight"], first["send_buffer_bytes"], first["backlog_bytes"]) == (2, 8192, 500)
    assert (second["sends"], second["mean_gap_ns"], second["most_in_flight"]) == (2, 20 * MS, 1)
    assert (second["send_buffer_bytes"], second["backlog_bytes"]) == (None, None)


def test_sends_are_counted_by_size_and_by_latency(client: TestClient) -> None:
    page = as_json(client, f"/t/{KEY}/sends")
    assert [(row["what"], row["sends"], row["bytes"]) for row in page["sizes"]["rows"]] == [
        ("1 B to below 101 B", 1, 100),
        ("1.46 kB to below 16.4 kB", 2, 5_000),
        ("65.5 kB to below 1.05 MB", 2, 140_000),
    ]
    assert [(row["what"], row["sends"]) for row in page["latencies"]["rows"]] == [
        ("1.00 ms to below 10.0 ms", 4),
        ("10.0 ms to below 100 ms", 1),
    ]
    one = as_json(client, f"/t/{KEY}/sends?min_latency=10 ms")
    assert (len(one["listing"]["rows"]), sum(row["sends"] for row in one["sizes"]["rows"])) == (1, 3)


def test_the_page_says_what_it_cannot_know(client: TestClient) -> None:
    text = text_of(client.get(f"/t/{KEY}/sends").text)
    assert "known to the TCP/IP provider alone" in text
    assert "This trace has no records of the send backlog (id 3007)" in text
    assert "By latency" in text


def test_without_sends_the_page_says_why(tmp_path: Path) -> None:
    with served(built_database(tmp_path, {}, key=KEY)) as client:
        empty = as_json(client, f"/t/{KEY}/sends")["empty"]
    assert "no records of the Winsock provider" in empty["reason"]
    assert empty["command"]["lines"]

"""Processes of the dashboard over one server: they see each other's notes, and one that is killed takes nothing with it."""

import os
import re
import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace

import httpx2 as httpx
import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from collector.store.server import TraceServer
from tests.build.small_trace import CLIENT, KEY
from tests.server.cluster import Cluster
from tests.test_app_workers import children, listens, serving, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are killed by means that others lack")

SOCKET = f"sockets/{CLIENT:#x}@10000000"
ROUNDS = 10


@dataclass
class Dashboards:
    """Processes of the dashboard, each with a role that reads and a name that the server knows it by."""

    cluster: Cluster
    database: str
    stack: ExitStack

    def start(self, name: str, workers: int = 1) -> "Dashboard":
        url = f"{self.cluster.url(self.database, f'viewer_{self.database}')}&application_name={name}"
        process, address = self.stack.enter_context(serving(url, workers))
        client = self.stack.enter_context(httpx.Client(base_url=address, timeout=60))
        return Dashboard(name, process.pid, client, self)

    def count(self, condition: str) -> int:
        return int(self.cluster.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {condition}")[0][0])


@dataclass
class Dashboard:
    """One of them."""

    name: str
    pid: int
    client: httpx.Client
    all: Dashboards

    def anew(self) -> "Dashboard":
        """The same by a connection of its own, which any of several processes may take."""
        client = self.all.stack.enter_context(httpx.Client(base_url=self.client.base_url, timeout=60))
        return replace(self, client=client)

    def notes(self) -> list[str]:
        answer = self.client.get(f"/t/{KEY}/{SOCKET}", params={"format": "json"})
        assert answer.status_code == 200
        return [row["text"] for row in answer.json()["notes"]["rows"]]

    def post(self, text: str) -> int:
        """Write a note; returns the status."""
        token = re.search(r'name="form_token" value="([0-9a-f]+)"', self.client.get(f"/t/{KEY}").text)
        assert token
        return self.client.post(f"/t/{KEY}/notes", data={"form_token": token[1], "object": SOCKET, "text": text}).status_code

    def connections(self, more: str = "true") -> int:
        return self.all.count(f"application_name = '{self.name}' AND {more}")


@pytest.fixture
def dashboards(filled: TraceServer, cluster: Cluster, database_name: str, stack: ExitStack) -> Dashboards:
    role = f"viewer_{database_name}"
    cluster.sql(f"CREATE ROLE {role} LOGIN")
    filled.grant_to(role)
    return Dashboards(cluster, database_name, stack)


def test_two_processes_see_each_others_notes_at_once(dashboards: Dashboards) -> None:
    one, other = dashboards.start("one"), dashboards.start("other")
    written: list[str] = []
    for number in range(ROUNDS):
        writer, reader = (one, other) if number % 2 else (other, one)
        assert writer.post(f"note {number}") == 303
        written.append(f"note {number}")
        assert reader.notes() == writer.notes() == written


def test_a_process_that_is_killed_amid_a_note_leaves_none_and_the_other_goes_on(dashboards: Dashboards, filled: TraceServer) -> None:
    victim, other = dashboards.start("victim"), dashboards.start("other")
    assert victim.post("written before") == 303
    broken: list[Exception] = []

    def post() -> None:
        try:
            victim.post("never whole")
        except httpx.TransportError as error:
            broken.append(error)

    client = threading.Thread(target=post)
    with create_engine(filled.url, poolclass=NullPool).begin() as holder:
        holder.exec_driver_sql("LOCK TABLE sockscope.note IN EXCLUSIVE MODE")  # who reads goes on, who writes waits
        client.start()
        wait_for("the note that waits to be written", lambda: victim.connections("wait_event_type = 'Lock' AND query LIKE 'INSERT%'") == 1)
        os.kill(victim.pid, signal.SIGKILL)
        client.join(60)
        assert len(broken) == 1
        assert other.notes() == ["written before"]

    wait_for("the end of its connections", lambda: victim.connections() == 0)
    assert other.notes() == ["written before"]
    assert other.post("written after") == 303
    assert other.notes() == ["written before", "written after"]

    new = dashboards.start("new")
    assert new.notes() == ["written before", "written after"]
    assert new.post("never whole") == 303
    assert other.notes() == ["written before", "written after", "never whole"]


def test_another_process_takes_the_place_of_one_that_is_killed(dashboards: Dashboards) -> None:
    both = dashboards.start("both", workers=2)
    wait_for("two processes", lambda: len(children(both.pid)) == 2 and all(listens(pid) for pid in children(both.pid)))
    assert both.post("written before") == 303
    both.client.close()  # whoever is killed has no connection of it
    first = children(both.pid)
    lost = min(first)
    os.kill(lost, signal.SIGKILL)

    for _ in range(ROUNDS):  # the process that is left answers, later the new one, too
        assert both.anew().notes() == ["written before"]
    wait_for("another process instead", lambda: len(children(both.pid) - {lost}) == 2 and all(listens(pid) for pid in children(both.pid)))
    written = ["written before"]
    for number in range(ROUNDS):  # whoever writes and whoever reads
        assert both.anew().post(f"note {number}") == 303
        written.append(f"note {number}")
        assert both.anew().notes() == written

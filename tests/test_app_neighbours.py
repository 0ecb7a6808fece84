"""Pages with what other providers know of sockets: names beside addresses, and what the network stack says of a connection."""

from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app import format as fmt
from collector.etlwriter.payloads import Values
from tests.build import Trace, afd
from tests.build.events import ENDPOINT, PID, Event, event
from tests.build.imported import Imported, ImportTrace
from tests.build.network import LOCAL, REMOTE, kernel_tcp, stack, summary
from tests.build.served import served
from tests.build.system import process_rundown

RESET = 0xC000_020D
EVIL = "<script>alert(1)</script>‮.example"


def dns(at_us: float, name: str, results: str, *, pid: int = PID) -> Event:
    return event("DnsQueryCompleted", at_us=at_us, header={"pid": pid}, query_name=name, query_results=results)


def client_socket(at_us: float = 10, *, endpoint: int = ENDPOINT, local: str | None = LOCAL, remote: str = REMOTE) -> list[Event]:
    bound = [] if local is None else [afd.bind(at_us=at_us + 2, endpoint=endpoint, address=local, enter_exit=1)]
    return [*afd.opened(at_us=at_us, endpoint=endpoint), *bound, *afd.connected(at_us=at_us + 3, endpoint=endpoint, address=remote)]


def aborted(*beside: Event, local: str | None = LOCAL) -> Trace:
    """A connection that the transport ends at 5 ms, with what else the trace has."""
    return Trace().cpu(
        0, process_rundown(), client_socket(local=local), afd.sent(at_us=100), afd.abort(at_us=5_000, reason=4, location=3006), *beside
    )


class Pages:
    """The dashboard over one collected trace."""

    def __init__(self, db: Imported) -> None:
        self.db, self.client, self.key = db, served(db.folder), db.report.key

    def json(self, path: str) -> dict[str, Any]:  # Any: JSON
        answer = self.client.get(f"/t/{self.key}/{path}", params={"format": "json"} if "?" not in path else None)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def html(self, path: str) -> str:
        answer = self.client.get(f"/t/{self.key}/{path}", headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text
        return answer.text

    @property
    def socket(self) -> str:
        return f"sockets/{self.db.one('select socket from v_sockets')}"


@pytest.fixture
def pages(import_trace: ImportTrace) -> Pages:
    """A connection with a name, retransmits and a reset by the peer."""
    return Pages(
        import_trace(
            aborted(
                dns(5, "www.example.com", "type:  5 edge.example.net;::ffff:192.0.2.10;"),
                dns(6, "cdn.example.com", "192.0.2.10;", pid=77),
                kernel_tcp("Connect", at_us=14),
                kernel_tcp("Send", at_us=101, size=4_096),
                kernel_tcp("Retransmit", at_us=3_000, size=1_460),
                stack("TcpDataTransferRestransmit", at_us=3_001, rexmit_count=1),
                stack("TcpConnectionTerminatedRcvdRst", at_us=4_999),
                summary(at_us=6_000, rtt_us=23_000, min_rtt_us=20_000, max_rtt_us=91_000, bytes_retrans=1_460),
            )
        )
    )


# ---------------------------------------------------------------------------------------------------- names


def test_a_name_stands_beside_its_address_with_the_time_of_its_answer(pages: Pages) -> None:
    html = pages.html("sockets")

    assert f'>{REMOTE} <span class="named"' in html
    assert '<bdi>cdn.example.com</bdi> <span class="quiet">+1</span>' in html
    assert f"cdn.example.com: asked for by name, answered at {fmt.time(6_000)} (Microsoft-Windows-DNS-Client)" in unescape(html)
    assert "the same address was the answer for www.example.com" in html
    assert pages.json("sockets")["address_names"] == {REMOTE: "cdn.example.com"}


def test_the_page_of_a_socket_prefers_the_name_that_its_process_asked_for(pages: Pages) -> None:
    page = pages.json(pages.socket)

    assert [(row["name"], row["is_own"], row["first_ns"]) for row in page["names"]["rows"]] == [
        ("www.example.com", True, 5_000),
        ("cdn.example.com", False, 6_000),
    ]
    assert "its process had asked for www.example.com" in page["explanation"]


@pytest.mark.parametrize("path", ["sockets", "operations", "aborts", "sends", "events", "listeners", "drops", "errors", "ports", "stalls"])
def test_lists_with_addresses_answer_with_names(pages: Pages, path: str) -> None:
    assert pages.client.get(f"/t/{pages.key}/{path}", headers={"accept": "text/html"}).status_code == 200


def test_sockets_are_found_by_the_name_of_an_address(pages: Pages) -> None:
    assert len(pages.json("sockets?host=WWW.EXAMPLE&format=json")["listing"]["rows"]) == 1
    assert pages.json("sockets?host=nothing.example&format=json")["listing"]["rows"] == []


def test_the_search_finds_names(pages: Pages) -> None:
    html = pages.client.get("/search", params={"q": "example.com", "trace": pages.key}, headers={"accept": "text/html"}).text
    assert "Names of addresses" in html
    assert f"/t/{pages.key}/sockets?host=www.example.com" in unescape(html)


def test_hostile_names_are_shown_as_text(import_trace: ImportTrace) -> None:
    pages = Pages(import_trace(aborted(dns(5, EVIL, "192.0.2.10;"))))
    for path in ("sockets", pages.socket, "operations"):
        html = pages.html(path)
        assert "<script>alert" not in html
        assert "‮" not in html
    assert pages.json("sockets")["address_names"] == {REMOTE: EVIL}


# ---------------------------------------------------------------------------------------------------- the network stack


def test_the_socket_page_shows_what_the_network_stack_counted(pages: Pages) -> None:
    rows = pages.json(pages.socket)["stack"]["rows"]

    assert [(row["source"], row["match"], row["bytes_sent"], row["retransmits"], row["rtt_ns"]) for row in rows] == [
        ("TcpIp", "exact", 4_096, 1, None),
        ("Microsoft-Windows-TCPIP", "exact", 0, 1, 23_000_000),
    ]


def test_records_of_the_network_stack_stand_among_those_of_the_socket(pages: Pages) -> None:
    records = pages.json(f"{pages.socket}?kind=network&from=0&to=10000000&format=json")["events"]["rows"]

    assert [(row["t_ns"], row["name"], row["event_id"], row["text"]) for row in records] == [
        (14_000, "TcpIp", 12, "connect"),
        (3_000_000, "TcpIp", 14, "retransmit of 1.46 kB"),
        (3_001_000, "Microsoft-Windows-TCPIP", 1187, "retransmit, number 1"),
        (4_999_000, "Microsoft-Windows-TCPIP", 1184, "reset received"),
        (6_000_000, "Microsoft-Windows-TCPIP", 1477, "summary"),
    ]


def test_a_reset_from_the_peer_says_which_side_ended_it(pages: Pages, import_trace: ImportTrace) -> None:
    said = {claim["about"]: claim for claim in pages.json(pages.socket)["claims"]}
    alone = {claim["about"]: claim for claim in Pages(import_trace(aborted())).json(pages.socket)["claims"]}

    assert said["network"]["text"].startswith("The network stack received a reset of this connection from the peer")
    assert (said["network"]["certainty"], said["network"]["side"]) == ("certain", "peer")
    assert said["retransmits"]["text"].startswith("The network stack sent data of it again once")
    assert "network" not in alone
    if alone["end"]["side"] == "peer or network":
        assert said["end"]["side"] == "peer"


@pytest.mark.parametrize(
    ("beside", "side", "words"),
    [
        (stack("TcpDisconnectTcbRtoTimeout", at_us=4_999), "network", "gave up on this connection (retransmissions gave up)"),
        (stack("TcpAbortTcbRequest", at_us=4_999, status=RESET), "this machine", "was asked on this machine to abort"),
    ],
)
def test_other_words_of_the_stack_on_the_end(import_trace: ImportTrace, beside: Event, side: str, words: str) -> None:
    pages = Pages(import_trace(aborted(beside)))
    claims = {claim["about"]: claim for claim in pages.json(pages.socket)["claims"]}
    assert claims["network"]["side"] == side
    assert words in claims["network"]["text"]


def test_what_is_joined_by_process_and_time_is_marked_inferred(import_trace: ImportTrace) -> None:
    pages = Pages(import_trace(aborted(kernel_tcp("Connect", at_us=14), kernel_tcp("Retransmit", at_us=3_000, size=9), local=None)))
    page = pages.json(pages.socket)
    claims = {claim["about"]: claim for claim in page["claims"]}

    assert [row["match"] for row in page["stack"]["rows"]] == ["inferred"]
    assert claims["retransmits"]["certainty"] == "possible"
    texts = [row["text"] for row in pages.json(f"{pages.socket}?kind=network&format=json")["events"]["rows"]]
    assert texts == ["connect (inferred to be this socket)", "retransmit of 9 B (inferred to be this socket)"]


def test_sockets_that_had_the_same_addresses_each_have_their_own_events(import_trace: ImportTrace) -> None:
    second = ENDPOINT + 0x1000
    again = [kernel_tcp("Retransmit", at_us=1_000_100 + i, size=10) for i in range(3)]
    trace = aborted(kernel_tcp("Retransmit", at_us=300, size=9)).cpu(0, afd.closed(at_us=6_000))
    trace.cpu(0, client_socket(1_000_000, endpoint=second), again)
    pages = Pages(import_trace(trace))
    links = [row[0] for row in pages.db.rows("select socket from v_sockets order by first_ns")]

    said = [{claim["about"]: claim for claim in pages.json(f"sockets/{link}")["claims"]}["retransmits"] for link in links]

    assert [claim["text"].partition(" of it ")[2].partition(",")[0] for claim in said] == ["again once", "again 3 times"]
    assert [claim["certainty"] for claim in said] == ["possible", "possible"]
    assert [len(pages.json(f"sockets/{link}?kind=network&format=json")["events"]["rows"]) for link in links] == [1, 3]


def test_the_timeline_marks_retransmits_and_resets(pages: Pages) -> None:
    figure = pages.json(f"{pages.socket}/timeline?from=0&to=10000000")["figure"]
    names = [trace.get("name") for trace in figure["data"]]
    assert {"resent", "network"} <= set(names)


# ---------------------------------------------------------------------------------------------------- memory and catalog


def test_an_address_shows_the_virtual_memory_around_it(import_trace: ImportTrace) -> None:
    base, large = 0x7FF0_1000_0000, 0x10_0000
    memory: Values = {"base_address": base, "process_id": PID}
    pages = Pages(
        import_trace(
            Trace().cpu(
                0,
                process_rundown(),
                event("VirtualAlloc", at_us=10, header={"tid": 11}, region_size=large, flags=0x2000).with_values(**memory),
                event("VirtualAlloc", at_us=20, header={"tid": 11}, region_size=4096, flags=0x1000).with_values(**memory),
                event("VirtualFree", at_us=90, header={"tid": 12}, region_size=large, flags=0x8000).with_values(**memory),
            )
        )
    )

    def calls(address: int) -> list[tuple[object, ...]]:
        return [(row["t_ns"], row["what"], row["how"], row["size"]) for row in pages.json(f"address/{address:#x}")["memory"]["rows"]]

    reserved, freed = (10_000, "VirtualAlloc", "reserve", large), (90_000, "VirtualFree", "release", large)
    assert calls(base) == calls(base + 4_095) == [reserved, (20_000, "VirtualAlloc", "commit", 4_096), freed]
    assert calls(base + 4_096) == calls(base + large - 1) == [reserved, freed]
    assert calls(base - 1) == calls(base + large) == []
    assert "Virtual memory around it" in pages.html(f"address/{base:#x}")


def test_changes_of_the_winsock_catalog_stand_on_the_trust_page(import_trace: ImportTrace) -> None:
    entry: Values = {"lsp_name": EVIL, "catalog": 64, "installer": "C:\\setup.exe", "category": 1007}
    pages = Pages(import_trace(aborted(event("LspInstalled", at_us=50, header={"pid": PID}).with_values(**entry))))

    assert pages.json("trust")["catalog"]["rows"] == [
        {"t_ns": 50_000, "what": "installed", "name": EVIL, "bits": 64, "installer": "C:\\setup.exe", "entry": 1007, "pid": PID}
    ]
    html = pages.html("trust")
    assert "Changes of the Winsock catalog" in html
    assert "<script>alert" not in html


def test_a_trace_without_neighbours_shows_none_of_it(sample: Imported) -> None:
    client: TestClient = served(sample.folder)
    link = sample.rows("select socket from v_sockets limit 1")[0][0]
    html = client.get(f"/t/{sample.report.key}/sockets/{link}", headers={"accept": "text/html"}).text
    assert "As the network stack counted it" not in html
    assert "Names that led to" not in html
    assert "address_names" not in client.get(f"/t/{sample.report.key}/sockets?format=json").json()

"""Names of addresses from the answers of name resolution."""

import pytest

from collector.model.address_names import addresses_in
from tests.build import Trace
from tests.build.events import Event, event
from tests.build.imported import Imported, ImportTrace

NAME, RESULTS = "www.example.com", "type:  5 edge.example.net;::ffff:192.0.2.10;2001:db8::10;"
MAPPED = bytes(10) + b"\xff\xff"


def dns(at_us: float, name: str = NAME, results: str = RESULTS, *, status: int = 0, kind: int = 1, pid: int = 4120) -> Event:
    return event(
        "DnsQueryCompleted", at_us=at_us, header={"pid": pid}, query_name=name, query_type=kind, query_status=status, query_results=results
    )


def names(db: Imported) -> list[tuple[object, ...]]:
    return db.rows("select address, name, pid, answers from address_name order by n")


def test_an_answer_gives_its_addresses_a_name(import_trace: ImportTrace) -> None:
    db = import_trace(Trace().cpu(0, dns(10)))

    assert db.rows("select address, name, source, pid, first_ns, last_ns, answers from v_address_names order by address") == [
        ("192.0.2.10", NAME, "Microsoft-Windows-DNS-Client", 4120, 10_000, 10_000, 1),
        ("2001:db8::10", NAME, "Microsoft-Windows-DNS-Client", 4120, 10_000, 10_000, 1),
    ]
    assert db.rows("select ip from address_name where address like '192%'") == [(MAPPED + bytes((192, 0, 2, 10)),)]


def test_the_same_answer_again_is_counted(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(
            0,
            dns(10),
            dns(900),
            dns(950, pid=77),
            event("DnsCacheLookup", at_us=990, header={"pid": 4120}, query_name=NAME, query_results="192.0.2.10"),
        )
    )

    assert db.rows("select pid, first_ns, last_ns, answers from address_name where address = '192.0.2.10' order by n") == [
        (4120, 10_000, 990_000, 3),
        (77, 950_000, 950_000, 1),
    ]


@pytest.mark.parametrize(
    ("name", "asked", "results"),
    [
        ("WinsockGaiEnd", "node_name", "result"),
        ("WinsockGaiExEnd", "node_name", "result"),
        ("DnsQueryResponse", "query_name", "query_results"),
    ],
)
def test_each_source_has_its_name(import_trace: ImportTrace, name: str, asked: str, results: str) -> None:
    db = import_trace(Trace().cpu(0, event(name, at_us=10).with_values(**{asked: "db.example", results: "192.0.2.7:0;[2001:db8::7]:443;"})))

    assert {row[:2] for row in names(db)} == {("192.0.2.7", "db.example"), ("2001:db8::7", "db.example")}
    assert db.one("select distinct source from address_name") == (
        "Microsoft-Windows-Winsock-NameResolution" if name.startswith("Winsock") else "Microsoft-Windows-DNS-Client"
    )


def test_the_way_back_names_the_address_that_was_asked_about(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(
            0,
            dns(10, "10.2.0.192.in-addr.arpa", "type:  12 gate.example;", kind=12),
            dns(20, "999.2.0.192.in-addr.arpa", "type:  12 x.example;", kind=12),
        )
    )
    assert names(db) == [("192.0.2.10", "gate.example", 4120, 1)]


def test_what_failed_or_names_an_address_by_itself_gives_no_name(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(
            0,
            dns(10, status=9003),
            dns(11, "192.0.2.10"),
            dns(12, ""),
            dns(13, results=""),
            dns(14, results="type:  5 edge.example.net;0.0.0.0;"),
        )
    )
    assert names(db) == []


@pytest.mark.parametrize(
    ("results", "count"),
    [
        ("", 0),
        (";;;", 0),
        ("192.0.2.1;192.0.2.1;", 1),
        ("192.0.2.256;1.2.3;::1::2;[;fe80::1%7;", 1),
        ("".join(f"10.0.{i // 256}.{i % 256};" for i in range(1, 9_000)), 64),
        ("1" * 30_000, 0),
        ("nul\0;192.0.2.1\ud800;", 0),
    ],
)
def test_results_of_any_form_end_in_few_addresses(results: str, count: int) -> None:
    assert len(addresses_in(results)) == count


def test_a_name_without_end_is_cut(import_trace: ImportTrace) -> None:
    db = import_trace(Trace(buffer_size=128 * 1024).cpu(0, dns(10, "a" * 20_000, "192.0.2.1")))
    assert db.one("select name from address_name") == "a" * 255 + "…"


def test_a_text_that_never_ends_is_only_counted(import_trace: ImportTrace) -> None:
    whole = dns(10)
    db = import_trace(Trace().cpu(0, Event(name=whole.name, at_us=11, values=whole.values, cut=3), whole))

    assert len(names(db)) == 2
    assert db.rows("select kind, count from problem where kind = 'helpers_unread'") == [("helpers_unread", 1)]


def test_hostile_names_are_text(import_trace: ImportTrace) -> None:
    evil = "<script>alert(1)</script>\u202e.example"
    assert names(import_trace(Trace().cpu(0, dns(10, evil, "192.0.2.1"))))[0][1] == evil


def test_more_names_than_are_kept_are_counted(import_trace: ImportTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.model.address_names.AddressNames.__init__.__defaults__", (5,))
    db = import_trace(
        Trace().cpu(0, [dns(10 + i, f"h{i}.example", f"10.0.0.{i + 1}") for i in range(20)], dns(99, "h0.example", "10.0.0.1"))
    )

    assert len(names(db)) == 5
    assert db.one("select answers from address_name where name = 'h0.example'") == 2
    assert db.rows("select count, severity from problem where kind = 'names_left_out'") == [(15, "note")]

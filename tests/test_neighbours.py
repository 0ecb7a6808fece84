"""Virtual memory, changes of the Winsock catalog, and layouts that the trace brings along for what stands beside sockets and heaps."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.decoder import Decoder
from collector.etlwriter.metadata import trace_event_info
from collector.etlwriter.payloads import Values
from collector.etlwriter.records import Record
from collector.events import NEIGHBOUR_EVENTS, SCHEMAS
from collector.events.names import DNS_CLIENT
from collector.limits import Limits, parse_who
from collector.model.address_names import AddressNames
from collector.model.catalog_changes import CatalogChanges
from collector.model.processes import Processes
from collector.model.rows import count_of, unfolded
from collector.model.transport import Transport
from collector.model.virtual_memory import VirtualMemory
from collector.pipeline import import_trace as run_import
from collector.raw import HeaderKind
from collector.schema import EventKey, EventSchema, u32, utf16
from collector.source import Source
from collector.store.engine import TraceFolder
from tests.build import Trace, afd
from tests.build.events import ENDPOINT, PID, PROCESS, event
from tests.build.imported import Imported, ImportTrace
from tests.build.network import kernel_tcp
from tests.build.system import process_rundown
from tests.raw_events import CLOCK, raw_events
from tests.raw_events import Record as Raw

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
DNS = EventKey(DNS_CLIENT, False, 3008)


def described(schema: EventSchema, first: Record) -> Record:
    """The record that says how an event is laid out."""
    blob = trace_event_info(schema, first, provider_name="Microsoft-Windows-DNS-Client", pointer_size=8)
    return Record(kind=HeaderKind.FULL64, ticks=first.ticks, provider=METADATA, opcode=32, payload=blob)


def test_the_layout_in_the_trace_comes_before_ours(import_trace: ImportTrace) -> None:
    """Here the status stands first, as no Windows has it."""
    (ours,) = SCHEMAS[DNS]
    fields = {field.name: field for field in ours.fields if field.name != "more"}
    theirs = replace(ours, fields=(fields.pop("query_status"), *fields.values()))
    payload = bytes(4) + "a.example\0".encode("utf-16-le") + bytes(4) + bytes(8) + "192.0.2.1;\0".encode("utf-16-le")
    record = Record(kind=HeaderKind.EVENT64, ticks=Trace().clock.start_ticks + 100, provider=DNS_CLIENT, event_id=3008, payload=payload)

    db = import_trace(Trace().cpu(0, described(theirs, record), record))

    assert db.rows("select address, name from address_name") == [("192.0.2.1", "a.example")]


def test_an_event_that_the_trace_describes_otherwise_is_not_guessed(import_trace: ImportTrace) -> None:
    (ours,) = SCHEMAS[DNS]
    theirs = replace(ours, fields=(utf16("query_name"), u32("something_else")))
    built = event("DnsQueryCompleted", at_us=10, query_name="a.example", query_results="192.0.2.1;")
    trace = Trace()
    (record,) = built.records(8, trace.clock)

    db = import_trace(trace.cpu(0, described(theirs, record), record))

    assert db.rows("select count(*) from address_name") == [(0,)]
    assert db.rows("select count from problem where kind = 'helpers_unread'") == [(1,)]
    assert db.rows("select known from event_count where event_id = 3008") == [(0,)]


def test_virtual_memory_has_its_process_and_its_range(import_trace: ImportTrace) -> None:
    memory: Values = {"base_address": 0x7FF0_0000_0000, "region_size": 0x10_0000, "process_id": PID}
    db = import_trace(
        Trace().cpu(
            0,
            process_rundown(),
            event("VirtualAlloc", at_us=10, header={"tid": 11}, flags=0x3000).with_values(**memory),
            event("VirtualFree", at_us=20, header={"tid": 12}, flags=0x8000).with_values(**memory),
        )
    )

    assert db.rows("select process, t_ns, tid, what, base, size_bytes, flags from v_virtual_memory order by t_ns") == [
        ("4120@0", 10_000, 11, "alloc", "0x7ff000000000", 0x10_0000, "0x3000"),
        ("4120@0", 20_000, 12, "free", "0x7ff000000000", 0x10_0000, "0x8000"),
    ]


def test_virtual_memory_of_hostile_size_and_place_is_stored(import_trace: ImportTrace) -> None:
    db = import_trace(
        Trace().cpu(0, event("VirtualAlloc", at_us=10, base_address=(1 << 64) - 1, region_size=(1 << 64) - 1, process_id=0xFFFF_FFFF))
    )
    assert db.rows("select base, size_bytes from virtual_memory") == [(-1, (1 << 63) - 1)]


def test_changes_of_the_catalog(import_trace: ImportTrace) -> None:
    guid = UUID("e70f1aa0-ab8b-11cf-8ca3-00805f48a192")
    entry: Values = {"lsp_name": "Filter over [TCP/IP]", "catalog": 64, "installer": "setup.exe", "guid": guid, "category": 1007}
    db = import_trace(
        Trace().cpu(
            0,
            event("LspInstalled", at_us=10, header={"pid": 4120}).with_values(**entry),
            event("WinsockCatalogReset", at_us=30, header={"pid": 7}, catalog=32),
            event("LspRemoved", at_us=20, header={"pid": 4120}).with_values(**entry),
        )
    )

    assert db.rows("select * from v_catalog_changes order by t_ns") == [
        (10_000, "installed", "Filter over [TCP/IP]", 64, "setup.exe", str(guid), 1007, 4120),
        (20_000, "removed", "Filter over [TCP/IP]", 64, "setup.exe", str(guid), 1007, 4120),
        (30_000, "reset", None, 32, None, None, None, 7),
    ]


def test_a_trace_without_such_events_has_no_such_rows(sample: Imported) -> None:
    assert not any(
        sample.report.counts[name] for name in ("transport_flow", "transport_event", "address_name", "catalog_change", "virtual_memory")
    )


def beside() -> Trace:
    """Two processes with a connection and a name each."""
    other = ENDPOINT + 0x1000
    return Trace().cpu(
        0,
        process_rundown(),
        process_rundown(pid=77, eprocess=PROCESS + 0x1000, image="other.exe"),
        afd.opened(at_us=1),
        afd.bind(at_us=3, address="10.0.0.5:50001", enter_exit=1),
        afd.connected(at_us=4, address="192.0.2.10:443"),
        afd.opened(at_us=21, endpoint=other, pid=77, process=PROCESS + 0x1000),
        afd.bind(at_us=23, endpoint=other, pid=77, process=PROCESS + 0x1000, address="10.0.0.5:50002", enter_exit=1),
        afd.connected(at_us=24, endpoint=other, pid=77, process=PROCESS + 0x1000, address="192.0.2.11:443"),
        kernel_tcp("Connect", at_us=5),
        kernel_tcp("Connect", at_us=25, pid=77, local="10.0.0.5:50002", remote="192.0.2.11:443"),
        *(
            event("DnsQueryCompleted", at_us=30 + i, query_name=name, query_results=address)
            for i, (name, address) in enumerate((("orchard.example", "192.0.2.10"), ("quince.example", "192.0.2.11")))
        ),
        event("VirtualAlloc", at_us=40, base_address=0x10000, region_size=4096, process_id=PID),
        event("VirtualAlloc", at_us=41, base_address=0x20000, region_size=4096, process_id=77),
    )


def test_a_part_of_a_trace_has_what_belongs_to_it(tmp_path: Path) -> None:
    path, folder = beside().write(tmp_path / "two.etl"), TraceFolder(tmp_path / "database")
    with Source.open(path) as source:
        report = run_import(source, folder, limits=Limits((parse_who("77"),)))
    part = Imported(folder.trace_path(report.key), folder, report)

    assert part.rows("select local from v_transport_flows where socket is not null") == [("10.0.0.5:50002",)]
    assert part.rows("select count(*) from transport_flow") == [(1,)]
    assert part.rows("select deed, socket is not null from v_transport_events") == [("connect", 1)]
    assert part.rows("select name from address_name") == [("quince.example",)]
    assert part.rows("select base from v_virtual_memory") == [("0x20000",)]


def test_a_masked_copy_has_no_name_and_no_address_of_the_original(import_trace: ImportTrace, tmp_path: Path) -> None:
    made, target = import_trace(beside()), tmp_path / "masked.db"

    assert main(["export", made.report.key, "--mask", "-o", str(target), "--database", str(made.folder.root)]) == 0

    left = target.read_bytes()
    for secret in (b"orchard", b"quince", b"192.0.2.10", bytes((192, 0, 2, 11))):
        assert secret in made.path.read_bytes()
        assert secret not in left
    masked = Imported(target, made.folder, made.report)
    joined = "select count(*) from transport_flow f join address_name n on n.ip = f.remote_ip join address a on a.ip = n.ip"
    assert masked.rows(joined) == made.rows(joined) == [(2,)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NEIGHBOUR_EVENTS), st.binary(max_size=300), st.sampled_from((4, 8))), min_size=1, max_size=20))
def test_payloads_of_any_bytes_end_in_rows_or_a_count(items: list[tuple[EventSchema, bytes, int]]) -> None:
    records = [
        Raw(
            schema.provider,
            payload,
            event_id=None if schema.is_classic else schema.number,
            opcode=schema.number if schema.is_classic else 0,
            version=schema.versions[0],
            pointer_size=size,
        )
        for schema, payload, size in items
    ]
    decoder, processes = Decoder(), Processes(CLOCK)
    batch = decoder.decode(raw_events(records), CLOCK)
    transport, names = Transport(), AddressNames()

    for model in (transport, names, CatalogChanges(), VirtualMemory(processes)):
        for lines in model.advance(batch).values():
            assert count_of(lines) <= len(records)
    for rows in (transport.finish(), names.finish()):
        assert all(unfolded(lines) for lines in rows.values())
    assert not decoder.damaged
    assert sum(len(columns) for columns in batch.events.values()) + sum(t.count for t in decoder.passed_over.values()) == len(records)

"""What the writer writes, the reader reads: values, headers of every kind, processors and order."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.clock import Clock, ClockKind
from collector.decoder import Decoder
from collector.embedded import EmbeddedLayouts
from collector.etlwriter import Compression, EtlWriter, Item, Record, Session, payload_bytes
from collector.etlwriter.addresses import sockaddr_bytes
from collector.etlwriter.compression import lznt1, xpress
from collector.etlwriter.events import schema_of
from collector.etlwriter.items import items_bytes, related_activity, stack_trace, user_sid
from collector.etlwriter.metadata import trace_event_info
from collector.etlwriter.records import GROUPLESS, HOOK_KINDS, POINTER_SIZES
from collector.events.afd import AFD, AFD_EVENTS
from collector.events.heap import HEAP_EVENTS
from collector.events.system import SYSTEM_EVENTS
from collector.raw import HeaderKind, RawEvents, Reader, TraceHeader
from collector.readers import reader_for
from collector.schema import EventSchema, Field, FieldType, Ragged
from collector.source import Source
from tests.build import Trace, afd, event, heap, system

FOREIGN = UUID("11223344-5566-7788-99aa-bbccddeeff00")
START = 5_000_000

# One example a property is enough to find most faults, more are slow: each writes and reads a file.
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def clock(kind: ClockKind = ClockKind.QPC, ticks_per_second: int = 10_000_000) -> Clock:
    return Clock(kind, START, ticks_per_second, 133_800_768_000_000_000)


def write(path: Path, records: Iterable[tuple[int, Record]], session: Session | None = None, *, flush_every: int = 0) -> Path:
    """A file of records with their processors."""
    with path.open("w+b") as out:
        writer = EtlWriter(out, session or Session(buffer_size=4096, clock=clock()), flush_every=flush_every)
        for cpu, record in records:
            writer.add(record, cpu)
        writer.close()
    return path


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    with closing(Source.open(path)) as source:
        yield reader_for(source)


def header_of(path: Path) -> TraceHeader:
    with opened(path) as reader:
        return reader.header


def read_records(path: Path) -> list[dict[str, object]]:
    """All records behind the header buffer, in the reader's order."""
    with opened(path) as reader:
        return [row_of(raw, i) for raw in reader.windows() for i in range(len(raw)) if int(raw.buffer[i])]


def row_of(raw: RawEvents, i: int) -> dict[str, object]:
    """One record with all that its columns say."""
    columns = ("kind", "ticks", "cpu", "pid", "tid", "event_id", "opcode", "version", "level", "keyword", "activity", "pointer_size")
    items = b"" if raw.extended[i] < 0 else raw.data[int(raw.extended[i]) : int(raw.payload[i])].tobytes()
    row: dict[str, object] = {name: int(getattr(raw, name)[i]) for name in columns}
    return {**row, "provider": raw.providers[int(raw.provider[i])], "items": items, "payload": raw.payload_bytes(i)}


# ---------------------------------------------------------------------------------------------------- values

ADDRESSES = st.sampled_from(("192.0.2.1:80", "255.255.255.255:65535", "[2001:db8::1]:443", "[fe80::1%7]:53", "0.0.0.0:0"))
TEXT = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=12)


def value_of(field: Field, pointer_size: int) -> st.SearchStrategy[object]:
    """Any value that a field can hold."""
    width = field.width(pointer_size)
    if field.type in (FieldType.I8, FieldType.I16, FieldType.I32, FieldType.I64):
        assert width is not None
        return st.integers(-(1 << 8 * width - 1), (1 << 8 * width - 1) - 1)
    if field.type is FieldType.BOOL32:
        return st.booleans()
    if field.type in (FieldType.IPV6, FieldType.GUID):
        raw = st.binary(min_size=16, max_size=16)
        return raw if field.type is FieldType.IPV6 else raw.map(lambda b: UUID(bytes_le=b))
    if width is not None:
        return st.integers(0, (1 << 8 * width) - 1)
    pointer = st.integers(0, (1 << 8 * pointer_size) - 1)
    sid = st.lists(st.integers(0, 2**32 - 1), max_size=4).map(lambda parts: user_sid(*parts).data)
    return {
        FieldType.SOCKADDR: ADDRESSES,
        FieldType.ANSI: TEXT,
        FieldType.UTF16: st.text(st.characters(codec="utf-16-le", exclude_characters="\0"), max_size=12),
        FieldType.SID: st.one_of(st.just(b""), sid),
        FieldType.POINTERS: st.lists(pointer, max_size=5).map(tuple),
        FieldType.RANGES: st.lists(st.tuples(pointer, pointer), max_size=3).map(tuple),
    }[field.type]


@st.composite
def events(draw: st.DrawFn) -> tuple[EventSchema, int, dict[str, object]]:
    """A schema, a pointer size, and values for all of its fields."""
    schema = draw(st.sampled_from((*AFD_EVENTS, *HEAP_EVENTS, *SYSTEM_EVENTS)))
    pointer_size = draw(st.sampled_from((4, 8)))
    measured = {f.length_field for f in schema.fields if f.length_field}
    return schema, pointer_size, {f.name: draw(value_of(f, pointer_size)) for f in schema.fields if f.name not in measured}


def expected(field: Field, value: object) -> object:
    """A value as the decoder gives it: bytes for addresses and identities, plain numbers else."""
    if field.type is FieldType.SOCKADDR:
        assert isinstance(value, str)
        return sockaddr_bytes(value)
    if field.type is FieldType.GUID:
        assert isinstance(value, UUID)
        return value.bytes_le
    if field.type is FieldType.RANGES:
        assert isinstance(value, tuple)
        return [part for pair in value for part in pair]
    return list(value) if isinstance(value, tuple) else value


def decoded(column: object, row: int, length: int | None) -> object:
    """One cell of a decoded column in the same form."""
    if isinstance(column, Ragged):
        return column.row(row).tolist()
    if isinstance(column, list):
        return column[row]
    assert isinstance(column, np.ndarray)
    cell = column[row]
    return cell.tobytes()[:length] if cell.shape else cell.item()


@FEW
@given(events=st.lists(events(), min_size=1, max_size=8), compression=st.sampled_from((Compression.NONE, Compression.XPRESS)))
def test_values_come_back(tmp_path: Path, events: list[tuple[EventSchema, int, dict[str, object]]], compression: Compression) -> None:
    records = []
    for n, (schema, pointer_size, values) in enumerate(events):
        version = max(schema.versions, default=2)
        record = record_of_schema(schema, values, ticks=START + n, pointer_size=pointer_size, version=version)
        records.append((0, record))
    path = write(tmp_path / "t.etl", records, Session(buffer_size=4096, clock=clock(), compression=compression))

    seen: dict[int, dict[str, object]] = {}
    with opened(path) as reader:
        decoder = Decoder(header=reader.header)
        for raw in reader.windows():
            batch = decoder.decode(raw, reader.header.clock)
            assert batch.unknown.size == batch.damaged.size == batch.newer.size == 0
            for columns in batch.events.values():
                for i, row in enumerate(columns.rows.tolist()):
                    n = int(raw.ticks[row]) - START
                    cells: dict[str, object] = {"name": columns.name}
                    for field in events[n][0].fields:
                        length = columns.numbers(field.length_field)[i].item() if field.length_field else None
                        cells[field.name] = decoded(columns.fields[field.name], i, length)
                    seen[n] = cells

    for n, (schema, _, values) in enumerate(events):
        assert seen[n]["name"] == schema.name
        for field in schema.fields:
            if field.name in values:
                want, got = expected(field, values[field.name]), seen[n][field.name]
                if field.type is FieldType.SID:
                    assert isinstance(got, bytes)
                    got = got[: len(values[field.name])]  # type: ignore[arg-type]  # bytes
                assert got == want, (schema.name, field.name)


def record_of_schema(schema: EventSchema, values: dict[str, object], *, ticks: int, pointer_size: int, version: int) -> Record:
    """A record of just this declaration, where several have one name."""
    payload = payload_bytes(schema, values, pointer_size=pointer_size)  # type: ignore[arg-type]  # any value a field can hold
    is_wide = pointer_size == 8
    if not schema.is_classic:
        kind = HeaderKind.EVENT64 if is_wide else HeaderKind.EVENT32
        return Record(kind=kind, ticks=ticks, payload=payload, provider=schema.provider, event_id=schema.number, version=version)
    kind = HeaderKind.FULL64 if is_wide else HeaderKind.FULL32
    return Record(kind=kind, ticks=ticks, payload=payload, provider=schema.provider, opcode=schema.number, version=version)


# ---------------------------------------------------------------------------------------------------- headers

KINDS = [kind for kind in HeaderKind if kind in POINTER_SIZES]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_header_kind_comes_back(tmp_path: Path, kind: HeaderKind) -> None:
    record = Record(
        kind=kind,
        ticks=START + 7,
        payload=b"payload!!",
        provider=FOREIGN,
        group=0x10,
        event_id=77,
        opcode=33,
        version=3,
        level=5,
        keyword=0x8000_0000_0000_0012,
        pid=4321,
        tid=1234,
        activity=UUID(bytes_le=(0xFFFF_9A0C_4100_0A20).to_bytes(8, "little") + bytes(8)),
        instance=5,
        parent_instance=6,
    )

    (got,) = read_records(write(tmp_path / "t.etl", [(2, record)]))

    assert (got["kind"], got["ticks"], got["cpu"]) == (kind, START + 7, 2)
    assert got["payload"] == b"payload!!"
    assert (got["opcode"], got["version"], got["pointer_size"]) == (33, 3, POINTER_SIZES[kind])
    has_ids = kind not in (HeaderKind.PERFINFO32, HeaderKind.PERFINFO64)
    assert (got["pid"], got["tid"]) == ((4321, 1234) if has_ids else (-1, -1))
    if kind in HOOK_KINDS:
        assert got["provider"] == UUID("222962ab-6180-4b88-a825-346b75f2a24a")
    else:
        assert got["provider"] == FOREIGN
    is_modern = kind not in HOOK_KINDS and kind not in GROUPLESS
    assert (got["event_id"], got["keyword"]) == ((77, 0x8000_0000_0000_0012) if is_modern else (0, 0))
    assert got["activity"] == (0xFFFF_9A0C_4100_0A20 if is_modern else 0)


@pytest.mark.parametrize("kind", sorted(HOOK_KINDS), ids=lambda kind: kind.name)
def test_counter_words_stand_between_header_and_payload(tmp_path: Path, kind: HeaderKind) -> None:
    record = Record(kind=kind, ticks=START, payload=b"abc", group=0x10, opcode=33, version=2, pebs=9, pmc=(1, 2, 3))

    (got,) = read_records(write(tmp_path / "t.etl", [(0, record)]))

    assert (got["version"], got["payload"]) == (2, b"abc")


def test_extended_items_stand_between_header_and_payload(tmp_path: Path) -> None:
    items = (stack_trace((0x7FF6_0000_1000, 0x7FF6_0000_2000)), related_activity(FOREIGN), user_sid(21, 7), Item(10, b"\1\2\3"))
    record = Record(kind=HeaderKind.EVENT64, ticks=START, payload=b"abcd", provider=FOREIGN, items=items)

    (got,) = read_records(write(tmp_path / "t.etl", [(0, record)]))

    assert got["items"] == items_bytes(items)
    assert got["payload"] == b"abcd"


def test_items_are_linked_and_padded() -> None:
    data = items_bytes((Item(10, b"\1\2\3"), Item(13, bytes(8))))

    assert data.hex(" ", 2) == "1000 0a00 0100 0300 0102 0300 0000 0000 1000 0d00 0000 0800 0000 0000 0000 0000"


def test_a_message_has_what_its_options_say(tmp_path: Path) -> None:
    whole = Record(
        kind=HeaderKind.MESSAGE, ticks=START + 3, event_id=17, options=0xAB, sequence=5, provider=FOREIGN, pid=8, tid=9, payload=b"args"
    )
    bare = Record(kind=HeaderKind.MESSAGE, ticks=START + 3, event_id=18, options=0x80, payload=b"x")

    got = read_records(write(tmp_path / "t.etl", [(0, whole), (0, bare)]))

    assert [(r["kind"], r["event_id"], r["payload"]) for r in got] == [(0x90, 17, b"args"), (0x90, 18, b"x")]
    assert (got[0]["provider"], got[0]["pid"], got[0]["tid"]) == (FOREIGN, 8, 9)
    assert got[1]["ticks"] == START + 3  # without a time of its own it takes that of the record before


# ---------------------------------------------------------------------------------------------------- order and buffers


@FEW
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 700)), min_size=1, max_size=60),
    flush_every=st.sampled_from((0, 5)),
    is_windows7=st.booleans(),
    is_merged=st.booleans(),
    is_closed=st.booleans(),
)
def test_records_come_back_in_time_order(
    tmp_path: Path, steps: list[tuple[int, int, int]], flush_every: int, is_windows7: bool, is_merged: bool, is_closed: bool
) -> None:
    ticks, logged = START, []
    for n, (cpu, wait, size) in enumerate(steps):
        ticks += wait
        logged.append((cpu, Record(kind=HeaderKind.EVENT64, ticks=ticks, provider=FOREIGN, event_id=n, payload=bytes(size))))
    session = Session(buffer_size=2048, clock=clock(), is_windows7=is_windows7, is_merged=is_merged, is_closed=is_closed)

    got = read_records(write(tmp_path / "t.etl", logged, session, flush_every=flush_every))

    # On one processor equal times keep their order; between processors the order is by processor.
    want = sorted(logged, key=lambda pair: (pair[1].ticks, pair[0]))
    assert [(r["event_id"], r["cpu"], r["ticks"], len(r["payload"])) for r in got] == [  # type: ignore[arg-type]  # bytes
        (r.event_id, cpu, r.ticks, len(r.payload)) for cpu, r in want
    ]


def buffers_of(path: Path) -> list[tuple[int, int, int, int, bytes]]:
    """Sequence, processor word, flags, end of data and bytes of each buffer, by the offsets of the buffer header."""
    data, found, position = path.read_bytes(), [], 0
    while position < len(data):
        (size,) = struct.unpack_from("<I", data, position)
        buffer = data[position : position + size]
        (sequence,) = struct.unpack_from("<q", buffer, 0x18)
        (processor,) = struct.unpack_from("<H", buffer, 0x28)
        filled, flags = struct.unpack_from("<IH", buffer, 0x30)
        found.append((sequence, processor, flags, filled, buffer))
        position += size
    return found


def some_records(count: int, size: int = 400) -> list[Record]:
    return [Record(kind=HeaderKind.EVENT64, ticks=START + n, provider=FOREIGN, event_id=n, payload=bytes(size)) for n in range(count)]


def test_sequence_numbers_follow_the_opening_and_the_file_the_flushing(tmp_path: Path) -> None:
    # Processor 1 opens buffer 1 and fills it last; processor 0 opens and fills 2 and 3 meanwhile.
    records = some_records(9)
    logged = [(1, records[0]), *((0, record) for record in records[1:8]), (1, records[8])]

    buffers = buffers_of(write(tmp_path / "t.etl", logged, Session(buffer_size=2048, clock=clock())))

    assert [(sequence, cpu) for sequence, cpu, *_ in buffers] == [(0, 0), (2, 0), (3, 0), (1, 1)]
    assert [flags & 0x0001 for _, _, flags, _, _ in buffers] == [1, 0, 0, 1]  # flush markers: the header buffer and the last one


def test_left_over_bytes_stand_between_records_and_ones_behind_them(tmp_path: Path) -> None:
    record = Record(kind=HeaderKind.EVENT64, ticks=START, provider=FOREIGN, payload=b"x")

    _, (_, _, _, filled, buffer) = buffers_of(write(tmp_path / "t.etl", [(0, record)]))

    assert filled == 72 + 88
    assert buffer[72 + 81 : filled] != bytes(7)
    assert set(buffer[filled:]) == {0xFF}
    assert len(buffer) == 4096


def test_windows_7_writes_the_alignment_above_the_processor(tmp_path: Path) -> None:
    session = Session(buffer_size=4096, clock=clock(), is_windows7=True)

    _, (_, processor, flags, _, _) = buffers_of(write(tmp_path / "t.etl", [(2, some_records(1)[0])], session))

    assert (processor, flags & 0x0020) == (0x0802, 0)


def test_a_wrapped_circular_file_keeps_the_newest_buffers(tmp_path: Path) -> None:
    session = Session(buffer_size=2048, clock=clock(), maximum_buffers=4)
    path = write(tmp_path / "t.etl", [(0, record) for record in some_records(20)], session)

    assert [sequence for sequence, *_ in buffers_of(path)] == [0, 4, 5, 3]
    assert header_of(path).is_circular
    assert [r["event_id"] for r in read_records(path)] == list(range(8, 20))


def test_losses_are_counted_flagged_and_leave_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "t.etl"
    with path.open("w+b") as out:
        writer = EtlWriter(out, Session(buffer_size=4096, clock=clock(), lost_events=2))
        writer.add(some_records(1)[0])
        writer.lose_events(5)
        writer.lose_buffers(3)
        writer.add(some_records(2)[1])
        writer.close()

    assert [(sequence, flags & 0x0002) for sequence, _, flags, _, _ in buffers_of(path)] == [(0, 0), (1, 2), (5, 0)]
    header = header_of(path)
    assert (header.events_lost, header.buffers_lost) == (7, 3)


def test_time_may_not_go_back_on_one_processor(tmp_path: Path) -> None:
    first, second = some_records(2)
    with pytest.raises(ValueError, match="processor 0: a record at tick"):
        write(tmp_path / "t.etl", [(0, second), (0, first)])


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_record_must_fit_into_a_buffer(tmp_path: Path, excess: int) -> None:
    record = Record(kind=HeaderKind.EVENT64, ticks=START, provider=FOREIGN, payload=bytes(4096 - 72 - 80 + excess))
    if excess > 0:
        with pytest.raises(ValueError, match="does not fit"):
            write(tmp_path / "t.etl", [(0, record)])
    else:
        assert len(read_records(write(tmp_path / "t.etl", [(0, record)]))) == 1


# ---------------------------------------------------------------------------------------------------- log file header


@pytest.mark.parametrize("pointer_size", [4, 8])
@pytest.mark.parametrize("kind", list(ClockKind))
def test_the_log_file_header_comes_back(tmp_path: Path, pointer_size: int, kind: ClockKind) -> None:
    ticks_per_second = {ClockKind.QPC: 2_500_000, ClockKind.SYSTEM_TIME: 10_000_000, ClockKind.CPU_CYCLES: 2_400_000_000}[kind]
    start = 133_800_768_000_000_000 if kind is ClockKind.SYSTEM_TIME else START
    session = Session(
        pointer_size=pointer_size,
        processors=6,
        buffer_size=4096,
        clock=Clock(kind, start, ticks_per_second, 133_800_768_000_000_000),
        os_major=6,
        os_minor=1,
        os_build=7601,
        name="My session",
        file_name="D:\\x.etl",
        lost_events=11,
        lost_buffers=2,
        end_ticks=start + 60 * ticks_per_second,
    )
    record = Record(kind=HeaderKind.EVENT64, ticks=start + 5, provider=FOREIGN)

    header = header_of(write(tmp_path / "t.etl", [(0, record)], session))

    assert header.clock == session.clock
    assert (header.pointer_size, header.processors, header.buffer_size) == (pointer_size, 6, 4096)
    assert (header.os_version.startswith("6.1"), header.os_build) == (True, 7601)
    assert (header.events_lost, header.buffers_lost, header.buffers_written) == (11, 2, 2)
    assert (header.session_name, header.file_name) == ("My session", "D:\\x.etl")
    assert header.end_filetime == 133_800_768_000_000_000 + 600_000_000
    assert (header.is_closed, header.is_merged, header.is_compressed, header.is_circular) == (True, False, False, False)


def test_an_unclosed_file_says_neither_end_nor_buffers(tmp_path: Path) -> None:
    session = Session(buffer_size=4096, clock=clock(), is_closed=False)

    path = write(tmp_path / "t.etl", [(0, some_records(1)[0])], session)

    header = header_of(path)
    assert (header.is_closed, header.buffers_written, header.end_filetime) == (False, 0, 0)
    assert [flags & 1 for _, _, flags, _, _ in buffers_of(path)] == [0, 0]
    assert len(read_records(path)) == 1


def test_header_fields_can_be_overwritten() -> None:
    data = Trace(has_metadata=False).cpu(0, afd.send(at_us=1)).with_header(cpu_mhz=0, perf_freq=-1).bytes()

    assert struct.unpack_from("<I", data, 72 + 32 + 0x34) == (0,)
    assert struct.unpack_from("<q", data, 72 + 32 + 0x100) == (-1,)


# ---------------------------------------------------------------------------------------------------- compression, metadata


@given(st.one_of(st.binary(max_size=3000), st.lists(st.sampled_from((b"abcabc", b"\0" * 40, b"xyz")), max_size=300).map(b"".join)))
def test_what_is_packed_can_be_unpacked(data: bytes) -> None:
    import pyfwnt

    if data:
        assert pyfwnt.lzxpress_decompress(xpress(data), len(data)) == data
        assert pyfwnt.lznt1_decompress(lznt1(data), len(data)) == data


@pytest.mark.parametrize("compression", [Compression.LZNT1, Compression.XPRESS], ids=lambda c: c.name)
def test_a_compressed_file_is_read_as_the_plain_one(tmp_path: Path, compression: Compression) -> None:
    records = [(n % 3, record) for n, record in enumerate(some_records(60))]
    plain = write(tmp_path / "plain.etl", records, Session(buffer_size=4096, clock=clock()))
    packed = write(tmp_path / "packed.etl", records, Session(buffer_size=4096, clock=clock(), compression=compression))

    assert packed.stat().st_size < plain.stat().st_size / 2
    assert header_of(packed).is_compressed
    assert read_records(packed) == read_records(plain)


@pytest.mark.parametrize("schema", AFD_EVENTS, ids=lambda schema: schema.name)
@pytest.mark.parametrize("pointer_size", [4, 8])
def test_metadata_describes_the_declared_layout(schema: EventSchema, pointer_size: int) -> None:
    kind = HeaderKind.EVENT64 if pointer_size == 8 else HeaderKind.EVENT32
    first = Record(kind=kind, ticks=START, provider=AFD, event_id=schema.number, level=4, keyword=1)
    layouts = EmbeddedLayouts()

    layouts.learn(32, trace_event_info(schema, first, provider_name="Some-Provider", pointer_size=pointer_size))

    assert (layouts.damaged, layouts.unsupported) == (0, {})
    assert layouts.provider_names == {AFD: "Some-Provider"}
    learned = layouts.schemas[schema.key, 0]
    assert [field.name for field in learned.fields] == [field.name for field in schema.fields]
    assert layouts.layout(schema.key, 0, like=schema) is not None


def test_metadata_stands_before_the_first_event_that_it_describes() -> None:
    trace = Trace(has_metadata=True).cpu(1, afd.send(at_us=5), afd.send(at_us=6), afd.receive(at_us=7))
    kinds = [record_kind(data) for data in record_starts(trace.bytes())]

    assert kinds == [HeaderKind.FULL64, HeaderKind.EVENT64, HeaderKind.EVENT64, HeaderKind.FULL64, HeaderKind.EVENT64]


def record_starts(data: bytes) -> Sequence[bytes]:
    """The records of the second buffer, by the size in their headers."""
    buffer = data[8192:]
    (end,) = struct.unpack_from("<I", buffer, 0x30)
    found, position = [], 72
    while position < end:
        (size,) = struct.unpack_from("<H", buffer, position)
        found.append(buffer[position : position + size])
        position += (size + 7) & ~7
    return found


def record_kind(record: bytes) -> HeaderKind:
    return HeaderKind(record[2])


# ---------------------------------------------------------------------------------------------------- builders


def test_sockets_addresses_are_those_of_windows() -> None:
    assert sockaddr_bytes("192.0.2.1:80").hex() == "02000050c00002010000000000000000"
    assert sockaddr_bytes("[fe80::1%7]:53").hex() == "1700003500000000fe80000000000000000000000000000107000000"
    with pytest.raises(ValueError, match="not a socket address"):
        sockaddr_bytes("somewhere:80")


def test_a_built_stack_of_a_heap_event_is_a_record_of_its_own() -> None:
    alloc, stack = (record for _, record in Trace().cpu(0, heap.alloc(at_us=10, stack=(0x7FF6_0000_1000,))).records())

    assert (alloc.kind, stack.kind) == (HeaderKind.SYSTEM64, HeaderKind.PERFINFO64)
    assert stack.payload == struct.pack("<QIIQ", alloc.ticks, alloc.pid, alloc.tid, 0x7FF6_0000_1000)


def test_every_event_can_be_built_from_nothing() -> None:
    names = {schema.name for schema in (*AFD_EVENTS, *HEAP_EVENTS, *SYSTEM_EVENTS)}

    built = Trace(buffer_size=64 * 1024).cpu(0, [event(name, at_us=n) for n, name in enumerate(sorted(names))])

    assert len(built.records()) == len(names)
    assert len(built.bytes()) == 2 * 64 * 1024


def test_missing_and_strange_values_are_refused() -> None:
    with pytest.raises(KeyError, match="AfdClose needs a value for enter_exit"):
        payload_bytes(schema_of("AfdClose"), {}, pointer_size=8)
    with pytest.raises(KeyError, match="AfdClose has no field"):
        payload_bytes(schema_of("AfdClose"), {"colour": 1}, pointer_size=8)
    with pytest.raises(KeyError, match="HeapAlloc has no version 7"):
        schema_of("HeapAlloc", 7)


def test_damage_is_done_to_the_file_as_asked() -> None:
    def trace() -> Trace:
        return Trace(buffer_size=4096).cpu(0, afd.send(at_us=1)).cpu(1, system.process_start(at_us=2))

    whole = trace().bytes()
    assert trace().cut_at(70).bytes() == whole[:70]
    assert trace().cut_at(-1).bytes() == whole[:-1]
    assert trace().swap_buffers().bytes() == whole[:4096] + whole[8192:] + whole[4096:8192]
    assert trace().zero_buffer(1).bytes() == whole[:4096] + bytes(4096) + whole[8192:]
    assert trace().drop_buffer(2).bytes() == whole[:8192]
    assert trace().repeat_buffer(2).bytes() == whole + whole[8192:]
    assert trace().flip(4100, 0x10).bytes()[4100] == whole[4100] ^ 0x10
    assert trace().overwrite(0, b"ZZ").bytes()[:3] == b"ZZ" + whole[2:3]
    assert trace().overwrite_in_buffer(1, 0x30, b"\0").bytes()[4096 + 0x30] == 0
    assert trace().append(b"tail").bytes() == whole + b"tail"

"""What is fuzzed: each target takes any bytes and may end in a result or in an error of ours, within its time; all else is a fault."""

import atexit
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

import numpy as np

from collector.decoder import Decoder
from collector.embedded import EmbeddedLayouts
from collector.errors import TraceError
from collector.inventory import Inventory
from collector.packages import traces_in
from collector.pipeline import import_trace
from collector.readers import reader_for
from collector.readers.etl import EtlReader
from collector.readers.etl_buffers import Compression, expand
from collector.sockaddr import from_sockaddr
from collector.source import Source
from collector.store.engine import TraceFolder
from collector.texts import event_log, form_of, trace_of_text
from collector.texts.form import Told
from tests.etl_bytes import START_TICKS, buffer, event, full, trace
from tests.etl_reading import check_window
from tests.fuzz import seeds

__all__ = ["LIBRARY", "TARGETS", "Target", "TooSlow"]

METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
MOST_UNPACKED = 4 << 20


class TooSlow(Exception):
    """An input took more time than its size allows."""


@dataclass(frozen=True, slots=True)
class Target:
    """One surface that hostile bytes reach; what it takes longer than `fixed_seconds` must be paid by the input's size."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], tuple[bytes, ...]]
    is_file: bool
    fixed_seconds: float = 2.0
    seconds_a_megabyte: float = 60.0

    def check(self, content: bytes) -> None:
        """Run on one input. Raises what the target lets escape, and TooSlow."""
        started = time.process_time()
        self.run(content)
        seconds = time.process_time() - started
        if seconds > self.fixed_seconds + self.seconds_a_megabyte * len(content) / (1 << 20):
            raise TooSlow(f"{self.name}: {seconds:.1f} s of processor time for {len(content):,} bytes")


def _source(content: bytes) -> Source:
    """Bytes as an open file, without a file system where the system can."""
    path = Path("fuzzed.etl")
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("fuzzed")
    else:
        number, _ = tempfile.mkstemp()
    os.write(number, content)
    return Source(io.FileIO(number, "r"), path, len(content))


def container(content: bytes) -> None:
    """Buffers and records, in small windows, each held to what it promises."""
    if not content:
        return
    with _source(content) as source:
        try:
            reader = EtlReader(source, window_buffers=3, window_bytes=4096)
            count, last = 0, None
            for raw in reader.windows():
                check_window(raw, first_seq=count, not_before=last)
                count, last = count + len(raw), int(raw.ticks[-1])
            assert reader.bytes_done == reader.bytes_total
            for problem in reader.problems:
                assert problem.text
        except TraceError as error:
            _is_one_line(error)


def decoded(content: bytes) -> None:
    """Records to events, and their counts."""
    if not content:
        return
    with _source(content) as source:
        try:
            reader = reader_for(source)
            clock = reader.header.clock
            decoder, inventory = Decoder(header=reader.header), Inventory(clock)
            count = 0
            for raw in reader.windows():
                batch = decoder.decode(raw, clock)
                inventory.add(batch)
                count += len(raw)
                for columns in batch.events.values():
                    assert np.all(columns.rows < len(raw))
            assert sum(one.count for one in inventory.counts()) == count
        except TraceError as error:
            _is_one_line(error)


def collected(content: bytes) -> None:
    """The whole way into a database."""
    if not content:
        return
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder, _source(content) as source:
        try:
            report = import_trace(source, TraceFolder(Path(folder)))
        except TraceError as error:
            _is_one_line(error)
            return
        for problem in report.problems:
            assert problem.text


def metadata(content: bytes) -> None:
    """What a trace says of its own events: read alone, and then used on a record."""
    layouts = EmbeddedLayouts()
    for opcode in (32, 33):
        layouts.learn(opcode, content)
    content = content[:60_000]
    record = event(START_TICKS + 1, 7, content[-64:], guid=seeds.PROVIDER)
    pieces = [full(START_TICKS + 1, METADATA, opcode, content[:30_000]) for opcode in (32, 33)]
    size = (2 * len(content) + 8192) // 1024 * 1024
    decoded(trace(buffer([*pieces, record], size=size), buffer_size=size))


def packed(content: bytes) -> None:
    """Compressed bytes; the first one chooses the format."""
    methods = (Compression.LZNT1, Compression.XPRESS, Compression.XPRESS_HUFF)
    if content:
        for wanted in (1, 4096, 1 << 20):
            assert len(expand(content[1:], wanted, methods[content[0] % 3])) <= wanted


def text_form(content: bytes) -> None:
    """A text that a tool made, read back into records; what is of no form is refused as such."""
    form = form_of(content[:512])
    if form is None:
        return
    with _source(content) as source:
        try:
            with trace_of_text(form, source, None, lambda: False) as trace:
                for problem in trace.problems:
                    assert problem.text
                for raw in reader_for(trace).windows():
                    assert len(raw)
        except TraceError as error:
            _is_one_line(error)


class _Lasting(event_log._Library):
    """One process of the library for all inputs, as its start takes longer than one; what it answers is read to the end."""

    def __exit__(self, *_: object) -> None:
        pass

    def records(self, chunk: bytes, told: Told) -> Iterator[tuple[int, str]]:
        return iter(list(super().records(chunk, told)))


def logged(content: bytes) -> None:
    """An event log."""
    with patch.object(event_log, "_Library", lambda name: LIBRARY):
        text_form(content)


def package(content: bytes) -> None:
    """A package in any kind, and the traces in it."""
    if not content:
        return
    faults: list[str] = []
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        path = Path(folder) / "fuzzed"
        path.write_bytes(content)
        try:
            with closing(traces_in(path, on_fault=faults.append, most_bytes=MOST_UNPACKED)) as sources:
                for source in sources:
                    with source:
                        assert source.told_by or source.size <= max(MOST_UNPACKED, len(content))
                        _read_through(source)
        except TraceError as error:
            _is_one_line(error)
    assert all("\n" not in fault for fault in faults)


def _read_through(source: Source) -> None:
    try:
        for raw in reader_for(source).windows():
            assert len(raw)
    except TraceError as error:
        _is_one_line(error)


def addresses(content: bytes) -> None:
    """Socket addresses."""
    found = from_sockaddr(content)
    assert found is None or found.text


def _is_one_line(error: TraceError) -> None:
    assert "\n" not in str(error)


def _memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


LIBRARY = _Lasting("fuzzed.evtx")
atexit.register(LIBRARY._end)
_ADDRESSES = (bytes.fromhex("02001f90c0000201") + bytes(8), bytes.fromhex("1700") + bytes(26))

TARGETS = {
    target.name: target
    for target in (
        Target("container", container, seeds.files, is_file=True),
        Target("decoded", decoded, seeds.files, is_file=True),
        Target("collected", collected, seeds.files, is_file=True, fixed_seconds=10.0),
        Target("metadata", metadata, seeds.blobs, is_file=False),
        Target("packed", packed, seeds.packed_pieces, is_file=False),
        Target("event_xml", text_form, seeds.event_texts, is_file=False),
        Target("event_log", logged, seeds.event_logs, is_file=False),
        Target("tracerpt_csv", text_form, seeds.csv_texts, is_file=False),
        Target("netsh_text", text_form, seeds.message_texts, is_file=False),
        Target("xperf_dump", text_form, seeds.dump_texts, is_file=False),
        Target("package", package, seeds.packages, is_file=False),
        Target("addresses", addresses, lambda: _ADDRESSES, is_file=False),
    )
}

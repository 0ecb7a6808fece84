"""Event logs: what the socket events of a recording say, and clear words for what is damaged, hostile or cannot be told."""

import contextlib
import struct
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.clock import FILETIME_PER_SECOND
from collector.errors import EmptyTrace, FormatError, TraceError
from collector.etlwriter import EtlWriter
from collector.events.afd import AFD
from collector.texts import event_log
from tests.build import Trace, afd
from tests.build.evtx import CHUNK_BYTES, FILE_HEADER_BYTES, evtx, evtx_of
from tests.build.imported import Imported, collect
from tests.build.told import told_events
from tests.test_invariance import sample_records, sample_session
from tests.text_answers import SAME, a_trace, answers, collected

pytest.importorskip("evtx", exc_type=ImportError)


def log_of(folder: Path, trace: Trace) -> bytes:
    return evtx(trace.write(folder / "written.etl"))


def put(folder: Path, content: bytes) -> Path:
    path = folder / "Winsock.evtx"
    path.write_bytes(content)
    return path


def only_sockets(folder: Path) -> Path:
    """The socket events of the sample in a file that begins with the first of them, as a log does."""
    clock, entries = sample_records()
    found = [entry for entry in entries if entry.record.provider == AFD]
    first = min(entry.record.ticks for entry in found)
    since = (first - clock.start_ticks) * FILETIME_PER_SECOND // clock.ticks_per_second
    session = replace(sample_session(), clock=replace(clock, start_ticks=first, start_filetime=clock.start_filetime + since))
    path = folder / "sockets.etl"
    with path.open("w+b") as out:
        writer = EtlWriter(out, session)
        for entry in found:
            writer.add(entry.record, entry.cpu)
        writer.close()
    return path


def damage(found: Imported) -> tuple[int, str]:
    ((count, text),) = found.rows("SELECT count, text FROM v_problems WHERE kind = 'damaged_text'")
    return count, text


def test_the_sockets_of_the_story_are_the_same_from_a_log(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    path = only_sockets(tmp_path)
    whole = collect(path, tmp_path / "etl")
    found = collected(put(tmp_path, evtx(path)), tmp_path)
    wanted, given_ = answers(whole), answers(found)
    assert [view for view in SAME if wanted[view] != given_[view]] == []
    assert len(wanted["v_operations"]) > 1000
    assert len(wanted["v_overlaps"]) > 3
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")
    said = found.one("SELECT text || effect FROM v_problems WHERE kind = 'event_log_form'")
    assert "read from an event log, in which Windows keeps the events of a channel." in said
    assert "recording" not in said
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'text_form'")
    assert "neither processors nor processes nor heaps" in said


@pytest.mark.parametrize("pointer_size", [4, 8])
def test_times_keep_their_100_ns(pointer_size: int, tmp_path: Path) -> None:
    trace = Trace(pointer_size=pointer_size).cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512, duration_us=240))
    events = [replace(event, filetime=event.filetime + 3) for event in told_events(trace.write(tmp_path / "t.etl"))[1] if event.is_manifest]
    events[0] = replace(events[0], filetime=events[0].filetime - 3)
    found = collected(put(tmp_path, evtx_of(events)), tmp_path)
    assert found.one("SELECT completed_ns - posted_ns FROM v_operations WHERE kind = 'send'") == 240_000
    assert found.one("SELECT posted_ns FROM v_operations WHERE kind = 'send'") % 1000 == 300
    assert found.one("SELECT pointer_size FROM v_trace") == pointer_size


def test_names_of_functions_and_odd_texts_of_a_log_are_no_markup(tmp_path: Path) -> None:
    text = log_of(tmp_path, a_trace()).replace("PC".encode("utf-16-le"), "<&".encode("utf-16-le"))
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count(*) FROM v_sockets") == 1
    assert "other checksums" in damage(found)[1]


def two_chunks(folder: Path) -> bytes:
    many = [afd.sent(at_us=100 + 10 * n, length_bytes=512, duration_us=5) for n in range(400)]
    content = log_of(folder, Trace().cpu(0, afd.opened(at_us=10), *many))
    assert len(content) >= FILE_HEADER_BYTES + 2 * CHUNK_BYTES
    return content


def sends(found: Imported) -> int:
    return int(found.one("SELECT count(*) FROM v_operations WHERE kind = 'send'"))


def test_a_cut_log_gives_its_whole_chunks(tmp_path: Path) -> None:
    content = two_chunks(tmp_path)
    found = collected(put(tmp_path, content[:-20_000]), tmp_path)
    assert 100 < sends(found) < 400
    assert "is cut" in damage(found)[1]


def test_a_chunk_of_other_bytes_is_passed_over(tmp_path: Path) -> None:
    content = bytearray(two_chunks(tmp_path))
    content[FILE_HEADER_BYTES : FILE_HEADER_BYTES + CHUNK_BYTES] = b"x" * CHUNK_BYTES
    found = collected(put(tmp_path, bytes(content)), tmp_path)
    assert 0 < sends(found) < 400
    assert "is none" in damage(found)[1]


def test_a_chunk_of_zero_bytes_was_never_used(tmp_path: Path) -> None:
    found = collected(put(tmp_path, two_chunks(tmp_path) + bytes(3 * CHUNK_BYTES)), tmp_path)
    assert sends(found) == 400
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


def test_changed_bytes_are_noticed(tmp_path: Path) -> None:
    content = bytearray(two_chunks(tmp_path))
    content[FILE_HEADER_BYTES + 3000] ^= 1
    assert "the chunk at byte 4,096 has other checksums than its bytes" in damage(collected(put(tmp_path, bytes(content)), tmp_path))[1]


@pytest.mark.parametrize(
    "content", [b"ElfFile\0", b"ElfFile\0" + bytes(CHUNK_BYTES), b"ElfFile\0".ljust(FILE_HEADER_BYTES, b"\xff") + b"\xff" * 70_000]
)
def test_a_log_of_nothing_has_no_event(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(EmptyTrace, match="no event"):
        collected(put(tmp_path, content), tmp_path)


def resealed(content: bytearray) -> bytes:
    """The log with the right checksums for its first chunk."""
    chunk = content[FILE_HEADER_BYTES : FILE_HEADER_BYTES + CHUNK_BYTES]
    (free,) = struct.unpack_from("<I", chunk, 48)
    struct.pack_into("<I", chunk, 52, zlib.crc32(chunk[512:free]))
    struct.pack_into("<I", chunk, 124, zlib.crc32(chunk[:120] + chunk[128:512]))
    content[FILE_HEADER_BYTES : FILE_HEADER_BYTES + CHUNK_BYTES] = chunk
    return bytes(content)


def test_a_record_that_lies_of_its_length_is_counted(tmp_path: Path) -> None:
    content = bytearray(two_chunks(tmp_path))
    struct.pack_into("<I", content, FILE_HEADER_BYTES + 512 + 4, 0x7FFFFFFF)
    found = collected(put(tmp_path, resealed(content)), tmp_path)
    assert damage(found)[0] >= 1


def test_a_library_that_ends_or_hangs_costs_its_chunk_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that ends at the first chunk, waits at the second one: both are counted."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    (folder / "evtx.py").write_text(
        "import os, time\n"
        "class PyEvtxParser:\n"
        "    def __init__(self, log, threads):\n"
        "        log.seek(4096 + 8)\n"
        "        first = int.from_bytes(log.read(8), 'little')\n"
        "        os.abort() if first == 1 else time.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(event_log, "_MOST_SECONDS", 1.5)
    with pytest.raises(EmptyTrace, match=r"none of the 3 events .* records that the library cannot read"):
        collected(put(tmp_path, two_chunks(tmp_path)), tmp_path)


def test_without_the_library_there_are_two_ways_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stand-in"
    folder.mkdir()
    (folder / "evtx.py").write_text("raise ImportError('not here')\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    path = put(tmp_path, log_of(tmp_path, a_trace()))
    with pytest.raises(FormatError, match=r"sockscope\[eventlogs\].*wevtutil qe"):
        collected(path, tmp_path)
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 1
    assert "wevtutil" in capsys.readouterr().err


def test_an_event_log_of_others_is_collected_and_said_to_have_no_sockets(tmp_path: Path) -> None:
    events = [replace(event, provider=UUID(int=7)) for event in told_events(a_trace().write(tmp_path / "t.etl"))[1] if event.is_manifest]
    found = collected(put(tmp_path, evtx_of(events)), tmp_path)
    assert found.one("SELECT count(*) FROM v_sockets") == 0
    assert found.rows("SELECT kind FROM v_problems WHERE kind = 'no_socket_events'")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(log_of(folder, a_trace()))
    used = FILE_HEADER_BYTES + struct.unpack_from("<I", content, FILE_HEADER_BYTES + 48)[0]
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(FILE_HEADER_BYTES + 40, used - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(TraceError):
        report = collected(put(folder, resealed(content)), folder).report
        assert report.counts["records"] >= 1

"""Images: when they were loaded into which process, whose symbol file they have, and on which drive they lie."""

import struct
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from collector.decoder import Decoder
from collector.events.system import IMAGE, IMAGE_ID, PROCESS, VOLUME
from collector.model.processes import KERNEL, Processes
from collector.model.rows import count_of, unfolded
from collector.readers import reader_for
from collector.source import Source
from collector.store.tables import ROW_COLUMNS
from tests.raw_events import CLOCK, Record, raw_events

GAME, MAIL = 5232, 7012
NTDLL, OTHER = 0x7FF8B0000000, 0x7FF8AF200000
NT = "\\Device\\HarddiskVolume3\\Windows\\ntdll.dll"
PDB = UUID("e43b423a-c952-3408-53e4-e17ae687bf0b")
LOAD, UNLOAD, DC_START, DC_END = (PROCESS, 10), (IMAGE, 2), (IMAGE, 3), (IMAGE, 4)


def image(
    what: tuple[UUID, int], pid: int, ticks: int, *, base: int = NTDLL, size: int = 0x1F8000, timestamp: int = 77, file: str = NT
) -> Record:
    """An image event of version 3; its header names another process."""
    payload = struct.pack("<QQIIIBBHQIIII", base, size, pid, 0, timestamp, 0, 0, 0, 0, 0, 0, 0, 0) + file.encode("utf-16-le") + b"\0\0"
    return Record(what[0], payload, opcode=what[1], version=3, ticks=ticks, pid=4)


def rsds(pid: int, ticks: int, *, base: int = NTDLL, guid: UUID = PDB, age: int = 1, name: str = "ntdll.pdb") -> Record:
    payload = struct.pack("<QI", base, pid) + guid.bytes_le + struct.pack("<I", age) + name.encode() + b"\0"
    return Record(IMAGE_ID, payload, opcode=36, version=2, ticks=ticks, pid=4)


def image_id(pid: int, ticks: int, *, base: int = NTDLL, timestamp: int = 77) -> Record:
    payload = struct.pack("<QQII", base, 0x1F8000, pid, timestamp) + "ntdll.dll".encode("utf-16-le") + b"\0\0"
    return Record(IMAGE_ID, payload, opcode=0, version=2, ticks=ticks, pid=4)


def volume(nt: str, dos: str) -> Record:
    return Record(VOLUME, b"".join(text.encode("utf-16-le") + b"\0\0" for text in (nt, dos)), opcode=35, ticks=9999)


def process_event(opcode: int, pid: int, ticks: int) -> Record:
    return Record(PROCESS, struct.pack("<QIIIi", 0, pid, 4, 1, 259) + bytes(4) + b"g\0" + bytes(2), opcode=opcode, version=2, ticks=ticks)


def model(*windows: tuple[Record, ...]) -> Processes:
    processes, decoder, providers, seq = Processes(CLOCK), Decoder(), list[UUID](), 0
    for records in windows:
        raw = raw_events(records, first_seq=seq, providers=providers)
        batch = decoder.decode(raw, CLOCK)
        assert batch.damaged.size == 0
        processes.advance(batch)
        seq += len(raw)
    return processes


def rows(processes: Processes, *columns: str) -> list[tuple[object, ...]]:
    names = ROW_COLUMNS["module"]
    return [tuple(row[names.index(column)] for column in columns) for row in unfolded(processes.finish()["module"])]


def test_a_load_and_an_unload_delimit_a_module() -> None:
    processes = model((image(LOAD, GAME, 10), image(UNLOAD, GAME, 50)))

    [module] = processes.modules(0)
    assert (module.base, module.size, module.loaded_ticks, module.unloaded_ticks, module.loaded_seq, module.unloaded_seq) == (
        NTDLL,
        0x1F8000,
        10,
        50,
        0,
        1,
    )
    assert module.holds(NTDLL)
    assert module.holds(NTDLL + 0x1F7FFF)
    assert not module.holds(NTDLL + 0x1F8000)
    assert rows(processes, "n", "process_n", "base", "size_bytes", "file", "loaded_ns", "unloaded_ns", "timestamp") == [
        (0, 0, NTDLL, 0x1F8000, NT, 1000, 5000, 77)
    ]


def test_an_image_of_the_first_rundown_was_loaded_before_the_trace() -> None:
    processes = model((image(DC_START, GAME, 10),), (image(DC_END, GAME, 90),))

    assert rows(processes, "loaded_ns", "unloaded_ns") == [(None, None)]


def test_an_image_known_from_the_last_rundown_alone_was_loaded_all_along() -> None:
    processes = model((image(DC_END, GAME, 90),))

    assert rows(processes, "loaded_ns", "unloaded_ns") == [(None, None)]


def test_an_unload_without_a_load_tells_of_a_module_from_before() -> None:
    processes = model((image(UNLOAD, GAME, 90),))

    assert rows(processes, "file", "loaded_ns", "unloaded_ns") == [(NT, None, 9000)]


def test_images_of_process_0_are_the_kernel_s() -> None:
    processes = model((image(DC_START, 0, 10, base=0xFFFFF80011000000, file="\\SystemRoot\\system32\\ntoskrnl.exe"),))

    [module] = processes.modules(KERNEL)
    assert module.holds(0xFFFFF80011000010)
    assert rows(processes, "process_n", "base", "file") == [(None, 0xFFFFF80011000000 - (1 << 64), "\\SystemRoot\\system32\\ntoskrnl.exe")]


def test_the_same_base_in_two_processes_is_two_modules() -> None:
    processes = model((image(LOAD, GAME, 10), image(LOAD, MAIL, 20)))

    assert [len(processes.modules(n)) for n in (0, 1)] == [1, 1]


def test_two_lives_of_a_process_id_have_their_own_modules() -> None:
    processes = model(
        (
            process_event(1, GAME, 5),
            image(LOAD, GAME, 10),
            process_event(2, GAME, 20),
            image(UNLOAD, GAME, 21),
            process_event(1, GAME, 30),
            image(LOAD, GAME, 40),
        )
    )

    assert rows(processes, "process_n", "loaded_ns", "unloaded_ns") == [(0, 1000, 2100), (1, 4000, None)]


def test_another_image_at_the_same_base_ends_the_one_before() -> None:
    """Its unload was lost."""
    processes = model((image(LOAD, GAME, 10), image(LOAD, GAME, 50, file="\\a.dll", size=0x1000)))

    assert rows(processes, "file", "loaded_ns", "unloaded_ns") == [(NT, 1000, 5000), ("\\a.dll", 5000, None)]


def test_another_image_in_the_last_rundown_was_loaded_when_the_one_before_was_gone() -> None:
    processes = model((image(LOAD, GAME, 10), image(UNLOAD, GAME, 30), image(DC_END, GAME, 90, file="\\a.dll")))

    assert rows(processes, "file", "loaded_ns", "unloaded_ns") == [(NT, 1000, 3000), ("\\a.dll", 3000, None)]


def test_the_symbol_file_is_that_of_the_record_before_the_image() -> None:
    processes = model((image_id(GAME, 10), rsds(GAME, 10), image(LOAD, GAME, 10, timestamp=0)))

    assert rows(processes, "pdb_name", "pdb_guid", "pdb_age", "timestamp") == [("ntdll.pdb", str(PDB), 1, 77)]


def test_an_identity_may_stand_in_the_window_before() -> None:
    processes = model((rsds(GAME, 10),), (image(LOAD, GAME, 10),))

    assert rows(processes, "pdb_name") == [("ntdll.pdb",)]


def test_two_images_at_one_base_have_their_own_symbol_files() -> None:
    second = UUID(int=2)
    processes = model(
        (
            rsds(GAME, 10),
            image(LOAD, GAME, 10),
            image(UNLOAD, GAME, 30),
            rsds(GAME, 50, guid=second, name="a.pdb", age=3),
            image(LOAD, GAME, 50, file="\\a.dll"),
        )
    )

    assert rows(processes, "pdb_name", "pdb_guid", "pdb_age") == [("ntdll.pdb", str(PDB), 1), ("a.pdb", str(second), 3)]


def test_an_identity_of_another_time_joins_by_base_where_that_is_certain() -> None:
    certain = model((image(LOAD, GAME, 10), rsds(GAME, 70)))
    doubtful = model((image(LOAD, GAME, 10), image(LOAD, GAME, 20, file="\\a.dll"), rsds(GAME, 70)))

    assert rows(certain, "pdb_name") == [("ntdll.pdb",)]
    assert rows(doubtful, "pdb_name") == [(None,), (None,)]


def test_an_identity_is_not_given_to_another_process() -> None:
    processes = model((rsds(GAME, 10), image(LOAD, MAIL, 10)))

    assert rows(processes, "pdb_name") == [(None,)]


def test_files_get_the_letters_of_their_volumes() -> None:
    processes = model(
        (
            image(LOAD, GAME, 10),
            image(LOAD, GAME, 20, base=OTHER, file="\\Device\\HarddiskVolume33\\b.dll"),
            image(LOAD, GAME, 30, base=OTHER * 2, file="\\SystemRoot\\c.dll"),
            volume("\\Device\\HarddiskVolume3\\", "C:\\"),
            volume("", "X:\\"),
        )
    )

    assert rows(processes, "file") == [("C:\\Windows\\ntdll.dll",), ("\\Device\\HarddiskVolume33\\b.dll",), ("\\SystemRoot\\c.dll",)]


def test_version_0_names_no_process_but_the_header_does() -> None:
    payload = struct.pack("<QI", NTDLL, 0x1000) + "a.dll".encode("utf-16-le") + b"\0\0"
    processes = model((Record(PROCESS, payload, opcode=10, version=0, ticks=10, pid=GAME),))

    assert processes.pid_of(0) == GAME
    assert rows(processes, "process_n", "size_bytes", "file") == [(0, 0x1000, "a.dll")]


def test_an_image_of_nobody_knows_whom_is_left_out() -> None:
    payload = struct.pack("<QI", NTDLL, 0x1000) + "a.dll".encode("utf-16-le") + b"\0\0"
    processes = model((Record(PROCESS, payload, opcode=10, version=0, ticks=10, pid=-1),))

    assert processes.finish() == {"process": [], "thread": [], "module": []}


@pytest.mark.shared
def test_every_image_of_a_public_trace_has_its_identity(shared_dir: Path) -> None:
    """The end rundown of net.4.5.2.x64 names each image that is loaded, with the identity that the merge has found out."""
    source = Source.open(shared_dir / "traces" / "real" / "net.4.5.2.x64.etl")
    reader = reader_for(source)
    processes, decoder = Processes(reader.header.clock), Decoder()
    for raw in reader.windows():
        processes.advance(decoder.decode(raw, reader.header.clock))
    source.close()
    found = processes.finish()

    modules = [dict(zip(ROW_COLUMNS["module"], row, strict=True)) for row in unfolded(found["module"])]
    named = [m for m in modules if m["pdb_name"] is not None]
    assert count_of(found["process"]) == 35
    assert len(named) > 0.95 * len(modules)
    assert {m["process_n"] for m in modules} - {None} <= {row[0] for row in unfolded(found["process"])}
    spans = np.array([(m["loaded_ns"] or -1, m["unloaded_ns"] or 1 << 62) for m in modules])
    assert (spans[:, 0] <= spans[:, 1]).all()

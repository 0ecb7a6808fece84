"""Puts the sample together: the machine at the start, all scenes, the machine at the end, and the file."""

from collections.abc import Callable
from pathlib import Path

from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.payloads import Value
from collector.events.afd import AFD_EVENTS
from collector.sample.backup import Backup
from collector.sample.game import Game
from collector.sample.heaps import StackKeys
from collector.sample.ledger import Ledger
from collector.sample.machine import CPUS, LENGTH_US, SECOND, Context, Machine, Module, Program, Thread
from collector.sample.others import Others
from collector.sample.programs import KERNEL_MODULES, Cast, make_cast
from collector.sample.sockets import Status
from collector.sample.web import Web

__all__ = ["sample_machine", "write_sample"]

_SEED = 20250603
_SYSTEM = Context(4, 8, 0)
_INJECTED_TID = 0xFFFF_FFFF
_LOCAL_SYSTEM = bytes.fromhex("010100000000000512000000")
_USER = bytes.fromhex("010500000000000515000000 0b1f2a3c 4d5e6f70 81923a4b e9030000")


def write_sample(path: Path, on_progress: Callable[[int, int], None] | None = None) -> int:
    """Write the sample trace, always the same file; gives the number of its records.

    `on_progress` is told records written and records in all. Raises OSError when the file cannot be written.
    """
    machine = sample_machine()
    logged = sorted(machine.logged)
    session = Session(
        processors=CPUS,
        clock=machine.clock,
        os_build=22631,
        is_merged=True,
        end_ticks=machine.clock.start_ticks + LENGTH_US * 10,
    )
    with path.open("w+b") as out:
        writer = EtlWriter(out, session, metadata=AFD_EVENTS, flush_every=5 * SECOND * 10)
        for n, entry in enumerate(logged):
            writer.add(entry.record, entry.cpu)
            if on_progress is not None and n % 1000 == 0:
                on_progress(n, len(logged))
        writer.close()
    if on_progress is not None:
        on_progress(len(logged), len(logged))
    return len(logged)


def sample_machine() -> Machine:
    """The machine after its minute, with everything that it logged."""
    machine = Machine(_SEED)
    cast = make_cast(machine)
    keys = StackKeys(machine)
    cast.storm.start_us, cast.notes.start_us = 34 * SECOND, 52 * SECOND
    _direct(machine, cast, keys)
    machine.run()
    machine.now = LENGTH_US - 100_000
    keys.finish()
    _log_end(machine)
    _log_start(machine)
    return machine


def _direct(machine: Machine, cast: Cast, keys: StackKeys) -> None:
    """All scenes with their times."""
    web, game, backup = Web(machine, cast), Game(machine, cast), Backup(machine, cast)
    ledger, others = Ledger(machine, cast, keys), Others(machine, cast)
    for at_s, scene in (
        (0.3, web.serve()),
        (0.5, web.browse("page 1")),
        (0.7, web.browse("page 2")),
        (0.6, web.local_pair()),
        (3.0, web.forget_thumbnails()),
        (8.0, web.reset_by_peer()),
        (11.0, web.closed_with_unread_data()),
        (14.0, web.abortive_disconnect()),
        (16.0, web.no_connection("192.0.2.8:443", took_us=2 * SECOND, status=Status.REFUSED)),
        (17.0, web.no_connection("192.0.2.9:443", took_us=21 * SECOND, status=Status.TIMEOUT)),
        (20.0, web.no_connection("192.0.2.10:443", took_us=3 * SECOND, status=Status.UNREACHABLE)),
        (23.0, web.delivery_failed()),
        (26.0, web.shut_down_with_data()),
        (37.6, web.adapter_goes_away()),
        (0.4, game.play()),
        (0.5, game.frames()),
        (24.0, game.too_small()),
        (26.0, game.stray()),
        (30.0, game.chat()),
        (2.0, backup.run()),
        (0.1, ledger.begin()),
        (0.5, ledger.churn()),
        (0.6, ledger.leak_entries()),
        (0.7, ledger.leak_statements()),
        (4.0, ledger.temporary_heap()),
        (31.0, ledger.report()),
        (44.0, ledger.mistakes()),
        (0.5, others.names()),
        (0.5, others.poll()),
        (0.6, others.old_heap()),
        (34.01, others.load()),
        (40.0, others.registered_io()),
        (46.0, others.kill()),
        (52.01, others.edit()),
    ):
        machine.start(scene, at_us=at_s * SECOND)


# ---------------------------------------------------------------------------------------------------- the kernel's own records


def _log_start(machine: Machine) -> None:
    """What the kernel says of everything that is there when the trace begins, and of what begins and ends in it."""
    machine.now = 0
    machine.log("VolumeMapping", {"nt_path": "\\Device\\HarddiskVolume3\\", "dos_path": "C:\\"}, _SYSTEM)
    machine.log("ProcessDCStart", _process_values(0, KERNEL_MODULES[0].base + 0xF4_9A40, "Idle", "", 0, 0, 259), _SYSTEM)
    machine.log("ProcessDCStart", _process_values(4, 0xFFFF_C40E_7A00_0040, "System", "", 0, 0, 259), _SYSTEM)
    for module in KERNEL_MODULES:
        _log_image(machine, "ImageDCStart", module, 0)
    for program in machine.programs:
        if program.start_us is None:
            _log_program(machine, program, "DCStart")
    for program in machine.programs:
        if program.start_us is not None:
            machine.now = program.start_us
            _log_program(machine, program, "Start")
        if program.end_us is not None:
            machine.now = program.end_us
            _log_program(machine, program, "End")


def _log_end(machine: Machine) -> None:
    """What is there when the trace ends."""
    for program in machine.programs:
        if program.end_us is None:
            _log_program(machine, program, "DCEnd")
    for module in KERNEL_MODULES:
        _log_image(machine, "ImageDCEnd", module, 0)


def _log_program(machine: Machine, program: Program, what: str) -> None:
    """Process, threads and images; a process starts before its threads and ends after them."""
    is_end = what == "End"
    status = program.exit_status if is_end else 259
    values = _process_values(
        program.pid,
        program.eprocess,
        program.image,
        program.command_line,
        program.parent,
        program.session,
        status,
        is_wow=program.pointer_size == 4,
    )
    creator = Context(program.parent, program.parent + 8, 1)
    if not is_end:
        machine.log(f"Process{what}", values, creator if what == "Start" else _SYSTEM)
    for thread in program.threads:
        machine.log(f"Thread{what}", _thread_values(thread), thread.context if is_end else creator)
    image = {"Start": "ImageLoad", "End": "ImageUnload"}.get(what, f"Image{what}")
    for module in program.modules:
        _log_image(machine, image, module, program.pid)
    if is_end:
        machine.log("ProcessEnd", values, program.threads[0].context)


def _process_values(
    pid: int, eprocess: int, image: str, command_line: str, parent: int, session: int, status: int, *, is_wow: bool = False
) -> dict[str, Value]:
    return {
        "unique_process_key": eprocess,
        "process_id": pid,
        "parent_id": parent,
        "session_id": session,
        "exit_status": status,
        "directory_table_base": 0x1A_C000 + pid * 0x1000,
        "flags": 2 if is_wow else 0,
        "user_sid": _USER if session else _LOCAL_SYSTEM,
        "image_file_name": image,
        "command_line": command_line,
        "package_full_name": "",
        "application_id": "",
    }


def _thread_values(thread: Thread) -> dict[str, Value]:
    program = thread.program
    return {
        "process_id": program.pid,
        "thread_id": thread.tid,
        "stack_base": 0xFFFF_8A07_4400_0000 + thread.tid * 0x1_0000,
        "stack_limit": 0xFFFF_8A07_4400_0000 + thread.tid * 0x1_0000 - 0x6000,
        "user_stack_base": thread.stack_base,
        "user_stack_limit": thread.stack_base - 0x4_0000,
        "affinity": (1 << CPUS) - 1,
        "win32_start_addr": program.modules[0].base + 0x1400,
        "teb_base": 0x4F_7A00_0000 + thread.tid * 0x2000,
        "sub_process_tag": 0,
        "base_priority": 8,
        "page_priority": 5,
        "io_priority": 2,
        "thread_flags": 0,
        "thread_name": thread.name,
    }


def _log_image(machine: Machine, name: str, module: Module, pid: int) -> None:
    """An image; its identity stands before it with the same time, as a merge puts it."""
    values: dict[str, Value] = {
        "image_base": module.base,
        "image_size": module.size,
        "process_id": pid,
        "image_checksum": module.timestamp ^ 0x5A5A5,
        "time_date_stamp": module.timestamp,
        "signature_level": 0,
        "signature_type": 0,
        "reserved0": 0,
        "default_base": module.base,
        "reserved1": 0,
        "reserved2": 0,
        "reserved3": 0,
        "reserved4": 0,
        "file_name": module.nt_path,
    }
    context = Context(pid, _INJECTED_TID, 0)
    ticks = machine.take_ticks()
    if name in ("ImageDCStart", "ImageLoad"):
        same: dict[str, Value] = {"image_base": module.base, "process_id": pid}
        identity = {**same, "image_size": module.size, "time_date_stamp": module.timestamp, "original_file_name": module.name}
        machine.log_at(ticks, "ImageId", identity, context)
        machine.log_at(ticks, "DbgIdRsds", {**same, "guid": module.pdb_guid, "age": 1, "pdb_name": module.pdb_name}, context)
    machine.log_at(ticks, name, values, context)

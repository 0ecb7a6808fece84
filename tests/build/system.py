"""Builders of the kernel's events on processes, threads, images and stacks."""

from typing import Literal
from uuid import UUID

from collector.etlwriter.events import HeaderValues
from tests.build.events import PID, PROCESS, TID, Event, event

__all__ = [
    "image",
    "image_id",
    "key_definition",
    "pdb",
    "process_end",
    "process_rundown",
    "process_start",
    "stack",
    "stack_by_key",
    "thread",
    "thread_name",
]


def _process(
    name: str, at_us: float, pid: int, eprocess: int, parent: int, image: str, command_line: str, session: int, status: int, header: int
) -> Event:
    return event(
        name,
        at_us=at_us,
        header=HeaderValues(pid=header, tid=TID),
        unique_process_key=eprocess,
        process_id=pid,
        parent_id=parent,
        session_id=session,
        exit_status=status,
        image_file_name=image,
        command_line=command_line,
    )


def process_start(
    *,
    at_us: float,
    pid: int = PID,
    eprocess: int = PROCESS,
    parent: int = 4,
    image: str = "app.exe",
    command_line: str = "app.exe",
    session: int = 1,
) -> Event:
    return _process("ProcessStart", at_us, pid, eprocess, parent, image, command_line, session, 259, parent)


def process_end(
    *,
    at_us: float,
    pid: int = PID,
    eprocess: int = PROCESS,
    parent: int = 4,
    image: str = "app.exe",
    command_line: str = "app.exe",
    session: int = 1,
    exit_status: int = 0,
) -> Event:
    return _process("ProcessEnd", at_us, pid, eprocess, parent, image, command_line, session, exit_status, pid)


def process_rundown(
    *,
    at_us: float = 0,
    at_end: bool = False,
    pid: int = PID,
    eprocess: int = PROCESS,
    parent: int = 4,
    image: str = "app.exe",
    command_line: str = "app.exe",
    session: int = 1,
) -> Event:
    """A process that is there when the session starts, or when it ends."""
    return _process("ProcessDCEnd" if at_end else "ProcessDCStart", at_us, pid, eprocess, parent, image, command_line, session, 259, 0)


def thread(
    what: Literal["Start", "End", "DCStart", "DCEnd"] = "DCStart",
    *,
    at_us: float = 0,
    pid: int = PID,
    tid: int = TID,
    user_stack_base: int = 0,
    user_stack_limit: int = 0,
    win32_start_addr: int = 0,
    name: str = "",
) -> Event:
    """A thread; its user stack reaches from `user_stack_limit` up to `user_stack_base`."""
    return event(
        f"Thread{what}",
        at_us=at_us,
        header=HeaderValues(pid=pid, tid=tid),
        process_id=pid,
        thread_id=tid,
        user_stack_base=user_stack_base,
        user_stack_limit=user_stack_limit,
        win32_start_addr=win32_start_addr,
        thread_name=name,
    )


def thread_name(*, at_us: float, pid: int = PID, tid: int = TID, name: str) -> Event:
    return event("ThreadName", at_us=at_us, header=HeaderValues(pid=pid, tid=tid), process_id=pid, thread_id=tid, thread_name=name)


def image(
    what: Literal["Load", "Unload", "DCStart", "DCEnd"] = "DCStart",
    *,
    at_us: float = 0,
    pid: int = PID,
    base: int,
    size: int = 0x10000,
    file: str = "\\Device\\HarddiskVolume3\\app.exe",
    timestamp: int = 0x6500_0000,
) -> Event:
    return event(
        f"Image{what}",
        at_us=at_us,
        header=HeaderValues(pid=pid, tid=TID),
        image_base=base,
        image_size=size,
        process_id=pid,
        time_date_stamp=timestamp,
        default_base=base,
        file_name=file,
    )


def image_id(*, at_us: float = 0, pid: int = PID, base: int, size: int = 0x10000, timestamp: int = 0x6500_0000, name: str) -> Event:
    return event(
        "ImageId",
        at_us=at_us,
        header=HeaderValues(pid=pid, tid=0xFFFF_FFFF),
        image_base=base,
        image_size=size,
        process_id=pid,
        time_date_stamp=timestamp,
        original_file_name=name,
    )


def pdb(*, at_us: float = 0, pid: int = PID, base: int, guid: UUID, age: int = 1, name: str) -> Event:
    return event(
        "DbgIdRsds",
        at_us=at_us,
        header=HeaderValues(pid=pid, tid=0xFFFF_FFFF),
        image_base=base,
        process_id=pid,
        guid=guid,
        age=age,
        pdb_name=name,
    )


def stack(*, at_us: float, of_ticks: int, frames: tuple[int, ...], pid: int = PID, tid: int = TID) -> Event:
    """A stack record of the event at a raw time stamp."""
    return event("StackWalk", at_us=at_us, event_time_stamp=of_ticks, stack_process=pid, stack_thread=tid, frames=frames)


def stack_by_key(
    *, at_us: float, of_ticks: int, key: int, pid: int = PID, tid: int = TID, part: Literal["User", "Kernel"] = "User"
) -> Event:
    return event(f"StackKey{part}", at_us=at_us, event_time_stamp=of_ticks, stack_process=pid, stack_thread=tid, stack_key=key)


def key_definition(*, at_us: float, key: int, frames: tuple[int, ...], what: Literal["Create", "Delete", "Rundown"] = "Delete") -> Event:
    return event(f"StackKey{what}", at_us=at_us, stack_key=key, frames=frames)

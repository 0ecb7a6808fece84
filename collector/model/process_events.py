"""Kernel process events of a window as one list of records in time order."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from collector.schema import DecodedBatch, EventColumns

__all__ = ["Deed", "ProcessRecord", "numbers_of", "process_records", "texts_of"]

_WOW64 = 2  # ProcessFlags: a 32-bit process on 64-bit Windows
_NO_SESSION = 0xFFFFFFFF


class Deed(Enum):
    """What a process event tells."""

    START = auto()
    END = auto()
    RUNDOWN_START = auto()
    RUNDOWN_END = auto()
    DEFUNCT = auto()


_DEEDS = {
    "ProcessStart": Deed.START,
    "ProcessEnd": Deed.END,
    "ProcessDCStart": Deed.RUNDOWN_START,
    "ProcessDCEnd": Deed.RUNDOWN_END,
    "ProcessDefunct": Deed.DEFUNCT,
}


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process event; None is what its version does not say."""

    deed: Deed
    seq: int
    ticks: int
    ns: int
    pid: int
    eprocess: int | None
    parent_pid: int | None
    session: int | None
    exit_status: int | None
    image: str | None
    command_line: str | None
    pointer_size: int | None
    exit_filetime: int | None


def process_records(batch: DecodedBatch) -> list[ProcessRecord]:
    """All process events of a window, in order. Loops over records (some hundred a trace)."""
    records: list[ProcessRecord] = []
    for name, deed in _DEEDS.items():
        columns = batch.get(name)
        if columns is not None:
            records += _records(batch, columns, deed)
    return sorted(records, key=lambda record: record.seq)


def _records(batch: DecodedBatch, columns: EventColumns, deed: Deed) -> list[ProcessRecord]:
    raw = batch.raw
    number, text = numbers_of(columns), texts_of(columns)
    keys, pids, parents = number("unique_process_key"), number("process_id"), number("parent_id")
    sessions, statuses, flags, exits = number("session_id"), number("exit_status"), number("flags"), number("exit_time")
    images, commands = text("image_file_name"), text("command_line")
    return [
        ProcessRecord(
            deed=deed,
            seq=raw.first_seq + row,
            ticks=int(raw.ticks[row]),
            ns=int(batch.ns[row]),
            pid=pids[i] or 0,
            eprocess=keys[i] or None,
            parent_pid=parents[i],
            session=None if sessions[i] == _NO_SESSION else sessions[i],
            exit_status=_unsigned(statuses[i]),
            image=images[i] or None,
            command_line=commands[i] or None,
            pointer_size=_pointer_size(flags[i], int(raw.pointer_size[row])),
            exit_filetime=exits[i],
        )
        for i, row in enumerate(columns.rows.tolist())
    ]


def _pointer_size(flags: int | None, of_record: int) -> int | None:
    """Pointer size of the process; without flags a 64-bit system does not say."""
    if of_record == 4:
        return 4
    return None if flags is None else 4 if flags & _WOW64 else of_record


def _unsigned(status: int | None) -> int | None:
    return None if status is None else status & 0xFFFFFFFF


def numbers_of(columns: EventColumns) -> Callable[[str], list[int | None]]:
    """Number columns by name as lists; None where a record lacks the field, or all do."""

    def values(name: str) -> list[int | None]:
        if name not in columns.fields:
            return [None] * len(columns)
        listed: list[int | None] = columns.numbers(name).tolist()
        missing = columns.missing.get(name)
        return listed if missing is None else [None if m else v for v, m in zip(listed, missing.tolist(), strict=True)]

    return values


def texts_of(columns: EventColumns) -> Callable[[str], list[str]]:
    """Text columns by name; '' where a record lacks the field, or all do."""
    return lambda name: columns.texts(name) if name in columns.fields else [""] * len(columns)

"""The socket and process events of an ETL file as text, as the xperf dumper writes them: a header of columns, then rows."""

from pathlib import Path
from uuid import UUID

from collector.events import SCHEMAS
from collector.events.afd import AFD
from collector.events.system import PROCESS, STACK_WALK
from collector.schema import Field, key_of
from collector.texts.words import WORDS
from tests.build.told import Number, ToldEvent, told_events

__all__ = ["xperf_dump"]

_DEEDS = {1: "P-Start", 2: "P-End", 3: "P-DCStart", 4: "P-DCEnd"}
_OWN = "  TimeStamp,     Process Name ( PID),   ThreadID, CPU, etw:ActivityId, etw:Related ActivityId, etw:UserSid, etw:SessionId"
_TAIL = {"P-Start": ", PackageFullName, PRAID", "P-End": "", "P-DCStart": "", "P-DCEnd": ""}


def xperf_dump(path: Path, *, names: dict[int, str] | None = None, number: Number = str) -> str:
    """The text; `names` are the images of processes, shown before their numbers."""
    header, told = told_events(path, number=number)
    known = dict(names or {})
    for event in told:
        if event.provider == PROCESS and event.values is not None:
            said = {field.name: text for field, text in event.values}
            if "image_file_name" in said:
                known[int(said["process_id"])] = said["image_file_name"]
    columns = {
        f"Microsoft-Windows-Winsock-AFD/{event.name}/win:Info": ", ".join([_OWN, *(_shown(field.name) for field in _schema_fields(event))])
        for event in told
        if event.provider == AFD and event.event_id >= 1000
    }
    for name in _DEEDS.values():
        status = ", Status" if name == "P-End" else ""
        columns[name] = (
            f"  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID,  UniqueKey{status}, UserSid, Command Line{_TAIL[name]}"
        )
    columns |= {"Stack": "  TimeStamp,   ThreadID, No.,            Address,            Image!Function", "HeapX": "  TimeStamp, Y"}
    start = header.clock.start_filetime
    lines = ["BeginHeader", *(f"{name:>23},{text}" for name, text in columns.items()), "EndHeader"]
    lines.append(
        f"OS Version: 10.0.{header.os_build}, Trace Size: 1KB, Events Lost: {header.events_lost}, Buffers lost: {header.buffers_lost}, "
        f"Trace Start: {start}, Trace Length: 1 sec, PointerSize: {header.pointer_size}, Trace Name: story.etl"
    )
    lines += ["FirstReliableEventTimeStamp, 0", "                  HeapX,          0, 1"]
    for event in told:
        time = f"{(event.filetime - start) // 10:>10}"
        if event.provider == AFD and event.event_id >= 1000 and event.values is not None:
            lines.append(_socket(event, time, known))
        elif event.provider == PROCESS and event.opcode in _DEEDS and event.values is not None:
            lines.append(_process(event, time))
        elif event.provider == STACK_WALK:
            lines.append(f"                  Stack, {time}, {event.tid:>10},   1, 0x81c866e4, ntdll.dll!0x1")
    return "\r\n".join([*lines, ""])


def _schema_fields(event: ToldEvent) -> tuple[Field, ...]:
    (schema,) = SCHEMAS[key_of(AFD, is_classic=False, event_id=event.event_id, opcode=0)]
    return schema.fields


def _shown(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _socket(event: ToldEvent, time: str, known: dict[int, str]) -> str:
    cells = [f"Microsoft-Windows-Winsock-AFD/{event.name}/win:Info", time, f"{known.get(event.pid, 'Unknown'):>16} ({event.pid:>4})"]
    cells += [str(event.tid), str(event.cpu), f"{{{event.activity}}}" if event.activity != UUID(int=0) else "", "", "", ""]
    for field, text in event.values or ():
        words = {number: word for word, number in WORDS.get(field.enum or "", {}).items()}
        cells.append(f'"{words[int(text)].upper()}"' if text.isdecimal() and int(text) in words else text)
    return ", ".join(cells)


def _process(event: ToldEvent, time: str) -> str:
    said = {field.name: text for field, text in event.values or ()}
    name = _DEEDS[event.opcode]
    cells = [f"{name:>23}", time, f"{said['image_file_name']:>16} ({int(said['process_id']):>4})", said["parent_id"], said["session_id"]]
    cells.append(f"0x{int(said['unique_process_key'], 16) & (1 << 48) - 1:016x}")
    if name == "P-End":
        cells.append(f"0x{int(said['exit_status']) & 0xFFFFFFFF:08x}")
    cells += ["S-1-5-18", said["command_line"], *(["<none>", "<none>"] if _TAIL[name] else [])]
    return ", ".join(cells)

"""An ETL file as CSV, as tracerpt writes it: padded columns, ids in hexadecimal, texts in quotes, words for values that have some."""

from pathlib import Path

from collector.provider_names import WELL_KNOWN
from collector.schema import FieldType
from collector.texts.words import WORDS
from tests.build.event_xml import about_session
from tests.build.told import Number, ToldEvent, told_events

__all__ = ["HEADER", "tracerpt_csv"]

HEADER = (
    "Event Name, Type, Event ID, Version, Channel, Level, Opcode, Task, Keyword, PID, TID, Processor Number, Instance ID, "
    "Parent Instance ID, Activity ID, Related Activity ID, Clock-Time, Kernel(ms), User(ms), User Data"
)
_TEXTS = {FieldType.ANSI, FieldType.UTF16, FieldType.SID}


def tracerpt_csv(
    path: Path, *, mark: str = ",", is_padded: bool = True, has_words: bool = True, has_accounts: bool = True, number: Number = str
) -> str:
    """The text, its lines with CR and LF; `mark` stands between columns, `has_words` writes values of enumerations as words,
    `has_accounts` the user of a process.
    """
    header, told = told_events(path, number=number)
    width = 12 if is_padded else 0
    session = [str(value) for value in list(about_session(header).values())[:13]]
    first = ["EventTrace", "Header", "0", "2", "0", "0", "0", "0", "0x0000000000000000", "0x00000004", "0x00000008", "0", "", "", "", ""]
    rows = [_row([*first, str(header.clock.start_filetime), "0", "0", *session], mark, width)]
    rows += [_row(_cells(event, has_words=has_words, has_accounts=has_accounts), mark, width) for event in told[1:]]
    return "\r\n".join([HEADER.replace(", ", f"{mark} " if is_padded else mark), *rows, ""])


def _row(cells: list[str], mark: str, width: int) -> str:
    return f"{mark} ".join(f"{cell:>{width}}" for cell in cells) if width else mark.join(cells)


def _cells(event: ToldEvent, *, has_words: bool, has_accounts: bool) -> list[str]:
    cells = [
        WELL_KNOWN.get(event.provider, f"{{{event.provider}}}"), "Info ", str(event.event_id), str(event.version), "16", str(event.level),
        str(event.opcode), "0", f"0x{event.keyword:016X}", f"0x{event.pid:08X}", f"0x{event.tid:08X}", str(event.cpu), "", "",
        f"{{{event.activity}}}" if event.activity.int else "", "", str(event.filetime), "0", "0",
    ]  # fmt: skip
    names = [field.name for field, _ in event.values or ()]
    for field, text in event.values or ():
        if field.name == "image_file_name" and "user_sid" not in names and has_accounts:
            cells.append('"\\\\NT AUTHORITY\\SYSTEM"')
        words = {number: word for word, number in WORDS.get(field.enum or "", {}).items()} if has_words else {}
        shown = words[int(text)].upper() + " " if text.isdecimal() and int(text) in words else text
        if field.type in _TEXTS:
            shown = f'"{shown}"'
        cells.append(shown)
    return cells

"""Events as CSV: what tracerpt writes with -of CSV. The header names the columns; the values of an event follow in its layout's order.

Facts from public readers of such files: columns are padded with blanks, `Clock-Time` is a FILETIME, ids are hexadecimal, texts stand in
quotes that are not doubled inside, the row `EventTrace, Header` has what the session says of itself.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from collector.errors import FormatError
from collector.events import SCHEMAS
from collector.provider_names import WELL_KNOWN
from collector.texts.cells import Cells
from collector.texts.form import TextForm, TextInput, Told, beginning_of
from collector.texts.transcript import HEADER_CLASS, TextEvent, Transcript
from collector.texts.unread import LONG_LINE, RAW_TIME, ROUNDED_TIME, SHORT_ROW, STRANGER, UnreadableEvent
from collector.texts.values import filetime_of, guid_of, id_of, number_of, plain_name

__all__ = ["TRACERPT_CSV"]

_FIRST = re.compile(r'"?event name"?\s*([,;\t])\s*"?type"?\s*[,;\t]', re.IGNORECASE)
_WIDE = re.compile(r"0x0*[1-9A-Fa-f][0-9A-Fa-f]{8}")
_SEES = ("eventid", "version", "level", "opcode", "keyword", "pid", "tid", "processornumber", "activityid")
_SPARED = {"tid": "TID", "processornumber": "Processor Number", "keyword": "Keyword", "activityid": "Activity ID"}
"""Columns without which events can be read, but less is known of them."""
_NEEDED = ("eventname", "eventid", "version", "opcode", "pid", "clocktime", "userdata")
_MOST_FIELDS = 1024
_MOST_DIGITS = 40
_ROUNDED = re.compile(r"\d(?:[.,]\d{1,17})?[Ee]\+?\d{1,3}")
_NAMES_SHOWN, _MOST_NAMES, _NAME_LENGTH = 5, 10_000, 60
_FIRST_SENSIBLE, _LAST_SENSIBLE = 119_600_064_000_000_000, 1 << 61  # 1980 and far ahead, as FILETIME

_CLASSES: Mapping[str, UUID] = {
    **{name.lower(): guid for guid, name in WELL_KNOWN.items()},
    **dict.fromkeys(("heaptrace", "heaptraceprovider"), UUID("222962ab-6180-4b88-a825-346b75f2a24a")),
}
_CLASSIC = frozenset(key.provider for key in SCHEMAS if key.is_classic) | {HEADER_CLASS}
_ABOUT = (
    "BufferSize", "Version", "ProviderVersion", "NumberOfProcessors", "EndTime", "TimerResolution", "MaxFileSize", "LogFileMode",
    "BuffersWritten", "StartBuffers", "PointerSize", "EventsLost", "CPUSpeed",
)  # fmt: skip


def _is_tracerpt_csv(start: bytes) -> bool:
    return _FIRST.match(beginning_of(start)) is not None


def _pointer_size(text: TextInput) -> tuple[int, bool]:
    is_any = False
    reader: _RowReader | None = None
    for line in text.sample().replace("\0", "\ufffd").split("\n"):
        if reader is None:
            reader = _reader_at(line, text.name)
            continue
        cells = reader.cells(line)
        if cells is None:
            continue
        if cells[reader.at["eventname"]].strip().lower() == "eventtrace":
            about = reader.about(cells[-1])
            if about.get("pointersize") in ("4", "8"):
                return int(about["pointersize"]), True
        elif _WIDE.search(cells[-1]):
            return 8, False
        is_any = is_any or "0x" in cells[-1]
    return (4 if is_any else 8), False


def _read(text: TextInput, transcript: Transcript) -> Told:
    reader: _RowReader | None = None
    told = Told()
    strangers: Counter[str] = Counter()
    for n, line in enumerate(text.lines(), 1):
        if line is None:
            told.unread.add(LONG_LINE, n)
        elif reader is None:
            reader = _reader_at(line, text.name)
        elif line.strip():
            try:
                event = reader.event(line)
                transcript.add(event)
            except _Stranger as stranger:
                told.unread.add(stranger, n)
                if len(strangers) < _MOST_NAMES or stranger.name in strangers:
                    strangers[stranger.name] += 1
            except ValueError as error:
                told.unread.add(error, n)
    told.lacks = "It does not tell how many buffers were lost."
    if reader is not None and (spared := [shown for column, shown in _SPARED.items() if column not in reader.at]):
        told.lacks += f" Columns that it lacks, and what they tell is read as 0: {', '.join(spared)}."
    if strangers:
        names = ", ".join(name for name, _ in strangers.most_common(_NAMES_SHOWN))
        told.lacks += (
            f" It names providers without their identity; events of names that are not known here, which are left out: "
            f"{strangers.total():,} ({names}{', …' if len(strangers) > _NAMES_SHOWN else ''})."
        )
    return told


class _Stranger(UnreadableEvent):
    """A provider whose identity nobody can tell from its name."""

    def __init__(self, name: str) -> None:
        super().__init__(STRANGER)
        self.name = name


def _reader_at(line: str, name: str) -> "_RowReader | None":
    """The reader of all rows behind a header; None for a blank line before it. Raises FormatError."""
    if not line.strip("\ufeff \r\t"):
        return None
    found = _FIRST.match(line.lstrip("\ufeff "))
    columns = [plain_name(re.sub(r"[^A-Za-z]", "", column)) for column in line.split(found[1])] if found else []
    lacking = [column for column in _NEEDED if column not in columns]
    if found is None or lacking or columns[-1] != "userdata":
        raise FormatError(
            f"{name}: this CSV lacks columns that tracerpt writes since Windows Vista: {', '.join(lacking) or 'User Data at its end'}. "
            "Write it again with tracerpt FILE.etl -of CSV, or better with -of XML."
        )
    return _RowReader(found[1], {column: n for n, column in reversed(list(enumerate(columns)))})


class _RowReader:
    """Rows to events by the names of the columns: 15 µs a row, the rest of the way to a record not counted."""

    def __init__(self, mark: str, at: dict[str, int]) -> None:
        self.at = at
        self._mark, self._last, self._id = mark, at["userdata"], at["eventid"]
        self._values = Cells(mark, _MOST_FIELDS)
        self._sees = [(name, at[name]) for name in _SEES if name in at]

    def cells(self, line: str) -> list[str] | None:
        """The columns, User Data as the last one whole; None for a row that is too short."""
        cells = line.rstrip("\r").split(self._mark, self._last)
        if cells[self._id : self._id + 1] and cells[self._id].lstrip().startswith('"'):  # a number: the tool writes it without quotes
            cells = self._unquoted(line)
        return [*cells, ""] if len(cells) == self._last else cells if len(cells) > self._last else None

    def _unquoted(self, line: str) -> list[str]:
        """The columns of a row whose cells another program has put in quotes, doubling those inside."""
        try:
            (cells,) = csv.reader([line], delimiter=self._mark, skipinitialspace=True)
        except (csv.Error, ValueError):
            return []
        values = cells[self._last :]
        if len(values) > 1:  # as the tool writes them
            values = [f'"{_bare(value)}"' for value in values]
        return [*cells[: self._last], *([self._mark.join(values)] if values else [])]

    def about(self, data: str) -> dict[str, str]:
        """What the session says of itself, by `plain_name`."""
        return {plain_name(name): text for name, text in zip(_ABOUT, self._values.split(data), strict=False)}

    def _moment(self, cells: list[str]) -> int:
        """The time of a row as FILETIME. Raises UnreadableEvent."""
        at = self.at["clocktime"]
        try:
            return _filetime(cells[at].strip())
        except UnreadableEvent:
            if _ROUNDED.fullmatch(",".join(cells[at : at + 2]).strip(' "')):  # a decimal comma in columns apart by commas
                raise UnreadableEvent(ROUNDED_TIME) from None
            raise

    def event(self, line: str) -> TextEvent:
        """One event. Raises ValueError; _Stranger and UnreadableEvent where it is known why."""
        cells = self.cells(line)
        if cells is None:
            raise UnreadableEvent(SHORT_ROW)
        guid = _class_of(cells[self.at["eventname"]].strip().strip('"'))
        found = {name: cells[n].strip() for name, n in self._sees}
        event = TextEvent(
            filetime=self._moment(cells),
            event_id=number_of(found["eventid"]),
            version=number_of(found["version"]),
            level=number_of(found.get("level") or "0"),
            opcode=number_of(found["opcode"]),
            keyword=number_of(found.get("keyword") or "0"),
            pid=id_of(found["pid"]),
            tid=id_of(found.get("tid") or "0"),
            cpu=number_of(found.get("processornumber") or "0"),
        )
        if guid in _CLASSIC:
            event.class_guid = guid
        else:
            event.provider = guid
        if activity := found.get("activityid"):
            event.activity = guid_of(activity)
        if guid == HEADER_CLASS:
            event.texts = self.about(cells[-1]) | {"starttime": str(event.filetime)}
        else:
            event.listed = self._values.split(cells[-1])
        return event


def _bare(value: str) -> str:
    """A value without the quotes of the tool, which stay where a blank before them hid them from whoever read the text as CSV."""
    text = value.strip()
    return text[1:-1] if value.startswith((" ", "\t")) and len(text) > 1 and text[0] == text[-1] == '"' else text


def _class_of(name: str) -> UUID:
    """The identity of a provider or class. Raises _Stranger."""
    found = _CLASSES.get(name.lower())
    if found is not None:
        return found
    try:
        return guid_of(name)
    except ValueError:
        shown = name[:_NAME_LENGTH] + ("…" if len(name) > _NAME_LENGTH else "")
        raise _Stranger(shown or "without a name") from None


def _filetime(text: str) -> int:
    """A moment as FILETIME. Raises UnreadableEvent."""
    if _ROUNDED.fullmatch(text):
        raise UnreadableEvent(ROUNDED_TIME)
    if not text.isdecimal():
        return filetime_of(text)
    if len(text) > _MOST_DIGITS or not _FIRST_SENSIBLE <= int(text) < _LAST_SENSIBLE:
        raise UnreadableEvent(RAW_TIME)
    return int(text)


TRACERPT_CSV = TextForm("CSV of tracerpt", _is_tracerpt_csv, _pointer_size, _read, is_of_lines=True)

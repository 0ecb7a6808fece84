"""Text of the xperf dumper (`xperf -i T.etl -o T.txt`): a header that names the columns of each event, then a row an event.

Facts from public readers and samples: the line behind the header has the start of the trace as FILETIME, its losses and the pointer size;
times are microseconds since then; an event of a manifest is called provider/task/opcode, its own columns have its fields' names. The
columns of heap events are not published: they are counted and left out.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.errors import FormatError
from collector.events.afd import AFD, AFD_EVENTS
from collector.events.system import PROCESS
from collector.texts.cells import Cells
from collector.texts.form import TextForm, TextInput, Told, beginning_of
from collector.texts.keywords import Keywords
from collector.texts.transcript import HEADER_CLASS, TextEvent, Transcript
from collector.texts.unread import BAD_VALUE, LONG_LINE, OTHER_EVENT, SHORT_ROW, NoMoment, UnreadableEvent
from collector.texts.values import guid_of, id_of, number_of, plain_name

__all__ = ["XPERF_DUMP"]

_BEGIN, _END = "BeginHeader", "EndHeader"
_ABOUT = re.compile(r"\b(Events Lost|Buffers lost|Trace Start|PointerSize): ?([^\s,;]*(?:[\s,]\d[^\s,;]*)*)", re.IGNORECASE)
_BUILD = re.compile(r"OS Version: ?\d{1,5}\.\d{1,5}\.(\d{1,9})\b")
_PROCESS = re.compile(r"(.*?) ?\( {0,10}(-?\d{1,10})\)")
_TASKS: Mapping[str, int] = {schema.name.lower(): schema.number for schema in AFD_EVENTS if schema.number >= 1000}
_SOCKETS = "microsoft-windows-winsock-afd"
_DEEDS: Mapping[str, int] = {"p-start": 1, "p-end": 2, "p-dcstart": 3, "p-dcend": 4}
_SPARED = {"threadid": "ThreadID", "cpu": "CPU", "etw:activityid": "etw:ActivityId"}
"""Columns without which socket events can be read, but less is known of them."""
_PROCESS_VERSION = 2  # the oldest layout with all that the text has
_MOST_COLUMNS, _MOST_EVENTS = 256, 20_000
_LAST_SENSIBLE = 1 << 61
_KERNEL_BIT, _KERNEL_HIGH = 1 << 47, 0xFFFF << 48


@dataclass(slots=True)
class _Head:
    """What stands before the rows: columns by event, each name in small letters; what the trace says of itself."""

    columns: dict[str, list[str]] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    is_over: bool = False

    def take(self, line: str, name: str) -> None:
        """Take in the next line. Raises FormatError."""
        if line.strip() == _END:
            self.is_over = True
        elif line.strip() != _BEGIN:
            event, *columns = [part.strip() for part in line.split(",", _MOST_COLUMNS)]
            if len(self.columns) >= _MOST_EVENTS:
                raise FormatError(f"{name}: the header of this text names more than {_MOST_EVENTS:,} events, which no tool writes.")
            self.columns[event.lower()] = [plain_name(column) for column in columns]

    def say(self, line: str) -> None:
        """What the line of the trace itself says."""
        self.about |= {plain_name(word.replace(" ", "")): number for word, number in _ABOUT.findall(line[:4096])}
        if build := _BUILD.search(line[:4096]):
            self.about["providerversion"] = build[1]


def _is_xperf_dump(start: bytes) -> bool:
    return beginning_of(start).startswith(_BEGIN)


def _pointer_size(text: TextInput) -> tuple[int, bool]:
    for line in text.lines():  # the header has some hundred lines
        if line is not None and line.startswith("OS Version:"):
            head = _Head()
            head.say(line)
            if head.about.get("pointersize") in ("4", "8"):
                return int(head.about["pointersize"]), True
            break
    return 8, False


def _read(text: TextInput, transcript: Transcript) -> Told:
    told, head, others = Told(), _Head(), Counter[str]()
    reader: _Rows | None = None
    for n, line in enumerate(text.lines(), 1):
        if line is None:
            told.unread.add(LONG_LINE, n)
        elif not head.is_over:
            head.take(line, text.name)
        elif line.startswith("OS Version:"):
            head.say(line)
            reader = _Rows(head, transcript.pointer_size)
            transcript.add(TextEvent(class_guid=HEADER_CLASS, texts=head.about | {"starttime": head.about.get("tracestart", "0")}))
        elif reader is None:
            if line.strip():
                raise FormatError(f'{text.name}: behind the header of this text, the line "OS Version: …, Trace Start: …" is missing.')
        elif line.strip():
            name = line.partition(",")[0].strip().lower()
            if name == "stack":
                transcript.stacks += 1
            elif name.startswith(_SOCKETS + "/") or name in _DEEDS:
                try:
                    event = reader.event(name, line)
                    if event is None:
                        others["socket"] += 1
                        told.unread.add(OTHER_EVENT, n)
                    else:
                        transcript.add(event)
                except ValueError as error:
                    told.unread.add(error, n)
            elif name in head.columns:
                others["heap" if name.startswith("heap") else ""] += 1
                told.unread.add(OTHER_EVENT, n)
            elif not name.startswith("firstreliable"):
                told.unread.add(BAD_VALUE, n)
    if not head.is_over or reader is None:
        told.damage = "it ends in its header"
    told.lacks = _lacks(head, others)
    return told


class _Rows:
    """Rows to events by the names of their columns."""

    def __init__(self, head: _Head, pointer_size: int) -> None:
        self._columns = head.columns
        self._start = _start_of(head)
        self._cells = Cells(",", _MOST_COLUMNS)
        self._keywords = Keywords(pointer_size)
        self._is_wide = pointer_size == 8

    def event(self, name: str, line: str) -> TextEvent | None:
        """The event of a row; None for a socket event that is not known here. Raises ValueError."""
        columns = self._columns.get(name)
        if columns is None:
            raise ValueError("an event that the header does not name")
        if name in _DEEDS:
            return self._process(_DEEDS[name], columns, line)
        event_id = _TASKS.get(name.split("/")[1].strip())
        if event_id is None:
            return None
        _, *values = self._cells.split(line)
        if len(values) != len(columns):
            raise UnreadableEvent(SHORT_ROW)
        texts = dict(zip(columns, values, strict=True))
        event = self._placed(texts)
        event.provider, event.event_id, event.texts = AFD, event_id, texts
        if activity := texts.get("etw:activityid"):
            event.activity = guid_of(activity)
        if "enterexit" in texts and "endpoint" in texts:
            event.keyword = self._keywords.of(event)
        return event

    def _process(self, opcode: int, columns: list[str], line: str) -> TextEvent:
        """A process: its command line may have commas, so what stands behind it is counted from the end."""
        at = columns.index("command line") + 1 if "command line" in columns else len(columns) + 1
        behind = max(len(columns) - at, 0)
        cells = line.split(",", at)
        if len(cells) < min(at + 1, len(columns) + 1):
            raise UnreadableEvent(SHORT_ROW)
        command = cells[at].rsplit(",", behind)[0].strip() if at < len(cells) else ""
        texts = {column: cell.strip() for column, cell in zip(columns[: at - 1], cells[1:at], strict=False)}
        event = self._placed(texts)
        named = _PROCESS.fullmatch(texts["process name ( pid)"])
        assert named is not None  # _placed has read it
        key = number_of(texts.get("uniquekey", ""))
        if self._is_wide and key & _KERNEL_BIT:
            key |= _KERNEL_HIGH  # newer versions leave out the high bits, which are those of the kernel
        event.class_guid, event.opcode, event.version = PROCESS, opcode, _PROCESS_VERSION
        event.texts = {
            "uniqueprocesskey": str(key),
            "processid": named[2],
            "parentid": texts.get("parentpid", ""),
            "sessionid": texts.get("sessionid", "0"),
            "exitstatus": texts.get("status", "0"),
            "imagefilename": named[1].strip(),
            "commandline": command,
        }
        return event

    def _placed(self, texts: Mapping[str, str]) -> TextEvent:
        """Time, process and thread of a row. Raises ValueError."""
        found = _PROCESS.fullmatch(texts.get("process name ( pid)", ""))
        moment = self._start + 10 * number_of(texts.get("timestamp", ""))
        if not 0 < moment < _LAST_SENSIBLE:
            raise NoMoment
        if found is None:
            raise ValueError("a row without a process")
        thread = texts.get("threadid") or "0"
        return TextEvent(filetime=moment, pid=id_of(found[2]), tid=id_of(thread), cpu=number_of(texts.get("cpu") or "0"))


def _start_of(head: _Head) -> int:
    """What times count from; where that is no number, no row has a moment."""
    try:
        return number_of(head.about.get("tracestart", "0"))
    except ValueError:
        return _LAST_SENSIBLE


def _lacks(head: _Head, others: Counter[str]) -> str:
    parts = [
        "Its times have microseconds.",
        "It does not tell keywords: the fast path and datagram sockets are inferred from the buffer and the kind of event, and a transfer "
        "that the system finished with data of its own may count twice.",
    ]
    sockets = [columns for name, columns in head.columns.items() if name.startswith(f"{_SOCKETS}/")]
    if spared := [shown for column, shown in _SPARED.items() if any(column not in columns for columns in sockets)]:
        parts.append(f"Columns that socket events lack, and what they tell is read as 0: {', '.join(spared)}.")
    if others["heap"]:
        parts.append(f"Heap events, whose columns are not published, are left out: {others['heap']:,}.")
    if others["socket"]:
        parts.append(f"Socket events of names that are not known here are left out: {others['socket']:,}.")
    if others[""]:
        parts.append(f"Other events are left out: {others['']:,}.")
    return " ".join(parts)


XPERF_DUMP = TextForm("text of the xperf dumper", _is_xperf_dump, _pointer_size, _read, is_of_lines=True)

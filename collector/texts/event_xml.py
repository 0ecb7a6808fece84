"""Events as XML: what tracerpt writes with -of XML, what the Event Viewer saves; read as a stream, and without definitions."""

import codecs
import re
from xml.parsers import expat

from collector.errors import FormatError
from collector.texts.form import PIECE_BYTES, TextForm, TextInput, Told, beginning_of
from collector.texts.transcript import TextEvent, Transcript
from collector.texts.unread import NO_MOMENT, Unread
from collector.texts.values import filetime_of, guid_of, hex_bytes, id_of, number_of, plain_name

__all__ = ["EVENT_XML", "WIDE", "EventReader"]

_MOST_DEEP = 64
_MOST_TEXT = 256 << 10  # a payload of 64 KB in hexadecimal
_MOST_FIELDS = 1024
_MOST_BEHIND = 8 << 20
_BARE = re.compile(r"\s*(?:\ufeff\s*)?<(?:\w+:)?Event[\s>]")  # wevtutil writes events without an element around them
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_POINTER_SIZE = re.compile(r'Name="PointerSize">\s*([48])\s*<')
WIDE = re.compile(r"<(?!(?:\w{1,40}:)?Keywords\b)\w[\w:]{0,100}(?:\s[^<>]{0,200})?>\s*0x0*[1-9A-Fa-f][0-9A-Fa-f]{8}")
"""A value that only a wide pointer has; masks of keywords are as wide in any trace."""


def _is_event_xml(start: bytes) -> bool:
    text = beginning_of(start)
    return text.startswith("<") and re.search(r"<(\w+:)?Events?[\s>]", text) is not None


def _pointer_size(text: TextInput) -> tuple[int, bool]:
    sample = text.sample()
    told = _POINTER_SIZE.search(sample)
    if told:
        return int(told[1]), True
    return (8 if WIDE.search(sample) or "0x" not in sample else 4), False


def _read(text: TextInput, transcript: Transcript) -> Told:
    """Parse the whole file. Raises SourceError, FormatError."""
    told = Told()
    reader = EventReader(text.name, transcript, told.unread)
    is_bare = _BARE.match(codecs.decode(text.source.read_at(0, PIECE_BYTES), text.encoding, "ignore")) is not None
    if is_bare:
        reader.feed("<Events>", is_last=False)
    for piece, is_last in text.pieces():
        try:
            clean = _NOT_XML.sub("\ufffd", piece)
            reader.feed(f"{clean}</Events>" if is_bare and is_last else clean, is_last=is_last)
        except expat.ExpatError as error:
            told.damage = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
            break
    if reader.without_processor:
        told.lacks = f"Events that do not tell their processor, which is shown as 0: {reader.without_processor:,}."
    return told


class EventReader:
    """Elements to events: 0.15 ms an event of 25 elements, with all that is behind it; most of it are calls from the parser."""

    def __init__(self, name: str, transcript: Transcript, unread: Unread) -> None:
        self.without_processor = 0
        self._name, self._transcript, self._unread = name, transcript, unread
        self._event: TextEvent | None = None
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = self._fed = 0
        self._field = ""
        self._fault: ValueError | None = None
        self._has_lines, self._line = True, 0
        self._written = 0
        self._rendered = 0  # how deep the element is in which a tool says the same in words; 0 outside of it
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._refuse_definitions

    def feed(self, text: str, *, is_last: bool) -> None:
        """Parse a piece. Raises ExpatError; FormatError for what no tool writes."""
        self._parser.Parse(text, is_last)
        self._fed += len(text.encode("utf-8", "surrogatepass"))
        if not is_last and self._fed - max(self._parser.CurrentByteIndex, 0) > _MOST_BEHIND:
            raise FormatError(f"{self._name}: one element of this XML has more than {_MOST_BEHIND:,} bytes, which no tool writes.")

    def document(self, xml: str, written: int) -> bool:
        """Parse an event that stands alone, written at a FILETIME (0: unknown); False where it cannot be, and nothing more either."""
        self._written, self._has_lines = written, False
        try:
            if not self._fed:
                self.feed("<Events>", is_last=False)
            self.feed(_NOT_XML.sub("\ufffd", xml), is_last=False)
        except (expat.ExpatError, FormatError):
            return False
        return not self._path[1:]

    def _refuse_definitions(self, *_: object) -> None:
        raise FormatError(f"{self._name}: this XML brings definitions of its own (DOCTYPE), which no tool writes. It is not read.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2] if ":" in tag else tag
        self._path.append(tag)
        if len(self._path) > _MOST_DEEP:
            raise FormatError(f"{self._name}: this XML is nested deeper than {_MOST_DEEP} elements, which no tool writes.")
        self._text, self._length = [], 0
        if tag == "Event":
            self._event, self._fault, self._rendered = TextEvent(), None, 0
            self._line = self._parser.CurrentLineNumber if self._has_lines else 0
        elif tag == "RenderingInfo":
            self._rendered = len(self._path)
        elif self._event is not None and not self._rendered:
            self._field = attributes.get("Name", "") if tag == "Data" else tag
            try:
                self._attributes(self._event, tag, attributes)
            except ValueError as error:
                self._fault = self._fault or error

    def _attributes(self, event: TextEvent, tag: str, found: dict[str, str]) -> None:
        if tag == "Provider" and (guid := found.get("Guid")):
            event.provider = guid_of(guid)
        elif tag == "TimeCreated":
            event.filetime = filetime_of(found.get("SystemTime", ""))
        elif tag == "Correlation" and (activity := found.get("ActivityID")):
            event.activity = guid_of(activity)
        elif tag == "Execution":
            event.pid, event.tid = (id_of(found.get(name, "0")) for name in ("ProcessID", "ThreadID"))
            event.cpu = number_of(found.get("ProcessorID", "0"))
            self.without_processor += "ProcessorID" not in found

    def _characters(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _MOST_TEXT:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        tag = self._path.pop()
        event, text = self._event, "".join(self._text)
        is_leaf = bool(self._field)
        self._text = []
        if event is None:
            return
        if tag == "Event":
            self._finish(event)
        elif self._rendered:
            self._rendered = 0 if len(self._path) < self._rendered else self._rendered
        else:
            try:
                self._element(event, tag, text, is_leaf=is_leaf)
            except ValueError as error:
                self._fault = self._fault or error
        self._field = ""

    def _element(self, event: TextEvent, tag: str, text: str, *, is_leaf: bool) -> None:
        parent = self._path[-1] if self._path else ""
        if parent == "System":
            if tag == "EventID":
                event.event_id = number_of(text)
            elif tag == "Keywords":
                event.keyword = number_of(text)
            elif tag in ("Version", "Level", "Opcode"):
                setattr(event, tag.lower(), number_of(text))
        elif tag == "EventGuid":
            event.class_guid = guid_of(text)
        elif tag in ("BinaryEventData", "EventPayload"):
            event.payload = hex_bytes(text)
        elif (tag == "Data" or (is_leaf and "UserData" in self._path)) and len(event.listed) < _MOST_FIELDS:
            event.listed.append(text)
            name = self._field if tag == "Data" else tag
            event.texts.setdefault(plain_name(name), text)

    def _finish(self, event: TextEvent) -> None:
        self._event = None
        if event.filetime // 10 == self._written // 10:  # the same moment, to 100 ns instead of microseconds
            event.filetime = self._written
        if self._fault or not event.filetime:
            self._unread.add(self._fault or NO_MOMENT, self._line)
            return
        try:
            self._transcript.add(event)
        except ValueError as error:  # more bytes than a record has room for
            self._unread.add(error, self._line)


EVENT_XML = TextForm("XML", _is_event_xml, _pointer_size, _read)

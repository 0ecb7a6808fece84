"""Text of `netsh trace convert`: a line an event, `[cpu]PID.TID::time [provider]message`. Of the messages those of sockets are read.

Facts from public examples: ids are hexadecimal, of four digits or more, the time is that of a clock on the wall with three to nine digits
of a second, a value that has a word is written as number(word); pktmon etl2txt writes the same with a blank before the message.
"""

import re
from collections import Counter

from collector.events.afd import AFD
from collector.texts.afd_messages import event_of_message
from collector.texts.form import TextForm, TextInput, Told, beginning_of
from collector.texts.keywords import Keywords
from collector.texts.transcript import HEADER_CLASS, TextEvent, Transcript
from collector.texts.unread import LONG_LINE, OTHER_LINE, OTHER_MESSAGE, OTHER_PROVIDER
from collector.texts.values import filetime_of, plain_name

__all__ = ["NETSH_TEXT"]

_HEAD = r"\[(\d{1,5})\] ?([0-9A-Fa-f]{4,8})\.([0-9A-Fa-f]{4,8}):: ?"
_START = re.compile(_HEAD + r"\d\d")
_BEGINNING = re.compile(r"\[[^\]]{0,40}\] ?\S{0,200}?(?:::|\d\d:\d\d)")
"""What an event begins with, however odd its numbers; other lines go on with the message before them."""
_LINE = re.compile(
    _HEAD + r"(?:(?P<y>\d{4})[/-](?P<m>\d\d)[/-](?P<d>\d\d)|(?P<m2>\d\d)/(?P<d2>\d\d)/(?P<y2>\d{4}|\d\d))[- ]"
    r"(?P<time>\d\d:\d\d:\d\d)[.,](?P<part>\d{1,9}) {0,4}\[(?P<provider>[^\]]{0,200})\] ?(?P<message>.*)"
)
_SOCKETS = "microsoft-windows-winsock-afd"
_SESSION = "msnt_systemtrace"
_ABOUT = re.compile(r"\b(PointerSize|EventsLost|BuffersLost|NumberOfProcessors|CPUSpeed|ProviderVersion): ?([^\s,;]*(?:[\s,]\d[^\s,;]*)*)")
_WIDE = re.compile(r"0x0*[1-9A-Fa-f][0-9A-Fa-f]{8}")
_MOST_MESSAGE = 4096
_NAMES_SHOWN, _MOST_NAMES = 5, 10_000
_MILLISECONDS = 3


def _is_netsh_text(start: bytes) -> bool:
    return _START.match(beginning_of(start)) is not None


def _pointer_size(text: TextInput) -> tuple[int, bool]:
    is_any = False
    for line in text.sample().split("\n"):
        found = _LINE.match(line.lstrip("\ufeff"))
        if found is None:
            continue
        provider = found["provider"].lower()
        if provider == _SESSION and (about := dict(_ABOUT.findall(line[:_MOST_MESSAGE]))).get("PointerSize") in ("4", "8"):
            return int(about["PointerSize"]), True
        if provider == _SOCKETS:
            if _WIDE.search(found["message"]):
                return 8, False
            is_any = True
    return (4 if is_any else 8), False


def _read(text: TextInput, transcript: Transcript) -> Told:
    told, others, unknown, most_digits = Told(), Counter[str](), 0, 0
    keywords = Keywords(transcript.pointer_size)
    for n, line in enumerate(text.lines(), 1):
        if line is None:
            told.unread.add(LONG_LINE, n)
            continue
        found = _LINE.match(line.lstrip("\ufeff"))
        if found is None:
            if _BEGINNING.match(line.lstrip("\ufeff")):
                told.unread.add(OTHER_LINE, n)
            continue
        provider = found["provider"].strip()
        if provider.lower() == _SESSION and "Header" in found["message"][:40]:
            about = {plain_name(name): value for name, value in _ABOUT.findall(found["message"][:_MOST_MESSAGE])}
            transcript.add(TextEvent(class_guid=HEADER_CLASS, texts=about))
        elif provider.lower() != _SOCKETS:
            told.unread.add(OTHER_PROVIDER, n)
            if len(others) < _MOST_NAMES or provider in others:
                others[provider] += 1
        else:
            try:
                event = _event(found)
                if event is None:
                    unknown += 1
                    told.unread.add(OTHER_MESSAGE, n)
                    continue
                event.keyword = keywords.of(event)
                transcript.add(event)
                most_digits = max(most_digits, len(found["part"]))
            except ValueError as error:
                told.unread.add(error, n)
    told.lacks = _lacks(others, unknown, is_coarse=most_digits <= _MILLISECONDS)
    return told


def _event(found: re.Match[str]) -> TextEvent | None:
    """The event of a line, None for a message that is not known. Raises ValueError."""
    message = found["message"]
    if len(message) > _MOST_MESSAGE:
        raise ValueError("a message without an end")
    known = event_of_message(message.rstrip().removesuffix("."))
    if known is None:
        return None
    event_id, texts = known
    year, month, day = (found["y"], found["m"], found["d"]) if found["y"] else (found["y2"], found["m2"], found["d2"])
    return TextEvent(
        filetime=filetime_of(f"{year if len(year) == 4 else f'20{year}'}-{month}-{day}T{found['time']}.{found['part']}"),
        provider=AFD,
        event_id=event_id,
        pid=int(found[2], 16),
        tid=int(found[3], 16),
        cpu=int(found[1]),
        texts=texts,
    )


def _lacks(others: Counter[str], unknown: int, *, is_coarse: bool) -> str:
    parts = [
        "Its times are those of a clock on the wall whose zone it does not tell; they are shown as UTC.",
        "It tells neither activities nor keywords: completions are matched without them, which may be wrong where several requests of a "
        "socket are in flight; the fast path and datagram sockets are inferred from the buffer and the kind of event; a transfer that the "
        "system finished with data of its own may count twice. Nor does it tell the buffer of connect and accept (shown as none), and the "
        "status of a disconnect (shown as 0).",
        "It does not tell the ids of other providers' events: processes have no names, and there are no heaps.",
    ]
    if is_coarse:
        parts.append("Its times have milliseconds only.")
    if unknown:
        parts.append(
            f"Messages of the socket provider that are not known here, or do not say what they are about, are left out: {unknown:,}."
        )
    if others:
        names = ", ".join(name for name, _ in others.most_common(_NAMES_SHOWN))
        parts.append(f"Events of other providers are left out: {others.total():,} ({names}{', …' if len(others) > _NAMES_SHOWN else ''}).")
    return " ".join(parts)


NETSH_TEXT = TextForm("text of netsh trace convert", _is_netsh_text, _pointer_size, _read, is_of_lines=True)

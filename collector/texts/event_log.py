"""Event logs (.evtx), as the operational channel of the socket provider is kept: each chunk to XML in a process of its own, then as XML.

Layout of the file and of its chunks: the published description of the format (libevtx); what is inside a chunk is the library's business.
"""

import os
import re
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from collector.errors import FormatError
from collector.texts.event_xml import WIDE, EventReader
from collector.texts.evtx_worker import DONE, FAULT, HEAD, READY, RECORD
from collector.texts.form import TextForm, TextInput, Told
from collector.texts.transcript import Transcript
from collector.texts.unread import BAD_RECORD
from collector.texts.values import filetime_of

__all__ = ["EVENT_LOG"]

_SIGNATURE, _CHUNK_SIGNATURE = b"ElfFile\0", b"ElfChnk\0"
_FILE_HEADER, _CHUNK, _CHUNK_HEADER = 4096, 65536, 512
_FREE_AT, _DATA_SUM_AT, _HEADER_SUM_AT = 48, 52, 124
_SAMPLE_CHUNKS = 4
_MOST_SECONDS = 30.0  # a chunk takes some 10 ms
_MOST_RECORD, _MOST_CHUNK = 1 << 20, 16 << 20  # bytes of XML: an event has 2 KB, a chunk of them half a megabyte
_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>\s*")
_MISSING = (
    'the library that reads event logs is not installed: pip install "sockscope[eventlogs]", or write the log as XML: '
    "wevtutil qe FILE.evtx /lf:true /f:xml > FILE.xml"
)
_LACKS = (
    "An event log tells neither processors nor processes nor heaps, and not how many events were lost; its times have microseconds, and "
    "100 ns where an event is of the moment at which it was written."
)


def _is_event_log(start: bytes) -> bool:
    return start.startswith(_SIGNATURE)


def _pointer_size(text: TextInput) -> tuple[int, bool]:
    is_any = False
    with _Library(text.name) as library:
        for offset in range(_FILE_HEADER, min(text.source.size, _FILE_HEADER + _SAMPLE_CHUNKS * _CHUNK), _CHUNK):
            text.look()
            for _, xml in library.records(text.source.read_at(offset, _CHUNK), Told()):
                if WIDE.search(xml):
                    return 8, False
                is_any = is_any or "0x" in xml.partition("<EventData>")[2]
    return (4 if is_any else 8), False


def _read(text: TextInput, transcript: Transcript) -> Told:
    told = Told(lacks=_LACKS)
    reader = EventReader(text.name, transcript, told.unread)
    with _Library(text.name) as library:
        for offset in range(_FILE_HEADER, text.source.size, _CHUNK):
            text.look()
            chunk = text.source.read_at(offset, _CHUNK)
            where = f"the chunk at byte {offset:,}"
            if not chunk.startswith(_CHUNK_SIGNATURE) or len(chunk) < _CHUNK:
                if any(chunk):
                    told.damage = told.damage or f"{where} {'is cut' if len(chunk) < _CHUNK else 'is none'}"
                continue
            if not _is_whole(chunk):
                told.damage = told.damage or f"{where} has other checksums than its bytes"
            for written, xml in library.records(chunk, told):
                if not reader.document(xml, written):
                    told.unread.add(BAD_RECORD)
                    reader = EventReader(text.name, transcript, told.unread)
    return told


def _is_whole(chunk: bytes) -> bool:
    """Whether the checksums of a chunk are those of its bytes."""
    free, data_sum, header_sum = (int.from_bytes(chunk[at : at + 4], "little") for at in (_FREE_AT, _DATA_SUM_AT, _HEADER_SUM_AT))
    head = chunk[:120] + chunk[128:_CHUNK_HEADER]
    return _CHUNK_HEADER <= free <= _CHUNK and zlib.crc32(chunk[_CHUNK_HEADER:free]) == data_sum and zlib.crc32(head) == header_sum


def _log_of(chunk: bytes) -> bytes:
    """A log of this chunk alone."""
    head = struct.pack("<8sQQQIHHHH76xI", _SIGNATURE, 0, 0, 1, 128, 1, 3, _FILE_HEADER, 1, 0)
    return (head + struct.pack("<I", zlib.crc32(head[:120]))).ljust(_FILE_HEADER, b"\0") + chunk


class _Library:
    """The library's process: started at the first chunk, and anew where one has ended it or took too long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Library":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def records(self, chunk: bytes, told: Told) -> Iterator[tuple[int, str]]:
        """When each record of a chunk was written (FILETIME, 0 where unknown) and its XML; what cannot be read is counted in `told`.

        Raises: FormatError where the library does not work.
        """
        process = self._process or self._start()
        ways_in, ways_out = process.stdin, process.stdout
        assert ways_in is not None
        assert ways_out is not None
        log = _log_of(chunk)
        left = _MOST_CHUNK
        timer = threading.Timer(_MOST_SECONDS, process.kill)
        timer.start()
        try:
            with suppress(OSError):  # it has ended; reading says so
                ways_in.write(HEAD.pack(RECORD, len(log)) + log)
                ways_in.flush()
            while True:
                kind, content = _next(ways_out)
                left -= len(content)
                if kind == DONE:
                    return
                if not kind or left < 0:
                    told.damage = told.damage or "a chunk that the library cannot read" if not kind else "a chunk with far too much text"
                    told.unread.add(BAD_RECORD)
                    break
                if kind == FAULT or len(content) > _MOST_RECORD:
                    told.unread.add(BAD_RECORD)
                    continue
                written, _, xml = content.decode("utf-8", "replace").partition("\n")
                yield _filetime(written), _DECLARATION.sub("", xml)
        finally:
            timer.cancel()
        self._end()

    def _start(self) -> "subprocess.Popen[bytes]":
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "collector.texts.evtx_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert process.stdout is not None
        kind, _ = _next(process.stdout)
        if kind != READY:
            self._end()
            raise FormatError(f"{self._name}: {_MISSING}")
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()


def _next(answers: IO[bytes]) -> tuple[bytes, bytes]:
    """What the process says next; nothing where it has ended."""
    head = answers.read(HEAD.size)
    if len(head) < HEAD.size:
        return b"", b""
    kind, size = HEAD.unpack(head)
    if size > _MOST_CHUNK:
        return b"", b""
    content = answers.read(size)
    return (kind, content) if len(content) == size else (b"", b"")


def _filetime(text: str) -> int:
    try:
        return filetime_of(text.removesuffix(" UTC"))
    except ValueError:
        return 0


EVENT_LOG = TextForm("an event log", _is_event_log, _pointer_size, _read)

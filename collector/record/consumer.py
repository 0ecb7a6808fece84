"""Reads a session in real time: OpenTraceW, ProcessTrace on a thread, and a callback that copies each record and does nothing else.

A record is valid only inside the callback (documentation of EVENT_RECORD), which costs more than the record itself, so what is made of it
is made elsewhere.
"""

import ctypes
import struct

from collector.errors import RecordError
from collector.record.backlog import Lane
from collector.record.calls import Windows, wide
from collector.record.constants import Code, ReadMode
from collector.record.failures import failure
from collector.record.structures import EVENT_RECORD, EVENT_RECORD_CALLBACK, EVENT_TRACE_LOGFILEW, TRACE_LOGFILE_HEADER

__all__ = ["Consumer"]

_INVALID = (0xFFFF_FFFF_FFFF_FFFF, 0x0000_0000_FFFF_FFFF)
"""What OpenTraceW returns when it fails; the second in a 32-bit process. No session handle is ever compared with these."""
_WIDE = ctypes.sizeof(ctypes.c_void_p) == 8
_TAIL = struct.Struct("<HHQQ" if _WIDE else "<HHII")
"""ExtendedDataCount, UserDataLength, ExtendedData, UserData at byte 84 of EVENT_RECORD."""
_TAIL_AT = EVENT_RECORD.ExtendedDataCount.offset
_ITEM = struct.Struct("<2xH2xHQ")
_RECORD_COST = 200  # bytes of a record's objects beside its own


class Consumer:
    """One session as it is read; `run` blocks until the session ends or `close` is called."""

    def __init__(self, windows: Windows, session: str, lane: Lane) -> None:
        self.session = session
        self.failed = 0
        """Records that could not be copied."""
        self._windows, self._lane = windows, lane
        self._callback = EVENT_RECORD_CALLBACK(self._on_record)  # kept: Windows calls it as long as ProcessTrace runs
        self._name = ctypes.create_string_buffer(wide(session))
        self._handle: int | None = None

    def open(self) -> TRACE_LOGFILE_HEADER:
        """Begin to read; what Windows tells of the session. Raises RecordError."""
        logfile = EVENT_TRACE_LOGFILEW()
        logfile.LoggerName = ctypes.addressof(self._name)
        logfile.ProcessTraceMode = (
            ReadMode.PROCESS_TRACE_MODE_REAL_TIME | ReadMode.PROCESS_TRACE_MODE_EVENT_RECORD | ReadMode.PROCESS_TRACE_MODE_RAW_TIMESTAMP
        )
        logfile.EventRecordCallback = ctypes.cast(self._callback, ctypes.c_void_p).value
        handle: int = self._windows.OpenTraceW(ctypes.byref(logfile))
        if handle in _INVALID:
            raise failure("OpenTraceW", self._windows.last_error(), f"The session {self.session} cannot be read")
        self._handle = handle
        return TRACE_LOGFILE_HEADER.from_buffer_copy(logfile.LogfileHeader)

    def run(self) -> None:
        """Deliver records until the session has ended. Raises RecordError.

        No start time is given: with one, what runs when the session begins would be dropped.
        """
        if self._handle is None:
            raise RecordError(f"The session {self.session} was not opened.")
        code = self._windows.ProcessTrace(ctypes.byref(ctypes.c_uint64(self._handle)), 1, None, None)
        if code not in (Code.ERROR_SUCCESS, Code.ERROR_CANCELLED):
            raise failure("ProcessTrace", code, f"Reading the session {self.session} ended too early")

    def close(self) -> None:
        """End reading; what Windows has for us by now is still delivered. Raises RecordError."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        code = self._windows.CloseTrace(handle)
        if code not in (Code.ERROR_SUCCESS, Code.ERROR_CTX_CLOSE_PENDING):
            raise failure("CloseTrace", code, f"Reading the session {self.session} could not be ended")

    def _on_record(self, record: object) -> None:
        """Copy one record. Nothing may leave this function: Windows would end reading."""
        try:
            head = ctypes.string_at(record, _TAIL_AT + _TAIL.size)  # type: ignore[arg-type]  # a pointer, which it takes
            count, length, items_at, payload_at = _TAIL.unpack_from(head, _TAIL_AT)
            payload = ctypes.string_at(payload_at, length) if length else b""
            items: tuple[tuple[int, bytes], ...] = ()
            if count:
                table = ctypes.string_at(items_at, count * _ITEM.size)
                items = tuple((kind, ctypes.string_at(at, size) if size else b"") for kind, size, at in _ITEM.iter_unpack(table))
            self._lane.put((head[:_TAIL_AT], payload, items), _RECORD_COST + length)
        except Exception:  # whatever it is, it must not reach Windows; it is counted and told
            self.failed += 1

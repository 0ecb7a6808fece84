"""The one allocation in which Windows is told of a session and tells of it: EVENT_TRACE_PROPERTIES, the session's name, its file's name."""

import ctypes

from collector.record.calls import wide
from collector.record.structures import EVENT_TRACE_PROPERTIES

__all__ = ["MOST_NAME", "MOST_PATH", "Properties"]

MOST_NAME = 1024
MOST_PATH = 1024
"""Characters with the zero at the end: the limits of StartTraceW."""


class Properties:
    """Zeroed memory with the offsets set; `fields` is the structure at its start.

    The name of the session is only given room: StartTraceW and the heap functions write it there. The name of the file is ours to write,
    and stands after it. `file` None leaves out the file; for a query give "", which makes room for the answer. An object is passed to a
    call as it is, which keeps its memory for as long as the call lasts.
    """

    def __init__(self, file: str | None = "") -> None:
        self._name_at = ctypes.sizeof(EVENT_TRACE_PROPERTIES)
        self._file_at = self._name_at + 2 * MOST_NAME
        size = self._file_at + (2 * MOST_PATH if file is not None else 0)
        self._memory = ctypes.create_string_buffer(size)
        self._as_parameter_ = self._memory  # what ctypes passes
        self.fields = EVENT_TRACE_PROPERTIES.from_buffer(self._memory)
        self.fields.Wnode.BufferSize = size
        self.fields.LoggerNameOffset = self._name_at
        if file is not None:
            name = wide(file)
            if len(name) > 2 * MOST_PATH:
                raise ValueError(f"a file name of {len(file):,} characters; Windows takes {MOST_PATH - 1:,}")
            self.fields.LogFileNameOffset = self._file_at
            ctypes.memmove(self.address + self._file_at, name, len(name))

    @property
    def address(self) -> int:
        """Where it is, for lists of pointers; the memory lives only as long as this object."""
        return ctypes.addressof(self._memory)

    @property
    def session_name(self) -> str:
        """The name that Windows wrote."""
        return self._text(self.fields.LoggerNameOffset)

    @property
    def file_name(self) -> str:
        """The file that Windows named; empty without one."""
        return self._text(self.fields.LogFileNameOffset)

    def _text(self, offset: int) -> str:
        if not self._name_at <= offset < len(self._memory):
            return ""
        units = bytes(self._memory)[offset:]
        end = next((at for at in range(0, len(units) - 1, 2) if units[at : at + 2] == b"\0\0"), len(units))
        return units[:end].decode("utf-16-le", "surrogatepass")

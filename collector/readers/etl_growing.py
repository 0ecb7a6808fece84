"""An ETL file that its session still writes: how much of it can be read now, and whether the session has ended.

Buffers are appended one after the other; when the session ends, the log file header at the start gets its end and its counts
(etl-format S5, S11: both are 0 before).
"""

from dataclasses import dataclass
from hashlib import sha256

from collector.errors import FormatError
from collector.readers.etl import is_etl
from collector.readers.etl_buffers import HEADER_BYTES, MAX_BUFFER_BYTES, BufferHeader
from collector.readers.etl_logfile import SYSTEM_HEADER_BYTES, parse_log_file_header
from collector.source import Source

__all__ = ["GrowingFile", "Growth"]

_FIRST_RECORD_MOST = 1 << 16
_ANY_PLACE = 0x2 | 0x20  # circular and preallocated files are written anywhere, so their size says nothing


@dataclass(frozen=True, slots=True)
class Growth:
    """What one look at a growing file shows."""

    whole_bytes: int
    """Bytes up to the end of the last whole buffer; 0 while not even the first one is there."""
    buffers: int
    declared_buffers: int
    """How many the log file header counts; 0 before the session has ended."""
    is_ended: bool
    """Whether the header says when the session ended."""
    mark: str
    """Another one where the first buffer, which is written anew at the end, or the number of whole buffers has changed."""


class GrowingFile:
    """Looks at one file again and again; what it has seen of a file that only grows it does not read twice."""

    def __init__(self) -> None:
        self._position = self._buffers = 0
        self._session: tuple[int, int, int] | None = None

    def look(self, source: Source) -> Growth:
        """What is there now. Raises SourceError; FormatError for a file that cannot be a trace, or is another one's now."""
        start = source.read_at(0, HEADER_BYTES)
        if len(start) < HEADER_BYTES or not any(start):  # a preallocated file is zero before its first buffer is written
            return Growth(0, 0, 0, is_ended=False, mark="")
        first = BufferHeader.parse(start)
        record = source.read_at(HEADER_BYTES, _FIRST_RECORD_MOST)
        is_marked = len(record) < SYSTEM_HEADER_BYTES or is_etl(start + record)
        if is_marked and first.is_plausible and len(start) + len(record) < min(first.size, _FIRST_RECORD_MOST):
            return Growth(0, 0, 0, is_ended=False, mark="")
        logfile = parse_log_file_header(record, name=source.name, offset=HEADER_BYTES)
        session = (logfile.first_ticks, logfile.start_filetime, logfile.boot_filetime)
        if self._session not in (None, session):
            raise FormatError(f"{source.name}: another session writes to this file now. Follow it again from its beginning.")
        if source.size < self._position:
            raise FormatError(f"{source.name}: the file became shorter while it was followed. Follow it again from its beginning.")
        self._session = session
        if logfile.is_compressed:
            self._walk(source)
        else:
            grid = first.size if first.is_plausible else logfile.buffer_size
            self._buffers = source.size // max(grid, HEADER_BYTES)
            self._position = self._buffers * max(grid, HEADER_BYTES)
        is_ended = logfile.end_filetime != 0
        mark = f"{self._position} {sha256(start + record[: first.filled]).hexdigest()}"
        if logfile.log_file_mode & _ANY_PLACE:
            mark += f" {source.changed_ns()}"
        return Growth(self._position, self._buffers, logfile.buffers_written, is_ended=is_ended, mark=mark)

    def _walk(self, source: Source) -> None:
        """Go on from buffer to buffer, whose sizes differ."""
        while (position := self._position) + HEADER_BYTES <= source.size:
            header = BufferHeader.parse(source.read_at(position, HEADER_BYTES))
            if not header.is_plausible:
                if source.size - position > MAX_BUFFER_BYTES:  # damage, which the reader will name
                    self._position = source.size
                return
            if position + header.size > source.size:
                return
            self._position += header.size
            self._buffers += 1

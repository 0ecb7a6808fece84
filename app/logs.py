"""Lines of the server's log: one for each record, whatever a request or a trace put into it, as text or as JSON.

Paths, file names and messages of errors come from outside. A line break in one would forge a line, an escape sequence would steer the
terminal of whoever reads it; both are written as escapes. Lines of a traceback are indented, so that none looks like a record.
"""

import json
import logging
import sys
from datetime import UTC, datetime

from collector.plain import plain_line, visible_text

__all__ = ["LOG_FORMATS", "JsonFormatter", "PlainFormatter", "write_logs"]

_INDENT = "    | "


class PlainFormatter(logging.Formatter):
    """`2025-03-04 10:00:00 ERROR sockscope: …`, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        head = plain_line(f"{self.formatTime(record, self.datefmt)} {record.levelname} {record.name}: {record.getMessage()}")
        more = self.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
        return "\n".join((head, *(_INDENT + plain_line(visible_text(line).expandtabs()) for line in more.splitlines())))


class JsonFormatter(logging.Formatter):
    """A JSON object a line, in ASCII: `time`, `level`, `logger`, `message`, the record's own fields, `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            entry |= fields
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


_FORMATTERS: dict[str, type[logging.Formatter]] = {"text": PlainFormatter, "json": JsonFormatter}
LOG_FORMATS = tuple(_FORMATTERS)


def write_logs(log_format: str = "text", *, has_requests: bool = False) -> None:
    """Write the warnings of this process to stderr, the server's own among them; with `has_requests` a line for each request, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMATTERS[log_format]())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sockscope.requests").setLevel(logging.INFO if has_requests else logging.WARNING)

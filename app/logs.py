"""Lines of the server's log: one for each record, whatever a request or a trace put into it.

Paths, file names and messages of errors come from outside. A line break in one would forge a line, an escape sequence would steer the
terminal of whoever reads it; both are written as escapes. Lines of a traceback are indented, so that none looks like a record.
"""

import logging
import sys

from collector.plain import plain_line, visible_text

__all__ = ["PlainFormatter", "write_logs"]

_INDENT = "    | "


class PlainFormatter(logging.Formatter):
    """`2025-03-04 10:00:00 ERROR sockscope: …`, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        head = plain_line(f"{self.formatTime(record, self.datefmt)} {record.levelname} {record.name}: {record.getMessage()}")
        more = self.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
        return "\n".join((head, *(_INDENT + plain_line(visible_text(line).expandtabs()) for line in more.splitlines())))


def write_logs(level: int = logging.WARNING) -> None:
    """Write all records of this process to stderr, the server's own among them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)

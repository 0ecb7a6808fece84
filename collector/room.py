"""Room on the disk while a file grows whose size nobody knows before: looked for now and then, so that some is left for others."""

import errno
import shutil
import tempfile
from pathlib import Path

__all__ = ["CHECK_BYTES", "ROOM_BYTES", "Room", "advice_on_temporary_files", "is_full"]

ROOM_BYTES = 256 << 20
"""Space that must be left."""
CHECK_BYTES = 64 << 20
"""How much is written from one look to the next."""
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Room:
    """The disk of a folder, or of the system's place for what is temporary; looked at `at_once`, or first after CHECK_BYTES."""

    def __init__(self, place: Path | None, *, at_once: bool) -> None:
        self._place = place
        self._looks_at = 0 if at_once else CHECK_BYTES

    def lacking(self, written: int, more: int | None = None) -> int:
        """The bytes that must be free and are not, ROOM_BYTES beside `more`, which is what comes up to the next look unless it is given.

        0 where they are, or were a moment ago. Raises OSError.
        """
        if written < self._looks_at:
            return 0
        self._looks_at = written + CHECK_BYTES
        needed = ROOM_BYTES + (CHECK_BYTES if more is None else more)
        return needed if shutil.disk_usage(self._place or tempfile.gettempdir()).free < needed else 0


def is_full(error: OSError) -> bool:
    """Whether the system refused to write because no space, or none of the user's share, is left."""
    return error.errno in _FULL


def advice_on_temporary_files() -> str:
    """What to do where what waits in temporary files while a trace is collected has no room."""
    return (
        f"{tempfile.gettempdir()}: no space is left on the disk for what waits there while a trace is collected. Free some, or set TMPDIR "
        "to a folder with more room. Nothing was stored."
    )

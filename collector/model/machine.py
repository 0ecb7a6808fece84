"""The name of the machine that was traced, from the kernel's description of its processors.

The record is SystemConfig's opcode 10, written at the start or end of a kernel session: five 32-bit numbers, then the name in 256
characters of UTF-16 (seen in public traces, version 3).
"""

from uuid import UUID

import numpy as np

from collector.raw import RawEvents

__all__ = ["Machine"]

_CONFIG = UUID("01853a65-418f-4f36-aefc-dc0f1d2fd235")
_CPU = 10
_NAME = slice(20, 20 + 512)
_MOST_TRIED = 8
"""Records of a window that are looked at for a name; a session writes one."""


class Machine:
    """Looks for the first name."""

    def __init__(self) -> None:
        self.name: str | None = None

    def advance(self, raw: RawEvents) -> None:
        """Take in one window."""
        if self.name is not None or _CONFIG not in raw.providers:
            return
        is_it = (raw.provider == raw.providers.index(_CONFIG)) & (raw.opcode == _CPU)
        for row in np.flatnonzero(is_it)[:_MOST_TRIED].tolist():
            text = raw.payload_bytes(row)[_NAME].decode("utf-16-le", "replace").partition("\0")[0].strip()
            if text:
                self.name = text
                return

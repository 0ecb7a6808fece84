"""How much memory a session's buffers take, what sizes are allowed, and what to enlarge when events are lost."""

import re
from dataclasses import dataclass

__all__ = ["HEAP_BUFFERS", "KERNEL_BUFFERS", "WINSOCK_BUFFERS", "Buffers", "parse_buffers"]

LEAST_KB, MOST_KB = 4, 16_384
MOST_BUFFERS = 65_536
_MUCH_MB = 1_024
_SPEC = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?(?:x(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Buffers:
    """Size of one buffer in KB, and how many there are at least and at most. Raises ValueError with what is allowed."""

    kb: int
    least: int
    most: int

    def __post_init__(self) -> None:
        if not LEAST_KB <= self.kb <= MOST_KB:
            raise ValueError(f"a buffer of {self.kb:,} KB is not possible: Windows takes {LEAST_KB} to {MOST_KB:,} KB")
        if not 2 <= self.least <= self.most <= MOST_BUFFERS:
            raise ValueError(
                f"{self.least:,} to {self.most:,} buffers are not possible: at least 2, the least number first, at most {MOST_BUFFERS:,}"
            )

    @property
    def least_mb(self) -> int:
        """MB that are taken at once, rounded up; they cannot be paged out."""
        return -(-self.kb * self.least // 1024)

    @property
    def most_mb(self) -> int:
        """MB that can be taken, rounded up."""
        return -(-self.kb * self.most // 1024)

    @property
    def words(self) -> str:
        """`64 to 256 buffers of 1,024 KB (64 to 256 MB of memory that cannot be paged out)`."""
        numbers = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        memory = f"{self.least_mb:,}" if self.least_mb == self.most_mb else f"{self.least_mb:,} to {self.most_mb:,}"
        return f"{numbers} buffers of {self.kb:,} KB ({memory} MB of memory that cannot be paged out)"

    @property
    def spec(self) -> str:
        """`64-256x1024`, as an option takes it."""
        return f"{self.least}x{self.kb}" if self.least == self.most else f"{self.least}-{self.most}x{self.kb}"

    @property
    def advice(self) -> str:
        """What stands against these sizes; empty when nothing does."""
        if self.most_mb > _MUCH_MB:
            return f"Up to {self.most_mb:,} MB are taken from all other programs; fewer buffers may do."
        return ""

    def enlarged(self) -> "Buffers":
        """The next sizes to try when events are lost: twice as many, and larger ones where they are small."""
        kb = min(max(self.kb * 2, 256), 1024) if self.kb < 1024 else self.kb
        return Buffers(kb, min(self.least * 2, MOST_BUFFERS), min(self.most * 2, MOST_BUFFERS))


KERNEL_BUFFERS = Buffers(256, 32, 128)
WINSOCK_BUFFERS = Buffers(1024, 64, 256)
HEAP_BUFFERS = Buffers(1024, 128, 128)
"""A heap session writes in bursts: all its buffers are there from the start."""


def parse_buffers(text: str, otherwise: Buffers) -> Buffers:
    """`64-256x1024`: least and most number, then the KB of each; `128` and `128x512` are as many at most as at least.

    `otherwise` gives the KB where none are named. Raises ValueError with what is allowed.
    """
    found = _SPEC.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} are no buffers: write LEAST-MOSTxKB, such as 64-256x1024, or 128x1024 for a fixed number")
    least, most, kb = found.groups()
    return Buffers(int(kb or otherwise.kb), int(least), int(most or least))

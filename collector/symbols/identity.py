"""What makes a symbol file the right one for an image."""

import re
from dataclasses import dataclass
from typing import Self
from uuid import UUID

__all__ = ["PdbId"]

_STORE = re.compile(r"([0-9A-Fa-f]{32})([0-9A-Fa-f]{1,8})")
_LIBRARY = re.compile(r"([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?:-([0-9A-Fa-f]{1,8}))?")


@dataclass(frozen=True, slots=True)
class PdbId:
    """GUID and age, as the linker writes them into an image (RSDS record) and into its symbol file.

    As text it is what a symbol store calls its folders: the GUID's hex digits, then the age in hex.
    """

    guid: UUID
    age: int

    def __str__(self) -> str:
        return f"{self.guid.hex.upper()}{self.age:X}"

    @classmethod
    def parsed(cls, guid: str | None, age: int | None) -> Self | None:
        """The id of a GUID with dashes and an age; None where one is missing."""
        return None if guid is None or age is None else cls(UUID(guid), age)

    @classmethod
    def of_store(cls, text: str) -> Self | None:
        """The id that a folder of a symbol store is named for; None for other names."""
        match = _STORE.fullmatch(text)
        return cls(UUID(match[1]), int(match[2], 16)) if match else None

    @classmethod
    def of_library(cls, text: str) -> Self | None:
        """The id as symbolic writes it: the GUID with dashes, then the age in hex unless it is 0."""
        match = _LIBRARY.fullmatch(text)
        return cls(UUID(match[1]), int(match[2] or "0", 16)) if match else None

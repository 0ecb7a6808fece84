"""Cabinet files and 7z archives, by libarchive where it is installed."""

import os
import sys
from collections.abc import Iterator
from typing import Any

from collector.packages.members import MOST_MEMBERS, PIECE_BYTES, Broken, Encrypted, Member, PackedBytes

__all__ = ["members_of_7z", "members_of_cabinet"]

_WINDOWS_LIBRARY = "archiveint.dll"  # what Windows' own tar uses, there since Windows 10 1803
_MISSING = (
    "the library that unpacks it is not installed: unpack it and name the .etl file, "
    'or install libarchive and then pip install "sockscope[archives]"'
)


def members_of_cabinet(stream: PackedBytes, name: str) -> Iterator[Member]:
    """The files of a cabinet file. Raises Broken."""
    return _members(stream, "cab")


def members_of_7z(stream: PackedBytes, name: str) -> Iterator[Member]:
    """The files of a 7z archive. Raises Broken."""
    return _members(stream, "7zip")


def _members(stream: PackedBytes, kind: str) -> Iterator[Member]:
    library, fault = _library()
    count = 0
    try:
        with library.stream_reader(stream, format_name=kind, filter_name="none", block_size=PIECE_BYTES) as archive:
            for entry in archive:
                count += 1
                if count > MOST_MEMBERS:
                    raise Broken(f"it has more than {MOST_MEMBERS:,} files")
                if entry.isfile:
                    yield Member(str(entry.pathname or "without a name"), _pieces_of(entry, fault), is_on_the_way=True)
    except fault as error:
        raise _broken(error) from error
    finally:
        if stream.failure is not None:
            raise stream.failure


def _pieces_of(entry: Any, fault: type[Exception]) -> Iterator[bytes]:  # Any: the library has no types
    try:
        yield from entry.get_blocks(PIECE_BYTES)
    except fault as error:
        raise _broken(error) from error


def _broken(error: Exception) -> Broken:
    words = str(getattr(error, "msg", error)).splitlines()[0].strip().rstrip(".") or "it is damaged"
    return Encrypted("it is encrypted") if "encrypt" in words.lower() or "passphrase" in words.lower() else Broken(words)


def _library() -> tuple[Any, type[Exception]]:  # Any: the library has no types
    if sys.platform == "win32":
        os.environ.setdefault("LIBARCHIVE", _WINDOWS_LIBRARY)
    try:
        import libarchive
        from libarchive.exception import ArchiveError
    except (ImportError, OSError, AttributeError, TypeError) as error:  # as it is imported, it looks for the library in C
        raise Broken(_MISSING) from error
    return libarchive, ArchiveError

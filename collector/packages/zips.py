"""Zip archives, which .etl.zip and .diagsession are, and gzip files, by the standard library."""

import struct
import zipfile
import zlib
from collections.abc import Iterator

from collector.packages.members import MOST_MEMBERS, PIECE_BYTES, Broken, Encrypted, Member, PackedBytes

__all__ = ["members_of_gzip", "members_of_zip"]

# The library bounds what one call yields of these two only; a few KB of the others can become GB at once.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_NAMES = {9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "XZ"}
_GZIP = 31  # zlib: a window of 32 KB, with the header of gzip
_FAULTS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, IndexError)


def members_of_zip(stream: PackedBytes, name: str) -> Iterator[Member]:
    """The files of a zip archive in the order of its directory. Raises Broken."""
    try:
        archive = zipfile.ZipFile(stream)
    except _FAULTS as error:
        raise Broken(f"its directory cannot be read ({_words(error)}); the copy may be incomplete") from error
    with archive:
        entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]  # of an empty name, is_dir fails
        if len(entries) > MOST_MEMBERS:
            raise Broken(f"it has {len(entries):,} files, more than {MOST_MEMBERS:,}")
        for entry in entries:
            yield Member(entry.filename, _pieces_of(archive, entry))


def _pieces_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    if entry.flag_bits & 1:
        raise Encrypted("it is encrypted")
    if entry.compress_type not in _METHODS:
        method = _NAMES.get(entry.compress_type, f"number {entry.compress_type}")
        raise Broken(f"it is packed by a method that is not read here ({method}); unpack it and name the .etl file")
    try:
        with archive.open(entry) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except _FAULTS as error:
        raise Broken(_words(error)) from error


def members_of_gzip(stream: PackedBytes, name: str) -> Iterator[Member]:
    """The one file of a gzip file."""
    inner = name[:-3] if name.lower().endswith(".gz") else name
    yield Member(inner, _gunzipped(stream))


def _gunzipped(stream: PackedBytes) -> Iterator[bytes]:
    parts, packed, unpack = 1, b"", zlib.decompressobj(_GZIP)
    while packed := packed or stream.read(PIECE_BYTES // 16):
        if unpack.eof:  # one gzip file may follow another, and zero bytes the last
            packed = packed.lstrip(b"\0")
            if not packed:
                continue
            if parts == MOST_MEMBERS:
                raise Broken(f"it has more than {MOST_MEMBERS:,} parts")
            parts, unpack = parts + 1, zlib.decompressobj(_GZIP)
        try:
            piece = unpack.decompress(packed, PIECE_BYTES)
        except zlib.error as error:
            raise Broken(_words(error)) from error
        packed = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
        if piece:
            yield piece
    if rest := unpack.flush():
        yield rest
    if not unpack.eof:
        raise Broken("it ends in the middle; the copy may be incomplete")


def _words(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__

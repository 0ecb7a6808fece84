"""Packages with files inside, written by the formats' own rules: zip and gzip by the standard library, cabinets here, 7z by libarchive."""

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

__all__ = ["cabinet_of", "gzip_of", "seven_zip_of", "zip_of"]

_BLOCK = 32 << 10


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def gzip_of(content: bytes) -> bytes:
    """A gzip file."""
    return gzip.compress(content, mtime=0)


def cabinet_of(files: dict[str, bytes], *, is_lzx: bool = False) -> bytes:
    """A cabinet file of one folder ([MS-CAB] 2), MSZIP or LZX, in blocks of 32 KB."""
    content = b"".join(files.values())
    blocks, before = [], b""
    for start in range(0, len(content), _BLOCK):
        plain = content[start : start + _BLOCK]
        packed = _lzx(plain, is_first=not start) if is_lzx else _mszip(plain, before)
        blocks.append(struct.pack("<IHH", 0, len(packed), len(plain)) + packed)
        before = plain
    entries, at = b"", 0
    for name, inside in files.items():
        entries += struct.pack("<IIHHHH", len(inside), at, 0, 0x5A21, 0, 0x20) + name.encode() + b"\0"
        at += len(inside)
    first_file, first_block = 36 + 8, 36 + 8 + len(entries)
    size = first_block + sum(map(len, blocks))
    header = struct.pack("<4sIIIIIBBHHHHH", b"MSCF", 0, size, 0, first_file, 0, 3, 1, 1, len(files), 0, 1, 0)
    method = 0x0F03 if is_lzx else 1  # with a window of 32 KB
    return header + struct.pack("<IHH", first_block, len(blocks), method) + entries + b"".join(blocks)


def _mszip(plain: bytes, before: bytes) -> bytes:
    """A block, deflated with the one before as dictionary ([MS-MCI] 2)."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, before)
    return b"CK" + packer.compress(plain) + packer.flush()


def _lzx(plain: bytes, *, is_first: bool) -> bytes:
    """A block of LZX that is not compressed ([MS-PATCH]): its kind and size in bits, filled up to words, then three distances."""
    kind = 3 << 24 | len(plain)  # not compressed
    bits = kind << (4 if is_first else 5)  # before the first block, a bit says that no calls of x86 are translated
    return struct.pack("<HHIII", bits >> 16 & 0xFFFF, bits & 0xFFFF, 1, 1, 1) + plain + bytes(len(plain) % 2)


def seven_zip_of(folder: Path, files: dict[str, bytes]) -> bytes:
    """A 7z archive, LZMA; skips the test where libarchive is not installed."""
    libarchive = pytest.importorskip("libarchive", exc_type=(ImportError, OSError, AttributeError, TypeError))  # type: ignore[arg-type] # any class
    path = folder / "made.7z"
    with libarchive.file_writer(str(path), "7zip") as archive:
        for name, content in files.items():
            archive.add_file_from_memory(name, len(content), content)
    return path.read_bytes()

"""Texts and packages made to cost as much as they can for their size, with a small sound trace in each; each takes a size in bytes."""

import functools
import gzip
import io
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.build import Trace, afd
from tests.build.event_xml import event_xml
from tests.build.netsh_text import netsh_text
from tests.build.tracerpt_csv import tracerpt_csv
from tests.build.xperf_dump import xperf_dump

__all__ = ["HOSTILE_PACKAGES", "HOSTILE_TEXTS"]

_LINE = b"[1]13A0.000B::2025/06/03-09:30:00.300009000 [Microsoft-Windows-Winsock-AFD]"


def _story() -> Trace:
    return Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512))


@functools.cache
def _text(write: Callable[[Path], str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write(_story().write(Path(folder) / "story.etl")).encode()


def _filled(start: bytes, piece: bytes, size: int, end: bytes = b"") -> bytes:
    """A piece again and again up to a size."""
    return start + piece * (max(0, size - len(start) - len(end)) // len(piece)) + end


def _xml(piece: bytes, size: int) -> bytes:
    start, _, end = _text(event_xml).rpartition(b"</Events>")
    return _filled(start, piece, size, b"</Events>" + end)


def xml_names(size: int) -> bytes:
    """Events of as many values as are kept, each of another name."""
    names = b"".join(b'<Data Name="N%d">1</Data>' % n for n in range(1_100))
    return _xml(b"<Event><EventData>" + names + b"</EventData></Event>", size)


def xml_references(size: int) -> bytes:
    """Texts of nothing but references to characters."""
    return _xml(b"<Event><EventData><Data>" + b"&#65;" * 5_000 + b"</Data></EventData></Event>", size)


def xml_wide_tags(size: int) -> bytes:
    """What looks like the beginning of a wide address at every place."""
    return _xml(b"<Data>0x0000000<Data>0x0</Data></Data>", size)


def csv_quotes(size: int) -> bytes:
    """Rows of quotes that never close."""
    *_, row = _text(tracerpt_csv).rstrip().split(b"\r\n")
    cells = b",".join(row.split(b",")[:19])
    return _filled(_text(tracerpt_csv), cells + b"," + b'" "x' * 4_000 + b"\r\n", size)


def csv_cells(size: int) -> bytes:
    """Rows of nothing but marks."""
    return _filled(_text(tracerpt_csv), b"," * 1_020 + b"\r\n", size)


def netsh_parts(size: int) -> bytes:
    """Messages of parts without end."""
    return _filled(_text(netsh_text), _LINE + b"send: 0: " + b"Length 1, " * 380 + b"\r\n", size)


def netsh_heads(size: int) -> bytes:
    """The beginning of a line again and again in one line."""
    return _filled(_text(netsh_text), b"[0]0000.0000::20" * 3_000 + b"\r\n", size)


def dump_header(size: int) -> bytes:
    """A header of as many events as may be, each with many columns."""
    first, rest = _text(xperf_dump).split(b"\r\n", 1)
    lines = (b"E%d" % n + b", column" * 250 for n in range(max(1, size // 2_010)))
    return first + b"\r\n" + b"\r\n".join(lines) + b"\r\n" + rest


def dump_brackets(size: int) -> bytes:
    """Processes whose name is brackets without end."""
    return _filled(_text(xperf_dump), b"P-Start, 1, " + b"( (" * 5_000 + b", 1, 1, 1, 1, 1\r\n", size)


def zip_of_many(size: int) -> bytes:
    """As many files of one byte as are read, and a trace behind them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n in range(min(9_990, size // 110)):
            archive.writestr(f"{n}", b"x")
        archive.writestr("a.etl", _story().bytes())
    return out.getvalue()


def zip_of_zips(size: int) -> bytes:
    """Packages in a package, each with the same packages inside."""
    inner, middle, out = io.BytesIO(), io.BytesIO(), io.BytesIO()
    for level, content in ((inner, b"x" * 10), (middle, b""), (out, b"")):
        with zipfile.ZipFile(level, "w") as archive:
            if level is out:
                archive.writestr("a.etl", _story().bytes())
            for n in range(max(1, round((size / 125) ** (1 / 3)))):
                archive.writestr(f"{n}.zip", content or (inner if level is middle else middle).getvalue())
    return out.getvalue()


def gzip_of_parts(size: int) -> bytes:
    """A trace, and behind it parts of nothing, as many as are read."""
    return _filled(gzip.compress(_story().bytes()), gzip.compress(b""), size)


def gzip_of_zeros(size: int) -> bytes:
    """A trace that goes on in zero bytes, a hundred times the file."""
    return gzip.compress(_story().bytes()) + gzip.compress(bytes(min(100 * size, 128 << 20)))


HOSTILE_TEXTS: Mapping[str, Callable[[int], bytes]] = {
    make.__name__: make
    for make in (
        xml_names,
        xml_references,
        xml_wide_tags,
        csv_quotes,
        csv_cells,
        netsh_parts,
        netsh_heads,
        dump_header,
        dump_brackets,
    )
}
HOSTILE_PACKAGES: Mapping[str, Callable[[int], bytes]] = {
    make.__name__: make for make in (zip_of_many, zip_of_zips, gzip_of_parts, gzip_of_zeros)
}

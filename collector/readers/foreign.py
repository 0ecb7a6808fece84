"""What a file that is no trace looks like, so that a refusal can say what was found instead."""

__all__ = ["looks_like"]

_UNPACK = "Unpack it and name the .etl file inside."

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", f"a zip archive (a .diagsession and an .etl.zip are such). {_UNPACK}"),
    (b"PK\x05\x06", "an empty zip archive."),
    (b"\x1f\x8b", f"a gzip file. {_UNPACK}"),
    (b"MSCF", f"a cabinet file. {_UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive. {_UNPACK}"),
    (b"Rar!\x1a\x07", f"a rar archive. {_UNPACK}"),
    (
        b"ElfFile\0",
        "a Windows event log (.evtx). That of the socket provider can be read as XML: wevtutil qe FILE.evtx /lf:true /f:xml > FILE.xml",
    ),
    (b"\xd4\xc3\xb2\xa1", "a packet capture (pcap). Packet captures hold no socket or heap events."),
    (b"\xa1\xb2\xc3\xd4", "a packet capture (pcap). Packet captures hold no socket or heap events."),
    (b"\x4d\x3c\xb2\xa1", "a packet capture (pcap). Packet captures hold no socket or heap events."),
    (b"\xa1\xb2\x3c\x4d", "a packet capture (pcap). Packet captures hold no socket or heap events."),
    (b"\x0a\x0d\x0d\x0a", "a packet capture (pcapng). Packet captures hold no socket or heap events."),
    (b"GMBU", "a Network Monitor capture. Packet captures hold no socket or heap events."),
    (b"SQLite format 3\0", "an SQLite database. A collected trace is opened with `sockscope serve`."),
    (b"MZ", "a Windows program."),
    (b"MDMP", "a memory dump of a process."),
    (b"PAGEDU64", "a memory dump of a system."),
    (b"PAGEDUMP", "a memory dump of a system."),
)

_TEXT_CONTROLS = frozenset(b"\t\n\r\f\x1b")


def looks_like(start: bytes) -> str | None:
    """What the first bytes of a file (512 are enough) suggest it is, as the end of a sentence; None for what nobody knows."""
    for signature, words in _SIGNATURES:
        if start.startswith(signature):
            return words
    if not any(start):
        return "filled with zero bytes. The copy may be incomplete; copy it again."
    if _is_text(start):
        return (
            "text. Name the .etl file that the session wrote; of reports made from it XML and CSV of tracerpt and the text of "
            "netsh trace convert and of the xperf dumper can be read."
        )
    return None


def _is_text(start: bytes) -> bool:
    """Whether bytes are text in UTF-8, an 8-bit code page or UTF-16."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    low = start[::2] if len(start) > 1 and not any(start[1::2]) else start  # UTF-16 of English text without a mark
    if any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in low):
        return False
    try:
        low[:-3].decode("utf-8")  # the last character may be cut
    except UnicodeDecodeError:
        return sum(byte < 0x7F for byte in low) * 10 >= len(low) * 9
    return True

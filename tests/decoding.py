"""Short ways to a decoded window, and payloads of both generations of sockets and of heaps, for the tests of the decoder."""

from uuid import UUID

from collector.decoder import Decoder, VersionKey
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.raw import HeaderKind
from collector.schema import DecodedBatch, EventKey
from tests.raw_events import CLOCK, Record, raw_events

__all__ = [
    "ALLOC_32",
    "ALLOC_64",
    "BIND_64",
    "CREATE_64",
    "DROP_64",
    "FREE_64",
    "IPV4_443",
    "OTHER",
    "REALLOC_32",
    "SEND_64",
    "afd",
    "decode",
    "heap",
    "key",
]

OTHER = UUID("11111111-2222-3333-4444-555555555555")

# The five records of HT-08, behind their headers: a 64-bit and a 32-bit process in one trace.
ALLOC_64 = bytes.fromhex("00001d0000000000 5000000000000000 30121d0000000000 02000000")
ALLOC_32 = bytes.fromhex("00001d00 50000000 30121d00 02000000")
FREE_64 = bytes.fromhex("00001d0000000000 30121d0000000000 02000000")
REALLOC_32 = bytes.fromhex("00001d00 30121d00 30121d00 60000000 50000000 03000000")
CREATE_64 = bytes.fromhex("00002d0000000000 02100000 0000100000000000 0020000000000000 4007000000000000")

SEND_64 = bytes.fromhex("00000000 b80b0000 803022110c9affff 10e033220c9affff 01000000 d0c0b0a0f4010000 00020000 00000000")
BIND_64 = bytes.fromhex("01000000 761b0000 803022110c9affff 10e033220c9affff 00000000")
IPV4_443 = bytes.fromhex("0200 01bb c0000207 0000000000000000")
DROP_64 = bytes.fromhex("02000000 00000000 803022110c9affff 10e033220c9affff 0000000000000000 00020000")


def heap(opcode: int, payload: bytes, *, version: int = 2, pointer_size: int = 8, kind: HeaderKind | None = None, pid: int = 4) -> Record:
    return Record(HEAP, payload, opcode=opcode, version=version, pointer_size=pointer_size, kind=kind, pid=pid)


def afd(event_id: int, payload: bytes, *, version: int = 0, pointer_size: int = 8, opcode: int = 0) -> Record:
    return Record(AFD, payload, event_id=event_id, version=version, pointer_size=pointer_size, opcode=opcode)


def decode(*records: Record, decoder: Decoder | None = None, providers: list[UUID] | None = None) -> DecodedBatch:
    """`providers` belongs to several windows of one trace."""
    return (decoder or Decoder()).decode(raw_events(records, providers=providers), CLOCK)


def key(provider: UUID, number: int, version: int = 0, *, is_classic: bool = True) -> VersionKey:
    return EventKey(provider, is_classic, number), version

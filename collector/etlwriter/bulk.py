"""Millions of records at once: columns of one kind of event as an array of records, and several of them merged into buffers.

A block holds records of one event and one size on one processor. Blocks that are written together are merged by time, so that a buffer
holds records of all of them, as it does in recorded files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collector.etlwriter.buffers import BUFFER_HEADER_SIZE
from collector.etlwriter.events import HeaderValues, record_of, schema_of
from collector.etlwriter.payloads import Value
from collector.etlwriter.records import record_bytes
from collector.etlwriter.writer import LEFT_OVER, EtlWriter
from collector.raw import HeaderKind
from collector.schema import EventSchema, FieldType

__all__ = ["RecordBlock", "payload_dtype", "record_block", "write_blocks"]

Int64s: TypeAlias = NDArray[np.int64]
UInt8s: TypeAlias = NDArray[np.uint8]

_TYPES: Mapping[FieldType, str] = {
    FieldType.U8: "u1",
    FieldType.U16: "<u2",
    FieldType.U32: "<u4",
    FieldType.U64: "<u8",
    FieldType.I8: "i1",
    FieldType.I16: "<i2",
    FieldType.I32: "<i4",
    FieldType.I64: "<i8",
    FieldType.BOOL32: "<u4",
    FieldType.IPV4: ">u4",
    FieldType.PORT: ">u2",
    FieldType.IPV6: "V16",
    FieldType.GUID: "V16",
}
_SOCKADDR_BYTES = 16
_TICKS_AT, _SHORT_TICKS_AT, _TID_AT, _PID_AT, _ACTIVITY_AT = 16, 8, 8, 12, 64
_SHORT = (HeaderKind.PERFINFO32, HeaderKind.PERFINFO64)


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Records of one size.

    `ticks` is int64, shape (n,), not descending; `rows` uint8, shape (n, size), the records with their headers, without padding.
    """

    ticks: Int64s
    rows: UInt8s

    @property
    def stride(self) -> int:
        """Bytes from the start of a record to that of the next in a buffer."""
        return (int(self.rows.shape[1]) + 7) & ~7


def payload_dtype(schema: EventSchema, *, pointer_size: int) -> np.dtype[np.void]:
    """The packed dtype of a payload: all fields that records must have. Socket addresses are those of IPv4, 16 bytes.

    Raises: ValueError for an event with texts, lists or identities of users.
    """
    names, formats = [], []
    for field in schema.fields:
        if not field.required:
            break
        if field.type in (FieldType.POINTER, FieldType.SIZET):
            formats.append(f"<u{pointer_size}")
        elif field.type is FieldType.SOCKADDR:
            formats.append(f"V{_SOCKADDR_BYTES}")
        elif field.type in _TYPES:
            formats.append(_TYPES[field.type])
        else:
            raise ValueError(f"{schema.name}: {field.name} has no fixed width")
        names.append(field.name)
    return np.dtype({"names": names, "formats": formats})


def record_block(
    name: str,
    ticks: Int64s,
    columns: Mapping[str, ArrayLike],
    *,
    pointer_size: int = 8,
    pids: ArrayLike = 0,
    tids: ArrayLike = 0,
    activities: ArrayLike = 0,
    **header: Unpack[HeaderValues],
) -> RecordBlock:
    """Records of one event from columns.

    Args:
        ticks: int64, shape (n,), not descending.
        columns: a value or n values for each required field; socket addresses as uint8 of shape (16,) or (n, 16).
        pids, tids: of the header, a value or n values; kinds without ids ignore them.
        activities: the first eight bytes of the ActivityId of modern events.
        header: what all records have in common.

    Raises: KeyError for a missing column, ValueError for an event without a fixed size.
    """
    schema = schema_of(name, header.get("version"))
    dtype = payload_dtype(schema, pointer_size=pointer_size)
    payload = np.empty(ticks.size, dtype)
    for field in dtype.names or ():
        column = np.asarray(columns[field])
        if dtype[field].kind == "V":
            payload[field] = np.ascontiguousarray(np.broadcast_to(column, (ticks.size, dtype[field].itemsize))).view(dtype[field])[:, 0]
        else:
            payload[field] = column
    empty: dict[str, Value] = {f.name: 0 for f in schema.fields if f.name in (dtype.names or ()) and f.type is not FieldType.SOCKADDR}
    empty |= {f.name: bytes(_SOCKADDR_BYTES) for f in schema.fields if f.type is FieldType.SOCKADDR}
    template = record_of(name, empty, ticks=0, pointer_size=pointer_size, **header)
    one = np.frombuffer(record_bytes(template), np.uint8)
    rows = np.tile(one, (ticks.size, 1))
    rows[:, one.size - dtype.itemsize :] = payload.view(np.uint8).reshape(ticks.size, dtype.itemsize)
    is_short = template.kind in _SHORT
    _put(rows, _SHORT_TICKS_AT if is_short else _TICKS_AT, ticks, "<i8")
    if not is_short:
        _put(rows, _TID_AT, tids, "<u4")
        _put(rows, _PID_AT, pids, "<u4")
    if template.kind in (HeaderKind.EVENT32, HeaderKind.EVENT64):
        _put(rows, _ACTIVITY_AT, activities, "<u8")
    return RecordBlock(ticks, rows)


def _put(rows: UInt8s, at: int, values: ArrayLike, code: str) -> None:
    """Write a number into each row at an offset."""
    column = np.ascontiguousarray(np.broadcast_to(np.asarray(values).astype(code), (rows.shape[0],)))
    width = column.dtype.itemsize
    rows[:, at : at + width] = column.view(np.uint8).reshape(-1, width)


def write_blocks(writer: EtlWriter, cpu: int, blocks: Sequence[RecordBlock]) -> None:
    """Log all records of some blocks on one processor, in time order; equal times in the order of the blocks.

    Whole buffers are written: the processor's open buffer is flushed before, and the last one ends where the records end.

    Raises: ValueError when time goes back on that processor.
    """
    blocks = [block for block in blocks if block.ticks.size]
    if not blocks:
        return
    ticks = np.concatenate([block.ticks for block in blocks])
    strides = np.repeat([block.stride for block in blocks], [block.ticks.size for block in blocks])
    order = np.argsort(ticks, kind="stable")
    ends = np.cumsum(strides[order])
    place = np.empty(order.size, np.int64)  # where each record starts, were there no buffers
    place[order] = ends - strides[order]
    sorted_ticks = ticks[order]
    firsts = np.cumsum([0, *(block.ticks.size for block in blocks)])
    done = [0] * len(blocks)
    writer.flush(cpu)
    start, room = 0, writer.session.buffer_size - BUFFER_HEADER_SIZE
    while start < order.size:  # one step a buffer, of 0.2 ms for 64 KB
        base = int(ends[start] - strides[order[start]])
        stop = int(np.searchsorted(ends, base + room, side="right"))
        if stop == start:
            raise ValueError(f"a record of {int(strides[order[start]]):,} bytes does not fit into a buffer")
        size = int(ends[stop - 1]) - base
        memory = np.resize(np.frombuffer(LEFT_OVER, np.uint8), size)
        limit = base + size
        for n, block in enumerate(blocks):
            places = place[firsts[n] : firsts[n + 1]]
            last = int(np.searchsorted(places, limit))
            at = places[done[n] : last] - base
            memory[at[:, None] + np.arange(block.rows.shape[1])] = block.rows[done[n] : last]
            done[n] = last
        writer.add_buffer(memory.tobytes(), cpu=cpu, first_ticks=int(sorted_ticks[start]), last_ticks=int(sorted_ticks[stop - 1]))
        start = stop

"""Records written out in hex, and what must be read from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from uuid import UUID

import numpy as np

from collector.decoder import Decoder
from collector.events.afd import AFD
from collector.schema import Column, Ragged
from tests.raw_events import CLOCK, Record, raw_events

__all__ = ["Literal", "Value", "afd", "check", "classic", "hexed", "ip"]

Value = int | str | bytes | list[int] | None
_NEITHER = b"\xaa\x55"
_WIDE = ("event_time_stamp", "exit_time")  # 8 bytes in every record


@dataclass(frozen=True)
class Literal:
    """One event: its payload in a 64-bit and in a 32-bit record, and the value of each field; None for a field that is absent."""

    provider: UUID
    number: int
    version: int
    is_classic: bool
    name: str
    hex64: str
    hex32: str
    values: Mapping[str, Value]

    def __str__(self) -> str:
        return f"{self.name}-v{self.version}" if self.is_classic else f"{self.number}-{self.name}"


def afd(event_id: int, name: str, hex64: str, hex32: str, values: Mapping[str, Value]) -> Literal:
    """A Winsock event of version 0."""
    return Literal(AFD, event_id, 0, False, name, hex64, hex32, values)


def classic(provider: UUID, opcode: int, version: int, name: str, hex64: str, hex32: str, values: Mapping[str, Value]) -> Literal:
    """An event that its opcode identifies."""
    return Literal(provider, opcode, version, True, name, hex64, hex32, values)


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


def ip(text: str) -> int:
    """An IPv4 address as number, the first octet in the top bits."""
    return int(IPv4Address(text))


def check(literal: Literal, pointer_size: int) -> None:
    """Decode the record between two that have nothing to do with it, and compare every field.

    In a 32-bit record addresses and sizes are the lower half of those in `values`.
    """
    payload = bytes.fromhex(literal.hex64 if pointer_size == 8 else literal.hex32)
    record = Record(
        literal.provider,
        payload,
        event_id=None if literal.is_classic else literal.number,
        opcode=literal.number if literal.is_classic else 0,
        version=literal.version,
        pointer_size=pointer_size,
    )
    stranger = Record(UUID(int=1), _NEITHER, event_id=literal.number)
    decoder = Decoder()

    batch = decoder.decode(raw_events([stranger, record, stranger]), CLOCK)

    columns = batch.events[literal.name]
    found = {name: None if _is_missing(columns.missing, name) else _value(column) for name, column in columns.fields.items()}
    expected = {name: _narrow(value) if pointer_size == 4 and name not in _WIDE else value for name, value in literal.values.items()}
    assert list(batch.events) == [literal.name]
    assert columns.rows.tolist() == [1]
    assert {name: _cut(value, expected.get(name)) for name, value in found.items()} == expected
    assert list(found) == list(expected)
    assert not decoder.damaged
    assert not decoder.trailing
    assert not decoder.newer


def _is_missing(missing: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]], name: str) -> bool:
    return name in missing and bool(missing[name][0])


def _value(column: Column) -> Value:
    if isinstance(column, list):
        return column[0]
    if isinstance(column, Ragged):
        return [int(v) for v in column.row(0)]
    if column.ndim == 2:
        return bytes(column[0].tobytes())
    value = column[0].item()
    assert isinstance(value, int)
    return value


def _cut(found: Value, expected: Value) -> Value:
    """Bytes are zero padded to the width of their column."""
    if isinstance(found, bytes) and isinstance(expected, bytes):
        assert not any(found[len(expected) :])
        return found[: len(expected)]
    return found


def _narrow(value: Value) -> Value:
    if isinstance(value, list):
        return [v & 0xFFFFFFFF for v in value]
    return value & 0xFFFFFFFF if isinstance(value, int) and value > 0xFFFFFFFF else value

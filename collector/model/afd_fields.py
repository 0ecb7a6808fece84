"""Fields of a socket event as the socket model takes them: whole numbers, keys of addresses, and the rest as text."""

import json
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collector.model.addresses import AddressKey, ipv4_keys, ipv6_keys, sockaddr_keys
from collector.schema import EventColumns, Ragged

__all__ = ["address_keys", "json_of", "signed_column"]

Int64s: TypeAlias = NDArray[np.int64]

_IPV6_BYTES = 16
_COLUMNS = {"process", "endpoint", "listen_endpoint", "enter_exit", "location", "status", "error", "address", "address_len", "port"}
_NUMBERS = {"process_id", "user_mode_pid"}  # numbers in fields as wide as a pointer


def signed_column(columns: EventColumns, name: str) -> Int64s | None:
    """A column of whole numbers; None where the event has none of this name (a trace may describe a layout of its own)."""
    column = columns.fields.get(name)
    if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "iub":
        return None
    return column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64)


def address_keys(columns: EventColumns) -> Sequence[AddressKey | None] | None:
    """Keys of the addresses of an event, None if it has none."""
    address, length, port = columns.fields.get("address"), signed_column(columns, "address_len"), signed_column(columns, "port")
    if isinstance(address, np.ndarray) and address.dtype == np.uint8 and address.ndim == 2:
        if length is not None:
            return sockaddr_keys(address.view(np.uint8), length)
        if port is not None and address.shape[1] == _IPV6_BYTES:
            return ipv6_keys(address.view(np.uint8), port)
    ip = signed_column(columns, "address")
    if ip is not None and port is not None:
        return ipv4_keys(ip & 0xFFFFFFFF, port & 0xFFFF)
    return None


def json_of(columns: EventColumns) -> Sequence[str | None]:
    """The fields without a column, one JSON object a record; addresses as hex text (0.8 µs a record)."""
    names = [name for name in columns.fields if name not in _COLUMNS]
    if not names:
        return [None] * len(columns)
    texts = [_json_values(columns, name) for name in names]
    template = ", ".join(f"{json.dumps(name)}: %s" for name in names)
    return [f"{{{template % row}}}" for row in zip(*texts, strict=True)]


def _json_values(columns: EventColumns, name: str) -> list[str]:
    column = columns.fields[name]
    if isinstance(column, list):
        return [json.dumps(text) for text in column]
    if isinstance(column, Ragged):
        return [json.dumps([hex(value) for value in column.row(i).tolist()]) for i in range(len(column))]
    if column.ndim > 1:
        return [f'"{value.tobytes().hex()}"' for value in column]
    if column.dtype == np.uint64 and name not in _NUMBERS:
        return [f'"{value:#x}"' for value in column.tolist()]
    if column.dtype.kind == "f":
        return [json.dumps(value if math.isfinite(value) else None) for value in column.tolist()]
    return [json.dumps(value) for value in column.tolist()] if column.dtype.kind == "b" else [str(value) for value in column.tolist()]

"""Keeps records that no schema decodes as bytes, up to a cap."""

from collector.model.rows import Lines, Row, Rows
from collector.raw import HeaderKind
from collector.schema import DecodedBatch

__all__ = ["KEPT_CAP", "KeptRecords"]

KEPT_CAP = 10_000
_EVENTS = (HeaderKind.EVENT32, HeaderKind.EVENT64)


class KeptRecords:
    """Rows of `raw_event`: the first records of our providers that are unknown, described by the trace alone, or damaged."""

    def __init__(self, cap: int = KEPT_CAP) -> None:
        self._cap = cap
        self.kept = 0
        self.left_out = 0

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in one window."""
        reasons = (("unknown", batch.unknown), ("described", batch.described), ("damaged", batch.damaged))
        chosen = sorted((row, why) for why, rows in reasons for row in rows.tolist())
        room = max(self._cap - self.kept, 0)
        self.left_out += len(chosen[room:])
        rows: Lines = [self._row(batch, row, why) for row, why in chosen[:room]]
        return {"raw_event": rows} if rows else {}

    def _row(self, batch: DecodedBatch, row: int, why: str) -> Row:
        raw = batch.raw
        self.kept += 1
        is_event = int(raw.kind[row]) in _EVENTS
        pid, tid = int(raw.pid[row]), int(raw.tid[row])
        return (
            self.kept,
            int(batch.ns[row]),
            str(raw.providers[int(raw.provider[row])]),
            int(raw.event_id[row]) if is_event else None,
            int(raw.opcode[row]),
            int(raw.version[row]),
            int(raw.cpu[row]),
            pid if pid >= 0 else None,
            tid if tid >= 0 else None,
            raw.place(row),
            why,
            raw.payload_bytes(row),
        )

"""Changes of the Winsock catalog: a layered provider that somebody installs, removes or disables, and resets. A handful a trace."""

from uuid import UUID

from collector.model.process_events import numbers_of, texts_of
from collector.model.row_sink import RowSink
from collector.model.rows import Rows
from collector.schema import DecodedBatch, EventColumns

__all__ = ["MAX_CHANGES", "CatalogChanges"]

MAX_CHANGES = 10_000
"""Rows at most; a machine has some dozen catalog entries."""
_LONGEST = 500
_DEEDS = {"LspInstalled": "installed", "LspRemoved": "removed", "LspDisabled": "disabled", "WinsockCatalogReset": "reset"}


class CatalogChanges:
    """The changes of one trace, in time order."""

    def __init__(self) -> None:
        self._sink = RowSink()

    def advance(self, batch: DecodedBatch) -> Rows:
        """Take in one window."""
        changes: list[tuple[int, tuple[object, ...]]] = []
        for name, what in _DEEDS.items():
            columns = batch.get(name)
            if columns is not None:
                changes += self._of(batch, columns, what)
        for _, row in sorted(changes, key=lambda change: change[0]):
            if self._sink.counts["catalog_change"] < MAX_CHANGES:
                self._sink.add("catalog_change", row)
        return self._sink.take()

    @staticmethod
    def _of(batch: DecodedBatch, columns: EventColumns, what: str) -> list[tuple[int, tuple[object, ...]]]:
        number, text = numbers_of(columns), texts_of(columns)
        names, installers, bits, entries = text("lsp_name"), text("installer"), number("catalog"), number("category")
        guids = columns.numbers("guid") if "guid" in columns.fields else None
        pids = batch.raw.pid[columns.rows].tolist()
        found: list[tuple[int, tuple[object, ...]]] = []
        for i, row in enumerate(columns.rows.tolist()):
            provider = None if guids is None else str(UUID(bytes_le=guids[i].tobytes()))
            name, installer = names[i][:_LONGEST] or None, installers[i][:_LONGEST] or None
            pid = pids[i] if pids[i] >= 0 else None
            found.append((row, (int(batch.ns[row]), what, name, bits[i], installer, provider, entries[i], pid)))
        return found

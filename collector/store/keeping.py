"""What people say about whole traces, in the catalog: labels, and which traces have notes, so that these outlive the others."""

from sqlalchemy import func, select, update

from collector.amounts import MOST_LABEL
from collector.errors import StoreError
from collector.store.catalog import Catalog
from collector.store.tables import note, trace_entry

__all__ = ["noted", "set_label"]


def set_label(catalog: Catalog, key: str, label: str | None) -> None:
    """Give a trace a label, or take it away. Raises StoreError for one that is too long."""
    if label is not None and len(label) > MOST_LABEL:
        raise StoreError(f"This label has {len(label):,} characters; at most {MOST_LABEL} are kept.")
    with catalog.engine.begin() as connection:
        connection.execute(update(trace_entry).where(trace_entry.c.key == key).values(label=label or None))


def noted(catalog: Catalog) -> dict[str, int]:
    """How many notes the traces have, by their keys; none for those without."""
    with catalog.engine.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(select(note.c.key, func.count()).group_by(note.c.key))}

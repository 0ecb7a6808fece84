"""The label of a trace, in the catalog."""

from sqlalchemy import Connection, select, update

from collector.store.tables import CATALOG

__all__ = ["label_of", "set_label"]

_entry = CATALOG.tables["trace_entry"]


def label_of(db: Connection, key: str) -> str | None:
    """The label of a trace; None where it has none, or the catalog does not know the trace."""
    return db.execute(select(_entry.c.label).where(_entry.c.key == key)).scalar()


def set_label(db: Connection, key: str, label: str | None) -> bool:
    """Give a trace a label, or take it away; the caller's transaction. Returns whether the catalog knows the trace."""
    return db.execute(update(_entry).where(_entry.c.key == key).values(label=label)).rowcount > 0

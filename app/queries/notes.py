"""Notes in the catalog: read, written and deleted by the natural name of what they are about."""

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, func, insert, select

from app.page import NoteLine
from collector.store.tables import CATALOG

__all__ = ["NOTES_SHOWN", "add", "noted_objects", "notes_number", "notes_of", "notes_of_trace", "remove"]

NOTES_SHOWN = 500

_note = CATALOG.tables["note"]


_ROWS = select(*(_note.c[name] for name in NoteLine.__dataclass_fields__))


def notes_of(db: Connection, key: str, about: str) -> list[NoteLine]:
    """Notes on one object, the oldest first."""
    rows = db.execute(_ROWS.where(_note.c.key == key, _note.c.object == about).order_by(_note.c.n).limit(NOTES_SHOWN))
    return [NoteLine(**row._mapping) for row in rows]


def notes_of_trace(db: Connection, key: str, *, limit: int = NOTES_SHOWN) -> list[NoteLine]:
    """Notes on a trace and everything in it, the newest first."""
    rows = db.execute(_ROWS.where(_note.c.key == key).order_by(_note.c.n.desc()).limit(limit))
    return [NoteLine(**row._mapping) for row in rows]


def noted_objects(db: Connection, key: str) -> dict[str, int]:
    """How many notes hang on each object of a trace, by its link below /t/KEY."""
    rows = db.execute(select(_note.c.object, func.count().label("number")).where(_note.c.key == key).group_by(_note.c.object))
    return {row.object: row.number for row in rows}


def notes_number(db: Connection, key: str, about: str | None = None) -> int:
    """How many notes a trace has with all that is in it, or one object."""
    counted = select(func.count()).select_from(_note).where(_note.c.key == key)
    return db.execute(counted if about is None else counted.where(_note.c.object == about)).scalar_one()


def add(db: Connection, key: str, about: str, *, t_ns: int | None, author: str, text: str) -> None:
    """Write a note; the caller's transaction."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    db.execute(insert(_note).values(key=key, object=about, t_ns=t_ns, author=author or None, text=text, created_utc=created))


def remove(db: Connection, key: str, n: int, created_utc: str) -> str | None:
    """Delete one note; returns what it was about, None when it is gone already. Its time guards against a number that was used again."""
    is_it = (_note.c.key == key, _note.c.n == n, _note.c.created_utc == created_utc)
    about = db.execute(select(_note.c.object).where(*is_it)).scalar_one_or_none()
    if about is not None:
        db.execute(delete(_note).where(*is_it))
    return about

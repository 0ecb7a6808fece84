"""The catalog of the first version."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "c0001"
down_revision: str | Sequence[str] | None = None
branch_labels: str | Sequence[str] | None = ("catalog",)
depends_on: str | Sequence[str] | None = None


NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "note",
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False, comment="the trace's key; notes survive the trace's rows"),
        sa.Column("object", sa.Text(), nullable=False, comment="link of the object below /t/KEY"),
        sa.Column("t_ns", NUMBER, nullable=True, comment="ns since time 0"),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_utc", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_note")),
        comment="What people wrote about an object of a trace.",
    )
    op.create_index("ix_note_key_object", "note", ["key", "object"], unique=False)
    op.create_table(
        "trace_entry",
        sa.Column("key", sa.Text(), nullable=False, comment="first 12 hex digits of the SHA-256 of the trace's bytes"),
        sa.Column("name", sa.Text(), nullable=False, comment="file name, or the user's own"),
        sa.Column("label", sa.Text(), nullable=True, comment="the user's word for it"),
        sa.Column("state", sa.Text(), nullable=False, comment="collecting, live, complete, interrupted"),
        sa.Column("path", sa.Text(), nullable=True, comment="where the trace was read from"),
        sa.Column("size_bytes", NUMBER, nullable=True),
        sa.Column("start_utc", sa.Text(), nullable=True, comment="time 0, ISO 8601"),
        sa.Column("end_ns", NUMBER, nullable=True, comment="ns since time 0"),
        sa.Column("records", NUMBER, nullable=True),
        sa.Column("processes", NUMBER, nullable=True),
        sa.Column("sockets", NUMBER, nullable=True),
        sa.Column("operations", NUMBER, nullable=True),
        sa.Column("allocations", NUMBER, nullable=True),
        sa.Column("events_lost", NUMBER, nullable=True),
        sa.Column("buffers_lost", NUMBER, nullable=True),
        sa.Column("bytes_done", NUMBER, nullable=True, comment="input bytes read so far, while collecting"),
        sa.Column("bytes_total", NUMBER, nullable=True),
        sa.Column("message", sa.Text(), nullable=True, comment="why it was interrupted"),
        sa.Column("collector_pid", NUMBER, nullable=True, comment="process that is collecting it"),
        sa.Column("collected_utc", sa.Text(), nullable=False, comment="when collecting began, ISO 8601"),
        sa.Column("finished_utc", sa.Text(), nullable=True),
        sa.Column("collector_version", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_trace_entry")),
        comment="Traces of this folder.",
    )
    op.create_table(
        "catalog_finding",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("count", NUMBER, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["key"], ["trace_entry.key"], name="fk_catalog_finding_trace_entry", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", "n", name="pk_catalog_finding"),
        comment="Copies of the findings of each trace, for the list of traces.",
    )
    op.create_table(
        "catalog_problem",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("count", NUMBER, nullable=False),
        sa.Column("first_ns", NUMBER, nullable=True, comment="ns since time 0"),
        sa.Column("last_ns", NUMBER, nullable=True, comment="ns since time 0"),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=True),
        sa.Column("advice", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["key"], ["trace_entry.key"], name="fk_catalog_problem_trace_entry", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", "n", name="pk_catalog_problem"),
        comment="Copies of the problems of each trace, shown before its file is complete.",
    )

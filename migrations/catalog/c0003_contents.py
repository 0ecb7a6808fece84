"""The catalog says what traces contain: their machine, programs, errors and aborts, and how many problems and findings they have."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "c0003"
down_revision: str | Sequence[str] | None = "c0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_NUMBERS = {
    "problems": "rows of catalog_problem",
    "losses": "problems that are lost or damaged data",
    "findings": "rows of catalog_finding",
    "high_findings": "findings of high severity",
    "names_left_out": "program names beyond those of catalog_program; NULL: nobody has looked",
    "statuses_left_out": "statuses beyond those of catalog_status; NULL: nobody has looked",
    "reasons_left_out": "reasons beyond those of catalog_abort; NULL: nobody has looked",
}

_COUNTED = """
    UPDATE trace_entry SET
        problems = (SELECT count(*) FROM catalog_problem p WHERE p.key = trace_entry.key),
        losses = (SELECT count(*) FROM catalog_problem p WHERE p.key = trace_entry.key AND p.severity IN ('data_loss', 'damage')),
        findings = (SELECT count(*) FROM catalog_finding f WHERE f.key = trace_entry.key),
        high_findings = (SELECT count(*) FROM catalog_finding f WHERE f.key = trace_entry.key AND f.severity = 'high')
"""


def upgrade() -> None:
    op.add_column("trace_entry", sa.Column("machine", sa.Text(), comment="name of the machine that was traced"))
    for name, comment in _NUMBERS.items():
        op.add_column("trace_entry", sa.Column(name, NUMBER, comment=comment))
    op.execute(_COUNTED)
    op.create_index("ix_trace_entry_collected_utc", "trace_entry", ["collected_utc", "key"], unique=False)
    op.create_index("ix_trace_entry_start_utc", "trace_entry", ["start_utc", "key"], unique=False)
    op.create_index("ix_catalog_finding_kind", "catalog_finding", ["kind", "key"], unique=False)
    _contents(
        "catalog_program",
        sa.Column("name", sa.Text(), nullable=False, comment="image of the process"),
        sa.Column("processes", NUMBER, nullable=False, comment="of this name"),
        sa.Column("sockets", NUMBER, nullable=False),
        sa.Column("allocated", NUMBER, nullable=True, comment="heap bytes over the trace; NULL: its heap was not traced"),
        comment="Names of the processes of each trace, up to a limit.",
    )
    _contents(
        "catalog_status",
        sa.Column("status", NUMBER, nullable=False, comment="NTSTATUS"),
        sa.Column("operations", NUMBER, nullable=False, comment="that failed with it"),
        sa.Column("binds", NUMBER, nullable=False, comment="that failed with it"),
        comment="Statuses with which something failed in each trace, would-block answers left out, up to a limit.",
    )
    _contents(
        "catalog_abort",
        sa.Column("reason", NUMBER, nullable=False),
        sa.Column("reason_name", sa.Text(), nullable=True),
        sa.Column("aborts", NUMBER, nullable=False),
        comment="Reasons of the aborts of each trace, up to a limit.",
    )


def _contents(name: str, first: "sa.Column[int] | sa.Column[str]", *columns: "sa.Column[int] | sa.Column[str]", comment: str) -> None:
    op.create_table(
        name,
        sa.Column("key", sa.Text(), nullable=False),
        first,
        *columns,
        sa.PrimaryKeyConstraint("key", first.name, name=f"pk_{name}"),
        sa.ForeignKeyConstraint(["key"], ["trace_entry.key"], name=f"fk_{name}_trace_entry", ondelete="CASCADE"),
        comment=comment,
    )
    op.create_index(f"ix_{name}_{first.name}", name, [first.name], unique=False)

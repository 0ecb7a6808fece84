"""What the pages of a heap say of a whole trace is added up beforehand; two indexes that pages read by."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "t0002"
down_revision: str | Sequence[str] | None = "t0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# As the rows of this version have them.
_FREED = "end_reason IN (0, 1, 2)"  # freed, moved by a reallocation, destroyed with its heap
_ADOPTED = "origin = 3"
_OURS = "origin <> 3"
_POSSIBLE = "trust = 1"
_SIZE_LIMITS = (0, *(1 << power for power in range(4, 21)))
_LIFETIME_LIMITS = tuple(10**power for power in range(3, 11))


def upgrade() -> None:
    if sa.inspect(op.get_bind()).has_table("heap_class"):  # for a while the first version had all of this already, filled
        return
    op.create_table(
        "heap_class",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("heap_n", NUMBER, nullable=False),
        sa.Column(
            "what",
            sa.Text(),
            nullable=False,
            comment="size: at their start; lifetime: of those freed, moved or destroyed with their heap; ended; adopted",
        ),
        sa.Column("place", NUMBER, nullable=False, comment="class of size or lifetime, 0 is the lowest"),
        sa.Column("blocks", NUMBER, nullable=False),
        sa.Column("bytes", NUMBER, nullable=False, comment="at their start; of ended and adopted ones at their end"),
        sa.Column("held", NUMBER, nullable=False, comment="of these blocks at the end of the trace"),
        sa.Column("held_bytes", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "heap_n", "what", "place", name="pk_heap_class"),
        comment="Blocks of a heap by class; ended: all that began and ended in the trace; adopted: those from before it that ended.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "heap_stack",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("heap_n", NUMBER, nullable=False),
        sa.Column("stack_n", NUMBER, nullable=True, comment="NULL: the blocks without a stack"),
        sa.Column("blocks", NUMBER, nullable=False, comment="that began in the trace"),
        sa.Column("bytes", NUMBER, nullable=False, comment="at their start"),
        sa.Column("held", NUMBER, nullable=False, comment="of these blocks at the end of the trace"),
        sa.Column("held_bytes", NUMBER, nullable=False),
        sa.Column("freed", NUMBER, nullable=False, comment="blocks that were freed, moved or destroyed with their heap"),
        sa.Column("first_ns", NUMBER, nullable=False, comment="of the first block; ns since time 0"),
        sa.Column("last_ns", NUMBER, nullable=False, comment="of the last block; ns since time 0"),
        sa.Column("is_suspect", sa.Boolean(), nullable=False, comment="records were lost after a held block began"),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_heap_stack"),
        comment="What a stack allocated on a heap, blocks from before the trace left out.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_heap_stack_heap_n", "heap_stack", ["trace_id", "heap_n"], unique=False)
    op.create_index(
        "ix_socket_older",
        "socket",
        ["trace_id", "process_n"],
        unique=False,
        sqlite_where=sa.text("created_ns IS NULL"),
        postgresql_where=sa.text("created_ns IS NULL"),
    )
    op.drop_index("ix_allocation_address", table_name="allocation")
    op.create_index("ix_allocation_address", "allocation", ["trace_id", "process_n", "address", "first_ns", "size"], unique=False)
    op.execute(_stacks())
    for what, place, chosen, size in (
        ("size", _class("size_at_open", "<=", _SIZE_LIMITS), _OURS, "size_at_open"),
        ("lifetime", _class("end_ns - first_ns", "<", _LIFETIME_LIMITS), f"{_OURS} AND {_FREED}", "size_at_open"),
        ("ended", "0", f"{_OURS} AND end_ns IS NOT NULL", "size"),
        ("adopted", "0", f"{_ADOPTED} AND end_ns IS NOT NULL", "size"),
    ):
        op.execute(_classes(what, place, chosen, size))


def _stacks() -> str:
    return f"""
        INSERT INTO heap_stack (
            trace_id, n, heap_n, stack_n, blocks, bytes, held, held_bytes, freed, first_ns, last_ns, is_suspect
        )
        SELECT 1, row_number() OVER (ORDER BY heap_n, stack_n) - 1, heap_n, stack_n, count(*), sum(size_at_open),
               sum(CASE WHEN end_ns IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN end_ns IS NULL THEN size ELSE 0 END),
               sum(CASE WHEN {_FREED} THEN 1 ELSE 0 END), min(first_ns), max(first_ns),
               max(CASE WHEN end_ns IS NULL AND {_POSSIBLE} THEN 1 ELSE 0 END)
        FROM allocation LEFT JOIN stack_ref ON stack_ref.trace_id = 1 AND stack_ref.ref = allocation.owner_stack_ref
        WHERE allocation.trace_id = 1 AND {_OURS}
        GROUP BY heap_n, stack_n
    """  # noqa: S608 - the parts stand above


def _classes(what: str, place: str, chosen: str, size: str) -> str:
    held = "end_ns IS NULL"  # none of those that are over
    return f"""
        INSERT INTO heap_class (trace_id, heap_n, what, place, blocks, bytes, held, held_bytes)
        SELECT 1, heap_n, '{what}', {place} AS class, count(*), sum({size}),
               sum(CASE WHEN {held} THEN 1 ELSE 0 END), sum(CASE WHEN {held} THEN size ELSE 0 END)
        FROM allocation WHERE trace_id = 1 AND {chosen}
        GROUP BY heap_n, class
    """  # noqa: S608 - the parts stand in this module


def _class(value: str, below: str, limits: Sequence[int]) -> str:
    """The number of the class of a value: of the first limit that it does not reach, or that it is at most."""
    cases = " ".join(f"WHEN {value} {below} {limit} THEN {place}" for place, limit in enumerate(limits))
    return f"CASE {cases} ELSE {len(limits)} END"

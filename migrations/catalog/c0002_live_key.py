"""A trace may be shown while its session records, under a key of its own."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "c0002"
down_revision: str | Sequence[str] | None = "c0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # For a while the first version had the column already.
    if any(column["name"] == "live_key" for column in sa.inspect(op.get_bind()).get_columns("trace_entry")):
        return
    op.add_column("trace_entry", sa.Column("live_key", sa.Text(), comment="key under which it is shown while its session records"))

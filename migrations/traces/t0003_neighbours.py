"""What other providers know: connections as the network stack saw them, names of addresses, the Winsock catalog, virtual memory."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "t0003"
down_revision: str | Sequence[str] | None = "t0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Empty tables: what a file holds beyond its rows is known once it is collected again."""
    if sa.inspect(op.get_bind()).has_table("transport_flow"):  # the first version had all of this already
        return
    op.create_table(
        "transport_flow",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("source", NUMBER, nullable=False, comment="words.TRANSPORT_SOURCES"),
        sa.Column("protocol", NUMBER, nullable=False, comment="6 tcp, 17 udp"),
        sa.Column("pid", NUMBER, nullable=True),
        sa.Column("local_ip", sa.LargeBinary(), nullable=True, comment="16 bytes, IPv4 as ::ffff:a.b.c.d"),
        sa.Column("local_port", NUMBER, nullable=False),
        sa.Column("remote_ip", sa.LargeBinary(), nullable=True, comment="NULL for udp: all its peers"),
        sa.Column("remote_port", NUMBER, nullable=True),
        sa.Column("local", sa.Text(), nullable=False, comment="local IP and port as text"),
        sa.Column("remote", sa.Text(), nullable=True),
        sa.Column("first_ns", NUMBER, nullable=False, comment="ns since time 0"),
        sa.Column("last_ns", NUMBER, nullable=False, comment="ns since time 0"),
        sa.Column("sends", NUMBER, nullable=False, comment="as its source counts them"),
        sa.Column("bytes_sent", NUMBER, nullable=False),
        sa.Column("receives", NUMBER, nullable=False),
        sa.Column("bytes_received", NUMBER, nullable=False),
        sa.Column("retransmits", NUMBER, nullable=False, comment="records"),
        sa.Column("bytes_retransmitted", NUMBER, nullable=True, comment="said at the end of the connection"),
        sa.Column("timeouts", NUMBER, nullable=True, comment="of retransmission, said at the end of the connection"),
        sa.Column("rtt_us", NUMBER, nullable=True, comment="round-trip time, said at the end of the connection"),
        sa.Column("min_rtt_us", NUMBER, nullable=True),
        sa.Column("max_rtt_us", NUMBER, nullable=True),
        sa.Column("sockets", NUMBER, nullable=False, comment="how many sockets had these addresses while it lasted"),
        sa.Column("socket_n", NUMBER, nullable=True, comment="where it is one"),
        sa.Column("match", sa.Text(), nullable=True, comment="exact: both addresses and the process; inferred: by ports, process and time"),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_transport_flow"),
        comment="Connections, and local ends of datagrams, as the network stack itself saw them, one row a source.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_transport_flow_socket_n", "transport_flow", ["trace_id", "socket_n"], unique=False)
    op.create_table(
        "transport_event",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("flow_n", NUMBER, nullable=False),
        sa.Column("t_ns", NUMBER, nullable=False, comment="ns since time 0"),
        sa.Column("deed", NUMBER, nullable=False, comment="words.TRANSPORT_DEEDS"),
        sa.Column("event", NUMBER, nullable=False, comment="event id, or opcode"),
        sa.Column("pid", NUMBER, nullable=True, comment="process of the payload"),
        sa.Column("status", NUMBER, nullable=True, comment="NTSTATUS"),
        sa.Column("state", NUMBER, nullable=True, comment="the connection's new state, as the stack numbers them"),
        sa.Column("count", NUMBER, nullable=True, comment="retransmissions so far"),
        sa.Column("bytes", NUMBER, nullable=True),
        sa.Column("socket_n", NUMBER, nullable=True, comment="where several sockets had the addresses of the flow, the one at that time"),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_transport_event"),
        comment="What happened to connections, as the network stack said it; sends and receives are only summed.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_transport_event_flow_n", "transport_event", ["trace_id", "flow_n", "t_ns"], unique=False)
    op.create_index(
        "ix_transport_event_socket_n",
        "transport_event",
        ["trace_id", "socket_n", "t_ns"],
        unique=False,
        sqlite_where=sa.text("socket_n IS NOT NULL"),
        postgresql_where=sa.text("socket_n IS NOT NULL"),
    )
    op.create_table(
        "address_name",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("ip", sa.LargeBinary(), nullable=True, comment="16 bytes, IPv4 as ::ffff:a.b.c.d"),
        sa.Column("address", sa.Text(), nullable=False, comment="the same as text"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False, comment="Microsoft-Windows-DNS-Client, Microsoft-Windows-Winsock-NameResolution"),
        sa.Column("pid", NUMBER, nullable=True, comment="who was answered"),
        sa.Column("first_ns", NUMBER, nullable=False, comment="first answer; ns since time 0"),
        sa.Column("last_ns", NUMBER, nullable=False, comment="last answer; ns since time 0"),
        sa.Column("answers", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_address_name"),
        comment="Names that led to an address, by the answers of name resolution.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_address_name_ip", "address_name", ["trace_id", "ip"], unique=False)
    op.create_table(
        "catalog_change",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("t_ns", NUMBER, nullable=False, comment="ns since time 0"),
        sa.Column("what", sa.Text(), nullable=False, comment="installed, removed, disabled, reset"),
        sa.Column("name", sa.Text(), nullable=True, comment="of the layered provider"),
        sa.Column("catalog_bits", NUMBER, nullable=True, comment="32 or 64"),
        sa.Column("installer", sa.Text(), nullable=True, comment="program that asked for it"),
        sa.Column("provider", sa.Text(), nullable=True, comment="GUID of the transport provider"),
        sa.Column("entry", NUMBER, nullable=True, comment="catalog entry id"),
        sa.Column("pid", NUMBER, nullable=True),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_catalog_change"),
        comment="Changes of the Winsock catalog: layered service providers see all traffic of programs.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "virtual_memory",
        sa.Column("trace_id", NUMBER, nullable=False, comment="1 in a SQLite file"),
        sa.Column("n", NUMBER, nullable=False),
        sa.Column("t_ns", NUMBER, nullable=False, comment="ns since time 0"),
        sa.Column("process_n", NUMBER, nullable=True),
        sa.Column("tid", NUMBER, nullable=True),
        sa.Column("is_free", sa.Boolean(), nullable=False),
        sa.Column("base", NUMBER, nullable=False),
        sa.Column("size_bytes", NUMBER, nullable=False),
        sa.Column("flags", NUMBER, nullable=False, comment="allocation type, or free type"),
        sa.PrimaryKeyConstraint("trace_id", "n", name="pk_virtual_memory"),
        comment="Virtual memory reserved, committed and given back.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_virtual_memory_base", "virtual_memory", ["trace_id", "base"], unique=False)
    op.create_index(
        "ix_virtual_memory_large",
        "virtual_memory",
        ["trace_id", "size_bytes", "base"],
        unique=False,
        sqlite_where=sa.text("size_bytes > 65536"),
        postgresql_where=sa.text("size_bytes > 65536"),
    )

"""The one definition of the database: tables of the catalog and of a trace file.

Every table of a trace file is keyed by `(trace_id, n)`; in a SQLite file `trace_id` is always 1. `n` is a row number in time order and
never leaves the database: links use natural keys. Addresses and handles are 64-bit two's complement, times integer nanoseconds
since the trace's time 0, words small numbers into `collector.words`. NULL is unknown.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    bindparam,
    text,
)

from collector.amounts import FEW_OPERATIONS, LARGE_BYTES, LIFETIME_LIMITS, SIZE_LIMITS

__all__ = [
    "CATALOG",
    "CATALOG_VERSION",
    "FEW_OPERATIONS",
    "LARGE_BYTES",
    "LIFETIME_LIMITS",
    "ROW_COLUMNS",
    "SIZE_LIMITS",
    "THIS_TRACE",
    "TRACE",
    "TRACE_VERSION",
]

CATALOG_VERSION = "c0003"
TRACE_VERSION = "t0003"

NAMING = {"ix": "ix_%(table_name)s_%(column_0_N_name)s", "fk": "fk_%(table_name)s_%(referred_table_name)s", "pk": "pk_%(table_name)s"}

CATALOG = MetaData(naming_convention=NAMING)
TRACE = MetaData(naming_convention=NAMING)

THIS_TRACE = bindparam("this_trace", 1, BigInteger().with_variant(Integer, "sqlite"))
"""The trace that a statement reads: the only one of a SQLite file; a connection to a trace on a server fills in its number.

Every statement compares `trace_id` of each table that it reads with it, so that one partition of each is looked at.
"""


def _number(name: str, comment: str | None = None, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), nullable=not required, comment=comment)


def _text(name: str, comment: str | None = None, *, required: bool = False) -> Column[str]:
    return Column(name, Text, nullable=not required, comment=comment)


def _flag(name: str, comment: str | None = None) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, comment=comment)


def _bytes(name: str, comment: str | None = None) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=True, comment=comment)


def _ns(name: str, comment: str | None = None, *, required: bool = False) -> Column[int]:
    return _number(name, (comment + "; " if comment else "") + "ns since time 0", required=required)


def _long_lived(name: str, condition: str, *columns: str) -> Index:
    """An index of the rows alone that live longer than 2^30 ns (or have no end).

    What lives at a moment is found by two short searches: here, and among the rows that begin within 2^30 ns before it.
    """
    return _partial(name, condition, *columns)


def _partial(name: str, condition: str, *columns: str, on_a_server: str | None = None) -> Index:
    """An index of the rows alone that meet a condition; `on_a_server` is its spelling where a flag is no number."""
    return Index(name, "trace_id", *columns, sqlite_where=text(condition), postgresql_where=text(on_a_server or condition))


def _trace_table(
    name: str, *columns: Column[int] | Column[str] | Column[bool] | Column[bytes] | Index, comment: str, key: tuple[str, ...] = ("n",)
) -> Table:
    """A table of a trace file. Columns come in the order in which the collector writes them, behind trace_id."""
    numbers = [_number("n", required=True)] if key == ("n",) else []
    return Table(
        name,
        TRACE,
        _number("trace_id", "1 in a SQLite file", required=True),
        *numbers,
        *columns,
        PrimaryKeyConstraint("trace_id", *key, name=f"pk_{name}"),
        comment=comment,
        sqlite_with_rowid=False,
    )


# ---------------------------------------------------------------------------------------------------- catalog

trace_entry = Table(
    "trace_entry",
    CATALOG,
    Column("key", Text, primary_key=True, comment="first 12 hex digits of the SHA-256 of the trace's bytes"),
    _text("name", "file name, or the user's own", required=True),
    _text("label", "the user's word for it"),
    _text("state", "collecting, live, complete, interrupted", required=True),
    _text("path", "where the trace was read from"),
    _number("size_bytes"),
    _text("start_utc", "time 0, ISO 8601"),
    _ns("end_ns"),
    _number("records"),
    _number("processes"),
    _number("sockets"),
    _number("operations"),
    _number("allocations"),
    _number("events_lost"),
    _number("buffers_lost"),
    _number("bytes_done", "input bytes read so far, while collecting"),
    _number("bytes_total"),
    _text("message", "why it was interrupted"),
    _number("collector_pid", "process that is collecting it"),
    _text("collected_utc", "when collecting began, ISO 8601", required=True),
    _text("finished_utc"),
    _text("collector_version"),
    _text("live_key", "key under which it is shown while its session records"),
    _text("machine", "name of the machine that was traced"),
    _number("problems", "rows of catalog_problem"),
    _number("losses", "problems that are lost or damaged data"),
    _number("findings", "rows of catalog_finding"),
    _number("high_findings", "findings of high severity"),
    _number("names_left_out", "program names beyond those of catalog_program; NULL: nobody has looked"),
    _number("statuses_left_out", "statuses beyond those of catalog_status; NULL: nobody has looked"),
    _number("reasons_left_out", "reasons beyond those of catalog_abort; NULL: nobody has looked"),
    Index("ix_trace_entry_collected_utc", "collected_utc", "key"),  # the list of traces
    Index("ix_trace_entry_start_utc", "start_utc", "key"),  # traces of a day
    comment="Traces of this folder.",
)

catalog_problem = Table(
    "catalog_problem",
    CATALOG,
    _text("key", required=True),
    _number("n", required=True),
    _text("kind", required=True),
    _text("severity", required=True),
    _number("count", required=True),
    _ns("first_ns"),
    _ns("last_ns"),
    _text("place"),
    _text("text", required=True),
    _text("effect"),
    _text("advice"),
    PrimaryKeyConstraint("key", "n", name="pk_catalog_problem"),
    ForeignKeyConstraint(["key"], ["trace_entry.key"], name="fk_catalog_problem_trace_entry", ondelete="CASCADE"),
    comment="Copies of the problems of each trace, shown before its file is complete.",
)

catalog_finding = Table(
    "catalog_finding",
    CATALOG,
    _text("key", required=True),
    _number("n", required=True),
    _text("kind", required=True),
    _text("severity", required=True),
    _number("count", required=True),
    _text("title", required=True),
    _text("link"),
    PrimaryKeyConstraint("key", "n", name="pk_catalog_finding"),
    ForeignKeyConstraint(["key"], ["trace_entry.key"], name="fk_catalog_finding_trace_entry", ondelete="CASCADE"),
    Index("ix_catalog_finding_kind", "kind", "key"),  # traces with findings of a kind
    comment="Copies of the findings of each trace, for the list of traces.",
)


def _contents_table(name: str, key: str, *columns: Column[int] | Column[str] | Index, comment: str) -> Table:
    """A table of what traces contain, by trace and by the value of the column `key`, which is the next one."""
    return Table(
        name,
        CATALOG,
        _text("key", required=True),
        *columns,
        PrimaryKeyConstraint("key", key, name=f"pk_{name}"),
        ForeignKeyConstraint(["key"], ["trace_entry.key"], name=f"fk_{name}_trace_entry", ondelete="CASCADE"),
        comment=comment,
    )


catalog_program = _contents_table(
    "catalog_program",
    "name",
    _text("name", "image of the process", required=True),
    _number("processes", "of this name", required=True),
    _number("sockets", required=True),
    _number("allocated", "heap bytes over the trace; NULL: its heap was not traced"),
    Index("ix_catalog_program_name", "name"),  # traces of a program
    comment="Names of the processes of each trace, up to a limit.",
)

catalog_status = _contents_table(
    "catalog_status",
    "status",
    _number("status", "NTSTATUS", required=True),
    _number("operations", "that failed with it", required=True),
    _number("binds", "that failed with it", required=True),
    Index("ix_catalog_status_status", "status"),  # traces with an error
    comment="Statuses with which something failed in each trace, would-block answers left out, up to a limit.",
)

catalog_abort = _contents_table(
    "catalog_abort",
    "reason",
    _number("reason", required=True),
    _text("reason_name"),
    _number("aborts", required=True),
    Index("ix_catalog_abort_reason", "reason"),  # traces with an abort
    comment="Reasons of the aborts of each trace, up to a limit.",
)

note = Table(
    "note",
    CATALOG,
    Column("n", Integer, primary_key=True),
    _text("key", "the trace's key; notes survive the trace's rows", required=True),
    _text("object", "link of the object below /t/KEY", required=True),
    _ns("t_ns"),
    _text("author"),
    _text("text", required=True),
    _text("created_utc", required=True),
    Index("ix_note_key_object", "key", "object"),  # notes of one page
    comment="What people wrote about an object of a trace.",
)

# ---------------------------------------------------------------------------------------------------- the trace itself

trace = _trace_table(
    "trace",
    _text("key", required=True),
    _text("name", required=True),
    _text("state", required=True),
    _text("start_utc"),
    _ns("end_ns", "last record, or the header's end when that is later"),
    _text("clock", required=True),
    _number("ticks_per_second", required=True),
    _number("start_ticks", required=True),
    _number("pointer_size", required=True),
    _number("processors"),
    _text("os_build"),
    _number("records", required=True),
    _number("events_lost"),
    _number("buffers_lost"),
    _text("collected_utc", required=True),
    _text("collector_version", required=True),
    _text("header", "the log file header as JSON"),
    comment="The trace; one row.",
)

event_count = _trace_table(
    "event_count",
    _text("provider", "GUID", required=True),
    _text("provider_name"),
    _number("event_id"),
    _number("opcode"),
    _number("version"),
    _text("header_kind", required=True),
    _text("event_name"),
    _number("count", required=True),
    _flag("known", "decoded by a schema"),
    _number("damaged", "payload shorter than its layout", required=True),
    _ns("first_ns"),
    _ns("last_ns"),
    comment="All records of the file by identity, foreign ones too.",
)

problem = _trace_table(
    "problem",
    _text("kind", required=True),
    _text("severity", required=True),
    _number("count", required=True),
    _ns("first_ns"),
    _ns("last_ns"),
    _text("place"),
    _text("text", required=True),
    _text("effect"),
    _text("advice"),
    comment="How the data is limited.",
)

finding = _trace_table(
    "finding",
    _text("kind", required=True),
    _text("severity", "high, medium, low", required=True),
    _number("count", required=True),
    _number("process_n"),
    _number("socket_n"),
    _ns("t_ns"),
    _text("title", required=True),
    _text("text", required=True),
    _text("certainty", required=True),
    _text("link", "path below /t/KEY/ of the evidence"),
    _text("code", "Q01 to Q25"),
    Index("ix_finding_socket_n", "trace_id", "socket_n"),  # findings of a socket's page
    comment="What the program did that is worth a look.",
)

# ---------------------------------------------------------------------------------------------------- processes

process = _trace_table(
    "process",
    _number("pid"),
    _number("eprocess", "kernel address of the process object"),
    _number("parent_pid"),
    _text("image"),
    _text("command_line"),
    _ns("start_ns"),
    _ns("end_ns"),
    _ns("first_ns", "first sight, start_ns where that is known", required=True),
    _flag("start_seen"),
    _flag("end_seen"),
    _text("pid_source", "kernel, create, location, header, heap"),
    _number("session"),
    _number("exit_status"),
    _number("pointer_size"),
    Index("ix_process_pid", "trace_id", "pid", "first_ns"),  # link PID@NS
    Index("ix_process_eprocess", "trace_id", "eprocess", "first_ns"),  # link 0xEPROCESS@NS
    comment="Process instances: one life of a process id.",
)

owner = _trace_table(
    "owner",
    _number("eprocess", required=True),
    _number("process_n"),
    _text("pid_source", "the source that named the pid; NULL while unknown"),
    _number("contradictions", "header pids that disagreed", required=True),
    _ns("first_ns", required=True),
    comment="Process objects as the socket events name them, and the process each one is.",
)

thread = _trace_table(
    "thread",
    _number("process_n"),
    _number("tid", required=True),
    _ns("start_ns"),
    _ns("end_ns"),
    _number("stack_low", "user stack"),
    _number("stack_high"),
    _text("name"),
    Index("ix_thread_process_n", "trace_id", "process_n"),
    comment="Threads that the trace names.",
)

module = _trace_table(
    "module",
    _number("process_n", "NULL for kernel modules"),
    _number("base", required=True),
    _number("size_bytes", required=True),
    _text("file", required=True),
    _ns("loaded_ns", "NULL: before the trace"),
    _ns("unloaded_ns", "NULL: never"),
    _number("timestamp"),
    _text("pdb_name"),
    _text("pdb_guid"),
    _number("pdb_age"),
    Index("ix_module_process_n", "trace_id", "process_n", "base"),
    comment="Images loaded into processes.",
)

# ---------------------------------------------------------------------------------------------------- sockets

address = _trace_table(
    "address",
    _text("text", "192.0.2.1:80, [fe80::1%7]:53", required=True),
    _number("family"),
    _bytes("ip", "16 bytes, IPv4 as ::ffff:a.b.c.d"),
    _number("port"),
    _number("scope_id"),
    Index("ix_address_text", "trace_id", "text"),  # search by address
    Index("ix_address_ip", "trace_id", "ip"),  # search by prefix
    Index("ix_address_port", "trace_id", "port"),  # search by port
    comment="Socket addresses that occur, each once.",
)

socket = _trace_table(
    "socket",
    _number("endpoint", "kernel address of the AFD endpoint", required=True),
    _number("owner_n"),
    _number("process_n"),
    _number("family"),
    _number("type", "1 stream, 2 dgram, …; NULL unknown"),
    _number("protocol"),
    _flag("type_inferred", "type known from keywords only"),
    _flag("create_seen"),
    _ns("created_ns"),
    _ns("closed_ns", "enter of cleanup, else of close"),
    _ns("destroyed_ns", "exit of close"),
    _ns("first_ns", required=True),
    _ns("last_ns", required=True),
    _text("end", "closed, superseded, open_at_end, closing_at_end, ended_by_exit", required=True),
    _number("local_n"),
    _number("remote_n", "peer of the last connection"),
    _number("connections", required=True),
    _flag("listener"),
    _number("accepted_from_n", "the listener"),
    _flag("accept_inferred", "the listener is inferred from the order of events"),
    _number("loopback_peer_n"),
    _number("bytes_sent", required=True),
    _number("bytes_received", required=True),
    _number("bytes_indicated", "arrived by data indications", required=True),
    _number("sends", required=True),
    _number("receives", required=True),
    _number("errors", "failed operations, would-block answers left out", required=True),
    _number("last_error", "NTSTATUS"),
    _number("create_stack_ref"),
    _number("close_stack_ref"),
    _number("create_tid"),
    _number("close_tid"),
    _flag("registered_io"),
    Index("ix_socket_process_n", "trace_id", "process_n", "first_ns"),  # sockets of a process
    Index("ix_socket_endpoint", "trace_id", "endpoint", "first_ns"),  # link 0xENDPOINT@NS
    Index("ix_socket_first_ns", "trace_id", "first_ns"),  # list by time
    Index("ix_socket_bytes_sent", "trace_id", "bytes_sent"),
    Index("ix_socket_bytes_received", "trace_id", "bytes_received"),
    Index("ix_socket_local_n", "trace_id", "local_n"),
    Index("ix_socket_remote_n", "trace_id", "remote_n"),
    _partial("ix_socket_older", "created_ns IS NULL", "process_n"),  # how many are open when the trace begins
    _partial("ix_socket_listener", "listener = 1", on_a_server="listener"),  # the list of listeners
    Index("ix_socket_sends", "trace_id", "sends"),  # the busiest sockets
    _partial("ix_socket_accepted", "accepted_from_n IS NOT NULL", "accepted_from_n"),  # what a listener accepted
    comment="Lifetimes of endpoints.",
)

peer = _trace_table(
    "peer",
    _number("socket_n", required=True),
    _number("address_n", required=True),
    _number("bytes_sent", required=True),
    _number("bytes_received", required=True),
    _number("sends", required=True),
    _number("receives", required=True),
    _number("dropped", "datagrams", required=True),
    key=("socket_n", "address_n"),
    comment="Whom a datagram socket talked with.",
)

operation = _trace_table(
    "operation",
    _number("socket_n", required=True),
    _number("kind", "words.OPERATION_KINDS", required=True),
    _number("outcome", "words.OUTCOMES", required=True),
    _number("match", "words.MATCHES; NULL: no completion"),
    _number("bytes", required=True),
    _number("status", "final NTSTATUS"),
    _number("buffer", "first buffer, as posted; as completed when the post is unknown"),
    _number("posted_len", "bytes"),
    _number("buffer_count"),
    _number("space", "words.SPACES; NULL for connect and accept"),
    _flag("fast_path"),
    _flag("buffer_inferred", "buffer taken from the fast attempt before this request"),
    _ns("posted_ns"),
    _ns("completed_ns"),
    _ns("end_ns", "end of its being in flight; NULL: in flight at the end"),
    _number("peer_n"),
    _number("accepted_n", "the socket that an accept made"),
    _number("posted_event", "event id of the post"),
    _number("posted_tid"),
    _number("posted_pid", "process id of the post's header"),
    _number("posted_cpu"),
    _number("posted_location"),
    _number("posted_seq", "record number of the post"),
    _number("completed_event"),
    _number("completed_tid"),
    _number("completed_pid", "process id of the completion's header"),
    _number("completed_cpu"),
    _number("completed_location"),
    _number("completed_seq"),
    _number("completed_buffer", "where it differs from buffer"),
    _number("completed_len", "BufferLength of the completion"),
    _number("request_buffer", "kernel address of the post, where buffer is inferred"),
    _number("activity", "first 8 bytes of the header's ActivityId"),
    _number("posted_stack_ref"),
    _number("completed_stack_ref"),
    Index("ix_operation_socket_n", "trace_id", "socket_n", "posted_ns"),  # a socket's timeline
    Index("ix_operation_posted_ns", "trace_id", "posted_ns"),  # the list of operations by time
    _partial("ix_operation_buffer", "buffer IS NOT NULL", "buffer", "posted_len"),  # what happened at an address
    _partial("ix_operation_large", f"posted_len > {LARGE_BYTES}", "posted_len", "buffer"),  # the same, where the buffer begins far below
    _long_lived("ix_operation_long", "end_ns IS NULL OR end_ns - posted_ns > 1073741824", "socket_n", "posted_ns"),  # in flight at a moment
    comment="Requests on sockets, from posted to completed.",
)

operation_buffer = _trace_table(
    "operation_buffer",
    _number("operation_n", required=True),
    _number("buffer_class", "words.BUFFER_CLASSES", required=True),
    _number("allocation_n"),
    _number("allocation_offset", "bytes from the allocation's start to the buffer"),
    key=("operation_n",),
    comment="The memory behind the user-mode buffers of operations; only in traces with heap, image or thread events.",
)

skipped = _trace_table(
    "skipped",
    _number("socket_n"),
    _ns("t_ns", required=True),
    _text("kind", "send, recv, …", required=True),
    _number("event", "event id", required=True),
    _number("bytes"),
    _number("location"),
    _text("reason", "double_count, …", required=True),
    _number("cpu"),
    _number("pid"),
    _number("tid"),
    _number("buffer"),
    _number("status"),
    Index("ix_skipped_socket_n", "trace_id", "socket_n", "t_ns"),
    comment="Records that are kept but not counted.",
)

abort = _trace_table(
    "abort",
    _number("socket_n", required=True),
    _ns("t_ns", required=True),
    _number("event", required=True),
    _number("reason", required=True),
    _text("reason_name"),
    _text("reason_certainty", "certain, possible; NULL for an unnamed number"),
    _text("initiator", "afd, transport", required=True),
    _text("during", "running, close", required=True),
    _flag("is_primary", "the first of its connection: the cause"),
    _flag("on_listener"),
    _number("unread_bytes", "NULL: indications were not traced"),
    _number("outstanding", "operations in flight at that moment"),
    _number("last_error", "NTSTATUS of the last failure before"),
    _ns("last_disconnect_ns"),
    _ns("last_traffic_ns"),
    _number("location"),
    _number("pid"),
    _number("tid"),
    _number("cpu"),
    _number("stack_ref"),
    Index("ix_abort_socket_n", "trace_id", "socket_n"),
    Index("ix_abort_t_ns", "trace_id", "t_ns"),
    comment="Connections torn down.",
)

overlap = _trace_table(
    "overlap",
    _number("owner_n"),
    _number("first_n", "operation", required=True),
    _number("second_n", "operation", required=True),
    _ns("t_ns", "post of the second", required=True),
    _number("lo", "first shared byte", required=True),
    _number("hi", "end of the shared bytes", required=True),
    _text("pair", required=True),
    _text("range", required=True),
    _text("certainty", required=True),
    _text("scope", required=True),
    _text("severity", required=True),
    Index("ix_overlap_first_n", "trace_id", "first_n"),
    Index("ix_overlap_second_n", "trace_id", "second_n"),
    comment="A buffer handed to a second operation while the first still uses it.",
)

drop = _trace_table(
    "drop",
    _number("socket_n"),
    _ns("t_ns", required=True),
    _number("reason", required=True),
    _text("reason_name"),
    _text("reason_certainty"),
    _number("length", "bytes"),
    _number("source_n"),
    _number("receives_outstanding", required=True),
    _number("receive_buffer_bytes", "SO_RCVBUF in force"),
    Index("ix_drop_socket_n", "trace_id", "socket_n", "t_ns"),
    comment="Datagrams dropped.",
)

bind_failure = _trace_table(
    "bind_failure",
    _number("socket_n"),
    _ns("t_ns", required=True),
    _number("status", required=True),
    _number("requested_n", "address asked for"),
    comment="Binds that failed.",
)

listen_event = _trace_table(
    "listen_event",
    _number("socket_n", required=True),
    _ns("t_ns", required=True),
    _text("what", "listen, indication, accept_posted, accepted, accept_failed, pause, unpause", required=True),
    _number("backlog_asked"),
    _number("backlog_now"),
    _number("peer_n"),
    _number("accepted_n"),
    _number("status"),
    _number("wait_ns", "from the indication to the accept"),
    Index("ix_listen_event_socket_n", "trace_id", "socket_n", "t_ns"),
    comment="What happened at listeners.",
)

option = _trace_table(
    "option",
    _number("socket_n", required=True),
    _ns("t_ns", required=True),
    _number("option", required=True),
    _text("name"),
    _number("value", required=True),
    _number("status"),
    Index("ix_option_socket_n", "trace_id", "socket_n", "t_ns"),
    comment="Socket options set.",
)

poll = _trace_table(
    "poll",
    _number("owner_n"),
    _number("tid"),
    _ns("posted_ns"),
    _ns("completed_ns"),
    _number("handles"),
    _number("timeout_raw"),
    _number("error", "NTSTATUS"),
    comment="Select and poll calls: calls of a process without a socket.",
)

socket_event = _trace_table(
    "socket_event",
    _number("socket_n"),
    _number("owner_n"),
    _ns("t_ns", required=True),
    _number("seq", "record number", required=True),
    _number("cpu"),
    _number("pid", "process id of the header"),
    _number("tid"),
    _number("event", "event id", required=True),
    _number("enter_exit"),
    _number("location"),
    _number("status"),
    _number("address_n"),
    _text("fields", "the other fields as JSON"),
    _number("stack_ref"),
    Index("ix_socket_event_socket_n", "trace_id", "socket_n", "t_ns"),
    comment="All socket records that are neither a post nor a completion of an operation.",
)

raw_event = _trace_table(
    "raw_event",
    _ns("t_ns", required=True),
    _text("provider", required=True),
    _number("event_id"),
    _number("opcode"),
    _number("version"),
    _number("cpu"),
    _number("pid"),
    _number("tid"),
    _text("place", required=True),
    _text("why", "unknown, described (by a layout in the trace), damaged", required=True),
    _bytes("payload"),
    comment="Records of our providers that no schema decodes, up to a cap.",
)

# ---------------------------------------------------------------------------------------------------- what other providers know

transport_flow = _trace_table(
    "transport_flow",
    _number("source", "words.TRANSPORT_SOURCES", required=True),
    _number("protocol", "6 tcp, 17 udp", required=True),
    _number("pid"),
    _bytes("local_ip", "16 bytes, IPv4 as ::ffff:a.b.c.d"),
    _number("local_port", required=True),
    _bytes("remote_ip", "NULL for udp: all its peers"),
    _number("remote_port"),
    _text("local", "local IP and port as text", required=True),
    _text("remote"),
    _ns("first_ns", required=True),
    _ns("last_ns", required=True),
    _number("sends", "as its source counts them", required=True),
    _number("bytes_sent", required=True),
    _number("receives", required=True),
    _number("bytes_received", required=True),
    _number("retransmits", "records", required=True),
    _number("bytes_retransmitted", "said at the end of the connection"),
    _number("timeouts", "of retransmission, said at the end of the connection"),
    _number("rtt_us", "round-trip time, said at the end of the connection"),
    _number("min_rtt_us"),
    _number("max_rtt_us"),
    _number("sockets", "how many sockets had these addresses while it lasted", required=True),
    _number("socket_n", "where it is one"),
    _text("match", "exact: both addresses and the process; inferred: by ports, process and time"),
    Index("ix_transport_flow_socket_n", "trace_id", "socket_n"),  # page of a socket
    comment="Connections, and local ends of datagrams, as the network stack itself saw them, one row a source.",
)

transport_event = _trace_table(
    "transport_event",
    _number("flow_n", required=True),
    _ns("t_ns", required=True),
    _number("deed", "words.TRANSPORT_DEEDS", required=True),
    _number("event", "event id, or opcode", required=True),
    _number("pid", "process of the payload"),
    _number("status", "NTSTATUS"),
    _number("state", "the connection's new state, as the stack numbers them"),
    _number("count", "retransmissions so far"),
    _number("bytes"),
    _number("socket_n", "where several sockets had the addresses of the flow, the one at that time"),
    Index("ix_transport_event_flow_n", "trace_id", "flow_n", "t_ns"),  # page of a socket
    _partial("ix_transport_event_socket_n", "socket_n IS NOT NULL", "socket_n", "t_ns"),  # the same, of addresses used again
    comment="What happened to connections, as the network stack said it; sends and receives are only summed.",
)

address_name = _trace_table(
    "address_name",
    _bytes("ip", "16 bytes, IPv4 as ::ffff:a.b.c.d"),
    _text("address", "the same as text", required=True),
    _text("name", required=True),
    _text("source", "Microsoft-Windows-DNS-Client, Microsoft-Windows-Winsock-NameResolution", required=True),
    _number("pid", "who was answered"),
    _ns("first_ns", "first answer", required=True),
    _ns("last_ns", "last answer", required=True),
    _number("answers", required=True),
    Index("ix_address_name_ip", "trace_id", "ip"),  # names beside addresses
    comment="Names that led to an address, by the answers of name resolution.",
)

catalog_change = _trace_table(
    "catalog_change",
    _ns("t_ns", required=True),
    _text("what", "installed, removed, disabled, reset", required=True),
    _text("name", "of the layered provider"),
    _number("catalog_bits", "32 or 64"),
    _text("installer", "program that asked for it"),
    _text("provider", "GUID of the transport provider"),
    _number("entry", "catalog entry id"),
    _number("pid"),
    comment="Changes of the Winsock catalog: layered service providers see all traffic of programs.",
)

virtual_memory = _trace_table(
    "virtual_memory",
    _ns("t_ns", required=True),
    _number("process_n"),
    _number("tid"),
    _flag("is_free"),
    _number("base", required=True),
    _number("size_bytes", required=True),
    _number("flags", "allocation type, or free type", required=True),
    Index("ix_virtual_memory_base", "trace_id", "base"),  # what happened at an address
    _partial("ix_virtual_memory_large", f"size_bytes > {LARGE_BYTES}", "size_bytes", "base"),  # the same, of what begins far below
    comment="Virtual memory reserved, committed and given back.",
)

socket_rollup = _trace_table(
    "socket_rollup",
    _text("scope", "trace, process, socket", required=True),
    _number("scope_n", "0 for the trace", required=True),
    _number("level", "bucket width is 2^level ns", required=True),
    _number("bucket", "floor(t_ns / 2^level)", required=True),
    _number("sends", "completed in the bucket", required=True),
    _number("receives", required=True),
    _number("bytes_sent", required=True),
    _number("bytes_received", required=True),
    _number("errors", required=True),
    _number("opened", "sockets", required=True),
    _number("closed", "sockets", required=True),
    _number("posted", "operations posted in the bucket", required=True),
    _number("ended", "operations ended in the bucket", required=True),
    _number("in_flight_end", "operations in flight at the bucket's end; those posted before the trace count from its start"),
    _number("in_flight_min", "fewest operations in flight at any time in the bucket, its start included"),
    _number("in_flight_max", "most operations in flight at any time in the bucket, its start included"),
    key=("scope", "scope_n", "level", "bucket"),
    comment=f"Socket activity in sparse buckets; of single sockets where there are more than {FEW_OPERATIONS} operations.",
)

# ---------------------------------------------------------------------------------------------------- heap

heap = _trace_table(
    "heap",
    _number("process_n", required=True),
    _number("handle", required=True),
    _number("life", "1 for the first life of the handle", required=True),
    _number("flags"),
    _ns("created_ns"),
    _ns("first_ns", required=True),
    _ns("destroyed_ns"),
    _flag("create_seen"),
    _number("committed", "bytes, last known"),
    _number("reserved", "bytes"),
    _number("free_space", "bytes"),
    _number("allocated", "bytes, AllocatedSpace, last known"),
    Index("ix_heap_process_n", "trace_id", "process_n", "handle"),
    comment="Lives of heap handles.",
)

allocation = _trace_table(
    "allocation",
    _number("process_n", required=True),
    _number("heap_n", required=True),
    _number("address", required=True),
    _number("generation", required=True),
    _number("size", "bytes now", required=True),
    _number("size_at_open", "bytes", required=True),
    _ns("start_ns", "NULL: before the trace"),
    _ns("first_ns", required=True),
    _ns("end_ns"),
    _number("end_reason", "words.END_REASONS"),
    _flag("end_inferred"),
    _number("origin", "words.ORIGINS", required=True),
    _number("previous_n", "the block that a reallocation moved"),
    _number("source_id", "part of the allocator"),
    _number("tid"),
    _number("free_tid"),
    _number("owner_stack_ref"),
    _number("free_stack_ref"),
    _number("trust", "words.CERTAINTIES; NULL for an ended block"),
    _number("first_seq", "record number of its opening", required=True),
    _number("end_seq", "record number of its end"),
    Index("ix_allocation_process_n", "trace_id", "process_n", "first_ns"),  # list of a process, timeline
    # Link 0xHEAP:0xADDRESS@NS, address history; with the size, what only begins near an address need not be looked up.
    Index("ix_allocation_address", "trace_id", "process_n", "address", "first_ns", "size"),
    _long_lived("ix_allocation_long", "end_ns - first_ns > 1073741824", "process_n", "end_ns"),  # old blocks that end in a window
    # What is never freed, by stack; the columns behind first_ns are those that are summed, so that no row has to be looked up.
    _partial("ix_allocation_large", f"size > {LARGE_BYTES}", "address"),  # address history of large blocks
    _partial("ix_allocation_held", "end_ns IS NULL", "process_n", "end_ns", "first_ns", "owner_stack_ref", "size", "trust"),
    comment="Heap blocks from alloc to free.",
)

resize = _trace_table(
    "resize",
    _number("allocation_n", required=True),
    _ns("t_ns", required=True),
    _number("seq", "record number", required=True),
    _number("size", "bytes from then on", required=True),
    _number("old_size", "bytes until then", required=True),
    Index("ix_resize_allocation_n", "trace_id", "allocation_n"),
    Index("ix_resize_t_ns", "trace_id", "t_ns"),  # changes within a window
    comment="Reallocations in place.",
)

heap_gauge = _trace_table(
    "heap_gauge",
    _number("heap_n", required=True),
    _ns("t_ns", required=True),
    _text("what", "create, expand, contract, snapshot, commit, decommit, …", required=True),
    _number("committed", "bytes"),
    _number("reserved", "bytes"),
    _number("free_space", "bytes"),
    _number("allocated", "bytes"),
    _text("fields", "the rest as JSON"),
    Index("ix_heap_gauge_heap_n", "trace_id", "heap_n", "t_ns"),
    comment="Sizes of a heap as the allocator reports them, and marks on its time line.",
)

heap_range = _trace_table(
    "heap_range",
    _number("process_n"),
    _number("handle", required=True),
    _number("lo", required=True),
    _number("hi", required=True),
    _ns("from_ns", "NULL: before the trace"),
    _ns("until_ns"),
    comment="Address ranges of heaps.",
)

heap_counter = _trace_table(
    "heap_counter",
    _number("process_n", required=True),
    _text("name", required=True),
    _number("value", required=True),
    key=("process_n", "name"),
    comment="Counters of the heap model, zero ones left out.",
)

heap_anomaly = _trace_table(
    "heap_anomaly",
    _number("process_n", required=True),
    _text("kind", required=True),
    _ns("t_ns", required=True),
    _number("heap", "handle"),
    _number("address"),
    _number("allocation_n"),
    _number("tid"),
    _number("stack_ref"),
    Index("ix_heap_anomaly_process_n", "trace_id", "process_n", "t_ns"),
    comment="Heap records that do not fit the blocks known.",
)

heap_rollup = _trace_table(
    "heap_rollup",
    _text("scope", "process, heap", required=True),
    _number("scope_n", required=True),
    _number("level", "bucket width is 2^level ns", required=True),
    _number("bucket", required=True),
    _number("bytes_start", required=True),
    _number("bytes_end", required=True),
    _number("bytes_min", required=True),
    _number("bytes_max", required=True),
    _number("count_end", required=True),
    _number("count_min", required=True),
    _number("count_max", required=True),
    _number("allocs", required=True),
    _number("frees", required=True),
    _number("alloc_bytes", required=True),
    _number("free_bytes", required=True),
    key=("scope", "scope_n", "level", "bucket"),
    comment="Live heap in sparse buckets; exact at the borders.",
)

io_finding = _trace_table(
    "io_finding",
    _text("kind", "freed_in_flight, reused_in_flight, shrunk_in_flight, overruns_block, posted_after_free", required=True),
    _ns("t_ns", required=True),
    _number("process_n"),
    _number("socket_n", required=True),
    _number("operation_n", required=True),
    _number("allocation_n"),
    _text("reason", "how the block ended"),
    _number("by_bytes", "bytes past the block's end"),
    _text("certainty", required=True),
    _number("free_stack_ref"),
    Index("ix_io_finding_operation_n", "trace_id", "operation_n"),
    comment="Heap blocks and socket operations in each other's way.",
)

# ---------------------------------------------------------------------------------------------------- stacks

stack = _trace_table(
    "stack",
    _text("hash", "of the module+offset frames", required=True),
    _number("depth", required=True),
    _flag("is_complete", "false where a key was never defined"),
    Index("ix_stack_hash", "trace_id", "hash"),  # link of a stack
    comment="Distinct call stacks.",
)

stack_frame = _trace_table(
    "stack_frame",
    _number("stack_n", required=True),
    _number("frame", "0 is the innermost", required=True),
    _number("address", required=True),
    _text("module"),
    _number("offset"),
    _text("symbol"),
    key=("stack_n", "frame"),
    comment="Frames of the distinct stacks.",
)

stack_ref = _trace_table(
    "stack_ref",
    _number("ref", required=True),
    _number("stack_n", required=True),
    key=("ref",),
    comment="The stack behind a row's stack_ref; written when the definitions have arrived.",
)

# ---------------------------------------------------------------------------------------------------- sums over whole tables

operation_sum = _trace_table(
    "operation_sum",
    _number("kind", "words.OPERATION_KINDS", required=True),
    _number("outcome", "words.OUTCOMES", required=True),
    _number("match", "words.MATCHES; NULL: no completion"),
    _number("space", "words.SPACES; NULL for connect and accept"),
    _flag("is_posted", "the post is in the trace"),
    _flag("waits", "sends and receives that took time, or did not end"),
    _number("count", "operations", required=True),
    comment="How many operations of the trace are alike.",
)

failure = _trace_table(
    "failure",
    _number("socket_n", required=True),
    _number("kind", "words.OPERATION_KINDS", required=True),
    _number("status", "NTSTATUS"),
    _number("count", "operations", required=True),
    _ns("first_ns", required=True),
    _ns("last_ns", required=True),
    comment="Failed operations by socket, kind and status, would-block answers left out; those that failed most often first.",
)

process_sum = _trace_table(
    "process_sum",
    _number("process_n", "NULL: the sockets of unknown processes"),
    _number("sockets", required=True),
    _number("bytes_sent", required=True),
    _number("bytes_received", required=True),
    _number("errors", "failed operations", required=True),
    _number("failed_binds", required=True),
    _number("open_at_end", "sockets", required=True),
    _number("not_made", "sockets whose making is not in the trace", required=True),
    _number("ports", "distinct local ports", required=True),
    _ns("first_ns", "opening of the first socket", required=True),
    _ns("last_ns", "opening of the last socket", required=True),
    _number("peak_dynamic", "most ports of the dynamic range held at once", required=True),
    _ns("peak_ns"),
    comment="The sockets of a process, summed.",
)

remote_sum = _trace_table(
    "remote_sum",
    _number("process_n"),
    _text("text", "the first address of the host, as text", required=True),
    _number("count", "sockets, accepted ones left out", required=True),
    _number("open_at_end", required=True),
    _number("closed_here", required=True),
    _ns("first_ns", "opening of the first", required=True),
    _ns("last_ns", "opening of the last", required=True),
    _number("bytes_sent", required=True),
    _number("bytes_received", required=True),
    comment="The sockets of a process to one remote host, summed; most sockets first.",
)

listener_sum = _trace_table(
    "listener_sum",
    _number("socket_n", required=True),
    _number("backlog_asked"),
    _number("backlog_peak"),
    _number("indications", required=True),
    _number("accepted", required=True),
    _number("failed", "requests and accepts", required=True),
    _number("pauses", required=True),
    _number("longest_wait_ns", "from an indication to its accept"),
    _number("mean_wait_ns"),
    key=("socket_n",),
    comment="What happened at a listener, summed.",
)

stack_sum = _trace_table(
    "stack_sum",
    _number("stack_n", required=True),
    _number("process_n", required=True),
    _number("held_bytes", "at the end of the trace", required=True),
    _number("held_count", "allocations", required=True),
    _number("allocations", required=True),
    _number("allocated_bytes", "at their start", required=True),
    _ns("first_ns", "of the first allocation", required=True),
    _ns("last_ns", "of the last allocation", required=True),
    key=("stack_n", "process_n"),
    comment="What a stack of a process allocated and holds.",
)

heap_stack = _trace_table(
    "heap_stack",
    _number("heap_n", required=True),
    _number("stack_n", "NULL: the blocks without a stack"),
    _number("blocks", "that began in the trace", required=True),
    _number("bytes", "at their start", required=True),
    _number("held", "of these blocks at the end of the trace", required=True),
    _number("held_bytes", required=True),
    _number("freed", "blocks that were freed, moved or destroyed with their heap", required=True),
    _ns("first_ns", "of the first block", required=True),
    _ns("last_ns", "of the last block", required=True),
    _flag("is_suspect", "records were lost after a held block began"),
    Index("ix_heap_stack_heap_n", "trace_id", "heap_n"),  # the whole trace on the page of a heap
    comment="What a stack allocated on a heap, blocks from before the trace left out.",
)

heap_class = _trace_table(
    "heap_class",
    _number("heap_n", required=True),
    _text("what", "size: at their start; lifetime: of those freed, moved or destroyed with their heap; ended; adopted", required=True),
    _number("place", "class of size or lifetime, 0 is the lowest", required=True),
    _number("blocks", required=True),
    _number("bytes", "at their start; of ended and adopted ones at their end", required=True),
    _number("held", "of these blocks at the end of the trace", required=True),
    _number("held_bytes", required=True),
    key=("heap_n", "what", "place"),
    comment="Blocks of a heap by class; ended: all that began and ended in the trace; adopted: those from before it that ended.",
)

stack_use = _trace_table(
    "stack_use",
    _number("stack_n", required=True),
    _text("what", required=True),
    _number("times", required=True),
    _ns("first_ns"),
    _ns("last_ns"),
    key=("stack_n", "what"),
    comment="What a stack did besides allocating.",
)

ROW_COLUMNS = {table.name: tuple(c.name for c in table.columns if c.name != "trace_id") for table in TRACE.sorted_tables}
"""Names of each trace table's columns in the order in which rows are handed to the writer (tuples, `trace_id` left out)."""

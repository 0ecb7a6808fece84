"""What limits the answers of the socket model: each gap as a problem with its effect and what to do about it."""

from collections.abc import Mapping

from collector.errors import Problem, ProblemKind, Severity
from collector.model.endpoints import Endpoints
from collector.model.operations import Operations
from collector.model.overlaps import Overlaps
from collector.model.owners import Owners
from collector.model.socket_state import Socket

__all__ = [
    "ABSENT_SOCKET_EVENTS",
    "CONTRADICTED_OWNERS",
    "INFERRED_OWNERS",
    "OVERLAPS_CAPPED",
    "SOCKETS_SUPERSEDED",
    "SOCKETS_WITHOUT_CREATE",
    "UNKNOWN_OWNERS",
    "UNMATCHED_COMPLETIONS",
    "SocketCounts",
    "socket_problems",
]

INFERRED_OWNERS = ProblemKind(
    "inferred_owners",
    Severity.NOTE,
    "The process of {count} process objects is inferred from the headers of records that their own threads wrote.",
    effect="The process of their sockets is very likely right, but neither a create nor a kernel event confirms it.",
    advice="Record a kernel session with process events too, or start recording before the program.",
    one="The process of 1 process object is inferred from the headers of records that its own threads wrote.",
)
UNKNOWN_OWNERS = ProblemKind(
    "unknown_owners",
    Severity.LIMIT,
    "{count} sockets belong to a process object that no record ties to a process.",
    effect="They are shown under the address of the process object. Header process ids of their records are not to be trusted.",
    advice="Record a kernel session with process events too: its rundown names every process.",
    one="1 socket belongs to a process object that no record ties to a process.",
)
CONTRADICTED_OWNERS = ProblemKind(
    "contradicted_owners",
    Severity.NOTE,
    "{count} records name another process than the one that owns their socket.",
    effect="The owner stands. Handles may be inherited or duplicated, and then another process uses the socket rightly.",
    advice="The operation's page shows the process id of its header beside the owner.",
    one="1 record names another process than the one that owns its socket.",
)
UNMATCHED_COMPLETIONS = ProblemKind(
    "unmatched_completions",
    Severity.LIMIT,
    "{count} completions have no post in the trace.",
    effect="These operations have an unknown start: their bytes count, but not their duration, and they are the first of no overlap.",
    advice="Start recording before the program, record level 5 for the older events, and check for lost events.",
    one="1 completion has no post in the trace.",
)
SOCKETS_WITHOUT_CREATE = ProblemKind(
    "sockets_without_create",
    Severity.NOTE,
    "{count} sockets have no create event: they are older than the trace, or their create was lost.",
    effect="Their start is unknown, and creates minus closes is not the number of open sockets.",
    advice="Start recording before the program.",
    one="1 socket has no create event: it is older than the trace, or its create was lost.",
)
SOCKETS_SUPERSEDED = ProblemKind(
    "sockets_superseded",
    Severity.LIMIT,
    "{count} sockets ended without a close: their address was used again by another socket.",
    effect="When they were closed is unknown; operations in flight then have an unknown end.",
    advice="Close events were lost or filtered out: check for lost events, and record without a filter of event ids.",
    one="1 socket ended without a close: its address was used again by another socket.",
)
OVERLAPS_CAPPED = ProblemKind(
    "overlaps_capped",
    Severity.LIMIT,
    "{count} overlaps of buffers were counted but not stored.",
    effect="The list of overlaps has the first ones of each process only.",
    advice="Look at the stored ones first: they usually have one cause.",
    one="1 overlap of buffers was counted but not stored.",
)
ABSENT_SOCKET_EVENTS = ProblemKind(
    "absent_socket_events",
    Severity.LIMIT,
    "Socket events that the trace does not have, by id: {ids}. Not recorded: {missing}.",
    effect="That something never happened cannot be told from such a trace.",
    advice="Record without a filter of event ids: keyword 0x8000000000000000, level 5.",
)

_MODERN = 1000
_USES = (
    ((1002,), "the moment when the last handle is closed"),
    ((1006, 1012), "posts of datagram receives"),
    ((1033,), "dropped datagrams"),
    ((1035,), "socket options"),
    ((1037,), "the backlogs that listeners ask for"),
    ((1026, 1023), "posted and failed accepts"),
    ((1017, 1020), "the results of connects"),
    ((3003, 3004), "arriving and unread data"),
    ((3006,), "disconnects by the peer"),
    ((3001,), "connection requests at listeners"),
)


class SocketCounts:
    """What must be counted over all sockets, one by one."""

    def __init__(self, owners: Owners) -> None:
        self._unknown = {owner.n for owner in owners.all if owner.process_n is None}
        self.without_owner = 0
        self.without_create = 0

    def add(self, socket: Socket) -> None:
        """One socket."""
        self.without_owner += socket.owner.n in self._unknown
        self.without_create += not socket.create_seen and socket.endpoint != 0


def socket_problems(
    count: SocketCounts, owners: Owners, operations: Operations, endpoints: Endpoints, overlaps: Overlaps, ids: Mapping[int, int]
) -> list[Problem]:
    """The problems of one trace, once all is known.

    Args:
        ids: how many records of each event id were met.
    """
    counts = (
        (UNKNOWN_OWNERS, count.without_owner),
        (INFERRED_OWNERS, sum(1 for o in owners.all if o.pid_source in ("location", "header"))),
        (CONTRADICTED_OWNERS, sum(o.contradictions for o in owners.all)),
        (SOCKETS_WITHOUT_CREATE, count.without_create),
        (SOCKETS_SUPERSEDED, endpoints.superseded),
        (OVERLAPS_CAPPED, sum(overlaps.uncounted.values())),
    )
    problems = [Problem(kind, number) for kind, number in counts if number]
    if operations.unmatched:
        problems.append(Problem(UNMATCHED_COMPLETIONS, operations.unmatched, operations.first_unmatched, operations.last_unmatched))
    return problems + _absent(ids)


def _absent(ids: Mapping[int, int]) -> list[Problem]:
    """Modern events that a whole trace lacks although it has socket calls (winsock-semantics 11.5)."""
    if not any(i >= _MODERN for i in ids):
        return []
    absent = [(group, what) for group, what in _USES if not any(i in ids for i in group)]
    if not absent:
        return []
    numbers = sorted(i for group, _ in absent for i in group)
    details: dict[str, object] = {"ids": ", ".join(map(str, numbers)), "missing": "; ".join(what for _, what in absent)}
    return [Problem(ABSENT_SOCKET_EVENTS, len(numbers), details=details)]

"""What the trace says about one socket, in plain words: each claim with how sure it is and where it is seen."""

from collections.abc import Sequence
from dataclasses import dataclass

from app import format as fmt
from app.queries.names import NameRow
from app.queries.socket_page import Phase, SocketHead
from app.queries.socket_tables import AbortRow, LastOperation, Listened, OpenOperations
from app.queries.transport import StackEvent, StackSaid
from collector.afdcodes import ABORT_REASONS

SOON_NS = 1_000_000_000
"""How near to an abort the network stack's own record of the end lies."""

__all__ = ["Claim", "Evidence", "Known", "as_text", "claims", "ending", "name_of", "sentence_of"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a claim is seen: a moment of the socket's timeline, an operation of it, or another page below /t/KEY/."""

    text: str
    moment_ns: int | None = None
    operation: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence. `certainty` is `certain` or `possible`; `side` names who ended the connection where the claim is about that."""

    about: str
    text: str
    certainty: str = "certain"
    side: str | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def short(self) -> str:
        """The claim without what explains it: its first sentence."""
        first, stop, _ = self.text.partition(". ")
        return first + "." if stop else first


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that the claims about a socket are drawn from."""

    head: SocketHead
    phases: tuple[Phase, ...]
    aborts: tuple[AbortRow, ...]
    open_operations: OpenOperations
    last_failure: LastOperation | None
    disconnect_ns: int | None
    indications_traced: bool
    overlaps: int
    freed: int
    peers: int
    dropped: int = 0
    listened: Listened | None = None
    stack: StackSaid | None = None
    names: tuple[NameRow, ...] = ()


def name_of(head: SocketHead) -> str:
    """What people call a socket: its program and its addresses."""
    who = "unknown process" if head.process is None else head.process.image or f"process {head.process.pid or head.process.link}"
    if head.listener:
        return f"{who} listening on {head.local or 'an unknown address'}"
    if head.remote:
        return f"{who} → {head.remote}"
    return f"{who} on {head.local}" if head.local else f"{who}, socket {head.endpoint}"


def sentence_of(known: Known) -> str:
    """One sentence about a socket: kind, life, traffic, end."""
    head = known.head
    moved = f"sent {fmt.bytes_text(head.bytes_sent)} and received {fmt.bytes_text(head.bytes_received)}"
    lasted = _lasted(head)
    life = f"lived {lasted}" if lasted else f"was seen for {fmt.duration(head.until_ns - head.first_ns)}"
    did = _traffic(known).text.removeprefix("It ").rstrip(".").partition(";")[0] if known.listened is not None else moved
    return f"This {_kind(head)} {life}, {did}. {ending(known).short}"


def claims(known: Known) -> list[Claim]:
    """All that can be said, in the order of a life."""
    found = [_identity(known), _origin(known), _traffic(known)]
    found += _dropped(known)
    found += _memory(known)
    found += _failures(known)
    found += _retransmitted(known)
    found.append(ending(known))
    found += _stack_end(known)
    found += _unfinished(known)
    return found


def as_text(said: Sequence[Claim]) -> str:
    """The claims as one paragraph for a ticket; what is not certain says so."""
    return " ".join(claim.text if claim.certainty == "certain" else f"{claim.text} (possible, not certain)" for claim in said)


def _kind(head: SocketHead) -> str:
    kind = head.protocol or {"stream": "stream", "dgram": "datagram"}.get(head.type or "", "")
    noun = "listener" if head.listener else "socket"
    return f"{kind} {noun}".strip()


def _lasted(head: SocketHead) -> str | None:
    """How long a socket was open, when both ends are known."""
    if not head.create_seen or head.created_ns is None or head.closed_ns is None:
        return None
    return fmt.duration(head.closed_ns - head.created_ns)


def _identity(known: Known) -> Claim:
    head = known.head
    if head.process is None:
        owner = (
            f"a process that the trace does not name (process object {head.eprocess})"
            if head.eprocess is not None
            else "an unknown process"
        )
        return Claim("owner", f"This {_kind(head)} at endpoint {head.endpoint} belongs to {owner}.")
    name = head.process.image or "a process"
    number = f" (process id {head.process.pid})" if head.process.pid is not None else ""
    possible = head.pid_source in ("location", "header")
    doubt = f"; {fmt.plural(head.contradictions, 'record')} named another process id" if head.contradictions else ""
    return Claim(
        "owner",
        f"This {_kind(head)} at endpoint {head.endpoint} belongs to {name}{number}{doubt}.",
        "possible" if possible else "certain",
        evidence=(Evidence("process", link=f"processes/{head.process.link}"),),
    )


def _origin(known: Known) -> Claim:
    head = known.head
    made = (
        f"It was created at {fmt.time(head.created_ns)}"
        if head.create_seen and head.created_ns is not None
        else f"It is older than its first record at {fmt.time(head.first_ns)}; its creation is not in the trace"
    )
    seen = [Evidence("creation" if head.create_seen else "first record", moment_ns=head.first_ns)]
    connected = next((phase.from_ns for phase in known.phases if phase.name == "connected"), None)
    at = f" at {fmt.time(connected)}" if connected is not None else ""
    if head.listener:
        how = f" and listened on {head.local or 'an unknown address'}"
    elif head.accepted_from is not None:
        how = f" and was accepted{at} from {head.remote or 'an unknown peer'}"
        seen.append(Evidence("listener", link=f"sockets/{head.accepted_from}"))
    elif head.connections:
        how = f" and was connected{at}{f' from {head.local}' if head.local else ''} to {head.remote or 'an unknown peer'}"
        if head.connections > 1:
            how += f", the last of {fmt.plural(head.connections, 'connection')}"
    elif head.is_datagram:
        how = f"{f' on {head.local}' if head.local else ''}" + (
            f" and talked with {fmt.plural(known.peers, 'peer')}" if known.peers else ""
        )
    else:
        how = f" on {head.local}" if head.local else " and no connection of it was seen"
    if known.names and not head.listener:
        name = known.names[0]
        who = "its process" if name.is_own else "a process"
        how += f"; {who} had asked for {name.name}, and that address was the answer"
    if head.loopback_peer is not None:
        how += "; the other end is on this machine and in this trace"
        seen.append(Evidence("other end", link=f"sockets/{head.loopback_peer}"))
    return Claim("origin", f"{made}{how}.", evidence=tuple(seen))


def _traffic(known: Known) -> Claim:
    head = known.head
    if known.listened is not None:
        return _listened(known, known.listened)
    if not (head.sends or head.receives):
        return Claim("traffic", "No send and no receive of it completed.")
    sent = _moved("sent", head.bytes_sent, head.sends)
    received = _moved("received", head.bytes_received, head.receives)
    return Claim("traffic", f"It {sent} and {received}.")


def _listened(known: Known, did: Listened) -> Claim:
    """A listener moves no data; it accepts."""
    parts = [f"accepted {fmt.plural(did.accepted, 'connection')}"]
    if did.requests:
        parts.insert(0, f"was asked for {fmt.plural(did.requests, 'connection')}")
    if did.failed:
        parts.append(f"failed to accept {fmt.count(did.failed)}")
    text = f"It {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"It {parts[0]}"
    if did.backlog_asked is not None:
        text += f"; it asked for a backlog of {fmt.count(did.backlog_asked)}"
    if did.backlog_reached:
        text += f"; the backlog reached {fmt.count(did.backlog_reached)}"
    if did.longest_wait_ns is not None:
        text += f"; the longest wait for an accept was {fmt.duration(did.longest_wait_ns)}"
    aborted = sum(1 for abort in known.aborts if abort.on_listener)
    if aborted:
        text += f"; {fmt.plural(aborted, 'connection was', 'connections were')} aborted before it had a socket"
    return Claim("traffic", text + ".", evidence=(Evidence("listeners", link=f"listeners?endpoint={known.head.link}"),))


def _dropped(known: Known) -> list[Claim]:
    if not known.dropped:
        return []
    seen = (Evidence("drops", link=f"drops?endpoint={known.head.link}"),)
    return [
        Claim("drops", f"{fmt.plural(known.dropped, 'datagram')} for it {'was' if known.dropped == 1 else 'were'} dropped.", evidence=seen)
    ]


def _moved(verb: str, size: int, operations: int) -> str:
    return f"{verb} {fmt.bytes_text(size)} in {fmt.plural(operations, 'operation')}" if operations else f"{verb} nothing"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number) or fmt.plural(number, "time")


def _memory(known: Known) -> list[Claim]:
    found = []
    if known.overlaps:
        found.append(
            Claim(
                "overlaps",
                f"A buffer was handed to a second operation while a first still used it, {_times(known.overlaps)}.",
                evidence=(Evidence("overlaps", link=f"overlaps?endpoint={known.head.endpoint}"),),
            )
        )
    if known.freed:
        found.append(
            Claim(
                "freed",
                f"Memory that an operation in flight used was freed, moved or handed out again, {_times(known.freed)}.",
                evidence=(Evidence("freed in flight", link=f"in-flight-frees?endpoint={known.head.link}"),),
            )
        )
    return found


def _failures(known: Known) -> list[Claim]:
    head, last = known.head, known.last_failure
    if not head.errors:
        return []
    text = f"{fmt.plural(head.errors, 'operation')} failed"
    if head.last_error is not None:
        text += f"{', the last' if head.errors > 1 else ''} with {fmt.status(head.last_error)}"
    seen: tuple[Evidence, ...] = ()
    if last is not None:
        at = last.completed_ns if last.completed_ns is not None else last.posted_ns
        text += f" in a {last.kind} at {fmt.time(at)}"
        seen = (Evidence(f"the {last.kind}", operation=last.link, moment_ns=at),)
    return [Claim("errors", text + ".", evidence=seen)]


def ending(known: Known) -> Claim:
    """How it ended and which side ended it."""
    head = known.head
    primary = next((abort for abort in known.aborts if abort.is_primary and not abort.on_listener), None)
    if primary is not None:
        return _aborted(known, primary)
    if head.end == "ended_by_exit":
        return Claim("end", "Its process ended while it was open.", side="this program")
    if head.end == "superseded":
        return Claim(
            "end", f"Its endpoint address was used anew at {fmt.time(head.until_ns)}; its own close is not in the trace.", "possible"
        )
    if head.closed_ns is None:
        waits = known.disconnect_ns is not None
        if waits:
            return Claim(
                "end",
                f"The peer finished at {fmt.time(known.disconnect_ns)}, and this socket is still open when the trace ends.",
                side="peer",
                evidence=(Evidence("disconnect", moment_ns=known.disconnect_ns),),
            )
        return Claim("end", "It is still open when the trace ends.")
    closed = Evidence("close", moment_ns=head.closed_ns)
    if known.disconnect_ns is not None and known.disconnect_ns <= head.closed_ns:
        return Claim(
            "end",
            f"The peer ended the connection in good order at {fmt.time(known.disconnect_ns)}; "
            f"the program closed the socket {fmt.duration(head.closed_ns - known.disconnect_ns)} later.",
            side="peer",
            evidence=(Evidence("disconnect", moment_ns=known.disconnect_ns), closed),
        )
    text = f"The program closed it at {fmt.time(head.closed_ns)}; no abort was recorded."
    if head.connections and not known.indications_traced:
        return Claim("end", f"{text} Whether the peer had finished before was not recorded.", "possible", "this program", (closed,))
    return Claim("end", text, side="this program", evidence=(closed,))


def _aborted(known: Known, abort: AbortRow) -> Claim:
    reason = ABORT_REASONS.get(abort.reason)
    name = fmt.words(abort.reason_name) if abort.reason_name else "without a known name"
    sure = "" if abort.reason_certainty == "certain" or not abort.reason_name else "; the name is inferred"
    when = f"at {fmt.time(abort.t_ns)}"
    if abort.initiator == "transport":
        side, text = "peer or network", f"The transport ended the connection {when}"
    else:
        side = "this machine"
        text = f"This machine reset the connection {when}{' while the program closed the socket' if abort.during == 'close' else ''}"
    text += f" (reason {abort.reason}, {name}{sure})."
    if reason is not None:
        text += f" {reason.meaning}"
    if abort.outstanding:
        text += f" {fmt.plural(abort.outstanding, 'operation was', 'operations were')} in flight."
    if abort.unread_bytes:
        text += f" {fmt.bytes_text(abort.unread_bytes)} had arrived and were not read."
    if abort.last_error is not None:
        text += f" The last failure before it was {fmt.status(abort.last_error)}."
    side = _narrowed(known, abort) or side
    seen = [Evidence("abort", moment_ns=abort.t_ns), Evidence("around this moment", link=f"around/{abort.t_ns}")]
    stack = abort.stack or (known.head.close_stack if abort.during == "close" else None)
    if stack is not None:
        seen.append(Evidence("who did it", link=f"stacks/{stack}"))
    return Claim("end", text, "certain", side, tuple(seen))  # that it was aborted is a record; what is inferred says so


def _retransmitted(known: Known) -> list[Claim]:
    said = known.stack
    if said is None or not said.retransmits or said.last_retransmit_ns is None:
        return []
    text = f"The network stack sent data of it again {_times(said.retransmits)}, the last time at {fmt.time(said.last_retransmit_ns)}."
    seen = (Evidence("last retransmit", moment_ns=said.last_retransmit_ns),)
    return [Claim("retransmits", text, "certain" if said.is_sure else "possible", evidence=seen)]


def _deciding(said: StackSaid) -> tuple[StackEvent, str, str] | None:
    """What the network stack says first of how the connection ended: the event, in words, and the side."""
    told = (
        (said.reset, "received a reset of this connection from the peer, or from something on the way that answers for it", "peer"),
        (said.gave_up, "gave up on this connection", "network"),
        (said.own_abort, "was asked on this machine to abort this connection", "this machine"),
    )
    found = [(event, words, side) for event, words, side in told if event is not None]
    return min(found, key=lambda one: one[0].t_ns, default=None)


def _stack_end(known: Known) -> list[Claim]:
    """How the connection ended as the network stack tells it, beside what Winsock says."""
    deciding = None if known.stack is None else _deciding(known.stack)
    if known.stack is None or deciding is None:
        return []
    event, words, side = deciding
    how = f" ({event.deed})" if side == "network" else ""
    text = f"The network stack {words}{how} at {fmt.time(event.t_ns)} ({event.source} {event.event_id})."
    return [Claim("network", text, "certain" if known.stack.is_sure else "possible", side, (Evidence("record", moment_ns=event.t_ns),))]


def _narrowed(known: Known, abort: AbortRow) -> str | None:
    """The side of an abort that the transport gave, where the stack surely tells the peer from the network at that time."""
    deciding = None if known.stack is None else _deciding(known.stack)
    if known.stack is None or deciding is None or abort.initiator != "transport" or not known.stack.is_sure:
        return None
    event, _, side = deciding
    return side if side != "this machine" and abs(event.t_ns - abort.t_ns) <= SOON_NS else None


def _unfinished(known: Known) -> list[Claim]:
    left = known.open_operations
    groups = ((left.receives, "receive"), (left.sends, "send"), (left.others, "connect or accept"))
    parts = [fmt.plural(count, noun) for count, noun in groups if count]
    if not parts:
        return []
    many = left.receives + left.sends + left.others
    since = f", the oldest since {fmt.time(left.oldest_ns)}" if left.oldest_ns is not None else ""
    open_now = "in_flight" in left.outcomes
    ends = "was" if many == 1 else "were"
    text = f"{' and '.join(parts)} {ends} {'in flight when the trace ends' if open_now else 'never completed'}{since}."
    return [
        Claim(
            "unfinished",
            text,
            "certain" if open_now else "possible",
            evidence=(
                Evidence(
                    "these operations",
                    link=f"operations?endpoint={known.head.link}&outcome=in_flight,unknown_end,ended_with_socket,ended_by_exit",
                ),
            ),
        )
    ]

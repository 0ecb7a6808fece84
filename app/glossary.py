"""What the words on the pages mean: one glossary for the hover texts and the help page."""

__all__ = ["TERMS", "term"]

TERMS = {
    "abort": "The connection was torn down at once instead of being closed in order; the other side sees a reset.",
    "abort reason": "The number that the driver gives for an abort. Its name is marked: confirmed by a record elsewhere, or a reading.",
    "allocation": "A piece of heap memory, from its allocation (or reallocation) to its free.",
    "backlog": "The connections that wait to be accepted; the program says in its listen how many may.",
    "buffer": "The address of the memory that the program handed over: user memory when the driver logged it, else the kernel's own.",
    "bytes": "Bytes that the operation moved: of failed operations none count.",
    "cancelled": "The program (or the end of its thread) took the request back before it was done.",
    "certain": "The records say so themselves.",
    "certainty": "certain: the records say so themselves. possible: they allow it, but do not prove it.",
    "cleanup": "The program has closed its last handle to the socket, and what is in flight ends. The close takes the endpoint away.",
    "committed": "Memory behind which there is something: what the allocator took from the system for this heap.",
    "completed": "The moment at which the driver reported that an operation was over.",
    "drop": "A datagram that arrived and was thrown away before the program could read it.",
    "dynamic ports": "Ports that Windows hands out by itself, for connections that ask for none.",
    "end": "How the life of the socket ended in this trace; open at end: it was never closed while the trace ran.",
    "endpoint": "The kernel's object behind a socket. Its address is used again later: a socket is an address and a time.",
    "fast path": "The driver served the call on the caller's own thread, and logged the address of the program's own memory.",
    "finding": "Something that the program did and that is worth a look.",
    "first seen": "When the socket was made; where that was not recorded, its first record.",
    "free space": "Committed memory of a heap that no block uses, as the allocator reports it.",
    "generation": "How often this address of this heap has been handed out: 1 is the first block there in this trace.",
    "header process": "The process that was running when the record was written. For completions it is often not the owner.",
    "held": "Allocated in this trace and not freed by then. Held is not leaked: caches hold on purpose.",
    "in flight": "From posted to completed: the driver may use the buffer all that time.",
    "indication": "The transport's word that something arrived: a connection, data, a disconnect.",
    "latency": "From posted to completed.",
    "listener": "A socket that waits for connections.",
    "location": "A number that says which place in the driver wrote the record. It differs between builds of Windows.",
    "operation": "A request on a socket: connect, accept, or one of the sends and receives, from posted to completed.",
    "origin": "What made the block: an allocation, or a reallocation of another one.",
    "outcome": "How an operation ended; in flight: it had not ended when the trace did.",
    "overlap": "Memory handed to a second operation while the first was still using it.",
    "owner": "The process that owns the socket, by the process object that the record names, not by the process that happened to run.",
    "pause": "The driver stopped taking connections for this listener for a while.",
    "possible": "The records allow it, but do not prove it.",
    "posted": "The moment at which the program handed an operation to the driver.",
    "primary": "The first abort of a connection: its cause. Later ones follow from it.",
    "problem": "A way in which the data of this trace is limited.",
    "process": "One life of a process id. Windows uses ids again; the time in the link tells them apart.",
    "quiet": "The time since the last transfer before it; a long one points to an idle connection.",
    "ranges": "How the two buffers lie: exact, one contained in the other, or partial.",
    "rejected": "The driver refused the operation when it was posted.",
    "reserved": "Addresses that the heap keeps for itself, with or without memory behind them.",
    "scope": "Whether both operations are of one socket or of two.",
    "socket": "One life of an endpoint, from its making to its end.",
    "space": "Whose memory the buffer address is: the program's (user) or the kernel's.",
    "stack": "The chain of calls that led to the event; its link is a hash of its frames.",
    "status": "What the driver answered, as an NTSTATUS; where Winsock has a name for it, that is shown too.",
    "timeout": "As the record has it: its unit is not documented. Negative numbers are times from now.",
    "unread": "Bytes that had arrived and that the program never read.",
    "while": "What the socket was doing: running, or in its close.",
    "would block": "The answer of a non-blocking call that has nothing to do yet. It is no error, and is not counted as one.",
}
"""Terms in alphabetical order with their meaning."""


def term(name: str) -> str:
    """The meaning of a term. Raises KeyError for one that the glossary does not have."""
    return TERMS[name]

"""What each page needs in a trace, and the command that records it."""

from dataclasses import dataclass

from collector.recording import HEAP_LINES, OWN_HEAP, OWN_SOCKETS, PROCESS_LINES, SOCKET_LINES

__all__ = ["ALL_SOCKETS", "AREAS", "HEAP", "KERNEL", "Area", "Command"]

AFD = "e53c6823-7bb8-44bb-90dc-3f86090d48a6"
HEAP_PROVIDER = "222962ab-6180-4b88-a825-346b75f2a24a"
PROCESS = "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"
IMAGE = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"
STACK = "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"


@dataclass(frozen=True, slots=True)
class Command:
    """How to record: the lines to type in an elevated prompt, in order; `own` does it where sockscope is on that machine."""

    title: str
    lines: tuple[str, ...]
    own: str


ALL_SOCKETS = Command("Record everything that the Winsock provider says", SOCKET_LINES, OWN_SOCKETS)
HEAP = Command("Record the heap of one process, with call stacks and modules", HEAP_LINES, OWN_HEAP)
KERNEL = Command("Record process names, threads and modules beside the rest", PROCESS_LINES, OWN_SOCKETS)


@dataclass(frozen=True, slots=True)
class Area:
    """A kind of records: any one of `ids` (event ids of a manifest provider, opcodes of a classic one) shows that it was recorded.

    No ids: any record of the provider does. `what` names the records in a sentence, `where` how a session comes to leave them out.
    """

    name: str
    what: str
    provider: str
    ids: tuple[int, ...]
    where: str
    command: Command


_LEVEL = "they come at level 5 with all keywords, the newer ones with 0x4; network profiles that keep only some ids leave them out"
_TRANSPORT = "they come with keyword 0x8 (transport); a session with keyword 0x4 alone leaves them out"

AREAS = {
    area.name: area
    for area in (
        Area("sockets", "records of the Winsock provider", AFD, (), "the provider was not enabled", ALL_SOCKETS),
        Area("creates", "records of sockets being made (ids 1, 1000)", AFD, (1, 1000), _LEVEL, ALL_SOCKETS),
        Area("closes", "records of sockets being closed (ids 13, 14, 1001, 1002)", AFD, (13, 14, 1001, 1002), _LEVEL, ALL_SOCKETS),
        Area(
            "transfers",
            "records of sends and receives (ids 18 to 28, 1003 to 1015)",
            AFD,
            (*range(18, 29), *range(1003, 1016)),
            "at level 4 the older ones are left out, with keyword 0x8 alone the newer ones",
            ALL_SOCKETS,
        ),
        Area(
            "datagrams",
            "records of datagrams (ids 20 to 22, 25 to 28, 1005 to 1015)",
            AFD,
            (20, 21, 22, 25, 26, 27, 28, *range(1005, 1016)),
            _LEVEL,
            ALL_SOCKETS,
        ),
        Area("connects", "records of connects (ids 4 to 6, 1017 to 1021)", AFD, (4, 5, 6, 1017, 1018, 1020, 1021), _LEVEL, ALL_SOCKETS),
        Area("binds", "records of binds (ids 2, 3, 40, 1029, 1030)", AFD, (2, 3, 40, 1029, 1030), _LEVEL, ALL_SOCKETS),
        Area("aborts", "records of aborts (ids 7, 8, 1032)", AFD, (7, 8, 1032), _LEVEL, ALL_SOCKETS),
        Area("listens", "records of listen calls (id 1037)", AFD, (1037,), _LEVEL, ALL_SOCKETS),
        Area(
            "accepts",
            "records of accepts (ids 15 to 17, 1023, 1024, 1026, 1027, 1036)",
            AFD,
            (15, 16, 17, 1023, 1024, 1026, 1027, 1036),
            _LEVEL,
            ALL_SOCKETS,
        ),
        Area("connect_indications", "records of arriving connections (ids 35, 36, 3001)", AFD, (35, 36, 3001), _TRANSPORT, ALL_SOCKETS),
        Area(
            "data_indications",
            "records of arriving data (ids 37 to 39, 3003, 3004)",
            AFD,
            (37, 38, 39, 3003, 3004),
            _TRANSPORT,
            ALL_SOCKETS,
        ),
        Area("disconnects", "records of the peer's disconnects (ids 41, 3006)", AFD, (41, 3006), _TRANSPORT, ALL_SOCKETS),
        Area("backlogs", "records of the send backlog (id 3007)", AFD, (3007,), _TRANSPORT, ALL_SOCKETS),
        Area("drops", "records of dropped datagrams (ids 33, 34, 1033)", AFD, (33, 34, 1033), _LEVEL, ALL_SOCKETS),
        Area("options", "records of socket options (ids 29, 1035)", AFD, (29, 1035), _LEVEL, ALL_SOCKETS),
        Area(
            "polls",
            "records of polls (ids 30, 31)",
            AFD,
            (30, 31),
            "only the older generation of the provider writes them, at level 5",
            ALL_SOCKETS,
        ),
        Area("heap", "records of heap blocks (alloc, realloc, free)", HEAP_PROVIDER, (0x21, 0x22, 0x24), "a heap session is needed", HEAP),
        Area(
            "heap_sizes",
            "records of heap growth (expand, contract, snapshot)",
            HEAP_PROVIDER,
            (0x25, 0x26, 0x2A, 0x33, 0x34),
            "a heap session is needed",
            HEAP,
        ),
        Area("stacks", "call stacks", STACK, (), "the session was started without -stackwalk", HEAP),
        Area("processes", "records of processes", PROCESS, (), "a kernel session beside the others gives names and ids", KERNEL),
        Area("modules", "records of loaded modules", IMAGE, (), "a kernel session beside the others gives them", KERNEL),
    )
}
"""All areas by name."""

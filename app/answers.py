"""The questions that a trace can answer: the page of each, and the records without which it stays empty."""

from dataclasses import dataclass

__all__ = ["ANSWERS", "Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One question. `link` is a path below /t/KEY/; `needs` are areas of records that must be there, `helps` those that add to it."""

    code: str
    question: str
    link: str
    needs: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


ANSWERS = (
    Answer("Q01", "Why did a connection end, and which side ended it?", "aborts", ("aborts",), ("disconnects", "closes", "transfers")),
    Answer("Q02", "Which call stacks hold the memory?", "stacks", ("heap", "stacks"), ("modules",)),
    Answer("Q03", "Can this data be trusted?", "trust"),
    Answer(
        "Q04",
        "Which operations never completed, or completed after the close?",
        "operations?outcome=in_flight,unknown_end,ended_with_socket,ended_by_exit",
        ("transfers",),
        ("closes",),
    ),
    Answer("Q05", "Which sockets were opened and never closed?", "sockets?state=open_at_end", ("creates", "closes"), ("disconnects",)),
    Answer(
        "Q06",
        "What was unread or in flight when the program closed?",
        "aborts?during=close",
        ("transfers", "closes"),
        ("data_indications",),
    ),
    Answer(
        "Q08", "What happened on one socket, from start to end?", "sockets", ("sockets",), ("data_indications", "disconnects", "options")
    ),
    Answer("Q09", "Who uses up the ports, and how fast?", "ports", ("creates", "connects"), ("binds", "closes")),
    Answer("Q10", "Is one buffer used by two operations at once?", "overlaps", ("transfers",)),
    Answer("Q11", "Was a buffer freed while an operation still used it?", "in-flight-frees", ("transfers", "heap"), ("stacks",)),
    Answer("Q12", "Why is sending slow?", "sends", ("transfers",), ("backlogs", "options")),
    Answer("Q13", "Does the listener keep up?", "listeners", ("listens", "accepts"), ("connect_indications",)),
    Answer("Q14", "What is in this file?", "trust#inventory"),
    Answer(
        "Q15",
        "Why does a datagram socket report a reset?",
        "operations?kind=recv,recvfrom,recvmsg&status=0xc000020d",
        ("datagrams",),
        ("options",),
    ),
    Answer("Q16", "Do small sends wait for acknowledgements?", "stalls", ("transfers",)),
    Answer("Q17", "How do both ends of a local connection fit together?", "sockets?loopback=yes", ("connects", "accepts"), ("binds",)),
    Answer("Q18", "Which process owns a socket or an operation?", "operations?foreign=yes", ("sockets",), ("processes", "creates")),
    Answer("Q21", "Which datagrams were dropped, and why?", "drops", ("drops",), ("options",)),
    Answer(
        "Q22",
        "Which receives were too small for their datagram?",
        "too-small-receives",
        ("datagrams",),
        ("data_indications",),
    ),
    Answer("Q23", "Does the same error repeat?", "errors", ("transfers",)),
    Answer("Q24", "How does each heap grow?", "heap", ("heap",)),
    Answer("Q25", "Is it a leak, or fragmentation?", "heap", ("heap", "heap_sizes"), ("stacks",)),
)
"""In the order of their codes."""

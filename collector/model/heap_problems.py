"""What limits the answers about heaps: kinds of problems, and the anomalies that are problems and not findings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from collector.errors import Problem, ProblemKind, Severity

__all__ = ["HEAP_PROBLEMS", "ProblemTally", "heap_problems"]

HEAP_PROBLEMS: Mapping[str, ProblemKind] = {
    kind.name: kind
    for kind in (
        ProblemKind(
            "heap_process_unknown",
            Severity.LIMIT,
            "{count} heap records do not say which process they belong to.",
            "Their blocks are not shown.",
            "Record the heap with a session of its own (see the page on recording): its records carry their process.",
            one="1 heap record does not say which process it belongs to.",
        ),
        ProblemKind(
            "heap_size_impossible",
            Severity.DAMAGE,
            "{count} heap records ask for more bytes than an address space has.",
            "They open no block, and their frees look like frees of unknown blocks.",
            "The records are damaged: collect the trace again.",
            one="1 heap record asks for more bytes than an address space has.",
        ),
        ProblemKind(
            "free_unknown",
            Severity.NOTE,
            "{count} frees are of blocks that were allocated before the trace began.",
            "Live bytes are a change since the trace began, not all that the process holds.",
            "To see every block, trace the program from its start: in the commands for the heap, -PidNewProcess PROGRAM in place of -Pids.",
            one="1 free is of a block that was allocated before the trace began.",
        ),
        ProblemKind(
            "free_unmatched_after_loss",
            Severity.DATA_LOSS,
            "{count} frees have no block, and records were lost before them.",
            "The allocations of these blocks were lost; live bytes were too low until then.",
            "Record again with larger or more buffers.",
            one="1 free has no block, and records were lost before it.",
        ),
        ProblemKind(
            "implicit_free",
            Severity.DATA_LOSS,
            "{count} addresses were handed out while their last block still lived: the free of that block is not in the trace.",
            "Such a block ends where its address was handed out again, later than in truth; live bytes were too high until then.",
            "Record again with larger or more buffers.",
            one="1 address was handed out while its last block still lived: the free of that block is not in the trace.",
        ),
        ProblemKind(
            "implicit_destroy",
            Severity.DATA_LOSS,
            "{count} heaps were created while blocks of an earlier heap with that handle still lived: no destruction of that one is there.",
            "These blocks end where the heap was created again, later than in truth.",
            "Record again with larger or more buffers.",
            one="1 heap was created while blocks of an earlier heap with that handle still lived: no destruction of that one is there.",
        ),
        ProblemKind(
            "size_mismatch",
            Severity.DATA_LOSS,
            "{count} reallocations tell another old size than was known: a record before them is not in the trace.",
            "The block had another size for a while; the new size is right.",
            "Record again with larger or more buffers.",
            one="1 reallocation tells another old size than was known: a record before it is not in the trace.",
        ),
        ProblemKind(
            "realloc_unknown_old",
            Severity.NOTE,
            "{count} reallocations moved a block that the trace does not know.",
            "The new block is shown without the one that it came from.",
            "Blocks from before the trace are unknown; nothing to do unless records were lost.",
            one="1 reallocation moved a block that the trace does not know.",
        ),
    )
}


@dataclass(slots=True)
class ProblemTally:
    """How often one kind of problem was met, and when (raw ticks)."""

    count: int = 0
    first_ticks: int | None = None
    last_ticks: int | None = None

    def add(self, count: int, first_ticks: int, last_ticks: int) -> None:
        self.count += count
        self.first_ticks = first_ticks if self.first_ticks is None else min(self.first_ticks, first_ticks)
        self.last_ticks = last_ticks if self.last_ticks is None else max(self.last_ticks, last_ticks)


def heap_problems(tallies: Mapping[str, ProblemTally], *, has_losses: bool) -> list[Problem]:
    """Problems for the tallies that are problems; anomalies of the program are findings, and left out.

    A record that is missing where the trace says that nothing was lost is no loss of data, but a limit: why it is missing is unknown.
    """
    return [
        Problem(_kind(name, has_losses=has_losses), tally.count, tally.first_ticks, tally.last_ticks)
        for name, tally in tallies.items()
        if tally.count and name in HEAP_PROBLEMS
    ]


def _kind(name: str, *, has_losses: bool) -> ProblemKind:
    kind = HEAP_PROBLEMS[name]
    if kind.severity is Severity.DATA_LOSS and not has_losses:
        return replace(kind, severity=Severity.LIMIT, advice="The trace counts no lost record, so why it is missing is unknown.")
    return kind

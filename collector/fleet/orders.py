"""What a worker of a cluster is asked to collect, what it answers, and the function that runs there.

The scheduler reads orders, too, so this module needs nothing that takes long to load; `there` does the work.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.limits import Limits

if TYPE_CHECKING:
    from collector.collecting import Outcome

__all__ = ["Answer", "Order", "carry_out", "is_here", "version_here"]


@dataclass(frozen=True, slots=True)
class Order:
    """One file that one worker shall collect. Paths are absolute, and the same on each machine."""

    number: int
    run: str
    """Names the command that all orders of one run are of: its messages, and what tells the workers to stop."""
    version: str
    """Of the program that gave the order."""
    word: str
    """The file as the user named it."""
    file: str
    database: str = field(repr=False)
    """A folder or an address, which may have a password in it: logs do not show it."""
    mark: str | None
    """A lock that whoever gave the order holds in the database; a worker that does not see it sees another one."""
    keep: bool = False
    name: str | None = None
    symbols: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    most_unpacked: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of the traces of one file. Errors are values here: none is raised through the cluster."""

    outcomes: "tuple[Outcome, ...]"
    """None at all where the worker was told to stop before it began."""
    notes: tuple[str, ...] = ()
    """What the user should know of the input, and what is no fault."""


def carry_out(order: Order) -> Answer:
    """Collect a file; called by a worker, in a thread of its own."""
    from collector.fleet.there import collected

    return collected(order)


def version_here() -> str:
    """The version of this program where this is called."""
    from collector.stages import program_version

    return program_version()


def is_here() -> bool:
    """Whether this program is installed where this is called, which without it nobody can."""
    return True

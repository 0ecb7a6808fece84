"""The errors that stop an import, and the problems that do not.

TraceError                      anything that is wrong with an input or with our storage
├── SourceError                 the bytes cannot be had: no such file, a directory, a read error
├── FormatError                 the bytes are not a trace that we read
│   ├── EmptyTrace              a file of no bytes, or a header without a single event
│   ├── NotAnEtl                the first bytes are not an ETW buffer
│   ├── PackageError            a package cannot be unpacked, or holds no trace
│   └── NotTogether             files that were to become one trace are not of one recording
├── NothingLeft                 what the user wants stored of a trace is not in it
├── CollectCancelled            the user asked to stop
├── SendError                   another machine's dashboard does not take a file
├── FleetError                  workers of a cluster cannot be had, or are lost
├── SymbolsError                symbol files cannot be looked at: no such folder, no library
└── StoreError                  the database cannot be read or written
    ├── NotAFolder              what is named as the folder of the traces is none
    ├── NotAServer              what is named as the address of a server is none
    ├── StoreReadOnly           the database may be read but not written
    ├── AlreadyCollected        the trace is there and was not to be replaced
    ├── StoreDamaged            a file of it is no database, or a damaged one
    ├── StoreLocked             another process writes this trace
    ├── StoreUnreachable        the server that holds the database does not answer, or lets nobody in
    ├── StoreFull               no space is left
    ├── StoreSlow               a question ran into its time limit
    ├── StoreTooNew             made by a newer version of this program
    └── StoreTooOld             made by an older version, and migrating it is not allowed here
"""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "AlreadyCollected",
    "CollectCancelled",
    "EmptyTrace",
    "FleetError",
    "FormatError",
    "NotAFolder",
    "NotAServer",
    "NotAnEtl",
    "NotTogether",
    "NothingLeft",
    "PackageError",
    "Problem",
    "ProblemKind",
    "RecordError",
    "SendError",
    "Severity",
    "SourceError",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreReadOnly",
    "StoreSlow",
    "StoreTooNew",
    "StoreTooOld",
    "StoreUnreachable",
    "StoreWaited",
    "SymbolsError",
    "TraceError",
]


class TraceError(Exception):
    """Base of all errors that a user's input or storage can cause; `str(error)` is the message for the user."""


class SourceError(TraceError):
    """The bytes of a trace cannot be had."""


class FormatError(TraceError):
    """The bytes are not a trace; `offset` is the byte where that was seen, or None."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class EmptyTrace(FormatError):
    """There is nothing to read."""


class NotAnEtl(FormatError):
    """The first bytes are not an ETW buffer."""


class PackageError(FormatError):
    """A package cannot be unpacked, or holds no trace."""


class NotTogether(FormatError):
    """Files that were to become one trace are not of one recording; the message has the numbers that tell."""


class NothingLeft(TraceError):
    """The limits leave nothing of a trace."""


class CollectCancelled(TraceError):
    """The user asked to stop; nothing was stored."""


class RecordError(TraceError):
    """A recording cannot be begun, go on or end; `call` and `code` are what Windows returned from which function, where it was asked."""

    def __init__(self, message: str, *, call: str = "", code: int | None = None) -> None:
        super().__init__(message)
        self.call = call
        self.code = code


class SendError(TraceError):
    """Another machine's dashboard does not take a file, or cannot be reached."""


class FleetError(TraceError):
    """Workers of a cluster that shall collect cannot be had, do not fit this program, or are lost."""


class SymbolsError(TraceError):
    """Symbol files cannot be looked at; the traces are not to blame."""


class StoreError(TraceError):
    """The database cannot be read or written."""


class NotAFolder(StoreError):
    """What is named as the folder of the traces is none: the command line is wrong, not the database."""


class NotAServer(StoreError):
    """What is named as the address of a server is none that could ever be connected to: the command line is wrong, not the server."""


class StoreReadOnly(StoreError):
    """The database may be read but not written by this user."""


class AlreadyCollected(StoreError):
    """The trace is there and was not to be replaced; other files can still be collected."""


class StoreDamaged(StoreError):
    """A file of the database is none that SQLite can read; `file` is its path and `reason` SQLite's words."""

    def __init__(self, message: str, *, file: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.file = file
        self.reason = reason


class StoreLocked(StoreError):
    """Another process holds the database."""


class StoreUnreachable(StoreError):
    """The server that holds the database does not answer, ended the connection, or lets this user not in."""


class StoreFull(StoreError):
    """No space is left on the device that holds the database."""


class StoreSlow(StoreError):
    """A question ran into its time limit; a narrower one may be answered."""


class StoreWaited(StoreSlow):
    """A question ran into its time limit and waited most of that time: the machine is busy."""


class StoreTooNew(StoreError):
    """The database was made by a newer version of this program."""


class StoreTooOld(StoreError):
    """The database was made by an older version of this program and may not be changed here."""


class Severity(StrEnum):
    """How much a problem limits the answers, worst first."""

    DATA_LOSS = "data_loss"
    DAMAGE = "damage"
    LIMIT = "limit"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One way in which the data is limited.

    `text` is formatted with `count` and the problem's own details; `one` stands in its place where the count is 1, if it is given.
    """

    name: str
    severity: Severity
    text: str
    effect: str
    advice: str
    one: str = ""


@dataclass(slots=True)
class Problem:
    """A problem of one trace: how often, when, where first.

    Times are raw clock ticks, None where the problem has no time. `place` says where it was seen first, in the words of the
    file (`buffer 17 at byte 1,114,112`). `own_effect` is sentences that say more of what it makes uncertain than its kind does.
    """

    kind: ProblemKind
    count: int = 1
    first_ticks: int | None = None
    last_ticks: int | None = None
    place: str | None = None
    details: dict[str, object] = field(default_factory=dict)
    own_effect: str = ""

    @property
    def effect(self) -> str:
        """What it makes uncertain."""
        return f"{self.own_effect} {self.kind.effect}".lstrip()

    @property
    def text(self) -> str:
        """One sentence for the user."""
        text = self.kind.one if self.count == 1 and self.kind.one else self.kind.text
        return text.format(count=f"{self.count:,}", **self.details)

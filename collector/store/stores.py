"""Where traces are kept, whichever it is: a folder of SQLite files, or a PostgreSQL server."""

import os
import re
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from collector.errors import StoreError
from collector.store.engine import ENVIRONMENT_VARIABLE, QUERY_SECONDS, TraceFolder

__all__ = ["UNFINISHED", "TraceStore", "is_alive", "is_server", "open_store", "settled_state"]

UNFINISHED = ("collecting", "live")
"""States of a trace that a collector works on, and ends."""

_MEANT_AS_ADDRESS = re.compile(
    r"\s*(postgres(ql)?(\+\w+)?(:|/+\w+:)|(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=)", re.IGNORECASE
)
"""A mistyped address, or one in libpq's other way of writing: as a folder it would be made, with a password in its name."""


class TraceStore(Protocol):
    """What a folder of traces and a server have in common. A trace is built as a local file in both, and then placed."""

    limit_seconds: float

    @property
    def address(self) -> Path | str:
        """What `open_store` opens it again by; of a server with the password."""

    @property
    def title(self) -> str:
        """How messages name it; without a password."""

    def check(self, *, must_exist: bool = False) -> None:
        """Look whether traces can be kept there, before anything is read or written. Raises NotAFolder, StoreError."""

    def make(self) -> None:
        """Create it where it is not there yet. Raises StoreError."""

    def has_catalog(self) -> bool:
        """Whether traces were ever stored there."""

    def catalog(self, *, write: bool = False) -> Engine:
        """Connections to the catalog; read-only and with a time limit unless `write`. Raises StoreError, StoreTooNew, StoreTooOld."""

    def trace(self, key: str) -> Engine:
        """Read-only connections with a time limit to one finished trace. Raises StoreTooNew, StoreTooOld.

        Where the trace is not there, this or the first statement raises StoreError.
        """

    def has_trace(self, key: str) -> bool:
        """Whether a finished trace is there."""

    def missing(self, keys: Collection[str]) -> list[str]:
        """Those of some keys that have no finished trace, in their order. Raises StoreError."""

    def trace_keys(self) -> list[str]:
        """Keys of all finished traces, whether or not the catalog knows them."""

    def size_of(self, key: str) -> int:
        """Bytes that a finished trace takes; 0 where there is none."""

    def size_bytes(self) -> int:
        """Bytes that everything takes. Raises StoreError."""

    def version_of(self, key: str) -> str:
        """What tells one state of a finished trace from the next; empty where there is none. Raises StoreError."""

    def files_of(self, key: str) -> tuple[Path, ...]:
        """The files that a page of a trace is made from, the trace's own first; none on a server. Raises StoreError for no key."""

    def whereabouts(self, key: str) -> str:
        """Where a trace would be, for messages."""

    def holds(self, path: Path) -> bool:
        """Whether a file that is written there would be one of its own."""

    def part_path(self, key: str) -> Path:
        """The local file in which a trace is built."""

    def unpacking_place(self) -> Path | None:
        """A local folder with room for what is unpacked; None where the system's is as good."""

    def collecting(self, key: str, busy: str) -> AbstractContextManager[None]:
        """Hold the lock of a trace; the lock ends with its holder, however that ends. Raises StoreLocked with the message `busy`."""

    def hold_still(self, key: str) -> None:
        """Take a lock that is held again where it was lost since, as by a restart of the server. Raises StoreLocked, StoreError."""

    def is_being_collected(self, key: str) -> bool:
        """Whether a living process holds the lock of a trace."""

    def place(self, key: str, should_cancel: Callable[[], bool] | None = None) -> None:
        """Let what is in the local file take the trace's place, in one step. Whoever asks holds its lock. Raises StoreError."""

    def fetched(self, key: str, should_cancel: Callable[[], bool]) -> AbstractContextManager[Path]:
        """The file of a finished trace, to be read within the block and not to be changed. Raises StoreError, CollectCancelled."""

    def remove_trace(self, key: str) -> None:
        """Delete a finished trace. Whoever asks holds its lock. Raises StoreError."""

    def clear_part(self, key: str) -> None:
        """Remove the local file of a trace whose collector died."""

    def clear_locks(self) -> None:
        """Remove what killed processes have left besides."""

    def close(self) -> None:
        """Let go of connections that are kept."""


def is_alive(store: TraceStore, key: str) -> bool:
    """Whether somebody collects or follows a trace now; where nobody can tell, as in a folder that may not be written, it is believed."""
    try:
        return store.is_being_collected(key)
    except StoreError:
        return True


def settled_state(store: TraceStore, key: str, state: str) -> str:
    """The state of an entry as it will be once somebody has settled it: a collector that was killed can say nothing any more."""
    if state not in UNFINISHED or is_alive(store, key):
        return state
    return "complete" if state == "collecting" and store.has_trace(key) else "interrupted"


def is_server(text: str) -> bool:
    """Whether a text is the address of a server, or can only be meant as one, and not the path of a folder."""
    return "://" in text or (_MEANT_AS_ADDRESS.match(text) is not None and not Path(text).exists())


def open_store(place: Path | str | None = None, *, limit_seconds: float = QUERY_SECONDS) -> TraceStore:
    """The folder or the server that a user names, else the one of the environment, else the folder in the user's data.

    Touches neither. Raises StoreError for the address of another kind of server.
    """
    text = str(place) if place is not None else os.environ.get(ENVIRONMENT_VARIABLE, "")
    if is_server(text):
        from collector.store.server import TraceServer

        return TraceServer(text, limit_seconds=limit_seconds)
    return TraceFolder(place, limit_seconds=limit_seconds)

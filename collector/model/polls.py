"""select and WSAPoll: calls of a process without a socket, from entry to return (winsock-semantics 13)."""

from collector.model.afd_table import Event
from collector.model.owners import Owners
from collector.model.row_sink import RowSink

__all__ = ["Polls"]

_POSTED = 30


class Polls:
    """Matches polls by process object and thread. One that another of its thread follows never returned, as far as the trace tells."""

    def __init__(self, sink: RowSink, owners: Owners) -> None:
        self._sink = sink
        self._owners = owners
        self._open: dict[tuple[int, int], tuple[int, Event]] = {}  # (owner number, post) by process object and thread

    def record(self, e: Event) -> None:
        """A poll entered (event 30) or returned (31)."""
        key = (e.process, e.tid)
        owner_n, post = self._open.pop(key, (None, None))
        if e.id == _POSTED:
            if post is not None:
                self._write(owner_n, post, None)
            self._open[key] = (self._owners.of(e).n, e)
        else:
            self._write(owner_n or self._owners.of(e).n, post, e)

    def finish(self) -> None:
        """Write the polls that are still open."""
        for owner_n, post in self._open.values():
            self._write(owner_n, post, None)
        self._open.clear()

    def _write(self, owner_n: int | None, post: Event | None, done: Event | None) -> None:
        row = (
            owner_n,
            post.tid if post is not None else done and done.tid,
            post and post.ns,
            done and done.ns,
            post and post.x,
            post and post.y,
            done and done.status,
        )
        self._sink.add("poll", row)

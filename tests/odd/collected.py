"""A sound trace with one send in each of six buffers, and what became of it after some damage: exit status, problems, operations."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Unpack

import pytest

from app.cli import main
from app.queries.trace import problems as shown_problems
from collector.store.engine import TraceFolder
from tests.build import Trace, afd
from tests.build.trace import SessionValues

__all__ = ["ALL_SENDS", "Outcome", "collected", "six_sends"]

SENDS = 6
_SENDS = "SELECT buffer, bytes, outcome FROM v_operations WHERE kind = 'send' ORDER BY posted_ns, completed_ns"
ALL_SENDS = [(k, 100 * k, "completed") for k in range(1, SENDS + 1)]
"""Number of the buffer in the file, bytes and outcome of each send of `six_sends`."""


def six_sends(*, buffer_size: int = 1024, pointer_size: int = 8, **session: Unpack[SessionValues]) -> Trace:
    """Header buffer, and six buffers: the k-th has a send of 100·k bytes, posted and completed; the first also opens the socket."""
    built = Trace(buffer_size=buffer_size, pointer_size=pointer_size, **session).cpu(0, afd.opened(at_us=10))
    for k in range(1, SENDS + 1):
        built.cpu(0, afd.sent(at_us=1000 * k, length_bytes=100 * k, buffer=0x1000 * k, duration_us=50))
        built.flush(at_us=1000 * k + 100)
    return built


OF_THE_STORY = {"absent_socket_events", "no_transport_indications", "no_process_events", "no_stacks", "no_heap_events"}


@dataclass(frozen=True)
class Outcome:
    """What collecting a file gave."""

    status: int
    said: str
    """Standard error."""
    problems: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Of the trust page, by kind."""
    sends: list[tuple[int, int, str]] = field(default_factory=list)
    """Which buffer each was in, its bytes and outcome; those of six_sends."""
    records: int = 0

    @property
    def kinds(self) -> set[str]:
        """Kinds of the problems that a sound file of this story does not have."""
        return set(self.problems) - OF_THE_STORY


def collected(content: bytes, folder: Path, said: pytest.CaptureFixture[str]) -> Outcome:
    """Run `sockscope collect` on a file of these bytes, then ask for what the trust page shows, and for the operations."""
    path = folder / "odd.etl"
    path.write_bytes(content)
    database = folder / "database"
    status = main(["collect", str(path), "--database", str(database)])
    error = said.readouterr().err
    traces = TraceFolder(database)
    keys = list(traces.trace_keys()) if database.is_dir() else []
    if not keys:
        return Outcome(status, error)
    (key,) = keys
    with traces.trace(key).connect() as db:
        problems = {line.kind: asdict(line) for line in shown_problems(db)}
        rows = db.exec_driver_sql(
            "SELECT buffer, bytes, outcome FROM v_operations WHERE kind = 'send' ORDER BY posted_ns, completed_ns"
        ).all()
        records = db.exec_driver_sql("SELECT records FROM v_trace").scalar_one()
    return Outcome(status, error, problems, [(int(row[0], 16) >> 12, row[1], row[2]) for row in rows], records)

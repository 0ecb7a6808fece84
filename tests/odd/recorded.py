"""What becomes of each recorded file of public projects: `python -m tests.odd.recorded FOLDER` prints the table of docs/reliability.md."""

import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from collector.pipeline import import_trace
from collector.source import Source
from collector.store.engine import TraceFolder

__all__ = ["Fate", "fates", "main", "rows"]

PROJECTS: Mapping[str, str] = {
    "AMSITrace.etl": "airbus-cert/etl-parser",
    "BondEtwSample.etl": "microsoft/Tx",
    "CldFlt0-2025-12-21-121418.etl": "jtmoon79/super-speedy-syslog-searcher",
    "CldFlt2-2025-12-21-121418.etl": "jtmoon79/super-speedy-syslog-searcher",
    "CrossMachineHTTP.etl": "microsoft/Tx",
    "HTTP_Server.etl": "microsoft/Tx",
    "Process.etl": "microsoft/Tx",
    "SIH.20230422.034724.362.1.etl": "jtmoon79/super-speedy-syslog-searcher",
    "SelfDescribingSingleEvent.etl": "microsoft/perfview",
    "ShutdownPerfDiagLogger.etl": "airbus-cert/etl-parser",
    "attackhost-trace.etl": "alilje/attackhost_v_1_0_2DEV",
    "diaghub.kernel.1.etl": "microsoft/perfview",
    "diaghub.user_injected.1.etl": "microsoft/perfview",
    "diaghub.user_paged.1.etl": "microsoft/perfview",
    "gcevents-PerfViewData.etl": "microsoft/perfview",
    "krabs_powershell.etl": "microsoft/krabsetw",
    "lxcore_kernel.etl": "airbus-cert/etl-parser",
    "net.4.5.2.x64.etl": "microsoft/perfview",
    "primitive-types.etl": "microsoft/perfview",
    "sonde.etl": "Alan-Jowett/sonde",
    "waasmedic.20251005_113019_195.etl": "jtmoon79/super-speedy-syslog-searcher",
}
"""Where each file comes from."""


class Fate(NamedTuple):
    """Records of one file: all, those decoded, those of kinds that are not declared, those that do not fit their kind or could not be read.

    `problems` are the kinds of loss and damage on the trust page.
    """

    file: Path
    key: str
    records: int
    decoded: int
    raw: int
    skipped: int
    problems: tuple[str, ...]


def fates(folder: Path, traces: TraceFolder) -> Iterator[Fate]:
    """Collect each ETL file of a folder. Raises TraceError for one that cannot be."""
    for path in sorted(folder.glob("*.etl")):
        with Source.open(path) as source:
            report = import_trace(source, traces)
        with closing(sqlite3.connect(f"file:{traces.trace_path(report.key)}?mode=ro", uri=True)) as db:
            (records,) = db.execute("SELECT records FROM v_trace").fetchone()
            decoded, raw, short = db.execute(
                "SELECT coalesce(sum(count * known - damaged), 0), coalesce(sum(count * NOT known), 0), coalesce(sum(damaged), 0) "
                "FROM v_event_counts"
            ).fetchone()
            found = db.execute("SELECT kind, severity, count FROM v_problems WHERE severity IN ('data_loss', 'damage') ORDER BY kind")
            problems = found.fetchall()
        skipped = max(short, sum(count or 1 for _, severity, count in problems if severity == "damage"))
        yield Fate(path, report.key, records, decoded, raw, skipped, tuple(f"{kind} {count:,}" for kind, _, count in problems))


def rows(found: Iterator[Fate]) -> Iterator[str]:
    """Rows of the table."""
    for fate in found:
        project = PROJECTS.get(fate.file.name, "")
        counts = " | ".join(f"{number:,}" for number in (fate.records, fate.decoded, fate.raw, fate.skipped))
        yield f"| `{fate.file.name}` | {project} | {counts} | {', '.join(fate.problems)} |"


def main(words: list[str]) -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as database:
        for row in rows(fates(Path(words[0]), TraceFolder(database))):
            sys.stdout.write(f"{row}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

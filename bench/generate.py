"""Writes big traces: a mix of a given number of events, the same bytes every time.

python -m bench.generate MIX EVENTS FILE.etl
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bench.mixes import CPUS, MIXES, PIDS, STACK_KEYS, STEP_TICKS, Mix, eprocess_of, stack_key
from collector.etlwriter import EtlWriter, Session
from collector.etlwriter.bulk import RecordBlock, write_blocks
from collector.etlwriter.events import record_of
from collector.etlwriter.payloads import Value

__all__ = ["main", "write_trace"]

PLACES_AT_ONCE = 250_000
_MODULES = tuple((f"bench{n}.dll", 0x7FFB_4000_0000 + n * 0x100_0000, 0x20_0000) for n in range(8))
_FRAMES = (8, 24)


def write_trace(path: Path, mix: Mix, events: int) -> Counter[str]:
    """Write a trace of about `events` records of a mix, plus those that say which processes, images and stacks there are.

    Gives how many records there are of each event; those of other providers count under an empty name.
    """
    counts: Counter[str] = Counter()
    with path.open("w+b") as out:
        session = Session(processors=CPUS)
        writer = EtlWriter(out, session)
        _write_start(writer, counts)
        start = session.clock.start_ticks + 10_000
        places = events // mix.sharing
        for first in range(0, places, PLACES_AT_ONCE):
            beyond = min(first + PLACES_AT_ONCE, places)
            pieces = list(mix.pieces(first, beyond))
            for cpu in range(CPUS):
                blocks: list[RecordBlock] = []
                for piece in pieces:
                    chosen = np.flatnonzero(piece.cpus == cpu)
                    if chosen.size:
                        name = str(getattr(piece, "name", ""))
                        late = 1 if name.startswith("StackKey") else 0
                        blocks.append(piece.block(chosen, start + piece.places[chosen] * STEP_TICKS + late))
                        counts[name] += int(chosen.size)
                write_blocks(writer, cpu, blocks)
        if mix.has_stacks:
            _write_stacks(writer, start + places * STEP_TICKS, counts)
        writer.close()
        _say_saved_offset(out)
    return counts


def _say_saved_offset(out: BinaryIO) -> None:
    """Let SavedOffset of the header buffer say where its data ends, as some recorders do: etl-parser reads no file without it."""
    out.seek(0x30)
    filled = out.read(4)
    out.seek(4)
    out.write(filled)


def _write_start(writer: EtlWriter, counts: Counter[str]) -> None:
    """Processes and images that were there before the trace."""
    ticks = writer.session.clock.start_ticks + 10
    for pid in PIDS:
        values: dict[str, Value] = {
            "unique_process_key": int(eprocess_of(pid)) + (1 << 64),
            "process_id": pid,
            "parent_id": 700,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0,
            "flags": 0,
            "user_sid": bytes.fromhex("010100000000000512000000"),
            "image_file_name": f"bench{pid}.exe",
            "command_line": f"bench{pid}.exe --run",
            "package_full_name": "",
            "application_id": "",
        }
        writer.add(record_of("ProcessDCStart", values, ticks=ticks))
        counts["ProcessDCStart"] += 1
        for name, base, size in _MODULES:
            image: dict[str, Value] = {
                **dict.fromkeys(("image_checksum", "signature_level", "signature_type"), 0),
                **{f"reserved{n}": 0 for n in range(5)},
                "image_base": base,
                "image_size": size,
                "process_id": pid,
                "time_date_stamp": 0x6600_0000,
                "default_base": base,
                "file_name": f"\\Device\\HarddiskVolume3\\bench\\{name}",
            }
            writer.add(record_of("ImageDCStart", image, ticks=ticks))
            counts["ImageDCStart"] += 1
        ticks += 10


def _write_stacks(writer: EtlWriter, ticks: int, counts: Counter[str]) -> None:
    """What each stack key stands for, as a session writes it at its end."""
    low, high = _FRAMES
    for number in range(STACK_KEYS):
        frames = [
            _MODULES[(number * 7 + depth * 3) % len(_MODULES)][1] + 0x1000 + (number * 131 + depth * 977) % 0x1_0000
            for depth in range(low + number % (high - low))
        ]
        writer.add(record_of("StackKeyRundown", {"stack_key": int(stack_key(number)) + (1 << 64), "frames": frames}, ticks=ticks))
        counts["StackKeyRundown"] += 1
        ticks += 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("mix", choices=list(MIXES))
    parser.add_argument("events", type=int)
    parser.add_argument("file", type=Path)
    args = parser.parse_args(argv)
    counts = write_trace(args.file, MIXES[args.mix], args.events)
    for name, count in counts.most_common():
        print(f"{count:>12,} {name or 'other providers'}")
    print(f"{args.file.stat().st_size:>12,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How long texts of a trace take to become records: one line a form.

python -m bench.texts [--events N]
"""

import argparse
import tempfile
import time
from pathlib import Path

from bench.generate import write_trace
from bench.mixes import MIXES
from collector.source import Source
from collector.texts import form_of, trace_of_text
from tests.build.text_forms import TEXT_WRITERS

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.texts")
    parser.add_argument("--events", type=int, default=40_000, help="events of the trace that is written as text (%(default)s)")
    args = parser.parse_args(argv)
    print("| form | µs an event | MB/s |\n| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "mix.etl"
        events = sum(write_trace(trace, MIXES["winsock"], args.events).values())
        for name, write in TEXT_WRITERS.items():
            path = Path(folder) / "text"
            path.write_bytes(write(trace))
            with Source.open(path) as source:
                form = form_of(source.read_at(0, 512))
                assert form is not None, name
                started = time.process_time()
                trace_of_text(form, source, Path(folder), lambda: False).close()
                seconds = time.process_time() - started
            print(f"| {name} | {seconds / events * 1e6:.0f} | {path.stat().st_size / seconds / 1e6:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

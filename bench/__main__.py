"""Measures the collector and the pages, prints tables, writes JSON.

    python -m bench [--mix MIX …] [--events N] [--growth] [--rivals] [--pages] [--json FILE]
    python -m bench --pages-of FOLDER KEY

Without options: every mix at 1x, 2x and 4x, rivals and pages.
"""

import argparse
import compileall
import json
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import app
import collector
from bench.compressed import write_compressed
from bench.generate import write_trace
from bench.measure import Run, run
from bench.mixes import MIXES
from bench.rivals import rival_rates

__all__ = ["main"]

EVENTS = 1_000_000
GROWING = tuple(MIXES)
_MB = 1e6


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mix", action="append", choices=list(MIXES), help="which mixes; may be repeated; all when left out")
    parser.add_argument("--events", type=int, default=EVENTS, help="events of a trace at 1x (%(default)s)")
    parser.add_argument("--growth", action="store_true", help="also at 2x and 4x, for the mixes named")
    parser.add_argument("--rivals", action="store_true", help="other readers on the same files")
    parser.add_argument("--pages", action="store_true", help="the pages of each trace")
    parser.add_argument("--pages-of", nargs=2, metavar=("FOLDER", "KEY"), help="only the pages of a trace that is there")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where the numbers go (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where traces and databases are put; a temporary one when left out")
    args = parser.parse_args(argv)
    _compile()
    if args.pages_of:
        print(_machine())
        _print_pages(run("pages", *args.pages_of))
        return 0
    is_all = not (args.mix or args.growth or args.rivals or args.pages)
    results: dict[str, Any] = {"machine": _machine(), "mixes": {}}  # Any: what the measurements say
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(results["machine"])
        for name in args.mix or MIXES:
            grows = args.growth or (is_all and name in GROWING)
            results["mixes"][name] = found = {}
            for factor in (1, 2, 4) if grows else (1,):
                found[f"{factor}x"] = _measure(
                    name, args.events * factor, folder, has_rivals=factor == 1 and (is_all or args.rivals),
                    has_pages=factor == 1 and (is_all or args.pages), is_alone_too=factor == 1,
                )  # fmt: skip
            _print_mix(name, found)
            args.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nwritten: {args.json}")
    return 0


def _compile() -> None:
    """Compile the modules, as installing does: else each process would compile them where Python may not write them down."""
    for package in (app, collector):
        for folder in package.__path__:
            compileall.compile_dir(folder, quiet=2)


def _machine() -> str:
    """The machine in general words."""
    import os

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    return f"{os.cpu_count()} processors, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def _measure(
    mix: str, events: int, folder: Path, *, has_rivals: bool, has_pages: bool, is_alone_too: bool
) -> dict[str, Any]:  # Any: see above
    """All measurements of one trace, which is removed afterwards."""
    file = folder / f"{mix}.etl"
    database = folder / "database"
    print(f"… {MIXES[mix].title}, {events:,} events", file=sys.stderr)
    write_trace(file, MIXES[mix], events)
    found: dict[str, Any] = {"floor: bytes": run("count-bytes", str(file)), "decode": _best("decode", str(file))}
    if is_alone_too:
        found["collect alone"] = run("collect", str(file), str(database), "alone")
    found["collect"] = run("collect", str(file), str(database))
    trace = database / "traces" / f"{found['collect']['key']}.db"
    found["floor: rows"] = run("insert-rows", str(trace), str(folder / "floor.db"))
    if has_rivals:
        found["rivals"] = rival_rates(file, folder)
        # Once more beside them: what else the machine does should slow down all alike.
        found["decode"] = min(found["decode"], _best("decode", str(file)), key=lambda each: each["cpu"])
        compressed = folder / "compressed.etl"
        expanded = write_compressed(file, compressed)
        found["compressed"] = _best("decode", str(compressed)) | {"expanded_bytes": expanded}
        compressed.unlink()
    if has_pages:
        found["pages"] = run("pages", str(database), found["collect"]["key"])
    trace.unlink()
    file.unlink()
    return found


def _best(*argv: str, runs: int = 3) -> Run:
    """The run of several that took the least processor time: what a run takes beyond that, the machine took for something else."""
    return min((run(*argv) for _ in range(runs)), key=lambda each: float(str(each["cpu"])))


# ---------------------------------------------------------------------------------------------------- tables


def _print_mix(name: str, found: Mapping[str, Mapping[str, Any]]) -> None:  # Any: see above
    print(f"\n## {MIXES[name].title}\n")
    _table(
        (
            "",
            "events",
            "events/s",
            "s",
            "of 1x",
            "rate of floor's",
            "processor s",
            "of floor's",
            "the longer process",
            "of floor's",
            "anonymous MB",
            "database/packed",
        ),
        [_collect_row(factor, each, found["1x"]) for factor, each in found.items()],
    )
    one = found["1x"]
    alone = one["collect alone"]  # there all stages are in one process
    stages = sorted(alone["stages"].items(), key=lambda item: -item[1])
    _table(("stage, in one process", "s", "%"), [(stage, f"{s:.2f}", f"{100 * s / alone['cpu']:.0f}") for stage, s in stages if s >= 0.005])
    floor, decode = one["floor: rows"], one["decode"]
    rows = [
        ("count the file's bytes with NumPy", "", f"{one['floor: bytes']['cpu']:.2f}", ""),
        ("walk and decode alone", *_rate(decode, decode)),
        ("collect without a second process", "", f"{one['collect alone']['cpu']:.2f} ({one['collect alone']['seconds']:.2f} s)", ""),
        (f"insert the {floor['rows']:,} rows", "", f"{floor['insert']:.2f}", ""),
        ("make their indexes", "", f"{floor['index']:.2f}", ""),
    ]
    for rival, result in one.get("rivals", {}).items():
        rows.append((f"{rival}, bare iteration", *_rate(result, decode)) if isinstance(result, dict) else (rival, result, "", ""))
    if compressed := one.get("compressed"):
        megabytes = compressed["expanded_bytes"] / _MB
        rate = f"{megabytes / compressed['cpu']:.0f} MB/s"
        rows.append((f"walk and decode of {megabytes:.0f} MB, compressed", *_rate(compressed, compressed)[:2], rate))
    _table(("beside it", "events/s", "processor s", "walk and decode is"), rows)
    if "pages" in one:
        _print_pages(one["pages"])


def _collect_row(factor: str, each: Mapping[str, Any], first: Mapping[str, Any]) -> tuple[str, ...]:  # Any: see above
    collect, floor = each["collect"], each["floor: rows"]
    longer = max(collect["inserting"], collect["cpu"] - collect["inserting"])
    return (
        factor,
        f"{collect['events']:,}",
        f"{collect['events'] / collect['seconds']:,.0f}",
        f"{collect['seconds']:.1f}",
        f"{collect['seconds'] / first['collect']['seconds']:.2f}",
        f"{floor['seconds'] / collect['seconds']:.2f}",
        f"{collect['cpu']:.1f}",
        f"{floor['cpu'] / collect['cpu']:.2f}",
        f"{longer:.1f}",
        f"{floor['cpu'] / longer:.2f}",
        _mb(collect["peak_anonymous"]),
        f"{collect['database_bytes'] / collect['packed_bytes']:.2f}",
    )


def _rate(result: Run, decode: Run) -> tuple[str, str, str]:
    rate, own = (float(str(r["events"])) / float(str(r["cpu"])) for r in (result, decode))
    return f"{rate:,.0f}", f"{float(str(result['cpu'])):.2f}", "" if result is decode else f"{own / rate:.1f}x"


def _print_pages(pages: Mapping[str, Any]) -> None:  # Any: see above
    _table(
        ("page", "first ms", "p50 ms", "p95 ms", "processor ms"),
        [(name, *(f"{p[k]:.0f}" for k in ("first", "p50", "p95", "cpu"))) for name, p in pages["pages"].items()],
    )
    for how, key in (("each page made anew", "crowd"), ("of a server that has just started", "crowd of a fresh server")):
        crowd = pages[key]
        print(
            f"{crowd['clients']} clients at once, {how}: {crowd['requests']} requests, {sum(crowd['failed'].values())} failed, "
            f"p50 {crowd['p50']:.0f} ms, p95 {crowd['p95']:.0f} ms, {crowd['a_second']} a second\n"
        )


def _mb(size: int | None) -> str:
    return "unknown" if size is None else f"{size / _MB:.0f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as Markdown has it, in columns."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, ["-" * width for width in widths], *rows):
        print(
            "| "
            + " | ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
            + " |"
        )
    print()


if __name__ == "__main__":
    sys.exit(main())

"""How the cost of a hostile file grows with its size: `python -m tests.odd.growth [MB …]`, by default 1, 2 and 4.

For each kind the processor seconds of `sockscope collect`, and its peak of resident memory, in a process of its own.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.odd.hostile import HOSTILE

__all__ = ["main"]

MB = 1 << 20
ROOT = Path(__file__).parents[2]


def main(words: list[str]) -> int:
    """Print a line a kind; exit status 1 when one could not be collected."""
    sizes = [float(word) for word in words] or [1.0, 2.0, 4.0]
    failed = 0
    sys.stdout.write(f"{'kind':<24}" + "".join(f"{size:>9g} MB{'':>10}" for size in sizes) + "\n")
    for name, make in HOSTILE.items():
        cells = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "hostile.etl"
                path.write_bytes(make(int(size * MB)))
                status, seconds, peak = _collected(path, Path(folder) / "database")
            failed += status not in (0, 3)
            cells.append(f"{seconds:>7.1f} s {peak / MB:>7.0f} MiB")
        sys.stdout.write(f"{name:<24}" + "  ".join(cells) + "\n")
        sys.stdout.flush()
    return 1 if failed else 0


def _collected(path: Path, database: Path) -> tuple[int, float, int]:
    """Exit status, processor seconds, and the peak of resident memory in bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import resource, sys; from app.cli import main; status = main(sys.argv[1:]); "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(status)"
    words = [sys.executable, "-c", code, "collect", str(path), "--database", str(database)]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, seconds, int(done.stdout.split()[-1]) * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

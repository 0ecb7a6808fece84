"""Starts each measurement in a process of its own and watches its memory."""

import json
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["Run", "anonymous_of_all", "family_of", "run"]

Run = dict[str, object]
"""What a measurement says of itself, with `peak_rss` and `peak_anonymous` in bytes."""

_SECONDS_BETWEEN_LOOKS = 0.02


def run(*argv: str, python: str = sys.executable, script: str = "", timeout_seconds: float = 1800.0) -> Run:
    """Run one measurement of `bench.runs`, or a script of its own, and wait for it.

    The peak of all resident memory is the kernel's own, of the process alone; that of anonymous memory (what is not a page of a file) is
    the highest of what is seen every 20 ms, of the process and those that it started together. Where there is no /proc both are None.

    Raises: RuntimeError when it fails or takes too long.
    """
    command = [python, script, *argv] if script else [python, "-m", "bench.runs", *argv]
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        highest = 0
        while process.poll() is None:
            highest = max(highest, anonymous_of_all(process.pid))
            if time.monotonic() - begin > timeout_seconds:
                process.kill()
                raise RuntimeError(f"{' '.join(argv)}: took more than {timeout_seconds:g} s")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"{' '.join(argv)}: exit status {process.returncode}")
    result: Run = json.loads(output.strip().splitlines()[-1])
    return result | {"peak_anonymous": highest or None}


def anonymous_of_all(pid: int) -> int:
    """Bytes of anonymous memory of a process and those that it started, 0 where that is unknown."""
    return sum(map(_anonymous, family_of(pid)))


def family_of(pid: int) -> list[int]:
    """A process and those that it started, as far as the system says."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *map(int, children)]


def _anonymous(pid: int) -> int:
    """Bytes of anonymous memory of a process, 0 where that is unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)

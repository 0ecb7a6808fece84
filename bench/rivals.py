"""Other readers of ETL files on the same file, in an environment that exists for this alone.

`rival_rates` makes the environment in the bench's folder; where the packages cannot be installed the comparison is left out.
"""

import subprocess
import sys
import venv
from pathlib import Path

from bench.measure import run

__all__ = ["RIVALS", "rival_rates"]

RIVALS = {"dissect.etl": "dissect.etl==3.14", "etl-parser": "etl-parser==1.0.1"}
_SECONDS = 6.0
_RUNS = 2
"""The better one counts, as it does for our own reading."""

# Each rival only iterates over the records, for some seconds at most; what it does with a payload is left out. The scripts run in the
# rivals' environment, which has nothing of this project.
_DISSECT = """
import json, sys, time
from dissect.etl import ETL
events, begin, used = 0, time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as handle:
    for record in ETL(handle):
        events += 1
        if not events % 500 and time.perf_counter() - begin > float(sys.argv[2]):
            break
print(json.dumps({"events": events, "seconds": time.perf_counter() - begin, "cpu": time.process_time() - used}))
"""
_ETL_PARSER = """
import json, sys, time
from etl.etl import IEtlFileObserver, build_from_stream
class Enough(Exception):
    pass
class Counter(IEtlFileObserver):
    events = 0
    def seen(self, event):
        self.events += 1
        if not self.events % 100 and time.perf_counter() - begin > float(sys.argv[2]):
            raise Enough
    on_system_trace = on_perfinfo_trace = on_trace_record = on_event_record = on_win_trace = seen
counter = Counter()
begin, used = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as handle:
    try:
        build_from_stream(handle.read()).parse(counter)
    except Enough:
        pass
print(json.dumps({"events": counter.events, "seconds": time.perf_counter() - begin, "cpu": time.process_time() - used}))
"""
_SCRIPTS = {"dissect.etl": _DISSECT, "etl-parser": _ETL_PARSER}


def rival_rates(file: Path, folder: Path) -> dict[str, dict[str, object] | str]:
    """Events and seconds of each rival on a file, or why there is no number."""
    found: dict[str, dict[str, object] | str] = {}
    for name, requirement in RIVALS.items():
        try:
            python = _environment(folder / "rivals", requirement)
            script = folder / "rivals" / f"{name}.py"
            script.write_text(_SCRIPTS[name])
            runs = [run(str(file), str(_SECONDS / _RUNS), python=str(python), script=str(script)) for _ in range(_RUNS)]
            found[name] = max(runs, key=lambda each: float(str(each["events"])) / float(str(each["cpu"])))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            found[name] = f"left out: {error}"
    return found


def _environment(folder: Path, requirement: str) -> Path:
    """An interpreter that has the package. Raises what `subprocess` raises when it cannot be installed."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    return python

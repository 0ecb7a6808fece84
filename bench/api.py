"""Asks every page what its description allows, and what it does not, with schemathesis: no answer fails, all are declared.

python -m bench.api [--seconds 30]

The tool lives in an environment of its own (`make api`), as it brings much along that the project does not need.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.load import running_server
from collector.sample import write_sample
from collector.source import Source
from collector.store.engine import TraceFolder
from collector.verbs.storing import collect_source

__all__ = ["CHECKS", "check", "main", "tool"]

CHECKS = "not_a_server_error,status_code_conformance"
_FOLDER = "api"


def tool() -> str | None:
    """The command of schemathesis: of the environment that `make api` makes inside this one, else the one on the path."""
    inside = Path(sys.prefix) / _FOLDER / ("Scripts" if sys.platform == "win32" else "bin")
    return shutil.which("st", path=str(inside)) or shutil.which("st")


def check(command: str, folder: Path, *, seconds: float) -> tuple[int, str]:
    """Collect the sample trace below a folder, serve it and let the tool ask; gives its exit status and what it and the server said."""
    database = TraceFolder(folder / "database")
    database.make()
    write_sample(folder / "sample.etl")
    with Source.open(folder / "sample.etl") as source:
        key = collect_source(source, database, lambda: False).key
    config = folder / "schemathesis.toml"
    config.write_text(f"[parameters]\n{json.dumps('path.trace_key')} = {json.dumps(key)}\n", encoding="utf-8")
    with running_server(database.root, "--no-uploads") as server:
        asked = [
            command, "--config-file", str(config), "run", f"{server.address}/openapi.json", "--checks", CHECKS,
            "--phases", "coverage,fuzzing", "--max-time", f"{seconds:g}", "--seed", "1",
        ]  # fmt: skip
        done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=folder)
    said = "\n".join(line for line in server.log.splitlines() if "Invalid HTTP request" not in line)
    return done.returncode, f"{done.stdout}{done.stderr}{said}"


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 when an answer failed or is not declared, 2 without the tool."""
    parser = argparse.ArgumentParser(prog="python -m bench.api", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=30, help="for how long (%(default)s)")
    args = parser.parse_args(argv)
    command = tool()
    if command is None:
        print("schemathesis is not installed: run make api", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        status, said = check(command, Path(temporary), seconds=args.seconds)
    print(said)
    return 1 if status or "Traceback" in said else 0


if __name__ == "__main__":
    sys.exit(main())

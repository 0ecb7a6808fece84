"""What a suspended program does, shown by Wine; and that the system's libraries have the functions under the names that we load.

Wine plays no tracing: its StartTraceW returns and does nothing.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from collector.record.calls import FUNCTIONS
from collector.record.constants import Misc
from collector.record.structures import PROCESS_INFORMATION, STARTUPINFOW
from tests.record.assertions import HEAD, layout

COMPILER = "x86_64-w64-mingw32-gcc"
WINE_PLACES = ("wine64", "wine", "/usr/lib/wine/wine64")


def compiler() -> str:
    found = shutil.which(COMPILER)
    if found is None:
        pytest.skip(f"{COMPILER} is not installed")
    return found


def wine() -> str:
    for place in WINE_PLACES:
        if (found := shutil.which(place)) is not None:
            return found
    pytest.skip("Wine is not installed (Debian: wine64)")


@pytest.mark.parametrize("name", ["x86_64-w64-mingw32-gcc", "i686-w64-mingw32-gcc"])
def test_the_libraries_have_the_functions(tmp_path: Path, name: str) -> None:
    """A program that uses all of them can be linked against the import libraries of the two alone: advapi32 and kernel32."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    functions = [f.name for f in FUNCTIONS.values() if f.library != "KernelTraceControl"]
    table = ", ".join(f"(void *)&{function}" for function in functions)
    (tmp_path / "all.c").write_text(
        f"{HEAD}\nvoid *volatile all[] = {{{table}}};\nint main(void) {{ return all[0] == 0; }}\n", encoding="utf-8"
    )
    subprocess.run([found, "all.c", "-o", "all.exe", "-ladvapi32"], cwd=tmp_path, check=True)
    dump = subprocess.run([name.replace("gcc", "objdump"), "-p", "all.exe"], cwd=tmp_path, capture_output=True, text=True, check=True)
    imported: dict[str, set[str]] = {}
    library = ""
    for line in dump.stdout.splitlines():
        if "DLL Name:" in line:
            library = line.split(":")[1].strip().lower().removesuffix(".dll")
        elif library:
            imported.setdefault(library, set()).update(line.split()[-1:])
    for function in FUNCTIONS.values():
        if function.library != "KernelTraceControl":
            assert function.name in imported[function.library], function.name


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe, built with our numbers."""
    folder = tmp_path_factory.mktemp("probe")
    startup, startup_size, _ = layout(STARTUPINFOW, 8)
    information, information_size, _ = layout(PROCESS_INFORMATION, 8)
    numbers = {
        "STARTUP_SIZE": startup_size,
        "STARTUP_CB": startup["cb"][0],
        "INFORMATION_SIZE": information_size,
        "PROCESS_AT": information["hProcess"][0],
        "THREAD_AT": information["hThread"][0],
        "PID_AT": information["dwProcessId"][0],
        "FLAG_SUSPENDED": Misc.CREATE_SUSPENDED,
        "FLAG_QUERY": Misc.PROCESS_QUERY_LIMITED_INFORMATION,
    }
    source = Path(__file__).with_name("probe.c")
    macros = [f"-D{name}={int(value)}" for name, value in numbers.items()]
    subprocess.run([compiler(), "-D_WIN32_WINNT=0x0A00", "-Wall", *macros, str(source), "-o", str(folder / "probe.exe")], check=True)
    return folder / "probe.exe"


def run(probe: Path, what: str, tmp_path: Path) -> dict[str, int]:
    """What the probe saw."""
    environment = {**os.environ, "WINEPREFIX": str(probe.parent / "prefix"), "WINEDEBUG": "-all", "DISPLAY": ""}
    words = [wine(), str(probe), what, f"Z:{tmp_path / 'mark'}".replace("/", "\\")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, int] = json.loads(done.stdout)
    return answers


def test_a_suspended_program_waits_until_it_is_resumed(probe: Path, tmp_path: Path) -> None:
    assert run(probe, "resume", tmp_path) == {
        "begun": 1,
        "by_pid": 1,
        "opened": 1,
        "before": int(Misc.WAIT_TIMEOUT),
        "had_run": 0,
        "resumed": 1,  # it was suspended once
        "after": int(Misc.WAIT_OBJECT_0),
        "code": 7,
        "has_run": 1,
    }


def test_a_suspended_program_that_is_terminated_never_runs(probe: Path, tmp_path: Path) -> None:
    answers = run(probe, "terminate", tmp_path)
    assert (answers["before"], answers["after"], answers["code"]) == (int(Misc.WAIT_TIMEOUT), int(Misc.WAIT_OBJECT_0), 1)
    assert (answers["had_run"], answers["has_run"]) == (0, 0)

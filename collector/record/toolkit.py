"""Where KernelTraceControl.dll is: the library of the Windows Performance Toolkit that starts heap sessions. Windows itself has none."""

import struct
from collections.abc import Mapping
from pathlib import Path

from collector.errors import RecordError

__all__ = ["VARIABLE", "find_toolkit"]

VARIABLE = "SOCKSCOPE_KERNEL_TRACE_CONTROL"
NAME = "KernelTraceControl.dll"
_KITS = ("Windows Kits/10/Windows Performance Toolkit", "Windows Kits/8.1/Windows Performance Toolkit", "Windows Performance Toolkit")
_MACHINES = {0x014C: "32-bit x86", 0x8664: "64-bit x64", 0xAA64: "64-bit ARM"}
_HOW = (
    f"{NAME} comes with the Windows Performance Toolkit, which the installers of the Windows ADK and of the Windows SDK offer. "
    f"Where it is elsewhere, point to it: --kernel-trace-control FILE or {VARIABLE}=FILE"
)


def find_toolkit(named: str | None, environ: Mapping[str, str], *, pointer_size: int) -> Path:
    """The library's file, of the right processor.

    Args:
        named: file or folder that the user gave; then only that counts, as for the environment variable.
        pointer_size: of this program: a library of another processor cannot be loaded.

    Raises: RecordError, with where it was looked for and how to get it.
    """
    asked = named or environ.get(VARIABLE)
    places = [Path(asked)] if asked else _places(environ)
    files = [place / NAME if place.is_dir() else place for place in places]
    wrong = []
    for file in files:
        if not file.is_file():
            continue
        machine = machine_of(file)
        if machine in _wanted(environ, pointer_size):
            return file
        wrong.append(f"{file} is for {_MACHINES.get(machine or 0, 'no processor that is known here')}")
    if wrong:
        raise RecordError(f"{'; '.join(wrong)}, but this Python needs a library for {_needed(environ, pointer_size)}. {_HOW}.")
    where = f"{asked} is not there" if asked else f"{NAME} was not found in {', '.join(map(str, places[:3]))} or on the PATH"
    raise RecordError(f"{where}. {_HOW}.")


def machine_of(file: Path) -> int | None:
    """The processor of a program or library (IMAGE_FILE_HEADER.Machine); None for a file that is neither."""
    try:
        with file.open("rb") as stream:
            head = stream.read(64)
            if len(head) < 64 or head[:2] != b"MZ":
                return None
            stream.seek(struct.unpack_from("<I", head, 0x3C)[0])
            signature = stream.read(6)
    except OSError:
        return None
    return struct.unpack_from("<H", signature, 4)[0] if len(signature) == 6 and signature[:4] == b"PE\0\0" else None


def _places(environ: Mapping[str, str]) -> list[Path]:
    """Folders of the toolkit, then those on the PATH."""
    roots = [environ[name] for name in ("ProgramFiles(x86)", "ProgramFiles") if environ.get(name)]
    # Only whole paths: what an elevated process loads must not depend on the folder that it happens to be in.
    path = [folder for text in environ.get("PATH", "").split(";") if (folder := Path(text)).is_absolute()]
    return [*(Path(root) / kit for kit in _KITS for root in roots), *path]


def _wanted(environ: Mapping[str, str], pointer_size: int) -> tuple[int, ...]:
    if pointer_size == 4:
        return (0x014C,)
    return (0xAA64,) if environ.get("PROCESSOR_ARCHITECTURE", "").upper() == "ARM64" else (0x8664,)


def _needed(environ: Mapping[str, str], pointer_size: int) -> str:
    return _MACHINES[_wanted(environ, pointer_size)[0]]

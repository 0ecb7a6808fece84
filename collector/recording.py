"""The commands that record what a trace lacks, in an elevated prompt of Windows; said wherever a view is empty for want of records.

`sockscope record --print-commands` says the same ones for what a user wants recorded.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "HEAP_LINES",
    "OWN_HEAP",
    "OWN_SOCKETS",
    "PROCESS_LINES",
    "RECORD_HEAP",
    "RECORD_PROCESSES",
    "RECORD_SOCKETS",
    "SOCKET_LINES",
    "FileLimit",
    "heap_lines",
    "kernel_lines",
    "merge_line",
    "netsh_lines",
    "socket_lines",
    "wpr_lines",
]

_ALL_KEYWORDS = 0xFFFF_FFFF_FFFF_FFFF
_PROVIDER = "Microsoft-Windows-Winsock-AFD"
_BARE = re.compile(r"[\w.:\\/-]+")


@dataclass(frozen=True, slots=True)
class FileLimit:
    """How large a file may get, and what then: the newest events replace the oldest, or the next file is begun; else the session ends."""

    mb: int
    is_circular: bool
    is_rotating: bool = False
    """The file's name has a %d then. For logman alone."""

    @property
    def logman(self) -> str:
        """The options of logman."""
        mode = "-mode newfile" if self.is_rotating else f"-f {'bincirc' if self.is_circular else 'bin'}"
        return f" {mode} -max {self.mb}"


def socket_lines(
    file: str,
    *,
    level: int = 5,
    keywords: int = 0,
    kb: int = 1024,
    least: int = 64,
    most: int = 256,
    limit: FileLimit | None = None,
    flush_s: int = 0,
) -> tuple[str, str]:
    """logman: start and stop of a Winsock session; `keywords` 0 is all, `flush_s` 0 writes only full buffers."""
    provider = f"{_PROVIDER} 0x{keywords or _ALL_KEYWORDS:x} {level}"
    size = limit.logman if limit else ""
    flush = f" -ft {flush_s}" if flush_s else ""
    return (
        f"logman start sockets -ets -p {provider} -o {quoted(file)} -bs {kb} -nb {least} {most}{size}{flush}",
        "logman stop sockets -ets",
    )


def netsh_lines(file: str, *, level: int = 5, keywords: int = 0, limit: FileLimit | None = None) -> tuple[str, str]:
    """netsh: the same without sizes of buffers."""
    size = f" maxsize={limit.mb} filemode={'circular' if limit.is_circular else 'single'}" if limit else ""
    return (
        f"netsh trace start provider={_PROVIDER} keywords=0x{keywords or _ALL_KEYWORDS:x} level={level} capture=no report=disabled "
        f"tracefile={quoted(file)}{size}",
        "netsh trace stop",
    )


def kernel_lines(file: str) -> tuple[str, str]:
    """xperf: start and stop of a session for processes, threads and modules."""
    return f"xperf -on PROC_THREAD+LOADER -f {quoted(file)}", "xperf -stop"


def heap_lines(
    file: str,
    pids: Sequence[int] = (1234,),
    *,
    program: str = "",
    stacks: Sequence[str] = ("Alloc", "Realloc", "Free", "Create"),
    kb: int = 1024,
    least: int = 128,
    most: int = 128,
    limit: FileLimit | None = None,
) -> tuple[str, str]:
    """xperf: start and stop of a heap session, of running processes or of a `program` that xperf starts."""
    who = f'-PidNewProcess "{program}"' if program else f"-Pids {' '.join(map(str, pids))}"
    walk = f" -stackwalk {'+'.join(f'Heap{name}' for name in stacks)}" if stacks else ""
    size = f" -MaxFile {limit.mb} -FileMode {'Circular' if limit.is_circular else 'Sequential'}" if limit else ""
    return (
        f"xperf -start HeapSession -heap {who}{walk} -BufferSize {kb} -MinBuffers {least} -MaxBuffers {most}{size} -f {quoted(file)}",
        "xperf -stop HeapSession",
    )


def wpr_lines(image: str, file: str) -> tuple[str, ...]:
    """wpr, which Windows 10 and later have: the heap of a program from its start, by the name of its image."""
    return (
        f"wpr -HeapTracingConfig {quoted(image)} enable",
        "wpr -start Heap -filemode",
        f":: start {image}, use it, end it",
        f"wpr -stop {quoted(file)}",
        f"wpr -HeapTracingConfig {quoted(image)} disable",
    )


def merge_line(files: Sequence[str], merged: str) -> str:
    """xperf: files of sessions that ran at the same time into one, with the identities of modules."""
    return f"xperf -merge {' '.join(map(quoted, (*files, merged)))}"


def quoted(text: str) -> str:
    """A word of a command line of Windows."""
    return text if _BARE.fullmatch(text) else f'"{text}"'


_SOCKETS, _KERNEL, _HEAP, _ALL = (rf"C:\traces\{name}.etl" for name in ("sockets", "kernel", "heap", "all"))

SOCKET_LINES = socket_lines(_SOCKETS)
"""All socket events: every keyword, level 5, no filter of ids."""

PROCESS_LINES = (*kernel_lines(_KERNEL), merge_line((_KERNEL, _SOCKETS), _ALL))
"""Processes, threads and modules, merged with what was recorded beside."""

HEAP_LINES = (
    kernel_lines(_KERNEL)[0],
    *heap_lines(_HEAP),
    kernel_lines(_KERNEL)[1],
    merge_line((_KERNEL, _HEAP), _ALL),
)
"""The heap of one process with stacks and modules, by the function StartHeapTrace that xperf calls."""

OWN_SOCKETS = "sockscope record"
OWN_HEAP = "sockscope record --pid 1234"
"""The same where sockscope is on the machine that records; processes, threads and modules are recorded by both."""

RECORD_SOCKETS = " … ".join(SOCKET_LINES)
RECORD_PROCESSES = " … ".join(PROCESS_LINES)
RECORD_HEAP = " … ".join(HEAP_LINES)
"""What each page needs in a trace, and the command that records it."""

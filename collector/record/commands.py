"""The commands of Windows's own tools that record what a plan wants, for whoever cannot or will not let sockscope do it."""

import ntpath
from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import list2cmdline

from collector.record.constants import HeapEvent
from collector.record.plan import Kind, Plan
from collector.recording import FileLimit, heap_lines, kernel_lines, merge_line, netsh_lines, socket_lines, wpr_lines

__all__ = ["Block", "blocks"]

_XPERF_STACKS = {
    HeapEvent.CREATE: "Create",
    HeapEvent.ALLOC: "Alloc",
    HeapEvent.REALLOC: "Realloc",
    HeapEvent.DESTROY: "Destroy",
    HeapEvent.FREE: "Free",
}
_FOLDER = r"C:\traces"
_MEANWHILE = ":: let the program misbehave"
_NUMBERED = ":: %d becomes 1, 2, 3, … (in a batch file write %%d); name all of them where the files are merged"


@dataclass(frozen=True, slots=True)
class Block:
    """One way to record: a heading and the lines to type, in order."""

    heading: str
    lines: tuple[str, ...]


def blocks(plan: Plan, *, folder: str = _FOLDER, words: Sequence[str] = ()) -> list[Block]:
    """Ways to record what the plan wants.

    Args:
        folder: of the files, on the machine that records; without one the lines name one of an example.
        words: command line of a program that is to be traced from its start.
    """
    files = {kind: ntpath.join(folder, plan.file(kind).name) for kind in plan.kinds}
    merged = ntpath.join(folder, f"{plan.name}.etl")
    limit = FileLimit(plan.size_limit_mb, plan.is_circular) if plan.size_limit_mb else None
    pairs = []
    if plan.kernel:
        pairs.append(kernel_lines(files[Kind.KERNEL]))
    if plan.winsock:
        sizes = plan.buffers[Kind.WINSOCK]
        pairs.append(
            socket_lines(
                files[Kind.WINSOCK],
                level=plan.level,
                keywords=plan.keywords,
                kb=sizes.kb,
                least=sizes.least,
                most=sizes.most,
                limit=FileLimit(plan.rotate_mb, is_circular=False, is_rotating=True) if plan.rotate_mb else limit,
                flush_s=plan.flush_s,
            )
        )
    if plan.heap:
        sizes = plan.buffers[Kind.HEAP]
        stacks = [_XPERF_STACKS[event] for event in plan.stacks]
        program = list2cmdline(words).replace('"', r"\"") if words else ""
        pids = plan.pids or (1234,)
        pairs.append(
            heap_lines(files[Kind.HEAP], pids, program=program, stacks=stacks, kb=sizes.kb, least=sizes.least, most=sizes.most, limit=limit)
        )
    waiting = f"timeout /t {plan.duration_s:.0f}" if plan.duration_s else _MEANWHILE
    lines = [start for start, _ in pairs] + [waiting] + [stop for _, stop in reversed(pairs)]
    if any("%d" in line for line in lines):
        lines += [_NUMBERED]
    if len(files) > 1:
        lines.append(merge_line([file.replace("%d", "1") for file in files.values()], merged))
    tools = " and ".join(name for name, is_used in (("logman", plan.winsock), ("xperf", plan.kernel or plan.heap)) if is_used)
    found = [Block(f"With {tools}", tuple(lines))]
    if plan.winsock and not plan.rotate_mb:  # netsh begins no new files
        start, stop = netsh_lines(files[Kind.WINSOCK], level=plan.level, keywords=plan.keywords, limit=limit)
        found.append(Block("Winsock with netsh, in place of logman", (start, waiting, stop)))
    if plan.heap:
        image = ntpath.basename(words[0]) if words else "program.exe"
        found.append(
            Block("The heap with wpr, which Windows 10 and later have: a program that is started afterwards", wpr_lines(image, merged))
        )
    return found

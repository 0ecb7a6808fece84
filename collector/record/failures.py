"""What a code of Windows means for who records, and what to do about it, in words."""

from collector.errors import RecordError
from collector.record.constants import Code

__all__ = ["failure", "name_of_code"]

_KERNEL_AGENT = (
    "another tool records heaps or the kernel (one heap session runs at a time), or a session of this name is left over. "
    "`logman query -ets` lists all sessions; `sockscope record --list` those of sockscope, and `sockscope record --stop NAME` stops one"
)

_MEANINGS: dict[int, str] = {
    Code.ERROR_FILE_NOT_FOUND: "the file was not found. Check how it is written",
    Code.ERROR_PATH_NOT_FOUND: "the folder does not exist. Windows makes none for a session: make it first",
    Code.ERROR_ACCESS_DENIED: "access denied. Use a prompt that was started by “Run as administrator”, and a folder that you may write to",
    Code.ERROR_NOT_ENOUGH_MEMORY: "not enough memory for the buffers. Take fewer or smaller ones (--winsock-buffers, --heap-buffers)",
    Code.ERROR_OUTOFMEMORY: "out of memory for the buffers. Take fewer or smaller ones (--winsock-buffers, --heap-buffers)",
    Code.ERROR_BAD_LENGTH: "Windows takes the properties to be of a wrong size. This is a fault of sockscope: please report it",
    Code.ERROR_SHARING_VIOLATION: "another program has the file open. Close it, or name another file",
    Code.ERROR_INVALID_PARAMETER: "Windows takes no such combination of options. Leave out --circular, or give other buffer sizes",
    Code.ERROR_DISK_FULL: "the disk is too full: Windows wants room for the size limit, or 200 MB. Free some, or name another folder",
    Code.ERROR_MOD_NOT_FOUND: "a library is missing",
    Code.ERROR_PROC_NOT_FOUND: "a library lacks the function",
    Code.ERROR_BAD_PATHNAME: "another session writes this file. Name another file, or stop that session (`logman query -ets`)",
    Code.ERROR_ALREADY_EXISTS: "a session of this name runs already: `sockscope record --list` shows it, `--stop NAME` stops it",
    Code.ERROR_BAD_EXE_FORMAT: "it is no program for this processor",
    Code.ERROR_ELEVATION_REQUIRED: "the program asks to be run as administrator: use a prompt that was started by “Run as administrator”",
    Code.ERROR_INVALID_FLAGS: "Windows does not accept the kernel flags. This is a fault of sockscope: please report it",
    Code.ERROR_PRIVILEGE_NOT_HELD: "a privilege is missing (profiling the system). Use a prompt that was started by “Run as administrator”",
    Code.ERROR_NO_SYSTEM_RESOURCES: "too many sessions run, or too many have this provider on. `logman query -ets` lists them; stop some",
    Code.ERROR_WMI_INSTANCE_NOT_FOUND: "there is no such session: it was stopped by somebody else, or its file was full",
}

_HEAP_MEANINGS: dict[int, str] = {
    Code.ERROR_ALREADY_EXISTS: _KERNEL_AGENT,
    Code.ERROR_INVALID_PARAMETER: "Windows takes no such combination, or a process ended meanwhile. Check that the process still runs",
}


def name_of_code(code: int) -> str:
    """`ERROR_ACCESS_DENIED (5)`; the bare number where there is no name here."""
    try:
        return f"{Code(code).name} ({code})"
    except ValueError:
        return f"error {code} (`net helpmsg {code}` says what it means)"


def failure(call: str, code: int, what: str) -> RecordError:
    """The error for a code that a call returned.

    Args:
        what: what could not be done, as a sentence without its end: `The heap session "x" could not be started`.
    """
    meanings = {**_MEANINGS, **_HEAP_MEANINGS} if call in ("StartHeapTrace", "UpdateHeapTrace") else _MEANINGS
    meaning = meanings.get(code, "")
    return RecordError(f"{what}: {meaning + '. ' if meaning else ''}{call} returned {name_of_code(code)}.", call=call, code=code)

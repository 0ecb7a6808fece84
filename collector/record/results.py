"""What a recording leaves: the files of its sessions put together into one trace."""

import ctypes
from collections.abc import Callable
from pathlib import Path

from collector.errors import RecordError, TraceError
from collector.joining import join_traces
from collector.record.calls import MissingCall, MissingLibrary, Windows, wide
from collector.record.constants import Code, Merge
from collector.record.failures import name_of_code
from collector.record.plan import Plan

__all__ = ["files_of", "put_together"]

_INJECTED = (
    Merge.EVENT_TRACE_MERGE_EXTENDED_DATA_IMAGEID
    | Merge.EVENT_TRACE_MERGE_EXTENDED_DATA_BUILDINFO
    | Merge.EVENT_TRACE_MERGE_EXTENDED_DATA_VOLUME_MAPPING
)


def files_of(plan: Plan) -> list[Path]:
    """What the sessions have written. Raises RecordError when that is nothing."""
    if files := plan.files():
        return files
    raise RecordError(f"No session has written a file into {plan.folder}: nothing was recorded.")


def put_together(plan: Plan, windows: Windows, say: Callable[[str], None], should_cancel: Callable[[], bool]) -> Path:
    """Make one trace of the sessions' files, which are removed when that is done.

    The toolkit's merge is used where it is there: it adds the identities of modules, by which symbol files are found. Otherwise the records
    are joined by sockscope itself.

    Raises: RecordError when no session wrote a file; the errors of `join_traces`, after which the sessions' files are still there.
    """
    parts = files_of(plan)
    if not _merged_by_toolkit(windows, parts, plan.joined, say):
        try:
            for line in join_traces(parts, plan.joined, should_cancel).lines:
                say(line)
        except TraceError:
            say(f"What was recorded is still in {', '.join(map(str, parts))}; `sockscope join` tries again.")
            raise
    for part in parts:
        part.unlink(missing_ok=True)
    return plan.joined


def _merged_by_toolkit(windows: Windows, parts: list[Path], target: Path, say: Callable[[str], None]) -> bool:
    """CreateMergedTraceFile; False where it cannot be had or fails."""
    names = [wide(str(part)) for part in parts]
    array = (ctypes.c_char_p * len(names))(*names)
    try:
        code = windows.CreateMergedTraceFile(wide(str(target)), array, len(names), _INJECTED)
    except (MissingLibrary, MissingCall):
        say("Without the Windows Performance Toolkit modules get no identity: functions in call stacks cannot be named from symbol files.")
        return False
    if code == Code.ERROR_INSUFFICIENT_BUFFER:
        say("The toolkit says that the merged file may lack events of some session, because events were lost.")
    elif code != Code.ERROR_SUCCESS:
        say(f"The toolkit could not merge the files ({name_of_code(code)}); sockscope joins them itself.")
    return code in (Code.ERROR_SUCCESS, Code.ERROR_INSUFFICIENT_BUFFER) and target.is_file()

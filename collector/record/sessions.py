"""Sessions of Windows: started for the kernel, for Winsock and for heaps, asked how they do, changed, flushed and stopped.

How the calls behave: documentation of the functions; two rules are easy to break. The handle of a session is invalid when it is 0, and
only then: it is never compared with the -1 of other handles, and never used after its call failed. StartHeapTrace sets a Guid of its own
in the properties, so what stands there means nothing.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from collector.errors import RecordError
from collector.events.afd import AFD
from collector.events.heap import HEAP
from collector.record.calls import Windows, wide
from collector.record.constants import Clock, Code, Control, EnableCode, HeapEvent, KernelFlag, LogMode, Misc
from collector.record.failures import failure
from collector.record.plan import SessionPlan
from collector.record.properties import Properties
from collector.record.structures import ENABLE_TRACE_PARAMETERS, STACK_TRACING_EVENT_ID, guid_of

__all__ = [
    "KERNEL",
    "Counters",
    "Session",
    "change_heap",
    "running",
    "start_heap",
    "start_kernel",
    "start_winsock",
    "stop_named",
]

KERNEL = KernelFlag.EVENT_TRACE_FLAG_PROCESS | KernelFlag.EVENT_TRACE_FLAG_THREAD | KernelFlag.EVENT_TRACE_FLAG_IMAGE_LOAD
_MOST_SESSIONS = 64  # the default limit of the system; where it was raised QueryAllTracesW says how many there are


@dataclass(frozen=True, slots=True)
class Counters:
    """How a session does; sizes as Windows made them of what was asked."""

    name: str
    file: str
    buffer_kb: int
    buffers: int
    free_buffers: int
    buffers_written: int
    events_lost: int
    log_buffers_lost: int
    real_time_buffers_lost: int

    @classmethod
    def of(cls, properties: Properties) -> "Counters":
        """What a call wrote into the properties."""
        fields = properties.fields
        return cls(
            name=properties.session_name,
            file=properties.file_name,
            buffer_kb=fields.BufferSize,
            buffers=fields.NumberOfBuffers,
            free_buffers=fields.FreeBuffers,
            buffers_written=fields.BuffersWritten,
            events_lost=fields.EventsLost,
            log_buffers_lost=fields.LogBuffersLost,
            real_time_buffers_lost=fields.RealTimeBuffersLost,
        )


class Session:
    """A session that runs; it goes on after this program ends unless `stop` is called."""

    def __init__(self, windows: Windows, plan: SessionPlan, handle: int) -> None:
        self.plan = plan
        self.handle = handle
        self._windows = windows

    def query(self) -> Counters | None:
        """How it does; None when it no longer runs. Raises RecordError."""
        properties = Properties()
        code = self._windows.ControlTraceW(self.handle, None, properties, Control.EVENT_TRACE_CONTROL_QUERY)
        if code == Code.ERROR_WMI_INSTANCE_NOT_FOUND:
            return None
        if code not in (Code.ERROR_SUCCESS, Code.ERROR_MORE_DATA):
            raise failure("ControlTraceW", code, f"The session {self.plan.name} cannot be asked")
        return Counters.of(properties)

    def flush(self) -> None:
        """Hand on what its buffers hold. Raises RecordError."""
        code = self._windows.ControlTraceW(self.handle, None, Properties(), Control.EVENT_TRACE_CONTROL_FLUSH)
        if code not in (Code.ERROR_SUCCESS, Code.ERROR_MORE_DATA):
            raise failure("ControlTraceW", code, f"The session {self.plan.name} cannot be flushed")

    def stop(self) -> Counters | None:
        """Stop it, by its name; None when it was not running any more. Raises RecordError."""
        return stop_named(self._windows, self.plan.name)


def stop_named(windows: Windows, name: str) -> Counters | None:
    """Stop a session; its buffers are flushed first. Returns its last counters, None when there is no such session. Raises RecordError.

    ERROR_MORE_DATA says that the answer did not fit; the session is stopped all the same.
    """
    properties = Properties()
    code = windows.ControlTraceW(0, wide(name), properties, Control.EVENT_TRACE_CONTROL_STOP)
    if code == Code.ERROR_WMI_INSTANCE_NOT_FOUND:
        return None
    if code not in (Code.ERROR_SUCCESS, Code.ERROR_MORE_DATA):
        raise failure("ControlTraceW", code, f"The session {name} could not be stopped; `logman stop {name} -ets` may")
    return Counters.of(properties)


def running(windows: Windows) -> list[Counters]:
    """All sessions of the system that this user may see. Raises RecordError."""
    room = _MOST_SESSIONS
    while True:
        all_of_them = [Properties() for _ in range(room)]
        addresses = (ctypes.c_void_p * room)(*(properties.address for properties in all_of_them))
        count = ctypes.c_uint32()
        code = windows.QueryAllTracesW(addresses, room, ctypes.byref(count))
        if code == Code.ERROR_MORE_DATA and count.value > room:
            room = count.value
            continue
        if code not in (Code.ERROR_SUCCESS, Code.ERROR_MORE_DATA):
            raise failure("QueryAllTracesW", code, "The running sessions cannot be listed")
        return [Counters.of(properties) for properties in all_of_them[: min(count.value, room)]]


def start_kernel(windows: Windows, plan: SessionPlan) -> Session:
    """Processes, threads and modules, in a system logger of our own (Windows 8 and later). Raises RecordError."""
    properties = _properties_of(plan)
    properties.fields.Wnode.Guid = guid_of(uuid4())  # a system logger needs one, and another than all others
    properties.fields.LogFileMode |= LogMode.EVENT_TRACE_SYSTEM_LOGGER_MODE
    properties.fields.EnableFlags = KERNEL
    return _start(windows, plan, properties, "kernel")


def start_winsock(windows: Windows, plan: SessionPlan, *, level: int, keywords: int) -> Session:
    """Events of the Winsock provider for all processes: it cannot be limited to one.

    Args:
        keywords: events with any of these, and those that have none; 0 for all.

    Raises: RecordError; the session is stopped again when the provider cannot be enabled.
    """
    session = _start(windows, plan, _properties_of(plan), "Winsock")
    try:
        enable(windows, session, AFD, level=level, keywords=keywords)
    except BaseException:
        session.stop()
        raise
    return session


def enable(windows: Windows, session: Session, provider: UUID, *, level: int, keywords: int) -> None:
    """Have a provider write into a session. Raises RecordError."""
    parameters = ENABLE_TRACE_PARAMETERS(Version=Misc.ENABLE_TRACE_PARAMETERS_VERSION_2)
    code = windows.EnableTraceEx2(
        session.handle,
        ctypes.byref(guid_of(provider)),
        EnableCode.EVENT_CONTROL_CODE_ENABLE_PROVIDER,
        level,
        keywords,
        0,
        0,
        ctypes.byref(parameters),
    )
    if code != Code.ERROR_SUCCESS:
        raise failure("EnableTraceEx2", code, f"The provider {provider} could not be enabled in the session {session.plan.name}")


def start_heap(windows: Windows, plan: SessionPlan, pids: Sequence[int], stacks: Sequence[HeapEvent]) -> Session:
    """The heap events of processes that exist, with call stacks for some kinds of them. Raises RecordError, MissingLibrary, MissingCall.

    EnableFlags stays 0: StartHeapTrace refuses what it does not know there.
    """
    properties = _properties_of(plan)
    handle = ctypes.c_uint64(0)
    code = windows.StartHeapTrace(ctypes.byref(handle), properties, wide(plan.name), *_heap_arguments(pids, stacks))
    if code == Code.ERROR_ALREADY_EXISTS:
        refused = failure("StartHeapTrace", code, f"The heap session {plan.name} could not be started")
        raise RecordError(f"{refused}{_names_of_running(windows)}", call="StartHeapTrace", code=code)
    return _started(windows, plan, "StartHeapTrace", code, handle.value, "heap")


def _names_of_running(windows: Windows) -> str:
    """Which sessions there are, for who has to find out which of them is in the way; empty where that cannot be asked."""
    try:
        names = [counters.name for counters in running(windows) if counters.name]
    except RecordError:
        return ""
    return f" Sessions that run: {', '.join(names)}." if names else ""


def change_heap(windows: Windows, name: str, pids: Sequence[int], stacks: Sequence[HeapEvent]) -> None:
    """Replace the processes and the kinds of events with stacks of a heap session that runs: what is to stay has to be named again.

    Its properties stay, so the offset of the file's name is 0. Raises RecordError, MissingLibrary, MissingCall.
    """
    counters = next((found for found in running(windows) if found.name == name), None)
    if counters is None:
        raise RecordError(f"No session {name} runs: nothing to change. `sockscope record --list` shows what runs.")
    query = Properties()
    code = windows.ControlTraceW(0, wide(name), query, Control.EVENT_TRACE_CONTROL_QUERY)
    if code not in (Code.ERROR_SUCCESS, Code.ERROR_MORE_DATA):
        raise failure("ControlTraceW", code, f"The session {name} cannot be asked")
    properties = Properties(file=None)
    properties.fields.Wnode.Flags = Misc.WNODE_FLAG_TRACED_GUID
    for field in ("MaximumBuffers", "FlushTimer", "LogFileMode"):  # an update sets these, so they get the values they have
        setattr(properties.fields, field, getattr(query.fields, field))
    code = windows.UpdateHeapTrace(properties, wide(name), *_heap_arguments(pids, stacks))
    if code != Code.ERROR_SUCCESS:
        raise failure("UpdateHeapTrace", code, f"The heap session {name} could not be changed")


def _heap_arguments(pids: Sequence[int], stacks: Sequence[HeapEvent]) -> tuple[object, int, object, int]:
    ids = (STACK_TRACING_EVENT_ID * len(stacks))(*(STACK_TRACING_EVENT_ID(guid_of(HEAP), kind) for kind in stacks))
    return (ctypes.c_uint32 * len(pids))(*pids), len(pids), ids if stacks else None, len(stacks)


def _properties_of(plan: SessionPlan) -> Properties:
    if plan.file is None and not plan.is_real_time:
        raise ValueError("a session needs a file or a reader")
    if plan.is_circular and not plan.size_limit_mb:
        raise ValueError("a circular file needs a size limit")
    if plan.is_rotating and not (plan.size_limit_mb and plan.file and "%d" in plan.file):
        raise ValueError("a session that begins new files needs a size for them, and a name with %d")
    properties = Properties(plan.file)
    fields = properties.fields
    fields.Wnode.Flags = Misc.WNODE_FLAG_TRACED_GUID
    fields.Wnode.ClientContext = Clock.PERFORMANCE_COUNTER  # the same in all sessions, so that their times compare
    fields.BufferSize = plan.buffers.kb
    fields.MinimumBuffers = plan.buffers.least
    fields.MaximumBuffers = plan.buffers.most
    fields.MaximumFileSize = plan.size_limit_mb
    fields.FlushTimer = plan.flush_s
    mode = LogMode(0)
    if plan.file is not None:
        mode |= _file_mode(plan)
    if plan.is_real_time:
        mode |= LogMode.EVENT_TRACE_REAL_TIME_MODE
    fields.LogFileMode = mode
    return properties


def _file_mode(plan: SessionPlan) -> LogMode:
    if plan.is_rotating:
        return LogMode.EVENT_TRACE_FILE_MODE_NEWFILE
    return LogMode.EVENT_TRACE_FILE_MODE_CIRCULAR if plan.is_circular else LogMode.EVENT_TRACE_FILE_MODE_SEQUENTIAL


def _start(windows: Windows, plan: SessionPlan, properties: Properties, kind: str) -> Session:
    handle = ctypes.c_uint64(0)
    code = windows.StartTraceW(ctypes.byref(handle), wide(plan.name), properties)
    return _started(windows, plan, "StartTraceW", code, handle.value, kind)


def _started(windows: Windows, plan: SessionPlan, call: str, code: int, handle: int, kind: str) -> Session:
    """The session, if the call says so and gave a handle: 0 is none, and every other number is one."""
    if code != Code.ERROR_SUCCESS:
        raise failure(call, code, f"The {kind} session {plan.name} could not be started")
    if handle == 0:
        stop_named(windows, plan.name)  # should one run all the same
        raise RecordError(f"The {kind} session {plan.name} could not be started: {call} succeeded but gave no handle.", call=call, code=0)
    return Session(windows, plan, handle)

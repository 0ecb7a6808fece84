"""The structures of the Windows event tracing and process calls, one declaration each for 32 and 64 bits.

Members carry the names of the Windows headers, so that they can be looked up; a member that is a union there has the name of the
alternative that is used here. Only types of a fixed width stand here: `c_ulong` and the types of `ctypes.wintypes` have other sizes on
other systems. Text is UTF-16 in byte buffers. Everything is checked against the headers of mingw-w64 for both processors
(`tests/record/test_declarations.py`).
"""

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any
from uuid import UUID

__all__ = [
    "BUFFER_CALLBACK",
    "CALLBACKS",
    "CONSOLE_HANDLER",
    "ENABLE_TRACE_PARAMETERS",
    "EVENT_DESCRIPTOR",
    "EVENT_FILTER_DESCRIPTOR",
    "EVENT_FILTER_EVENT_ID",
    "EVENT_HEADER",
    "EVENT_HEADER_EXTENDED_DATA_ITEM",
    "EVENT_RECORD",
    "EVENT_RECORD_CALLBACK",
    "EVENT_TRACE",
    "EVENT_TRACE_HEADER",
    "EVENT_TRACE_LOGFILEW",
    "EVENT_TRACE_PROPERTIES",
    "GUID",
    "LUID",
    "LUID_AND_ATTRIBUTES",
    "PROCESS_INFORMATION",
    "STACK_TRACING_EVENT_ID",
    "STARTUPINFOW",
    "STRUCTURES",
    "SYSTEMTIME",
    "TIME_ZONE_INFORMATION",
    "TOKEN_ELEVATION",
    "TOKEN_PRIVILEGES",
    "TRACE_LOGFILE_HEADER",
    "WNODE_HEADER",
    "callback_type",
    "guid_of",
    "header_name",
]


def callback_type(result: Any, *arguments: Any) -> Any:
    """The type of a function that Windows calls; on other systems with their own calling convention, for the tests."""
    make = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)  # WINFUNCTYPE exists on Windows alone
    return make(result, *arguments)


class GUID(ctypes.Structure):
    """128 bits; as bytes they are `UUID.bytes_le`."""

    _fields_ = (("Data1", c_uint32), ("Data2", c_uint16), ("Data3", c_uint16), ("Data4", c_uint8 * 8))


def guid_of(value: UUID) -> GUID:
    """The structure for a UUID."""
    return GUID.from_buffer_copy(value.bytes_le)


class WNODE_HEADER(ctypes.Structure):
    """Head of the properties; `BufferSize` counts the whole allocation, names included."""

    _fields_ = (
        ("BufferSize", c_uint32),
        ("ProviderId", c_uint32),
        ("HistoricalContext", c_uint64),
        ("TimeStamp", c_int64),
        ("Guid", GUID),
        ("ClientContext", c_uint32),
        ("Flags", c_uint32),
    )


class EVENT_TRACE_PROPERTIES(ctypes.Structure):
    """What a session is and how it does: buffer sizes in KB, file size in MB, flush timer in seconds; offsets from its own start."""

    _fields_ = (
        ("Wnode", WNODE_HEADER),
        ("BufferSize", c_uint32),
        ("MinimumBuffers", c_uint32),
        ("MaximumBuffers", c_uint32),
        ("MaximumFileSize", c_uint32),
        ("LogFileMode", c_uint32),
        ("FlushTimer", c_uint32),
        ("EnableFlags", c_uint32),
        ("AgeLimit", c_int32),
        ("NumberOfBuffers", c_uint32),
        ("FreeBuffers", c_uint32),
        ("EventsLost", c_uint32),
        ("BuffersWritten", c_uint32),
        ("LogBuffersLost", c_uint32),
        ("RealTimeBuffersLost", c_uint32),
        ("LoggerThreadId", c_void_p),
        ("LogFileNameOffset", c_uint32),
        ("LoggerNameOffset", c_uint32),
    )


class EVENT_TRACE_HEADER(ctypes.Structure):
    """Header of a record in the form of old consumers."""

    _fields_ = (
        ("Size", c_uint16),
        ("FieldTypeFlags", c_uint16),
        ("Version", c_uint32),
        ("ThreadId", c_uint32),
        ("ProcessId", c_uint32),
        ("TimeStamp", c_int64),
        ("Guid", GUID),
        ("ProcessorTime", c_uint64),
    )


class EVENT_TRACE(ctypes.Structure):
    """A record in the form of old consumers; here it only holds its place in EVENT_TRACE_LOGFILEW."""

    _fields_ = (
        ("Header", EVENT_TRACE_HEADER),
        ("InstanceId", c_uint32),
        ("ParentInstanceId", c_uint32),
        ("ParentGuid", GUID),
        ("MofData", c_void_p),
        ("MofLength", c_uint32),
        ("ClientContext", c_uint32),
    )


class SYSTEMTIME(ctypes.Structure):
    """A date as fields."""

    _fields_ = tuple((name, c_uint16) for name in ("wYear", "wMonth", "wDayOfWeek", "wDay", "wHour", "wMinute", "wSecond", "wMilliseconds"))


class TIME_ZONE_INFORMATION(ctypes.Structure):
    """The names are 32 UTF-16 units each."""

    _fields_ = (
        ("Bias", c_int32),
        ("StandardName", c_uint16 * 32),
        ("StandardDate", SYSTEMTIME),
        ("StandardBias", c_int32),
        ("DaylightName", c_uint16 * 32),
        ("DaylightDate", SYSTEMTIME),
        ("DaylightBias", c_int32),
    )


class TRACE_LOGFILE_HEADER(ctypes.Structure):
    """What OpenTraceW tells of a session: its clock, its size, its losses. `ReservedFlags` is the kind of clock, `BootTime` to `StartTime`
    FILETIMEs but for `PerfFreq`, ticks a second."""

    _fields_ = (
        ("BufferSize", c_uint32),
        ("Version", c_uint32),
        ("ProviderVersion", c_uint32),
        ("NumberOfProcessors", c_uint32),
        ("EndTime", c_int64),
        ("TimerResolution", c_uint32),
        ("MaximumFileSize", c_uint32),
        ("LogFileMode", c_uint32),
        ("BuffersWritten", c_uint32),
        ("StartBuffers", c_uint32),
        ("PointerSize", c_uint32),
        ("EventsLost", c_uint32),
        ("CpuSpeedInMHz", c_uint32),
        ("LoggerName", c_void_p),
        ("LogFileName", c_void_p),
        ("TimeZone", TIME_ZONE_INFORMATION),
        ("BootTime", c_int64),
        ("PerfFreq", c_int64),
        ("StartTime", c_int64),
        ("ReservedFlags", c_uint32),
        ("BuffersLost", c_uint32),
    )


class EVENT_TRACE_LOGFILEW(ctypes.Structure):
    """What OpenTraceW is asked with and answers in. The callbacks are pointers: cast a function of `EVENT_RECORD_CALLBACK` or
    `BUFFER_CALLBACK`, and keep it alive for as long as ProcessTrace runs."""

    _fields_ = (
        ("LogFileName", c_void_p),
        ("LoggerName", c_void_p),
        ("CurrentTime", c_int64),
        ("BuffersRead", c_uint32),
        ("ProcessTraceMode", c_uint32),
        ("CurrentEvent", EVENT_TRACE),
        ("LogfileHeader", TRACE_LOGFILE_HEADER),
        ("BufferCallback", c_void_p),
        ("BufferSize", c_uint32),
        ("Filled", c_uint32),
        ("EventsLost", c_uint32),
        ("EventRecordCallback", c_void_p),
        ("IsKernelTrace", c_uint32),
        ("Context", c_void_p),
    )


class EVENT_DESCRIPTOR(ctypes.Structure):
    """Which event a record is."""

    _fields_ = (
        ("Id", c_uint16),
        ("Version", c_uint8),
        ("Channel", c_uint8),
        ("Level", c_uint8),
        ("Opcode", c_uint8),
        ("Task", c_uint16),
        ("Keyword", c_uint64),
    )


class EVENT_HEADER(ctypes.Structure):
    """Header of a record; `TimeStamp` is in ticks of the session's clock when raw time stamps were asked for, else a FILETIME."""

    _fields_ = (
        ("Size", c_uint16),
        ("HeaderType", c_uint16),
        ("Flags", c_uint16),
        ("EventProperty", c_uint16),
        ("ThreadId", c_uint32),
        ("ProcessId", c_uint32),
        ("TimeStamp", c_int64),
        ("ProviderId", GUID),
        ("EventDescriptor", EVENT_DESCRIPTOR),
        ("ProcessorTime", c_uint64),
        ("ActivityId", GUID),
    )


class ETW_BUFFER_CONTEXT(ctypes.Structure):
    """Where a record was logged; the processor's number as 16 bits when the header's flags have 0x200, else its low 8 bits."""

    _fields_ = (("ProcessorIndex", c_uint16), ("LoggerId", c_uint16))


class EVENT_HEADER_EXTENDED_DATA_ITEM(ctypes.Structure):
    """An item beside the payload; type 5 or 6 is a stack of 32- or 64-bit frames."""

    _fields_ = (
        ("Reserved1", c_uint16),
        ("ExtType", c_uint16),
        ("Linkage", c_uint16),
        ("DataSize", c_uint16),
        ("DataPtr", c_uint64),
    )


class EVENT_RECORD(ctypes.Structure):
    """What the callback gets; it and all it points to are valid only inside the callback."""

    _fields_ = (
        ("EventHeader", EVENT_HEADER),
        ("BufferContext", ETW_BUFFER_CONTEXT),
        ("ExtendedDataCount", c_uint16),
        ("UserDataLength", c_uint16),
        ("ExtendedData", c_void_p),
        ("UserData", c_void_p),
        ("UserContext", c_void_p),
    )


class EVENT_FILTER_DESCRIPTOR(ctypes.Structure):
    """One filter of EnableTraceEx2; `Ptr` is 64 bits wide everywhere."""

    _fields_ = (("Ptr", c_uint64), ("Size", c_uint32), ("Type", c_uint32))


class EVENT_FILTER_EVENT_ID(ctypes.Structure):
    """Head of an event id filter, followed by `Count` ids of 16 bits."""

    _fields_ = (("FilterIn", c_uint8), ("Reserved", c_uint8), ("Count", c_uint16))


class ENABLE_TRACE_PARAMETERS(ctypes.Structure):
    """What EnableTraceEx2 is told besides level and keywords; `Version` is 2."""

    _fields_ = (
        ("Version", c_uint32),
        ("EnableProperty", c_uint32),
        ("ControlFlags", c_uint32),
        ("SourceId", GUID),
        ("EnableFilterDesc", c_void_p),
        ("FilterDescCount", c_uint32),
    )


class STACK_TRACING_EVENT_ID(ctypes.Structure):
    """A classic event whose call stack is to be recorded. The SDK has the same structure as CLASSIC_EVENT_ID."""

    _fields_ = (("EventGuid", GUID), ("Type", c_uint8), ("Reserved", c_uint8 * 7))


class STARTUPINFOW(ctypes.Structure):
    """How a process begins; its size and zeros suffice."""

    _fields_ = (
        ("cb", c_uint32),
        ("lpReserved", c_void_p),
        ("lpDesktop", c_void_p),
        ("lpTitle", c_void_p),
        ("dwX", c_uint32),
        ("dwY", c_uint32),
        ("dwXSize", c_uint32),
        ("dwYSize", c_uint32),
        ("dwXCountChars", c_uint32),
        ("dwYCountChars", c_uint32),
        ("dwFillAttribute", c_uint32),
        ("dwFlags", c_uint32),
        ("wShowWindow", c_uint16),
        ("cbReserved2", c_uint16),
        ("lpReserved2", c_void_p),
        ("hStdInput", c_void_p),
        ("hStdOutput", c_void_p),
        ("hStdError", c_void_p),
    )


class PROCESS_INFORMATION(ctypes.Structure):
    """The handles of a process that was begun, to be closed by whoever began it, and its ids."""

    _fields_ = (("hProcess", c_void_p), ("hThread", c_void_p), ("dwProcessId", c_uint32), ("dwThreadId", c_uint32))


class LUID(ctypes.Structure):
    """The number of a privilege on this machine."""

    _fields_ = (("LowPart", c_uint32), ("HighPart", c_int32))


class LUID_AND_ATTRIBUTES(ctypes.Structure):
    """A privilege, enabled or not."""

    _fields_ = (("Luid", LUID), ("Attributes", c_uint32))


class TOKEN_PRIVILEGES(ctypes.Structure):
    """One privilege, as AdjustTokenPrivileges takes it."""

    _fields_ = (("PrivilegeCount", c_uint32), ("Privileges", LUID_AND_ATTRIBUTES * 1))


class TOKEN_ELEVATION(ctypes.Structure):
    """Whether a process runs elevated."""

    _fields_ = (("TokenIsElevated", c_uint32),)


EVENT_RECORD_CALLBACK = callback_type(None, POINTER(EVENT_RECORD))
CONSOLE_HANDLER = callback_type(c_int32, c_uint32)
BUFFER_CALLBACK = callback_type(c_uint32, POINTER(EVENT_TRACE_LOGFILEW))
"""Returns 0 to end ProcessTrace."""

CALLBACKS: dict[str, Any] = {  # Any: as callback_type gives them
    "PEVENT_RECORD_CALLBACK": EVENT_RECORD_CALLBACK,
    "PHANDLER_ROUTINE": CONSOLE_HANDLER,
    "PEVENT_TRACE_BUFFER_CALLBACKW": BUFFER_CALLBACK,
}
"""What Windows calls, by the names of the headers, for the check against them."""

STRUCTURES: tuple[type[ctypes.Structure], ...] = (
    GUID,
    WNODE_HEADER,
    EVENT_TRACE_PROPERTIES,
    EVENT_TRACE_HEADER,
    EVENT_TRACE,
    SYSTEMTIME,
    TIME_ZONE_INFORMATION,
    TRACE_LOGFILE_HEADER,
    EVENT_TRACE_LOGFILEW,
    EVENT_DESCRIPTOR,
    EVENT_HEADER,
    ETW_BUFFER_CONTEXT,
    EVENT_HEADER_EXTENDED_DATA_ITEM,
    EVENT_RECORD,
    EVENT_FILTER_DESCRIPTOR,
    EVENT_FILTER_EVENT_ID,
    ENABLE_TRACE_PARAMETERS,
    STACK_TRACING_EVENT_ID,
    STARTUPINFOW,
    PROCESS_INFORMATION,
    LUID,
    LUID_AND_ATTRIBUTES,
    TOKEN_PRIVILEGES,
    TOKEN_ELEVATION,
)
"""All of them, for the check against the headers."""


def header_name(structure: type[ctypes.Structure]) -> str:
    """Its name in the Windows SDK, where `structure` stands under the name that another kit gives it."""
    return "CLASSIC_EVENT_ID" if structure is STACK_TRACING_EVENT_ID else structure.__name__

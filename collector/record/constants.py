"""The numbers of the Windows event tracing and process calls, with the names of the Windows headers.

Each is checked against the headers of mingw-w64, but for those in `NOT_IN_HEADERS`, which these headers do not have yet.
"""

from enum import IntEnum, IntFlag

__all__ = [
    "CONSTANTS",
    "INVALID_PROCESSTRACE_HANDLE",
    "INVALID_PROCESSTRACE_HANDLE_32",
    "NOT_IN_HEADERS",
    "Clock",
    "Code",
    "Control",
    "EnableCode",
    "EnableProperty",
    "FilterType",
    "HeapEvent",
    "KernelFlag",
    "Keyword",
    "Level",
    "LogMode",
    "Merge",
    "Misc",
    "ReadMode",
]


class LogMode(IntFlag):
    """LogFileMode of a session."""

    EVENT_TRACE_FILE_MODE_SEQUENTIAL = 0x00000001
    EVENT_TRACE_FILE_MODE_CIRCULAR = 0x00000002
    EVENT_TRACE_FILE_MODE_APPEND = 0x00000004
    EVENT_TRACE_FILE_MODE_NEWFILE = 0x00000008
    EVENT_TRACE_FILE_MODE_PREALLOCATE = 0x00000020
    EVENT_TRACE_REAL_TIME_MODE = 0x00000100
    EVENT_TRACE_BUFFERING_MODE = 0x00000400
    EVENT_TRACE_SYSTEM_LOGGER_MODE = 0x02000000
    EVENT_TRACE_NO_PER_PROCESSOR_BUFFERING = 0x10000000


class KernelFlag(IntFlag):
    """EnableFlags of a system logger."""

    EVENT_TRACE_FLAG_PROCESS = 0x00000001
    EVENT_TRACE_FLAG_THREAD = 0x00000002
    EVENT_TRACE_FLAG_IMAGE_LOAD = 0x00000004
    EVENT_TRACE_FLAG_VIRTUAL_ALLOC = 0x00004000


class Control(IntEnum):
    """What ControlTraceW does."""

    EVENT_TRACE_CONTROL_QUERY = 0
    EVENT_TRACE_CONTROL_STOP = 1
    EVENT_TRACE_CONTROL_UPDATE = 2
    EVENT_TRACE_CONTROL_FLUSH = 3


class EnableCode(IntEnum):
    """What EnableTraceEx2 does."""

    EVENT_CONTROL_CODE_DISABLE_PROVIDER = 0
    EVENT_CONTROL_CODE_ENABLE_PROVIDER = 1
    EVENT_CONTROL_CODE_CAPTURE_STATE = 2


class EnableProperty(IntFlag):
    """EnableProperty of ENABLE_TRACE_PARAMETERS."""

    EVENT_ENABLE_PROPERTY_STACK_TRACE = 0x00000004
    EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0 = 0x00000010


class FilterType(IntEnum):
    """Type of EVENT_FILTER_DESCRIPTOR."""

    EVENT_FILTER_TYPE_PID = 0x80000004
    EVENT_FILTER_TYPE_EXECUTABLE_NAME = 0x80000008
    EVENT_FILTER_TYPE_EVENT_ID = 0x80000200
    EVENT_FILTER_TYPE_STACKWALK = 0x80001000


class ReadMode(IntFlag):
    """ProcessTraceMode of EVENT_TRACE_LOGFILEW."""

    PROCESS_TRACE_MODE_REAL_TIME = 0x00000100
    PROCESS_TRACE_MODE_RAW_TIMESTAMP = 0x00001000
    PROCESS_TRACE_MODE_EVENT_RECORD = 0x10000000


class Merge(IntFlag):
    """What CreateMergedTraceFile adds to a merged file, from the documentation of the Windows Performance Toolkit."""

    EVENT_TRACE_MERGE_EXTENDED_DATA_NONE = 0x00000000
    EVENT_TRACE_MERGE_EXTENDED_DATA_IMAGEID = 0x00000001
    EVENT_TRACE_MERGE_EXTENDED_DATA_BUILDINFO = 0x00000002
    EVENT_TRACE_MERGE_EXTENDED_DATA_VOLUME_MAPPING = 0x00000004


class Misc(IntEnum):
    """What stands alone."""

    WNODE_FLAG_TRACED_GUID = 0x00020000
    ENABLE_TRACE_PARAMETERS_VERSION_2 = 2
    TraceStackTracingInfo = 3
    CREATE_SUSPENDED = 0x00000004
    CREATE_NEW_PROCESS_GROUP = 0x00000200
    CREATE_UNICODE_ENVIRONMENT = 0x00000400
    SE_PRIVILEGE_ENABLED = 0x00000002
    TOKEN_ADJUST_PRIVILEGES = 0x0020
    TOKEN_QUERY = 0x0008
    TokenElevation = 20
    WAIT_OBJECT_0 = 0
    WAIT_TIMEOUT = 258
    PROCESS_TERMINATE = 0x0001
    PROCESS_QUERY_LIMITED_INFORMATION = 0x1000
    SYNCHRONIZE = 0x00100000
    CTRL_C_EVENT = 0
    CTRL_BREAK_EVENT = 1
    CTRL_CLOSE_EVENT = 2
    CTRL_LOGOFF_EVENT = 5
    CTRL_SHUTDOWN_EVENT = 6
    EVENT_HEADER_FLAG_32_BIT_HEADER = 0x0020
    EVENT_HEADER_FLAG_64_BIT_HEADER = 0x0040
    EVENT_HEADER_FLAG_CLASSIC_HEADER = 0x0100
    EVENT_HEADER_FLAG_PROCESSOR_INDEX = 0x0200
    EVENT_HEADER_EXT_TYPE_STACK_TRACE32 = 5
    EVENT_HEADER_EXT_TYPE_STACK_TRACE64 = 6


class Code(IntEnum):
    """The error codes that have a message of their own here."""

    ERROR_SUCCESS = 0
    ERROR_FILE_NOT_FOUND = 2
    ERROR_PATH_NOT_FOUND = 3
    ERROR_ACCESS_DENIED = 5
    ERROR_NOT_ENOUGH_MEMORY = 8
    ERROR_OUTOFMEMORY = 14
    ERROR_BAD_LENGTH = 24
    ERROR_SHARING_VIOLATION = 32
    ERROR_INVALID_PARAMETER = 87
    ERROR_DISK_FULL = 112
    ERROR_MOD_NOT_FOUND = 126
    ERROR_INSUFFICIENT_BUFFER = 122
    ERROR_PROC_NOT_FOUND = 127
    ERROR_BAD_PATHNAME = 161
    ERROR_ALREADY_EXISTS = 183
    ERROR_BAD_EXE_FORMAT = 193
    ERROR_MORE_DATA = 234
    ERROR_ELEVATION_REQUIRED = 740
    ERROR_NOACCESS = 998
    ERROR_INVALID_FLAGS = 1004
    ERROR_CANCELLED = 1223
    ERROR_NOT_ALL_ASSIGNED = 1300
    ERROR_PRIVILEGE_NOT_HELD = 1314
    ERROR_NO_SYSTEM_RESOURCES = 1450
    ERROR_WMI_INSTANCE_NOT_FOUND = 4201
    ERROR_WMI_ALREADY_ENABLED = 4206
    ERROR_CTX_CLOSE_PENDING = 7007


class Clock(IntEnum):
    """ClientContext of a session: which clock stamps its records. The headers have no names for these."""

    PERFORMANCE_COUNTER = 1
    SYSTEM_TIME = 2
    CYCLE_COUNTER = 3


class Level(IntEnum):
    """Levels of the Winsock provider that make a difference; the headers call them TRACE_LEVEL_…"""

    INFORMATION = 4
    VERBOSE = 5


class Keyword(IntFlag):
    """Keywords of the Winsock provider, from its manifest."""

    DATAGRAM = 0x01
    STREAM = 0x02
    WINSOCK = 0x04
    TRANSPORT = 0x08
    FAST_PATH = 0x10
    BUFFERED = 0x20
    REGISTERED_IO = 0x40
    NRT = 0x80


class HeapEvent(IntEnum):
    """Types of the heap events whose stacks can be asked for."""

    CREATE = 0x20
    ALLOC = 0x21
    REALLOC = 0x22
    DESTROY = 0x23
    FREE = 0x24


INVALID_PROCESSTRACE_HANDLE = 0xFFFF_FFFF_FFFF_FFFF
INVALID_PROCESSTRACE_HANDLE_32 = 0xFFFF_FFFF
"""What OpenTraceW returns when it failed, the second in a 32-bit process. A session's handle is another kind: it is invalid when 0."""

CONSTANTS: dict[str, int] = {
    name: member.value
    for kind in (LogMode, KernelFlag, Control, EnableCode, EnableProperty, FilterType, ReadMode, Misc, Code)
    for name, member in kind.__members__.items()
}
"""Every number under the name of the headers."""

NOT_IN_HEADERS = frozenset(
    {
        "ERROR_ELEVATION_REQUIRED",
        "EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0",
        "EVENT_FILTER_TYPE_PID",
        "EVENT_FILTER_TYPE_EXECUTABLE_NAME",
        "EVENT_FILTER_TYPE_EVENT_ID",
        "EVENT_FILTER_TYPE_STACKWALK",
    }
)
"""Numbers known from documentation and from open tools alone: mingw-w64 10 does not have them."""

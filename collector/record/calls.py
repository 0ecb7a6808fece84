"""The system's functions: which library has them, what they take, and how they are loaded.

Declared once with the types of the Windows headers. The prototypes that the tests compile against those headers and the ctypes
prototypes that Python calls are both made from this table. KernelTraceControl.dll has no header in the SDK: its functions follow
the documentation of the Windows Performance Toolkit.
"""

import ctypes
import sys
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

__all__ = ["FUNCTIONS", "Function", "Library", "MissingCall", "MissingLibrary", "Windows", "ctype_of", "wide"]

Library = str
"""`advapi32`, `kernel32` or `KernelTraceControl`."""

_PLAIN = {
    "void": None,
    "ULONG": c_uint32,
    "DWORD": c_uint32,
    "UINT": c_uint32,
    "BOOL": c_int32,
    "UCHAR": c_uint8,
    "ULONGLONG": c_uint64,
    "TRACEHANDLE": c_uint64,
    "TRACE_INFO_CLASS": c_int32,
    "TOKEN_INFORMATION_CLASS": c_int32,
    "LPCWSTR": c_char_p,
}


def ctype_of(name: str) -> Any:
    """The ctypes type of a type of the headers; every other one than the plain ones is a pointer or a handle, as wide as a pointer."""
    return _PLAIN.get(name, c_void_p)


def wide(text: str) -> bytes:
    """Text as Windows takes it: UTF-16 with a zero at its end. Lone surrogates, which its file names may have, pass."""
    return (text + "\0").encode("utf-16-le", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its library, what it returns, and its parameters as `TYPE name`."""

    library: Library
    name: str
    result: str
    parameters: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The parameters' types alone."""
        return tuple(parameter.rpartition(" ")[0] for parameter in self.parameters)


FUNCTIONS = {
    function.name: function
    for function in (
        Function("advapi32", "StartTraceW", "ULONG", ("PTRACEHANDLE handle", "LPCWSTR name", "PEVENT_TRACE_PROPERTIES properties")),
        Function(
            "advapi32",
            "ControlTraceW",
            "ULONG",
            ("TRACEHANDLE handle", "LPCWSTR name", "PEVENT_TRACE_PROPERTIES properties", "ULONG control"),
        ),
        Function(
            "advapi32",
            "EnableTraceEx2",
            "ULONG",
            (
                "TRACEHANDLE handle",
                "LPCGUID provider",
                "ULONG code",
                "UCHAR level",
                "ULONGLONG any_keyword",
                "ULONGLONG all_keywords",
                "ULONG timeout_ms",
                "PENABLE_TRACE_PARAMETERS parameters",
            ),
        ),
        Function("advapi32", "QueryAllTracesW", "ULONG", ("PEVENT_TRACE_PROPERTIES * array", "ULONG room", "PULONG count")),
        Function("advapi32", "OpenTraceW", "TRACEHANDLE", ("PEVENT_TRACE_LOGFILEW logfile",)),
        Function("advapi32", "ProcessTrace", "ULONG", ("PTRACEHANDLE handles", "ULONG count", "LPFILETIME start", "LPFILETIME end")),
        Function("advapi32", "CloseTrace", "ULONG", ("TRACEHANDLE handle",)),
        Function("advapi32", "OpenProcessToken", "BOOL", ("HANDLE process", "DWORD access", "PHANDLE token")),
        Function("advapi32", "LookupPrivilegeValueW", "BOOL", ("LPCWSTR system", "LPCWSTR name", "PLUID luid")),
        Function(
            "advapi32",
            "AdjustTokenPrivileges",
            "BOOL",
            (
                "HANDLE token",
                "BOOL disable_all",
                "PTOKEN_PRIVILEGES wanted",
                "DWORD length",
                "PTOKEN_PRIVILEGES before",
                "PDWORD needed",
            ),
        ),
        Function(
            "advapi32",
            "GetTokenInformation",
            "BOOL",
            ("HANDLE token", "TOKEN_INFORMATION_CLASS kind", "LPVOID answer", "DWORD length", "PDWORD needed"),
        ),
        Function(
            "kernel32",
            "CreateProcessW",
            "BOOL",
            (
                "LPCWSTR application",
                "LPWSTR command_line",
                "LPSECURITY_ATTRIBUTES process",
                "LPSECURITY_ATTRIBUTES thread",
                "BOOL inherit",
                "DWORD flags",
                "LPVOID environment",
                "LPCWSTR folder",
                "LPSTARTUPINFOW startup",
                "LPPROCESS_INFORMATION information",
            ),
        ),
        Function("kernel32", "ResumeThread", "DWORD", ("HANDLE thread",)),
        Function("kernel32", "TerminateProcess", "BOOL", ("HANDLE process", "UINT exit_code")),
        Function("kernel32", "WaitForSingleObject", "DWORD", ("HANDLE object", "DWORD timeout_ms")),
        Function("kernel32", "GetExitCodeProcess", "BOOL", ("HANDLE process", "LPDWORD exit_code")),
        Function("kernel32", "OpenProcess", "HANDLE", ("DWORD access", "BOOL inherit", "DWORD pid")),
        Function("kernel32", "GetCurrentProcess", "HANDLE"),
        Function("kernel32", "CloseHandle", "BOOL", ("HANDLE object",)),
        Function("kernel32", "SetConsoleCtrlHandler", "BOOL", ("PHANDLER_ROUTINE handler", "BOOL add")),
        Function(
            "KernelTraceControl",
            "StartHeapTrace",
            "ULONG",
            (
                "PTRACEHANDLE handle",
                "PEVENT_TRACE_PROPERTIES properties",
                "LPCWSTR name",
                "PULONG pids",
                "ULONG pid_count",
                "PSTACK_TRACING_EVENT_ID stack_ids",
                "ULONG stack_id_count",
            ),
        ),
        Function(
            "KernelTraceControl",
            "UpdateHeapTrace",
            "ULONG",
            (
                "PEVENT_TRACE_PROPERTIES properties",
                "LPCWSTR name",
                "PULONG pids",
                "ULONG pid_count",
                "PSTACK_TRACING_EVENT_ID stack_ids",
                "ULONG stack_id_count",
            ),
        ),
        Function(
            "KernelTraceControl",
            "CreateMergedTraceFile",
            "ULONG",
            ("LPCWSTR merged", "LPCWSTR * files", "ULONG file_count", "DWORD extended_data_flags"),
        ),
    )
}
"""All of them by name."""


class MissingLibrary(OSError):
    """A library cannot be loaded; `winerror` says why: 126 it or one that it needs is not there, 193 it is for another processor."""

    def __init__(self, path: str, code: int, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path
        self.code = code


class MissingCall(OSError):
    """A library lacks a function that is needed: it is of another Windows or another toolkit."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"{path} has no {name}")
        self.path = path
        self.name = name


class Windows:
    """The functions, bound to loaded libraries: `windows.StartTraceW(…)` takes what the table says.

    A library is loaded and a function looked up when it is first called for, so that a missing KernelTraceControl.dll matters only to who
    needs it. `paths` names a file per library; the tests give their own. Functions raise nothing: they return the system's code.
    """

    def __init__(self, paths: Mapping[Library, str] | None = None) -> None:
        self.paths = {"advapi32": "advapi32.dll", "kernel32": "kernel32.dll", **(paths or {})}
        self._libraries: dict[Library, ctypes.CDLL] = {}
        self._bound: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name. Raises MissingLibrary, MissingCall."""
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return self.bind(name)

    def bind(self, name: str) -> Callable[..., Any]:
        """Load a function. Raises MissingLibrary, MissingCall."""
        if name not in self._bound:
            declared = FUNCTIONS[name]
            library = self.library(declared.library)
            try:
                function = getattr(library, name)
            except AttributeError as error:
                raise MissingCall(self.paths[declared.library], name) from error
            function.restype = ctype_of(declared.result)
            function.argtypes = [ctype_of(kind) for kind in declared.types]
            self._bound[name] = function
        return self._bound[name]

    def library(self, name: Library) -> ctypes.CDLL:
        """Load a library. Raises MissingLibrary."""
        if name not in self._libraries:
            path = self.paths.get(name)
            if path is None:
                raise MissingLibrary(f"{name}.dll", 126, "not found")
            try:
                self._libraries[name] = _load(path)
            except OSError as error:
                raise MissingLibrary(path, getattr(error, "winerror", None) or 126, str(error)) from error
        return self._libraries[name]

    def last_error(self) -> int:
        """GetLastError of the call just made, for the functions that do not return their code. (OpenTraceW, CreateProcessW, tokens.)"""
        if sys.platform == "win32":
            return ctypes.get_last_error()
        function = self.library("kernel32").GetLastError
        function.restype = c_uint32
        number: int = function()
        return number


def _load(path: str) -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.WinDLL(path, use_last_error=True)
    return ctypes.CDLL(path)

"""Whether this process may record: elevation and privileges of its token."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from collector.record.calls import Windows, wide
from collector.record.constants import Code, Misc
from collector.record.structures import LUID, LUID_AND_ATTRIBUTES, TOKEN_ELEVATION, TOKEN_PRIVILEGES

__all__ = ["DEBUG", "PROFILE", "is_elevated", "missing_privileges"]

PROFILE = "SeSystemProfilePrivilege"
"""Needed for call stacks."""
DEBUG = "SeDebugPrivilege"
"""Needed for processes of other users."""


def is_elevated(windows: Windows) -> bool:
    """Whether the process runs as administrator; also True where Windows does not say: the calls themselves will."""
    elevation = TOKEN_ELEVATION(1)
    with _token(windows, Misc.TOKEN_QUERY) as token:
        if token is not None:
            needed = ctypes.c_uint32()
            size = ctypes.sizeof(elevation)
            if not windows.GetTokenInformation(token, Misc.TokenElevation, ctypes.byref(elevation), size, ctypes.byref(needed)):
                return True
    return bool(elevation.TokenIsElevated)


def missing_privileges(windows: Windows, *names: str) -> list[str]:
    """Enable privileges of this process; returns those that it does not have.

    AdjustTokenPrivileges succeeds also when it assigned nothing; only the last error tells (1300).
    """
    missing = []
    with _token(windows, Misc.TOKEN_QUERY | Misc.TOKEN_ADJUST_PRIVILEGES) as token:
        for name in names:
            luid = LUID()
            if token is None or not windows.LookupPrivilegeValueW(None, wide(name), ctypes.byref(luid)):
                missing.append(name)
                continue
            wanted = TOKEN_PRIVILEGES(1, (LUID_AND_ATTRIBUTES * 1)(LUID_AND_ATTRIBUTES(luid, Misc.SE_PRIVILEGE_ENABLED)))
            is_done = windows.AdjustTokenPrivileges(token, 0, ctypes.byref(wanted), 0, None, None)
            if not is_done or windows.last_error() == Code.ERROR_NOT_ALL_ASSIGNED:
                missing.append(name)
    return missing


@contextmanager
def _token(windows: Windows, access: int) -> Iterator[int | None]:
    """The token of this process, closed afterwards; None where it cannot be had."""
    token = ctypes.c_void_p()
    if not windows.OpenProcessToken(windows.GetCurrentProcess(), access, ctypes.byref(token)):
        yield None
        return
    try:
        yield token.value
    finally:
        windows.CloseHandle(token)

"""C source of static assertions, made from the declarations: they compile only where the Windows headers say the same."""

import ctypes
from collections.abc import Iterator
from typing import Any

from collector.record.calls import FUNCTIONS, Function
from collector.record.constants import CONSTANTS, NOT_IN_HEADERS
from collector.record.structures import CALLBACKS, STRUCTURES, header_name

__all__ = ["NOT_DECLARED", "layout", "source"]

HEAD = """\
#define _WIN32_WINNT 0x0A00
#define WINVER 0x0A00
#define WIN32_LEAN_AND_MEAN
#include <stddef.h>
#include <windows.h>
#include <wmistr.h>
#include <evntrace.h>
#include <evntcons.h>
typedef CLASSIC_EVENT_ID *PSTACK_TRACING_EVENT_ID;
"""

NOT_DECLARED = frozenset({"EVENT_FILTER_EVENT_ID"})
"""Structures that the headers lack."""


def layout(structure: type[ctypes.Structure], pointer_size: int) -> tuple[dict[str, tuple[int, int]], int, int]:
    """Members as name → (offset, size), then size and alignment of the whole: the rules of Windows compilers, whatever runs this."""
    members: dict[str, tuple[int, int]] = {}
    end, alignment = 0, 1
    for name, kind in structure._fields_:  # type: ignore[misc]  # bit fields would have a third part; there are none
        size, align = _measure(kind, pointer_size)
        end = (end + align - 1) // align * align
        members[name] = (end, size)
        end += size
        alignment = max(alignment, align)
    return members, (end + alignment - 1) // alignment * alignment, alignment


def _measure(kind: Any, pointer_size: int) -> tuple[int, int]:  # Any: the classes of ctypes types are private
    if hasattr(kind, "_length_"):  # an array
        size, align = _measure(kind._type_, pointer_size)
        return size * kind._length_, align
    if hasattr(kind, "_fields_"):
        return layout(kind, pointer_size)[1:]
    size = pointer_size if kind is ctypes.c_void_p else ctypes.sizeof(kind)
    return size, size


def source(pointer_size: int) -> str:
    """One file of assertions for a processor of that pointer size."""
    return HEAD + "\n".join((*_structures(pointer_size), *_constants(), *_prototypes(), *_callbacks())) + "\n"


def _assert(condition: str, words: str) -> str:
    return f'_Static_assert({condition}, "{words}");'


def _structures(pointer_size: int) -> Iterator[str]:
    for structure in STRUCTURES:
        name = header_name(structure)
        if name in NOT_DECLARED:
            continue
        members, size, _ = layout(structure, pointer_size)
        yield _assert(f"sizeof({name}) == {size}", f"size of {name}")
        for member, (offset, width) in members.items():
            if (name, member) == ("EVENT_HEADER_EXTENDED_DATA_ITEM", "Linkage"):
                continue  # bits there, which have no offset; its neighbours leave it no other place
            yield _assert(f"offsetof({name}, {member}) == {offset}", f"{name}.{member}")
            yield _assert(f"sizeof((({name} *)0)->{member}) == {width}", f"width of {name}.{member}")


def _constants() -> Iterator[str]:
    for name, value in CONSTANTS.items():
        if name not in NOT_IN_HEADERS:
            yield _assert(f"(unsigned long)({name}) == {value:#x}ul", name)


def _prototypes() -> Iterator[str]:
    for function in FUNCTIONS.values():
        if function.library == "KernelTraceControl":
            continue  # no header declares it
        yield _assert(f"__builtin_types_compatible_p(__typeof__(&{function.name}), {_pointer_type(function)})", function.name)


def _callbacks() -> Iterator[str]:
    """What Windows calls: result, arguments, and that the callee clears the stack, which matters for x86."""
    for name, kind in CALLBACKS.items():
        arguments = ", ".join(_c_type(argument) for argument in kind._argtypes_)
        yield _assert(f"__builtin_types_compatible_p({name}, {_c_type(kind._restype_)} (WINAPI *)({arguments}))", name)


def _c_type(kind: Any) -> str:  # Any: the classes of ctypes types are private
    """A type of ctypes in the words of the headers; a pointer leads to a structure."""
    plain = {None: "void", ctypes.c_int32: "BOOL", ctypes.c_uint32: "ULONG"}
    return plain[kind] if kind in plain else f"{header_name(kind._type_)} *"


def _pointer_type(function: Function) -> str:
    return f"{function.result} (WINAPI *)({', '.join(function.types) or 'void'})"

"""Structures, numbers and prototypes are those of Windows, for 64- and 32-bit programs."""

import ctypes
import ctypes.util
import shutil
import subprocess
from pathlib import Path

import pytest

from collector.events.afd import AFD
from collector.record import structures as s
from collector.record.calls import FUNCTIONS, MissingCall, MissingLibrary, Windows, ctype_of, wide
from collector.record.constants import CONSTANTS, NOT_IN_HEADERS
from tests.record.assertions import NOT_DECLARED, layout, source

COMPILERS = {8: "x86_64-w64-mingw32-gcc", 4: "i686-w64-mingw32-gcc"}


@pytest.fixture(params=[8, 4], ids=["x64", "x86"])
def compiler(request: pytest.FixtureRequest) -> tuple[str, int]:
    pointer_size: int = request.param
    found = shutil.which(COMPILERS[pointer_size])
    if found is None:
        pytest.skip(f"{COMPILERS[pointer_size]} is not installed (Debian: gcc-mingw-w64-x86-64-win32, gcc-mingw-w64-i686-win32)")
    return found, pointer_size


def compile_c(compiler: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "assertions.c").write_text(text, encoding="utf-8")
    words = [compiler, "-std=c11", "-Wall", "-Werror", "-c", "assertions.c", "-o", "assertions.o"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_the_windows_headers_say_the_same(compiler: tuple[str, int], tmp_path: Path) -> None:
    text = source(compiler[1])
    assert text.count("_Static_assert(") > 400  # structures, members, numbers and prototypes, none left out silently
    assert compile_c(compiler[0], text, tmp_path).stderr == ""


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("offsetof(EVENT_TRACE_PROPERTIES, LogFileNameOffset)", " == ", " != "),
        ("ERROR_INVALID_FLAGS", " == ", " != "),
        ("EnableTraceEx2", "ULONGLONG", "ULONG"),
        ("PEVENT_RECORD_CALLBACK", "EVENT_RECORD *", "EVENT_TRACE *"),
        ("compatible_p(PHANDLER_ROUTINE", "BOOL", "void"),
        ("PEVENT_TRACE_BUFFER_CALLBACKW", "ULONG", "BOOL"),
    ],
)
def test_a_wrong_declaration_does_not_compile(compiler: tuple[str, int], tmp_path: Path, name: str, right: str, wrong: str) -> None:
    lines = source(compiler[1]).splitlines()
    (at,) = [n for n, line in enumerate(lines) if name in line]
    assert right in lines[at]
    lines[at] = lines[at].replace(right, wrong, 1)
    assert "static assertion failed" in compile_c(compiler[0], "\n".join(lines), tmp_path).stderr


@pytest.mark.parametrize("name", sorted(s.CALLBACKS))
def test_another_way_of_calling_does_not_compile_where_it_matters(compiler: tuple[str, int], tmp_path: Path, name: str) -> None:
    """32-bit programs have more than one; 64-bit ones have one alone."""
    lines = source(compiler[1]).splitlines()
    (at,) = [n for n, line in enumerate(lines) if f"compatible_p({name}," in line]
    lines[at] = lines[at].replace("WINAPI *", "__cdecl *", 1)
    said = compile_c(compiler[0], "\n".join(lines), tmp_path).stderr
    assert ("static assertion failed" in said) == (compiler[1] == 4), said


def test_what_the_headers_lack_is_named(compiler: tuple[str, int], tmp_path: Path) -> None:
    """When a newer mingw-w64 has one of these, the check has to cover it, too."""
    checks = [f"#ifdef {name}\n#error {name} is there\n#endif" for name in sorted(NOT_IN_HEADERS)]
    heads = source(compiler[1]).split("_Static_assert")[0]
    assert compile_c(compiler[0], heads + "\n".join(checks), tmp_path).stderr == ""
    for name in NOT_DECLARED:
        assert "unknown type name" in compile_c(compiler[0], heads + f"{name} x;\n", tmp_path).stderr


def test_ctypes_lays_out_as_windows_does() -> None:
    """What is checked against the headers is what ctypes passes: its own layout is the computed one, for this machine's pointers."""
    pointer_size = ctypes.sizeof(ctypes.c_void_p)
    for structure in s.STRUCTURES:
        members, size, alignment = layout(structure, pointer_size)
        assert (ctypes.sizeof(structure), ctypes.alignment(structure)) == (size, alignment), structure
        found = {name: (getattr(structure, name).offset, getattr(structure, name).size) for name in members}
        assert found == members, structure


@pytest.mark.parametrize(
    ("structure", "x64", "x86"),
    [
        (s.WNODE_HEADER, 48, 48),
        (s.EVENT_TRACE_PROPERTIES, 120, 120),
        (s.EVENT_TRACE, 88, 88),
        (s.EVENT_TRACE_LOGFILEW, 448, 416),
        (s.TRACE_LOGFILE_HEADER, 280, 272),
        (s.EVENT_HEADER, 80, 80),
        (s.EVENT_RECORD, 112, 104),
        (s.EVENT_HEADER_EXTENDED_DATA_ITEM, 16, 16),
        (s.EVENT_FILTER_DESCRIPTOR, 16, 16),
        (s.EVENT_FILTER_EVENT_ID, 4, 4),
        (s.ENABLE_TRACE_PARAMETERS, 48, 36),
        (s.STACK_TRACING_EVENT_ID, 24, 24),
        (s.STARTUPINFOW, 104, 68),
        (s.PROCESS_INFORMATION, 24, 16),
    ],
)
def test_documented_sizes(structure: type[ctypes.Structure], x64: int, x86: int) -> None:
    assert (layout(structure, 8)[1], layout(structure, 4)[1]) == (x64, x86)


def test_numbers_of_the_documentation() -> None:
    """The numbers that no header at hand has."""
    assert {name: CONSTANTS[name] for name in NOT_IN_HEADERS} == {
        "ERROR_ELEVATION_REQUIRED": 740,
        "EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0": 0x10,
        "EVENT_FILTER_TYPE_PID": 0x80000004,
        "EVENT_FILTER_TYPE_EXECUTABLE_NAME": 0x80000008,
        "EVENT_FILTER_TYPE_EVENT_ID": 0x80000200,
        "EVENT_FILTER_TYPE_STACKWALK": 0x80001000,
    }


def test_a_guid_has_the_bytes_that_are_on_disk() -> None:
    assert bytes(s.guid_of(AFD)) == bytes.fromhex("23683ce5 b87b bb44 90dc 3f86090d48a6")


def test_heap_functions_take_what_the_toolkit_documents() -> None:
    """UpdateHeapTrace has no handle; StartHeapTrace begins with one that it fills."""
    start, update = FUNCTIONS["StartHeapTrace"], FUNCTIONS["UpdateHeapTrace"]
    assert start.types[0] == "PTRACEHANDLE"
    assert len(start.types) == 7
    assert update.types == start.types[1:]


def test_pointers_and_handles_are_as_wide_as_a_pointer() -> None:
    assert {name for f in FUNCTIONS.values() for name in f.types if ctype_of(name) is not ctypes.c_void_p} == {
        "BOOL", "DWORD", "LPCWSTR", "TOKEN_INFORMATION_CLASS", "TRACEHANDLE", "UCHAR", "UINT", "ULONG", "ULONGLONG",
    }  # fmt: skip


def test_text_is_utf16_with_a_zero() -> None:
    assert wide("é\U0001f600") == b"\xe9\x00\x3d\xd8\x00\xde\x00\x00"
    assert wide("\ud800") == b"\x00\xd8\x00\x00"


def test_a_missing_library_and_a_missing_function_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(MissingLibrary) as nowhere:
        Windows().StartHeapTrace()
    assert (nowhere.value.path, nowhere.value.code) == ("KernelTraceControl.dll", 126)
    with pytest.raises(MissingLibrary) as absent:
        Windows({"KernelTraceControl": str(tmp_path / "x.dll")}).StartHeapTrace()
    assert absent.value.code == 126
    other = ctypes.util.find_library("c")
    if other is not None:
        with pytest.raises(MissingCall, match="has no StartHeapTrace"):
            Windows({"KernelTraceControl": other}).StartHeapTrace()
    with pytest.raises(AttributeError):
        Windows().NoSuchFunction()

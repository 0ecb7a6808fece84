"""Why a machine cannot record, one clear sentence a reason; and where the toolkit's library is looked for."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from collector.errors import RecordError
from collector.record import readiness
from collector.record.calls import Windows
from collector.record.plan import Kind, Plan, parse_keywords, parse_name, parse_stacks, recording_of
from collector.record.readiness import Machine, check_plan, check_rights, leftovers, open_windows, this_machine
from collector.record.sessions import start_winsock
from collector.record.toolkit import VARIABLE, find_toolkit
from tests.record.played import Played

WINDOWS_11 = Machine("win32", (10, 0), 8, True)
X64, X86, ARM64 = 0x8664, 0x014C, 0xAA64


def library_for(machine: int, path: Path) -> Path:
    """The beginning of a library for a processor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"MZ" + bytes(58) + struct.pack("<I", 0x80) + bytes(64) + b"PE\0\0" + struct.pack("<H", machine))
    return path


# ---------------------------------------------------------------------------------------------------- the toolkit


def test_the_toolkit_is_found_where_it_is_installed(tmp_path: Path) -> None:
    kit = library_for(X64, tmp_path / "Windows Kits" / "10" / "Windows Performance Toolkit" / "KernelTraceControl.dll")
    assert find_toolkit(None, {"ProgramFiles(x86)": str(tmp_path)}, pointer_size=8) == kit
    on_path = library_for(X64, tmp_path / "bin" / "KernelTraceControl.dll")
    assert find_toolkit(None, {"PATH": f"{tmp_path};{on_path.parent}"}, pointer_size=8) == on_path


def test_the_current_folder_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library_for(X64, tmp_path / "bin" / "KernelTraceControl.dll")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match="was not found"):
        find_toolkit(None, {"PATH": ".;bin;;" + str(tmp_path / "none")}, pointer_size=8)


def test_what_the_user_names_counts_alone(tmp_path: Path) -> None:
    kit = library_for(X64, tmp_path / "kit" / "KernelTraceControl.dll")
    other = library_for(X64, tmp_path / "other" / "KernelTraceControl.dll")
    assert find_toolkit(str(other), {"PATH": str(kit.parent)}, pointer_size=8) == other
    assert find_toolkit(str(other.parent), {}, pointer_size=8) == other  # its folder will do
    assert find_toolkit(None, {VARIABLE: str(other), "PATH": str(kit.parent)}, pointer_size=8) == other
    with pytest.raises(RecordError, match="none is not there"):
        find_toolkit(str(tmp_path / "none"), {"PATH": str(kit.parent)}, pointer_size=8)


def test_a_toolkit_that_is_missing_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as error:
        find_toolkit(None, {"ProgramFiles(x86)": str(tmp_path)}, pointer_size=8)
    for words in ("KernelTraceControl.dll was not found", str(tmp_path), "Windows ADK", "--kernel-trace-control FILE", VARIABLE):
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("machine", "pointer_size", "architecture", "found"),
    [
        (X86, 8, "AMD64", "is for 32-bit x86, but this Python needs a library for 64-bit x64"),
        (X64, 4, "x86", "is for 64-bit x64, but this Python needs a library for 32-bit x86"),
        (ARM64, 8, "AMD64", "is for 64-bit ARM, but this Python needs a library for 64-bit x64"),
        (X64, 8, "ARM64", "is for 64-bit x64, but this Python needs a library for 64-bit ARM"),
        (0x1234, 8, "AMD64", "is for no processor that is known here"),
    ],
)
def test_a_library_for_another_processor(tmp_path: Path, machine: int, pointer_size: int, architecture: str, found: str) -> None:
    path = library_for(machine, tmp_path / "KernelTraceControl.dll")
    with pytest.raises(RecordError, match=found):
        find_toolkit(str(path), {"PROCESSOR_ARCHITECTURE": architecture}, pointer_size=pointer_size)


@pytest.mark.parametrize("content", [b"", b"MZ", b"MZ" + bytes(62), b"ELF" + bytes(200), b"MZ" + bytes(58) + b"\xff\xff\xff\x7f"])
def test_a_file_that_is_no_library(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "KernelTraceControl.dll"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="no processor that is known here"):
        find_toolkit(str(path), {}, pointer_size=8)


# ---------------------------------------------------------------------------------------------------- the machine


@pytest.fixture
def as_windows(played: Played, monkeypatch: pytest.MonkeyPatch) -> Played:
    """The system's libraries are those that are played."""
    monkeypatch.setattr(readiness, "Windows", lambda paths: played.windows)
    return played


def test_another_system(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="on Windows only"):
        open_windows(Machine("linux", (0, 0), 8, False), Plan("x", tmp_path), None, {})


def test_an_old_windows(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"too old.*Windows 8"):
        open_windows(replace(WINDOWS_11, version=(6, 1)), Plan("x", tmp_path), None, {})


def test_a_32_bit_python_records_no_heap_of_a_64_bit_windows(as_windows: Played, tmp_path: Path) -> None:
    machine = replace(WINDOWS_11, pointer_size=4)
    with pytest.raises(RecordError, match="32-bit Python on a 64-bit Windows"):
        open_windows(machine, Plan("x", tmp_path, heap=True), None, {})
    open_windows(machine, Plan("x", tmp_path), None, {})
    kit = library_for(X86, tmp_path / "KernelTraceControl.dll")
    open_windows(replace(machine, is_64_bit_windows=False), Plan("x", tmp_path, heap=True), str(kit), {})


def test_sockets_need_no_toolkit(as_windows: Played, tmp_path: Path) -> None:
    assert open_windows(WINDOWS_11, Plan("x", tmp_path), None, {}) is as_windows.windows
    with pytest.raises(RecordError, match="was not found"):
        open_windows(WINDOWS_11, Plan("x", tmp_path, heap=True), None, {})


def test_a_toolkit_that_cannot_be_loaded(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there and for this processor, but the loader wants more of it."""
    kit = library_for(X64, tmp_path / "KernelTraceControl.dll")
    system = {"advapi32": str(library), "kernel32": str(library)}
    monkeypatch.setattr(readiness, "Windows", lambda paths: Windows({**system, **paths}))
    with pytest.raises(RecordError, match=r"KernelTraceControl\.dll cannot be loaded: it, or a library beside it"):
        open_windows(WINDOWS_11, Plan("x", tmp_path, heap=True), str(kit), {})


def test_libraries_without_a_function(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes.util

    other = ctypes.util.find_library("m")
    if other is None:
        pytest.skip("no library that loads and has none of the functions")
    kit = library_for(X64, tmp_path / "KernelTraceControl.dll")
    system = {"advapi32": str(library), "kernel32": str(library)}
    monkeypatch.setattr(readiness, "find_toolkit", lambda *_, **__: Path(other))
    monkeypatch.setattr(readiness, "Windows", lambda paths: Windows({**system, **paths}))
    with pytest.raises(RecordError, match="has no function StartHeapTrace: it is of another toolkit, or too old"):
        open_windows(WINDOWS_11, Plan("x", tmp_path, heap=True), str(kit), {})
    monkeypatch.setattr(readiness, "Windows", lambda paths: Windows({**system, "advapi32": other}))
    with pytest.raises(RecordError, match="has no function StartTraceW: it is of a Windows that is too old"):
        open_windows(WINDOWS_11, Plan("x", tmp_path), None, {})


def test_this_machine_is_described() -> None:
    machine = this_machine()
    assert machine.pointer_size in (4, 8)
    assert (machine.version == (0, 0)) is (machine.platform != "win32")


# ---------------------------------------------------------------------------------------------------- rights and plans


def test_without_an_administrator_nothing_begins(played: Played, tmp_path: Path) -> None:
    played.elevated(False)
    with pytest.raises(RecordError, match=r"Recording the kernel needs an administrator.*--no-kernel"):
        check_rights(played.windows, Plan("x", tmp_path))
    with pytest.raises(RecordError, match="Recording the kernel and heap needs an administrator") as error:
        check_rights(played.windows, Plan("x", tmp_path, heap=True))
    assert "--no-kernel" not in str(error.value)
    check_rights(played.windows, Plan("x", tmp_path, kernel=False))  # Windows itself decides
    played.elevated(True)
    check_rights(played.windows, Plan("x", tmp_path, heap=True))


def test_plans_that_cannot_go_well(tmp_path: Path) -> None:
    plan = Plan("x", tmp_path)
    check_plan(plan, is_forced=False)
    many = replace(plan, heap=True, pids=(1, 2, 3, 4, 5))
    odd = tmp_path / "100%d"
    odd.mkdir()
    check_plan(replace(plan, folder=odd), is_forced=False)
    for wrong, words in (
        (replace(plan, winsock=False, kernel=False), "Nothing is to be recorded"),
        (replace(plan, folder=tmp_path / "none"), "is no folder"),
        (replace(plan, is_circular=True), "--circular needs a --size-limit"),
        (many, "5 processes are too many"),
        (replace(plan, rotate_mb=5, winsock=False), "--rotate is for the file of sockets"),
        (replace(plan, rotate_mb=5, size_limit_mb=9), "choose one"),
        (replace(plan, rotate_mb=5, size_limit_mb=9, is_circular=True), "choose one"),
        (replace(plan, rotate_mb=5, folder=odd), "has a % in its name"),
    ):
        with pytest.raises(ValueError, match=words):
            check_plan(wrong, is_forced=False)
    check_plan(many, is_forced=True)
    plan.file(Kind.WINSOCK).touch()
    with pytest.raises(ValueError, match=r"x-winsock\.etl is there already"):
        check_plan(plan, is_forced=True)
    check_plan(replace(plan, rotate_mb=5), is_forced=True)
    (tmp_path / "x-winsock-12.etl").touch()
    with pytest.raises(ValueError, match=r"x-winsock-12\.etl is there already"):
        check_plan(replace(plan, rotate_mb=5), is_forced=True)


def test_leftovers_are_ours_alone(played: Played, tmp_path: Path) -> None:
    plan = Plan("a-b", tmp_path)
    for session in (plan.session(Kind.WINSOCK), plan.session(Kind.KERNEL)):
        start_winsock(played.windows, session, level=5, keywords=0)
    start_winsock(played.windows, replace(plan.session(Kind.KERNEL), name="NT Kernel Logger"), level=5, keywords=0)
    assert {name: [s.name for s in sessions] for name, sessions in leftovers(played.windows).items()} == {
        "a-b": ["sockscope-a-b-winsock", "sockscope-a-b-kernel"]
    }


@pytest.mark.parametrize(
    ("session", "name"),
    [("sockscope-x-heap", "x"), ("sockscope-a-b-kernel", "a-b"), ("sockscope-heap", None), ("sockscope-x-other", None), ("x-heap", None)],
)
def test_names_of_sessions(session: str, name: str | None) -> None:
    assert recording_of(session) == name


def test_words_of_the_command_line() -> None:
    assert parse_stacks("free, ALLOC") == (0x21, 0x24)
    assert parse_stacks("none") == ()
    assert (parse_keywords("all"), parse_keywords("0x0C"), parse_keywords("winsock,transport"), parse_keywords("registered-io")) == (
        0,
        12,
        12,
        0x40,
    )
    assert parse_name("hang_2.1") == "hang_2.1"
    for parse, wrong in (
        (parse_stacks, "alloc,fre"),
        (parse_stacks, ""),
        (parse_keywords, "sockets"),
        (parse_keywords, "-1"),
        (parse_keywords, "0"),
        (parse_keywords, "0x10000000000000000"),
        (parse_name, ""),
        (parse_name, "a/b"),
        (parse_name, ".."),
        (parse_name, "x" * 65),
    ):
        with pytest.raises(ValueError, match=r"."):
            parse(wrong)

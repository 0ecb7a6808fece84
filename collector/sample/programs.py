"""The programs of the sample, their modules and call stacks."""

import zlib

from collector.sample.machine import Frames, Machine, Module, Program

__all__ = ["KERNEL_MODULES", "Cast", "Stacks", "make_cast"]

_SYSTEM32 = "\\Windows\\System32"
_SYSWOW64 = "\\Windows\\SysWOW64"


def _module(name: str, folder: str, size: int, base: int) -> Module:
    return Module(name, folder, size, 0x6600_0000 + zlib.crc32(name.encode()) % 0x100_0000, base)


KERNEL_MODULES = (
    _module("ntoskrnl.exe", _SYSTEM32, 0x104_7000, 0xFFFF_F805_2A40_0000),
    _module("afd.sys", _SYSTEM32 + "\\drivers", 0xA_7000, 0xFFFF_F805_2F10_0000),
    _module("tcpip.sys", _SYSTEM32 + "\\drivers", 0x31_9000, 0xFFFF_F805_2E90_0000),
)

_NTDLL = _module("ntdll.dll", _SYSTEM32, 0x21_7000, 0x7FFB_4E9B_0000)
_KERNEL32 = _module("kernel32.dll", _SYSTEM32, 0xC_4000, 0x7FFB_4D4E_0000)
_KERNELBASE = _module("KernelBase.dll", _SYSTEM32, 0x39_F000, 0x7FFB_4BF2_0000)
_UCRT = _module("ucrtbase.dll", _SYSTEM32, 0x11_1000, 0x7FFB_4C2D_0000)
_WS2_32 = _module("ws2_32.dll", _SYSTEM32, 0x7_1000, 0x7FFB_4E78_0000)
_MSWSOCK = _module("mswsock.dll", _SYSTEM32, 0x6_9000, 0x7FFB_4B1A_0000)
_SYSTEM = (_NTDLL, _KERNEL32, _KERNELBASE, _UCRT, _WS2_32, _MSWSOCK)

_WOW = (
    _NTDLL,
    _module("wow64.dll", _SYSTEM32, 0x5_8000, 0x7FFB_4D9C_0000),
    _module("ntdll.dll", _SYSWOW64, 0x1B_2000, 0x77A2_0000),
    _module("kernel32.dll", _SYSWOW64, 0xF_0000, 0x7614_0000),
    _module("ucrtbase.dll", _SYSWOW64, 0x11_2000, 0x7593_0000),
    _module("ws2_32.dll", _SYSWOW64, 0x6_4000, 0x7548_0000),
)

# Return addresses inside the system's own code, as offsets.
_THREAD_START = ((_KERNEL32, 0x1_257D), (_NTDLL, 0x5_AA48))
_DEVICE_CONTROL = ((_NTDLL, 0x9_D0C4),)
_SOCKET_CALLS = {
    "send": ((_MSWSOCK, 0x5A41), (_WS2_32, 0x1_5DB2)),
    "recv": ((_MSWSOCK, 0x6B1F), (_WS2_32, 0x1_6E41)),
    "socket": ((_MSWSOCK, 0x3C27), (_WS2_32, 0x7A90)),
    "connect": ((_MSWSOCK, 0x2FB8), (_WS2_32, 0x9C66)),
    "bind": ((_MSWSOCK, 0x44E2), (_WS2_32, 0xA114)),
    "listen": ((_MSWSOCK, 0x4A0D), (_WS2_32, 0xA8F3)),
    "accept": ((_MSWSOCK, 0x8E15), (_MSWSOCK, 0x9010)),
    "close": ((_MSWSOCK, 0x1F66), (_WS2_32, 0x4C2B)),
}
_HEAP_CALLS = {
    "alloc": ((_NTDLL, 0x2_B5F3), (_NTDLL, 0x2_A1D8), (_UCRT, 0x1_4F0B), (_UCRT, 0x1_4E86)),
    "realloc": ((_NTDLL, 0x2_C94E), (_NTDLL, 0x2_C5A1), (_UCRT, 0x1_52E7)),
    "free": ((_NTDLL, 0x2_D061), (_UCRT, 0x1_4D3A)),
}
_WOW_CALLS = {"alloc": ((_WOW[2], 0x4_1C35), (_WOW[4], 0x2_E91C)), "free": ((_WOW[2], 0x4_0A17), (_WOW[4], 0x2_E7A0))}
_WOW_START = ((_WOW[3], 0x1_8494), (_WOW[2], 0x6_4AF8))


class Stacks:
    """Call stacks of a program: its own functions, named from the innermost outwards, between the system's frames.

    A function's name stands for an offset into the program's own image; there is no symbol file, so only the offset can be seen.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._image = program.modules[0]

    def of(self, call: str, *functions: str) -> Frames:
        """Frames of a system call made by functions of the program."""
        if self._program.pointer_size == 4:
            frames = (*_WOW_CALLS[call], *self._own(functions), *_WOW_START)
        elif call in _HEAP_CALLS:
            frames = (*_HEAP_CALLS[call], *self._own(functions), *_THREAD_START)
        else:
            frames = (*_DEVICE_CONTROL, *_SOCKET_CALLS[call], *self._own(functions), *_THREAD_START)
        return tuple(module.base + offset for module, offset in frames)

    def _own(self, functions: tuple[str, ...]) -> tuple[tuple[Module, int], ...]:
        code = self._image.size // 2
        return tuple((self._image, 0x1000 + zlib.crc32(name.encode()) % (code - 0x1000) & ~1 | 1) for name in functions)


class Cast:
    """Who plays: programs by their role."""

    def __init__(self, machine: Machine) -> None:
        own = "\\Program Files"
        self._n = 0
        self.services = self._make(machine, 772, "services.exe", _SYSTEM32, 0, parent=624)
        self.explorer = self._make(machine, 3340, "explorer.exe", "\\Windows", 1, parent=3180)
        self.names = self._make(machine, 1204, "svchost.exe", _SYSTEM32, 0, parent=772, arguments=" -k NetworkService -p -s Dnscache")
        self.shop = self._make(machine, 4312, "shopfront.exe", own + "\\Orchard", 1, parent=3340, arguments=" --profile default")
        self.catalog = self._make(machine, 5024, "catalogd.exe", own + "\\Orchard", 0, parent=772, arguments=" --listen 8443")
        self.game = self._make(machine, 6120, "skyrace.exe", own + "\\Skyrace", 1, parent=3340)
        self.backup = self._make(machine, 6788, "nightsafe.exe", own + "\\Nightsafe", 0, parent=772, arguments=" /job:documents")
        self.ledger = self._make(machine, 7244, "ledger.exe", own + "\\Ledger", 0, parent=772, arguments=" /service")
        self.scan = self._make(machine, 3980, "oldscan.exe", own + " (x86)\\Oldscan", 1, parent=3340, pointer_size=4)
        self.storm = self._make(machine, 8412, "portstorm.exe", "\\Tools", 1, parent=3340, arguments=" -c 400 192.0.2.60:9000")
        self.notes = self._make(machine, 8412, "notes.exe", own + "\\Notes", 1, parent=3340)

    def _make(
        self,
        machine: Machine,
        pid: int,
        image: str,
        folder: str,
        session: int,
        *,
        parent: int,
        arguments: str = "",
        pointer_size: int = 8,
    ) -> Program:
        self._n += 1
        base = 0x40_0000 if pointer_size == 4 else 0x7FF6_1000_0000 + self._n * 0x1000_0000
        modules = (_module(image, folder, 0x8_4000 + self._n * 0x1_1000, base), *(_WOW if pointer_size == 4 else _SYSTEM))
        program = Program(
            pid=pid,
            eprocess=0xFFFF_C40E_8B00_0080 + self._n * 0x3_2000,
            image=image,
            command_line=f'"C:{folder}\\{image}"{arguments}',
            modules=modules,
            parent=parent,
            session=session,
            pointer_size=pointer_size,
        )
        program.thread("main")
        machine.programs.append(program)
        return program


def make_cast(machine: Machine) -> Cast:
    """The programs of the sample, known to the machine."""
    return Cast(machine)

"""Stand-ins for what a trace says about its machine and its people: addresses, names, command lines.

A stand-in is computed from the original and a secret, so the same original has the same stand-in wherever it occurs, and nobody without
the secret can tell one from the other. The secret is made for one export and forgotten.

Addresses keep their structure in the manner of Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-preserving IP address anonymization, 2002): two
that share n leading bits have stand-ins that share n leading bits, and no more. What an address is for stays: private ranges, link-local
and multicast prefixes are kept, and the loopback, unspecified and broadcast addresses stand for themselves, as ports do.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import quote, unquote

__all__ = ["Masks", "is_public_name"]

_DIGITS = 8
_MAPPED = bytes(10) + b"\xff\xff"

_KEPT_V4 = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/8", "255.255.255.255/32")))
_RANGES_V4 = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "224.0.0.0/4")))
_KEPT_V6 = (IPv6Network("::/127"), IPv6Network("::ffff:0:0/96"))  # the second has IPv4 inside
_RANGES_V6 = tuple(map(IPv6Network, ("fe80::/10", "fc00::/7", "2000::/3")))

_V4_TEXT = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_V6_TEXT = re.compile(r"(?<![\w:])(?=[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:)[0-9A-Fa-f:.]{3,45}(?![\w:])")
_TOKEN = re.compile(r"[\w$~+-]+(?:\.[\w$~+-]+)*")
_SYMBOL = re.compile(r"(?P<name>.*?)(?P<distance>\+0x[0-9a-f]+)?(?: \[.*)?", re.DOTALL)
_SUFFIX = re.compile(r"\.(?:exe|dll|sys|drv|ocx|cpl|pdb|etl|com|scr|node|pyd)", re.IGNORECASE)

# Parts of Windows itself, the same on every machine: without them a stack says nothing.
_WINDOWS_FILES = frozenset((
    "advapi32.dll", "afd.sys", "bcrypt.dll", "combase.dll", "crypt32.dll", "cryptbase.dll", "csrss.exe", "dnsapi.dll", "gdi32.dll",
    "gdi32full.dll", "http.sys", "iphlpapi.dll", "kernel32.dll", "kernelbase.dll", "ksecdd.sys", "lsass.exe", "msafd.dll",
    "msvcp_win.dll", "msvcrt.dll", "mswsock.dll", "ndis.sys", "netio.sys", "nsi.dll", "ntdll.dll", "ntkrnlmp.exe", "ntoskrnl.exe",
    "ole32.dll", "oleaut32.dll", "rasadhlp.dll", "rpcrt4.dll", "schannel.dll", "sechost.dll", "secur32.dll", "services.exe", "smss.exe",
    "sspicli.dll", "svchost.exe", "tcpip.sys", "tdx.sys", "ucrtbase.dll", "user32.dll", "webio.dll", "win32u.dll", "winhttp.dll",
    "wininet.dll", "wininit.exe", "winlogon.exe", "wow64.dll", "wow64cpu.dll", "wow64win.dll", "ws2_32.dll", "wship6.dll",
    "wshtcpip.dll",
))  # fmt: skip
_WINDOWS_NAMES = frozenset(("system", "idle", "registry", "memory compression", "secure system"))
_WINDOWS_FOLDER = re.compile(
    r"(?:[A-Z]:|\\SystemRoot|\\Device\\HarddiskVolume\d{1,3}|\\\?\?\\[A-Z]:)?(?:\\Windows)?\\(?:System32|SysWOW64)(?:\\drivers)?\\",
    re.IGNORECASE,
)


def is_public_name(name: str) -> bool:
    """Whether a file is a part of Windows under its own name, or a name that the kernel gives: it says nothing about a machine."""
    folder, file = _split(name)
    if file.casefold() in _WINDOWS_FILES or (not folder and file.casefold().removesuffix(".pdb") in _PUBLIC_STEMS and "." in file):
        return not folder or _WINDOWS_FOLDER.fullmatch(folder) is not None
    return not folder and file.casefold() in _WINDOWS_NAMES


_PUBLIC_STEMS = frozenset(PureWindowsPath(name).stem for name in _WINDOWS_FILES)


class Masks:
    """The stand-ins of one export. `learn` what is to be found inside of texts, before the first text is masked."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret[:64]
        self._bits: dict[tuple[int, int, int], int] = {}
        self._tokens: dict[str, str] = {}
        self._phrases: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    # -------------------------------------------------------------------------------------------- values

    def name(self, text: str, kind: str = "name") -> str:
        """A stand-in for a name, whatever its case; a suffix such as `.exe` stays."""
        suffix = _SUFFIX.fullmatch(PureWindowsPath(text).suffix) if kind == "name" else None
        return f"{kind}-{self._digest(kind, text.casefold())}{suffix[0].lower() if suffix else ''}"

    def file(self, text: str) -> str:
        """A stand-in for a file's path or name; files of Windows keep theirs."""
        if not text or is_public_name(text):
            return text
        folder, file = _split(text)
        shown = file if is_public_name(file) else self.name(file)
        return f"{self.name(folder, 'folder')}\\{shown}" if folder else shown

    def symbol(self, text: str) -> str:
        """A stand-in for `function+distance [source file:line]`; the distance stays."""
        found = _SYMBOL.fullmatch(text)
        assert found is not None  # the pattern fits every text
        return f"{self.name(found['name'], 'function')}{found['distance'] or ''}"

    def stack_hash(self, text: str) -> str:
        """Another hash of the same length: the original is made of the names of modules and could be guessed."""
        return hashlib.blake2b(text.encode(), key=self._secret, person=b"stack").hexdigest()[: len(text)]

    def ip(self, packed: bytes) -> bytes:
        """A stand-in for an address of 16 bytes, IPv4 as ::ffff:a.b.c.d."""
        if len(packed) != 16:
            return packed
        if packed.startswith(_MAPPED):
            return _MAPPED + self.ipv4(IPv4Address(packed[12:])).packed
        return self.ipv6(IPv6Address(packed)).packed

    def ipv4(self, address: IPv4Address) -> IPv4Address:
        """A stand-in for an IPv4 address, of the same range."""
        kind = _kind_v4(address)
        if kind is None:
            return address
        while _kind_v4(address := IPv4Address(self._permuted(int(address), 32, kind))) != kind:
            pass  # a permutation: it comes back to this range at the latest where it began
        return address

    def ipv6(self, address: IPv6Address) -> IPv6Address:
        """A stand-in for an IPv6 address."""
        if address.ipv4_mapped is not None:
            return IPv6Address(_MAPPED + self.ipv4(address.ipv4_mapped).packed)
        kind = _kind_v6(address)
        if kind is None:
            return address
        while _kind_v6(address := IPv6Address(self._permuted(int(address), 128, kind))) != kind:
            pass
        return address

    def address(self, text: str) -> str:
        """A stand-in for a socket address as text: `192.0.2.1:80`, `[fe80::1%7]:53`, or one without IP."""
        masked = self._addresses(text)
        if masked != text or _V4_TEXT.search(text) or text.startswith("["):
            return masked
        return self.name(text, "address")

    # -------------------------------------------------------------------------------------------- texts

    def learn(self, original: str, masked: str) -> None:
        """Remember a stand-in: texts that speak of the original will speak of it."""
        if original == masked or len(original) < 2:
            return
        if _TOKEN.fullmatch(original):
            self._tokens[original.casefold()] = masked
        else:
            for spelling in (original, quote(original, safe="@:,/"), json.dumps(original)[1:-1]):
                self._phrases[spelling.casefold()] = masked
        self._pattern = None

    def text(self, text: str) -> str:
        """A text in which all that was learnt, and every IP address, is replaced."""
        lowered = text.casefold()
        found = sorted((phrase for phrase in self._phrases if phrase in lowered), key=len, reverse=True)
        if found:
            either = re.compile("|".join(map(re.escape, found)), re.IGNORECASE)
            text = either.sub(lambda match: self._phrases.get(match[0].casefold(), self.name(match[0])), text)
        text = self._addresses(text)
        return _TOKEN.sub(lambda match: self._tokens.get(match[0].casefold(), match[0]), text)

    def link(self, text: str) -> str:
        """A link below a trace: the path of a page stays, its parts and its query may hold names."""
        path, mark, query = text.partition("?")
        page, slash, rest = path.partition("/")
        pairs = (pair.partition("=") for pair in query.split("&"))
        shown = "&".join(f"{key}{equals}{quote(self.text(unquote(value)), safe='@:,/#')}" for key, equals, value in pairs)
        return f"{page}{slash}{self.text(rest)}{mark}{shown if query else ''}"

    def json(self, text: str) -> str:
        """JSON whose texts are replaced; keys stay. What is none is taken as a text."""
        try:
            value = json.loads(text)
        except ValueError:
            return self.text(text)
        masked = self._in_json(value)
        return text if masked == value else json.dumps(masked, ensure_ascii=False)

    def _in_json(self, value: Any) -> Any:  # Any: JSON
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._in_json(one) for one in value]
        return {key: self._in_json(one) for key, one in value.items()} if isinstance(value, dict) else value

    # -------------------------------------------------------------------------------------------- inside

    def _addresses(self, text: str) -> str:
        def six(match: re.Match[str]) -> str:
            bare = match[0].rstrip(".")
            try:
                return str(self.ipv6(IPv6Address(bare))) + match[0][len(bare) :]
            except AddressValueError:
                return match[0]

        def four(match: re.Match[str]) -> str:
            try:
                return str(self.ipv4(IPv4Address(match[0])))
            except AddressValueError:
                return match[0]

        pieces: Iterable[str] = _V6_TEXT.split(text)
        sixes = [six(match) for match in _V6_TEXT.finditer(text)] + [""]
        return "".join(_V4_TEXT.sub(four, piece) + address for piece, address in zip(pieces, sixes, strict=True))

    def _permuted(self, value: int, width: int, kept: int) -> int:
        """Each bit behind the kept prefix, turned or not by what stands before it."""
        result = value
        for place in range(kept, width):
            before = value >> (width - place)
            known = (width, place, before) if place <= 24 else None
            turned = self._bits.get(known) if known else None
            if turned is None:
                seed = f"{width}/{place}/{before:x}".encode()
                turned = hashlib.blake2b(seed, key=self._secret, digest_size=1).digest()[0] & 1
                if known:
                    self._bits[known] = turned
            result ^= turned << (width - 1 - place)
        return result

    def _digest(self, kind: str, text: str) -> str:
        coded = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(coded, key=self._secret, person=kind.encode()[:16]).hexdigest()[:_DIGITS]


def _kind_v4(address: IPv4Address) -> int | None:
    """The bits that an address shares with all of its range, 0 outside of the ranges; None for one that stands for itself."""
    if any(address in network for network in _KEPT_V4):
        return None
    return next((network.prefixlen for network in _RANGES_V4 if address in network), 0)


def _kind_v6(address: IPv6Address) -> int | None:
    if address.is_multicast:
        return None if int(address) & ((1 << 112) - 1) < 1 << 16 else 16  # well-known groups; flags and scope
    if any(address in network for network in _KEPT_V6):
        return None
    return next((network.prefixlen for network in _RANGES_V6 if address in network), 0)


def _split(text: str) -> tuple[str, str]:
    """Folder, with its last separator, and file."""
    cut = max(text.rfind("\\"), text.rfind("/")) + 1
    return text[:cut], text[cut:]

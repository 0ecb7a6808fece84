"""Names of providers: those that everybody knows, and those that a trace brings along.

A trace names providers in three ways: event metadata of a merge (etl-format S8), provider traits of TraceLogging events (S7, item
12), and the manifests that EventSource writes into its own stream (S9).
"""

import re
from collections.abc import Mapping
from uuid import UUID

import numpy as np

from collector.extended import items_of
from collector.raw import HeaderKind, ItemType, RawEvents

__all__ = ["WELL_KNOWN", "ProviderNames"]

WELL_KNOWN: Mapping[UUID, str] = {
    UUID(guid): name
    for guid, name in {
        # classes of the kernel's hook groups
        "68fdd900-4a3e-11d1-84f4-0000f80464e3": "EventTrace",
        "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c": "DiskIo",
        "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c": "PageFault",
        "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c": "Process",
        "90cbdc39-4a3e-11d1-84f4-0000f80464e3": "FileIo",
        "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c": "Thread",
        "9a280ac0-c8e0-11d1-84e2-00c04fb998a2": "TcpIp",
        "3282fc76-feed-498e-8aa7-e70f459d430e": "Job",
        "bf3a50c5-a9c9-4988-a005-2df0b7c80f80": "UdpIp",
        "ae53722e-c863-11d2-8659-00c04fa321a1": "Registry",
        "13976d09-a327-438c-950b-7f03192815c7": "DbgPrint",
        "01853a65-418f-4f36-aefc-dc0f1d2fd235": "Config",
        "42695762-ea50-497a-9068-5cbbb35e0b95": "Wnf",
        "0268a8b6-74fd-4302-9dd0-6e8f1795c0cf": "Pool",
        "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc": "PerfInfo",
        "222962ab-6180-4b88-a825-346b75f2a24a": "Heap",
        "89497f50-effe-4440-8cf2-ce6b1cdcaca7": "Object",
        "e43445e0-0903-48c3-b878-ff0fccebdd04": "Power",
        "a9152f00-3f58-4bee-92a1-70c7d079d5dd": "ModBound",
        "2cb15d1d-5fc1-11d2-abe1-00a0c911f518": "Image",
        "b2d14872-7c5b-463d-8419-ee9bf7d23e04": "Dpc",
        "7687a439-f752-45b8-b741-321aec0f8df9": "Cc",
        "3ac66736-cc59-4cff-8115-8df50e39816b": "CritSec",
        "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3": "StackWalk",
        "9aec974b-5b8e-4118-9b92-3186d8002ce5": "Ums",
        "45d8cccd-539f-4b72-a8b7-5c683142609a": "Alpc",
        "d837ca92-12b9-44a5-ad6a-3a65b3578aa8": "SplitIo",
        "c861d0e2-a2c1-4d36-9f9c-970bab943a12": "ThreadPool",
        "7f2a405c-69b5-4bf9-a1f5-30e8f1afab5e": "Hypervisor",
        "2ce9a149-effe-42f0-a635-a1d39e26c8f2": "HypervisorX",
        # other classes of the heap, the loader and the tools that merge traces
        "d781ca11-61c0-4387-b83d-af52d3d2dd6a": "HeapRange",
        "05867806-c246-43ef-a147-e17d2bdb1496": "HeapSummary",
        "b059b83f-d946-4b13-87ca-4292839dc2f2": "UserLoader",
        "6a399ae0-4bc6-4de9-870b-3657f8947e7e": "LostEvent",
        "b3e675d7-2554-4f18-830b-2762732560de": "KernelTraceControl/ImageID",
        "bbccf6c1-6cd1-48c4-80ff-839482e37671": "KernelTraceControl/MetaData",
        "9b79ee91-b5fd-41c0-a243-4248e266e9d0": "KernelTraceControl/SystemConfigEx",
        "ed54dff8-c409-4cf6-bf83-05e1e61a09c4": "WinSat",
        # manifest providers that often stand beside socket events
        "e53c6823-7bb8-44bb-90dc-3f86090d48a6": "Microsoft-Windows-Winsock-AFD",
        "2f07e2ee-15db-40f1-90ef-9d7ba282188a": "Microsoft-Windows-TCPIP",
        "7dd42a49-5329-4832-8dfd-43d979153a88": "Microsoft-Windows-Kernel-Network",
        "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716": "Microsoft-Windows-Kernel-Process",
        "edd08927-9cc4-4e65-b970-c2560fb5c289": "Microsoft-Windows-Kernel-File",
        "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2": "Microsoft-Windows-Kernel-EventTracing",
        "1c95126e-7eea-49a9-a3fe-a378b03ddb4d": "Microsoft-Windows-DNS-Client",
        "2ed6006e-4729-4609-b423-3ee7bcd678ef": "Microsoft-Windows-NDIS-PacketCapture",
        "43d1a55c-76d6-4f7e-995c-64c711e5cafe": "Microsoft-Windows-WinINet",
        "7d44233d-3055-4b9c-ba64-0d47ca40a232": "Microsoft-Windows-WinHttp",
        "dd5ef90a-6398-47a4-ad34-4dcecdef795f": "Microsoft-Windows-HttpService",
        "a0c1853b-5c40-4b15-8766-3cf1c58f985a": "Microsoft-Windows-PowerShell",
        "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4": "Microsoft-Windows-DotNETRuntime",
        "a669021c-c450-4609-a035-5af59af4df18": "Microsoft-Windows-DotNETRuntimeRundown",
        "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5": "System.Threading.Tasks.TplEventSource",
        "adb401e1-5296-51f8-c125-5fda75826144": "Microsoft-Diagnostics-DiagnosticSource",
    }.items()
}

_METADATA = UUID("bbccf6c1-6cd1-48c4-80ff-839482e37671")
_EVENT_INFO_OPCODE = 32
_NAME_OFFSET_AT = 52
_MANIFEST_EVENT = 0xFFFE
_MANIFEST_PROVIDER = re.compile(rb'<provider\b[^>]{0,1000}?\bname="([^"<>]{1,200})"')
_CHUNK_HEADER_BYTES = 8
_LONGEST_NAME = 200


class ProviderNames:
    """Names of the providers of one trace, learned window by window."""

    def __init__(self) -> None:
        self._learned: dict[UUID, str] = {}
        self._silent: set[int] = set()
        """Providers, by number, whose first records have no traits; they are looked at no more."""

    def __getitem__(self, guid: UUID) -> str | None:
        return WELL_KNOWN.get(guid) or self._learned.get(guid)

    def learn(self, raw: RawEvents) -> None:
        """Take in the names that a window brings; it looks at metadata, at manifests, and at one record of each nameless provider."""
        self._learn_metadata(raw)
        self._learn_manifests(raw)
        met = np.flatnonzero(np.bincount(raw.provider, minlength=len(raw.providers))).tolist()
        nameless = [number for number in met if number not in self._silent and self[raw.providers[number]] is None]
        if not nameless:
            return
        numbers, first_rows = np.unique(raw.provider, return_index=True)
        for number, row in zip(nameless, first_rows[np.searchsorted(numbers, nameless)].tolist(), strict=True):
            name = _name_in_traits(raw, row)
            if name is None:
                self._silent.add(number)
            else:
                self._learned[raw.providers[number]] = name

    def _learn_metadata(self, raw: RawEvents) -> None:
        """Names in event metadata: one record an event of the trace, some hundred a file."""
        if _METADATA not in raw.providers:
            return
        is_info = (raw.provider == raw.providers.index(_METADATA)) & (raw.opcode == _EVENT_INFO_OPCODE)
        for row in np.flatnonzero(is_info).tolist():
            blob = raw.payload_bytes(row)
            offset = int.from_bytes(blob[_NAME_OFFSET_AT : _NAME_OFFSET_AT + 4], "little")
            name = _utf16(blob[offset : offset + 2 * _LONGEST_NAME]) if 0 < offset < len(blob) else None
            if name:
                self._learned.setdefault(UUID(bytes_le=blob[:16]), name)

    def _learn_manifests(self, raw: RawEvents) -> None:
        """Names in manifests: the first piece of each has the name."""
        is_event = (raw.kind == HeaderKind.EVENT64) | (raw.kind == HeaderKind.EVENT32)
        for row in np.flatnonzero(is_event & (raw.event_id == _MANIFEST_EVENT)).tolist():
            guid = raw.providers[int(raw.provider[row])]
            if self[guid] is None:
                found = _MANIFEST_PROVIDER.search(raw.payload_bytes(row)[_CHUNK_HEADER_BYTES:])
                if found and (name := _utf8(found[1])):
                    self._learned[guid] = name


def _name_in_traits(raw: RawEvents, row: int) -> str | None:
    """The provider name in the traits of a TraceLogging record."""
    if raw.extended[row] < 0:
        return None
    traits = (item.data[2:] for item in items_of(raw, row) if item.type == ItemType.PROVIDER_TRAITS)
    return next((name for data in traits if (name := _utf8(data))), None)


def _utf8(text: bytes) -> str | None:
    """Text up to its NUL; None where it is none."""
    name = text.split(b"\0", 1)[0][:_LONGEST_NAME].decode("utf-8", errors="replace").strip()
    return name if name and name.isprintable() else None


def _utf16(text: bytes) -> str | None:
    """Text up to its NUL; names in metadata often end in a blank."""
    name = text[: len(text) & ~1].decode("utf-16-le", errors="replace").split("\0", 1)[0].strip()
    return name if name and name.isprintable() else None

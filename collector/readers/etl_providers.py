"""GUIDs of records as small numbers, and the class GUIDs behind the hook groups of the kernel.

Groups: etl-format S12.
"""

from uuid import UUID

import numpy as np

from collector.raw import Int32s, UInt64s
from collector.readers.etl_headers import HeaderColumns

__all__ = ["GROUP_GUIDS", "IMAGE_GROUP", "LOST_EVENT", "MAX_PROVIDERS", "NO_PROVIDER", "Providers"]

GROUP_GUIDS: dict[int, UUID] = {
    group: UUID(guid)
    for group, guid in {
        0x00: "68fdd900-4a3e-11d1-84f4-0000f80464e3",
        0x01: "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c",
        0x02: "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c",
        0x03: "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
        0x04: "90cbdc39-4a3e-11d1-84f4-0000f80464e3",
        0x05: "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c",
        0x06: "9a280ac0-c8e0-11d1-84e2-00c04fb998a2",
        0x07: "3282fc76-feed-498e-8aa7-e70f459d430e",
        0x08: "bf3a50c5-a9c9-4988-a005-2df0b7c80f80",
        0x09: "ae53722e-c863-11d2-8659-00c04fa321a1",
        0x0A: "13976d09-a327-438c-950b-7f03192815c7",
        0x0B: "01853a65-418f-4f36-aefc-dc0f1d2fd235",
        0x0C: "99134383-5248-43fc-834b-529454e75df3",
        0x0D: "42695762-ea50-497a-9068-5cbbb35e0b95",
        0x0E: "0268a8b6-74fd-4302-9dd0-6e8f1795c0cf",
        0x0F: "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc",
        0x10: "222962ab-6180-4b88-a825-346b75f2a24a",
        0x11: "89497f50-effe-4440-8cf2-ce6b1cdcaca7",
        0x12: "e43445e0-0903-48c3-b878-ff0fccebdd04",
        0x13: "a9152f00-3f58-4bee-92a1-70c7d079d5dd",
        0x14: "2cb15d1d-5fc1-11d2-abe1-00a0c911f518",
        0x15: "b2d14872-7c5b-463d-8419-ee9bf7d23e04",
        0x16: "7687a439-f752-45b8-b741-321aec0f8df9",
        0x17: "3ac66736-cc59-4cff-8115-8df50e39816b",
        0x18: "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3",
        0x19: "9aec974b-5b8e-4118-9b92-3186d8002ce5",
        0x1A: "45d8cccd-539f-4b72-a8b7-5c683142609a",
        0x1B: "d837ca92-12b9-44a5-ad6a-3a65b3578aa8",
        0x1C: "c861d0e2-a2c1-4d36-9f9c-970bab943a12",
        0x1D: "7f2a405c-69b5-4bf9-a1f5-30e8f1afab5e",
        0x1E: "2ce9a149-effe-42f0-a635-a1d39e26c8f2",
    }.items()
}
"""Class GUID of each known hook group, the high byte of a HookId."""

IMAGE_GROUP = 0x14
_IMAGE_LOAD_HOOK = (0x03, 0x0A)  # an image event in spite of its group, that of processes

NO_PROVIDER = UUID(int=0)
"""Stands for records that name no provider: messages without a GUID, kinds of header that nobody documents."""

LOST_EVENT = UUID("6a399ae0-4bc6-4de9-870b-3657f8947e7e")
"""Class of the marker records of lost events (opcode 32), buffers (33) and files (34)."""

MAX_PROVIDERS = 1 << 16


def group_guid(group: int) -> UUID:
    """The class GUID of a hook group; groups that nobody documents get one that cannot be mistaken for a real class."""
    return GROUP_GUIDS.get(group) or UUID(fields=(group << 8, 0, 0, 0, 0, 0))


class Providers:
    """Numbers for GUIDs, given at first sight."""

    def __init__(self) -> None:
        self.guids: list[UUID] = []
        self._numbers: dict[UUID, int] = {}
        self._groups = np.full(256, -1, np.int32)
        # The two halves of the known GUIDs as they stand on disk, sorted by the first half for searching.
        self._low = np.zeros(0, np.uint64)
        self._high = np.zeros(0, np.uint64)
        self._number = np.zeros(0, np.int32)

    def number_of(self, guid: UUID) -> int:
        """The number of one GUID; the same for ever."""
        number = self._numbers.get(guid)
        if number is None:
            number = self._numbers[guid] = len(self.guids)
            self.guids.append(guid)
        return number

    def find(self, guid: UUID) -> int | None:
        """The number of a GUID that was seen; None for others."""
        return self._numbers.get(guid)

    def of(self, columns: HeaderColumns) -> Int32s:
        """Provider number of each record, int32 (n,)."""
        numbers = np.empty(columns.group.size, np.int32)
        has_guid = columns.group == -1
        numbers[has_guid] = self._of_guids(columns.guid_low[has_guid], columns.guid_high[has_guid])
        if (rows := np.flatnonzero(columns.group >= 0)).size:
            group = columns.group[rows]
            is_image = (group == _IMAGE_LOAD_HOOK[0]) & (columns.opcode[rows] == _IMAGE_LOAD_HOOK[1])
            group = np.where(is_image, IMAGE_GROUP, group)
            for new in np.flatnonzero((np.bincount(group, minlength=256) > 0) & (self._groups < 0)).tolist():
                self._groups[new] = self.number_of(group_guid(new))
            numbers[rows] = self._groups[group]
        if (rows := np.flatnonzero(columns.group == -2)).size:
            numbers[rows] = self.number_of(NO_PROVIDER)
        return numbers

    def _of_guids(self, low: UInt64s, high: UInt64s) -> Int32s:
        """Numbers of GUIDs given as two halves; new ones are learned."""
        numbers, is_known = self._find(low, high)
        if not is_known.all():
            rows = np.flatnonzero(~is_known)
            numbers[rows] = self._learn(low[rows], high[rows])
        return numbers

    def _find(self, low: UInt64s, high: UInt64s) -> tuple[Int32s, "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]:
        if not self._low.size:
            return np.zeros(low.size, np.int32), np.zeros(low.size, np.bool_)
        at = np.minimum(np.searchsorted(self._low, low), self._low.size - 1)
        return self._number[at], (self._low[at] == low) & (self._high[at] == high)

    def _learn(self, low: UInt64s, high: UInt64s) -> Int32s:
        """Numbers of GUIDs that the quick search did not find: new ones, and those that share their first half with another."""
        pairs, inverse = np.unique(np.stack((low, high), axis=1), axis=0, return_inverse=True)
        numbers = np.empty(len(pairs), np.int32)
        fresh: list[int] = []
        for i, pair in enumerate(pairs):
            guid = UUID(bytes_le=pair.tobytes())
            if guid not in self._numbers and len(self.guids) >= MAX_PROVIDERS:
                numbers[i] = self.number_of(NO_PROVIDER)
                continue
            if guid not in self._numbers:
                fresh.append(i)
            numbers[i] = self.number_of(guid)
        self._remember(pairs[fresh, 0], pairs[fresh, 1], numbers[fresh])
        return numbers[inverse.reshape(-1)]

    def _remember(self, low: UInt64s, high: UInt64s, number: Int32s) -> None:
        """Make GUIDs known to the quick search; of those with one first half only the first can be."""
        all_low = np.concatenate((self._low, low))
        self._low, first = np.unique(all_low, return_index=True)
        self._high = np.concatenate((self._high, high))[first]
        self._number = np.concatenate((self._number, number))[first]

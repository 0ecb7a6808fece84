"""Keywords of socket events for texts that leave them out: what follows from the other values."""

from collector.afdcodes import Keyword
from collector.texts.transcript import TextEvent
from collector.texts.values import number_of

__all__ = ["Keywords"]

_DATAGRAMS = frozenset({*range(1005, 1016), 1033, 3004})
_MOST_THREADS = 65_536
_KERNEL_BEGINS = {4: 1 << 31, 8: 1 << 47}


class Keywords:
    """What the header's keyword would say, as far as it follows from other things; the trust page says that it is inferred.

    A request whose buffer is a user address when it enters takes the fast path, others have a kernel address or none. An exit with the
    buffer of its thread's last such request ends that one. Messages with the address of a datagram, and their kin, are of datagram sockets.
    """

    def __init__(self, pointer_size: int) -> None:
        self._kernel_begins = _KERNEL_BEGINS[pointer_size]
        self._last: dict[int, tuple[str, str]] = {}

    def of(self, event: TextEvent) -> int:
        """The keyword of the next event. Raises ValueError."""
        keyword = Keyword.DATAGRAM if event.event_id in _DATAGRAMS else 0
        buffer = event.texts.get("buffer")
        if buffer is None:
            return keyword
        place = (event.texts["endpoint"], buffer)
        if event.texts["enterexit"] == "0":
            self._last.pop(event.tid, None)
            if 0 < number_of(buffer) < self._kernel_begins:
                if len(self._last) >= _MOST_THREADS:
                    self._last.clear()
                self._last[event.tid] = place
                keyword |= Keyword.FAST_PATH
        elif self._last.get(event.tid) == place:
            del self._last[event.tid]
            keyword |= Keyword.FAST_PATH
        return keyword

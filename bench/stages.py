"""Where an import spends its time: processor seconds by stage, each without those of the stages inside it."""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

from collector import pipeline, stages
from collector.decoder import Decoder
from collector.inventory import Inventory
from collector.model.address_names import AddressNames
from collector.model.catalog_changes import CatalogChanges
from collector.model.heap_rollups import HeapRollups
from collector.model.heaps import Heaps
from collector.model.kept import KeptRecords
from collector.model.processes import Processes
from collector.model.rollups import SocketRollups
from collector.model.sockets import Sockets
from collector.model.stacks import Stacks
from collector.model.tallies import Tallies
from collector.model.transport import Transport
from collector.model.virtual_memory import VirtualMemory
from collector.readers.etl import EtlReader
from collector.readers.etl_load import BufferLoader
from collector.source import Source
from collector.store.beside import Beside
from collector.store.writer import TraceWriter

__all__ = ["STAGES", "Stopwatch"]

# Methods are wrapped from outside, so that the collector itself carries no clocks.
_METHODS: tuple[tuple[type, str, str], ...] = (
    (Source, "read_at", "read"),
    (Source, "read_into", "read"),
    (EtlReader, "__init__", "walk"),
    (BufferLoader, "load", "walk"),
    (EtlReader, "_window", "order"),
    (Decoder, "decode", "decode"),
    (Inventory, "add", "count"),
    (KeptRecords, "advance", "count"),
    (Processes, "advance", "model: processes"),
    (Processes, "finish", "model: processes"),
    (Stacks, "advance", "model: stacks"),
    (Sockets, "advance", "model: sockets"),
    (Heaps, "advance", "model: heaps"),
    (Transport, "advance", "model: neighbours"),
    (AddressNames, "advance", "model: neighbours"),
    (CatalogChanges, "advance", "model: neighbours"),
    (VirtualMemory, "advance", "model: neighbours"),
    (SocketRollups, "take", "roll-ups"),
    (HeapRollups, "take", "roll-ups"),
    (Tallies, "take", "sums"),
    (TraceWriter, "write", "write"),
    (Beside, "finish", "wait for the writing process"),
    (TraceWriter, "index", "index"),
    (TraceWriter, "finish", "finish"),
)
_GENERATORS = (
    (Stacks, "finish_parts", "model: stacks"),
    (Sockets, "finish_parts", "model: sockets"),
    (Heaps, "finish_parts", "model: heaps"),
    (SocketRollups, "finish", "roll-ups"),
    (HeapRollups, "finish", "roll-ups"),
    (Tallies, "finish", "sums"),
)
_PASSES = (("join_buffers", "join: heap and sockets"), ("socket_sums", "sums"))
_FUNCTIONS = ((pipeline, "trace_key", "hash"), (stages, "findings", "findings and check"))

STAGES = tuple(dict.fromkeys((*(stage for _, _, stage in (*_METHODS, *_GENERATORS)), *(stage for *_, stage in (*_PASSES, *_FUNCTIONS)))))


class Stopwatch:
    """Processor seconds by stage. One at a time, in a process of its own: it changes the collector's classes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self._stack: list[str] = ["other"]
        self._since = time.process_time()
        self.seconds["other"] = 0.0

    def attach(self) -> None:
        """Watch every import of this process from now on."""
        for owner, name, stage in _METHODS:
            setattr(owner, name, self._timed(getattr(owner, name), stage))
        for owner, name, stage in _GENERATORS:
            setattr(owner, name, self._timed_steps(getattr(owner, name), stage))
        for name, stage in _PASSES:
            setattr(stages, name, self._timed_steps(getattr(stages, name), stage))
        for module, name, stage in _FUNCTIONS:
            setattr(module, name, self._timed(getattr(module, name), stage))

    def stop(self) -> dict[str, float]:
        """Seconds so far, the stages that took none left out."""
        self._lap()
        return {stage: round(seconds, 3) for stage, seconds in self.seconds.items() if seconds >= 0.0005}

    def _lap(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def _enter(self, stage: str) -> None:
        self._lap()
        self._stack.append(stage)

    def _leave(self) -> None:
        self._lap()
        self._stack.pop()

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:  # Any: whatever it takes and gives
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:  # Any: see above
            self._enter(stage)
            try:
                return function(*args, **kwargs)
            finally:
                self._leave()

        return timed

    def _timed_steps(self, function: Callable[..., Any], stage: str) -> Callable[..., Iterator[Any]]:  # Any: see above
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Iterator[Any]:  # Any: see above
            steps = function(*args, **kwargs)
            while True:
                self._enter(stage)
                try:
                    step = next(steps, None)
                finally:
                    self._leave()
                if step is None:
                    return
                yield step

        return timed

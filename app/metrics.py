"""Numbers for Prometheus: requests by page and what they took, and the traces of the folder.

Several processes of one server add their numbers up in files of a folder that PROMETHEUS_MULTIPROC_DIR names, as prometheus-client has it.
"""

import os
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from starlette.requests import Request
from starlette.responses import Response

from app.observing import Seen
from collector.errors import StoreError
from collector.store.stores import TraceStore
from collector.store.tables import CATALOG

__all__ = ["FOLDER_VARIABLE", "Metrics"]

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

_entry = CATALOG.tables["trace_entry"]
_note = CATALOG.tables["note"]


class Metrics:
    """Counts what it is told of, and answers a scrape. `pages` are the words that tell paths apart, such as `sockets`."""

    def __init__(self, folder: TraceStore, pages: frozenset[str]) -> None:
        self._pages, self._folder = pages, folder
        self._is_shared = FOLDER_VARIABLE in os.environ
        self._registry = CollectorRegistry()
        own = None if self._is_shared else self._registry
        self._requests = Counter("sockscope_requests", "Requests answered.", ("page", "method", "status"), registry=own)
        self._seconds = Histogram(
            "sockscope_request_duration_seconds", "Time from a request to the end of its answer.", ("page",), buckets=_SECONDS, registry=own
        )
        if own is not None:
            ProcessCollector(registry=own)
            own.register(_Folder(folder))

    def take(self, seen: Seen) -> None:
        """Count a request."""
        page = self.page_of(seen.path)
        method = seen.method if seen.method in _METHODS else "other"
        self._requests.labels(page, method, str(seen.status)).inc()
        self._seconds.labels(page).observe(seen.seconds)

    def page_of(self, path: str) -> str:
        """Which page a path is, as one of few words, whatever was asked for."""
        parts = path.split("/")
        if path in ("", "/"):
            return "traces"
        if parts[1] == "t":
            if len(parts) == 3:
                return "overview"
            return parts[3] if len(parts) > 3 and parts[3] in self._pages else "other"
        return parts[1] if parts[1] in self._pages else "other"

    def answer(self, _request: Request) -> Response:
        """All numbers in the text format of Prometheus."""
        registry = self._registry
        if self._is_shared:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            registry.register(_Folder(self._folder))
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"})


class _Folder(Collector):
    """The traces, as the catalog and the disk have them when they are asked."""

    def __init__(self, folder: TraceStore) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """One number of each kind; those of the catalog are left out while it cannot be read."""
        traces = GaugeMetricFamily("sockscope_traces", "Traces by their state.", labels=("state",))
        try:
            size = self._folder.size_bytes()
            yield GaugeMetricFamily("sockscope_database_size_bytes", "Size of all traces and the catalog.", value=size)
            with self._folder.catalog().connect() as db:
                for state, number in db.execute(select(_entry.c.state, func.count()).group_by(_entry.c.state).order_by(_entry.c.state)):
                    traces.add_metric((state,), number)
                notes = db.execute(select(func.count()).select_from(_note)).scalar_one()
        except StoreError:
            return
        yield traces
        yield GaugeMetricFamily("sockscope_notes", "Notes that people wrote.", value=notes)

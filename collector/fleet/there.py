"""The worker's side of collecting by a cluster: one file into the database, by the same way as without a cluster."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from distributed import Event, Status, Worker, get_client, get_worker

from collector.collecting import Outcome, outcomes_of
from collector.errors import (
    AlreadyCollected,
    CollectCancelled,
    FleetError,
    PackageError,
    SourceError,
    StoreError,
    StoreLocked,
    StoreUnreachable,
    TraceError,
)
from collector.fleet.orders import Answer, Order
from collector.pipeline import ImportReport, import_trace
from collector.source import Source
from collector.stages import Progress, program_version
from collector.store.stores import TraceStore, is_server, open_store
from collector.symbols import Symbols

__all__ = ["ASK_SECONDS", "Here", "collected", "collected_here"]

ASK_SECONDS = 0.25
"""How often a worker asks whether it shall stop."""
_TELL_SECONDS = 0.5
_ENDING = (Status.closing, Status.closed, Status.stopping, Status.stopped, Status.failed)
_PATIENCE_SECONDS = 10.0
"""How long another collector of the same trace is waited for: one that lost its scheduler, and stops now, may still hold it."""
_AWAY_SECONDS = 60.0
"""How long a server of a database that is away is waited for: one that is restarted comes back soon."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Here:
    """Where an order is carried out, and how to hear and be heard there."""

    name: str
    should_cancel: Callable[[], bool]
    on_progress: Callable[[Progress], None]


def collected(order: Order) -> Answer:
    """Carry out an order in the thread of a worker, which tells its client how far it is, and stops when that says so."""
    worker = get_worker()
    with _asking(worker, Event(order.run, client=get_client())) as should_cancel:
        if should_cancel():
            return Answer(())
        worker.log_event(order.run, {"number": order.number, "begun_by": worker.address})
        return collected_here(order, Here(f"{worker.address} on {socket.gethostname()}", should_cancel, _teller(worker, order)))


def collected_here(order: Order, here: Here) -> Answer:
    """Collect the traces of a file; each error becomes a part of the answer."""
    outcomes: list[Outcome] = []
    notes: list[str] = []

    def tell_fault(sentence: str) -> None:
        outcomes.append(Outcome(order.word, error=PackageError(sentence)))

    try:
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(contextlib.closing(_store_of(order, here)))
            symbols = stack.enter_context(Symbols(order.symbols)) if order.symbols else None

            def import_one(source: Source, shown: str | None) -> ImportReport:
                return _imported(source, store, here, order, shown, symbols)

            found = outcomes_of(
                order.file,
                store,
                here.should_cancel,
                import_one,
                on_fault=tell_fault,
                on_note=notes.append,
                name=order.name,
                most_unpacked=order.most_unpacked,
            )
            outcomes.extend(_in_words_of(order, outcome, here) for outcome in stack.enter_context(contextlib.closing(found)))
    except TraceError as error:
        outcomes.append(_in_words_of(order, Outcome(order.file, error=error), here))
    return Answer(tuple(outcomes), tuple(notes))


def _store_of(order: Order, here: Here) -> TraceStore:
    """The database, if it is the one that is meant. Raises FleetError, StoreError for what is not seen here."""
    if program_version() != order.version:
        raise FleetError(
            f"{order.word}: the worker {here.name} runs sockscope {program_version()}, and this command {order.version}. "
            "Install the same version on all machines."
        )
    store = open_store(order.database)
    if order.mark is not None and not _is_seen(order.mark, store, here, _PATIENCE_SECONDS if is_server(order.database) else 0.0):
        raise StoreError(
            f"{store.title}: the worker {here.name} sees another database of this name, or none, or its locks do not reach there. "
            "Share the folder under the same path with all workers, or name a database server."
        )
    return store


def _is_seen(mark: str, store: TraceStore, here: Here, patience_seconds: float) -> bool:
    """Whether the mark is in the database, once its server is there, and a moment after that. Raises StoreError, CollectCancelled."""
    began = lost = time.monotonic()
    while True:
        now = time.monotonic()
        try:
            if store.is_being_collected(mark):
                return True
            if now - lost >= patience_seconds:
                return False
        except StoreUnreachable:
            if now - began >= _AWAY_SECONDS:
                raise
            lost = now
        if here.should_cancel():
            raise CollectCancelled("Cancelled. Nothing was stored.")
        time.sleep(_LOOK_SECONDS)


def _imported(source: Source, store: TraceStore, here: Here, order: Order, shown: str | None, symbols: Symbols | None) -> ImportReport:
    """Import one trace, after another collector of it if that is done soon, and anew after the server was away. Raises TraceError."""
    failed: float | None = None
    while True:
        try:
            return import_trace(
                source,
                store,
                here.on_progress,
                here.should_cancel,
                keep=order.keep,
                name=shown,
                symbols=symbols,
                limits=order.limits,
            )
        except (StoreLocked, StoreUnreachable) as error:
            failed = failed or time.monotonic()  # a server that ends again while it gets the same file is not waited for again
            if time.monotonic() - failed > (_PATIENCE_SECONDS if isinstance(error, StoreLocked) else _AWAY_SECONDS):
                raise
        time.sleep(_LOOK_SECONDS)


def _in_words_of(order: Order, outcome: Outcome, here: Here) -> Outcome:
    """The outcome with the file as the user named it; what a machine is to blame for says which."""
    error = outcome.error
    if isinstance(error, SourceError):
        error = SourceError(f"{error} So sees the worker {here.name}: all workers need the file under the same path.")
    elif isinstance(error, StoreError) and not isinstance(error, AlreadyCollected | StoreLocked) and here.name not in str(error):
        error = type(error)(f"{error} (worker {here.name})")
    return replace(outcome, label=outcome.label.replace(order.file, order.word, 1), error=error)


def _teller(worker: Worker, order: Order) -> Callable[[Progress], None]:
    """Tells the client about progress, now and then."""
    told = 0.0

    def tell(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= _TELL_SECONDS:
            told = time.monotonic()
            far = [progress.stage, progress.bytes_done, progress.bytes_total, progress.records]
            worker.log_event(order.run, {"number": order.number, "progress": far})

    return tell


@contextlib.contextmanager
def _asking(worker: Worker, event: Event) -> Iterator[Callable[[], bool]]:
    """Ask at once, then again and again in a thread of its own, whether the client wants no more.

    The same is true of a worker that ends, and where nobody can be asked: the answer would not be heard, and another worker may be at the
    same file soon.
    """
    is_over, is_unwanted = threading.Event(), threading.Event()

    def ask() -> None:
        try:
            is_set = event.is_set()
        except Exception:  # what a client raises that is closed, or loses its scheduler, is not written down anywhere
            is_set = True
        if is_set:
            is_unwanted.set()

    def go_on_asking() -> None:
        while not is_unwanted.is_set() and not is_over.wait(ASK_SECONDS):
            ask()

    ask()
    thread = threading.Thread(target=go_on_asking, name="asks whether to stop", daemon=True)
    thread.start()
    try:
        yield lambda: is_unwanted.is_set() or worker.status in _ENDING
    finally:
        is_over.set()
        thread.join(_TELL_SECONDS)  # the answer of a scheduler that is gone may never come

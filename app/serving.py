"""Answers on a socket that listens: one process, or several that share the socket and what their tokens are made of."""

import gc
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.connections import MAX_HEAD_BYTES, PATIENCE, protocol
from app.logs import write_logs
from app.main import create_app
from app.settings import Settings
from collector.plain import say

__all__ = ["serve_alone", "serve_by_several"]

_STOP_SECONDS = 3
_LOOK_SECONDS = 0.5


class _Server(uvicorn.Server):
    """Lets the pages end that wait for news of a trace: else it would wait for them."""

    def __init__(self, app: FastAPI, on_start: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol(),
                ws="none",
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                log_config=None,
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
                timeout_keep_alive=PATIENCE.idle_seconds,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._app, self._on_start = app, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.streams.close()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Stop as if asked to, from any thread."""
        self._app.state.streams.close()
        self.should_exit = True


def serve_alone(app: FastAPI, settings: Settings, listener: socket.socket, should_cancel: Callable[[], bool]) -> None:
    """Answer until a signal says to stop."""
    write_logs(settings.log_format, has_requests=settings.logs_requests)
    server = _Server(app)
    gc.freeze()  # what is loaded now stays; looked through for garbage with the rest, it holds up a page for a tenth of a second
    if not should_cancel():
        server.run(sockets=[listener])


def serve_by_several(settings: Settings, listener: socket.socket, workers: int, should_cancel: Callable[[], bool]) -> int:
    """Let some processes answer until asked to stop; one that ends is replaced, if it ever answered. Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="sockscope-metrics-") as numbers:
        if settings.has_metrics:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = numbers  # where they add up what each of them counts
        return _serve_by_several(settings, listener, workers, should_cancel)


def _serve_by_several(settings: Settings, listener: socket.socket, workers: int, should_cancel: Callable[[], bool]) -> int:
    context = multiprocessing.get_context("spawn")  # as on every system

    def start() -> tuple[BaseProcess, Event]:
        answers = context.Event()
        process = context.Process(target=_work, args=(settings, listener, answers), name="sockscope serve")
        process.start()
        return process, answers

    running = [start() for _ in range(workers)]
    try:
        while not should_cancel():
            wait([process.sentinel for process, _ in running], timeout=_LOOK_SECONDS)
            for place, (process, answers) in enumerate(running):
                if process.is_alive() or should_cancel():
                    continue
                say(f"sockscope serve: one of its processes ended (status {process.exitcode}).", file=sys.stderr)
                if not answers.is_set():
                    return 1
                running[place] = start()
        return 0
    finally:
        for process, _ in running:
            process.terminate()
        end = time.monotonic() + _STOP_SECONDS + 2
        for process, _ in running:
            process.join(max(end - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()


def _work(settings: Settings, listener: socket.socket, answers: Event) -> None:
    """One of several processes: answers until it is told to stop, or whoever started it is gone."""
    app = create_app(settings)
    server = _Server(app, answers.set)
    write_logs(settings.log_format, has_requests=settings.logs_requests)
    gc.freeze()
    threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return  # Ctrl+C reaches all processes of a terminal


def _end_with_parent(server: _Server) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        server.end()

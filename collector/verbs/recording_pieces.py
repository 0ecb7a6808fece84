"""`sockscope record --rotate --to`: the files of a recording are sent while it goes on, each when it is finished."""

import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from collector.errors import CollectCancelled
from collector.verbs.send import send_files

if TYPE_CHECKING:
    from collector.dashboard import Target
    from collector.record.plan import Plan

__all__ = ["PieceSender"]

_LOOK_SECONDS = 1.0
_STEP_SECONDS = 0.2


class PieceSender:
    """A thread that sends finished files, so that a slow connection holds up neither the recording nor its end.

    A context around the recording: when that ends, the file that is on its way still arrives; when it fails, or at a second Ctrl+C, sending
    is given up. Does nothing without a target.
    """

    def __init__(self, plan: "Plan", target: "Target | None") -> None:
        self._plan, self._target = plan, target
        self._arrived: set[Path] = set()
        self._failed: set[Path] = set()
        self._is_over, self._is_given_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="pieces", daemon=True)

    def __enter__(self) -> "PieceSender":
        if self._target is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        if kind is not None:
            self._is_given_up.set()
        if self._target is None:
            return
        try:
            while self._thread.is_alive():
                self._thread.join(_STEP_SECONDS)  # in steps: Windows lets no Ctrl+C through to a longer wait
        except KeyboardInterrupt:
            self._is_given_up.set()
            raise

    def left(self, files: Sequence[Path]) -> list[Path]:
        """Those of the files that have not arrived; what could not be sent before comes last."""
        return sorted((file for file in files if file not in self._arrived), key=lambda file: file in self._failed)

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            for file in self._finished():
                if self._is_over.is_set():
                    return
                self._send(file)

    def _finished(self) -> list[Path]:
        """What is to be sent now."""
        from collector.record.pieces import finished

        try:
            files = finished(self._plan.pieces())
        except OSError:  # the folder may be there again at the next look
            return []
        return [file for file in files if file not in self._arrived | self._failed]

    def _send(self, file: Path) -> None:
        assert self._target is not None
        try:
            is_sent = not send_files([str(file)], self._target, self._is_given_up.is_set, wait_for_pages=False)
        except CollectCancelled:
            is_sent = False
        (self._arrived if is_sent else self._failed).add(file)

"""Traces that a browser sends: spooled to disk, collected by a process of its own, forgotten when that has ended."""

import contextlib
import hashlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from app.queries.catalog import collected_from, entry
from collector.errors import StoreError
from collector.room import ROOM_BYTES
from collector.store.engine import TraceFolder

__all__ = [
    "AT_ONCE",
    "Busy",
    "Job",
    "NoSpace",
    "Spool",
    "TooLarge",
    "UploadError",
    "Uploads",
    "check_room",
    "safe_name",
    "too_large",
]

_log = logging.getLogger("sockscope")

AT_ONCE = 2
JOBS_KEPT = 50
_KEY_DIGITS = 12  # of the SHA-256, as the collector names a trace
COLLECT_SECONDS = 4 * 3600.0
"""How long a collector may work on a file that was sent; at the slowest speed measured that is far more than the size limit allows."""
_STOP_SECONDS = 10.0
_STALE_SECONDS = 24 * 3600
_CHECK_BYTES = 64 << 20
_MAX_MESSAGE = 1_000
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))})


class UploadError(Exception):
    """A file that cannot be taken; the message says why and what is allowed."""


class Busy(UploadError):
    """As many traces are being taken as the server takes at once."""


class TooLarge(UploadError):
    """More bytes than the server takes."""


class NoSpace(UploadError):
    """The disk cannot hold the file, or may not be written."""


@dataclass(slots=True)
class Job:
    """One file on its way: `collecting`, then `complete`, `failed` or `cancelled`; `message` says why it failed, and is there first.

    `key` is made of the file's bytes; `inner_key` is the key of the first trace inside where the file is a package, once it is known.
    """

    id: str
    name: str
    key: str
    size_bytes: int
    path: str
    inner_key: str = ""
    state: str = "collecting"
    message: str = ""
    is_cancelled: bool = False
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def trace_key(self) -> str:
        """The key of the trace that the file becomes."""
        return self.inner_key or self.key


class Spool:
    """A file while it arrives. One thread at a time may use it."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.folder = path
        self.size = 0
        self.is_handed_on = False
        self._limit, self._checked = limit_bytes, 0
        self._hash = hashlib.sha256()
        self._file: IO[bytes] = (path / "arriving").open("xb")

    def write(self, piece: bytes) -> None:
        """Raises TooLarge, NoSpace."""
        self.size += len(piece)
        if self.size > self._limit:
            raise TooLarge(too_large(self._limit))
        if self.size - self._checked >= _CHECK_BYTES:
            self._checked = self.size
            check_room(self.folder, self.size)
        try:
            self._file.write(piece)
        except OSError as error:
            raise NoSpace(f"The file cannot be written to the server's disk ({error.strerror}).") from error
        self._hash.update(piece)

    def close(self, name: str) -> tuple[Path, str]:
        """Give the file its name; returns its path and the digest of its bytes. Raises NoSpace."""
        try:
            self._file.close()
            return (self.folder / "arriving").rename(self.folder / name), self._hash.hexdigest()
        except OSError as error:
            raise NoSpace(f"The file cannot be written to the server's disk ({error.strerror}).") from error

    def discard(self) -> None:
        """Delete all of it."""
        with contextlib.suppress(OSError):
            self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Uploads:
    """All uploads of one server. Making it touches no file."""

    def __init__(self, folder: TraceFolder, *, limit_bytes: int, limit_seconds: float = COLLECT_SECONDS) -> None:
        self.limit_bytes, self.limit_seconds = limit_bytes, limit_seconds
        self._folder, self._root = folder, folder.root.absolute()
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._arriving = 0
        self._swept = False

    @property
    def is_busy(self) -> bool:
        """Whether another file would be refused now."""
        return self._arriving + sum(job.state == "collecting" for job in tuple(self._jobs.values())) >= AT_ONCE

    def job(self, name: str) -> Job | None:
        """A job by its id."""
        return self._jobs.get(name)

    def job_of_trace(self, key: str) -> Job | None:
        """The job that collects a trace now."""
        return next((job for job in tuple(self._jobs.values()) if job.key == key and job.state == "collecting"), None)

    def is_collecting(self, digest: str) -> bool:
        """Whether a file becomes a trace now; its collector may be one that outlived the server that started it."""
        key = digest[:_KEY_DIGITS]
        return self.job_of_trace(key) is not None or self._folder.is_being_collected(key)

    def ended_early(self, key: str) -> Job | None:
        """The last job of a trace that failed or was cancelled."""
        return next((one for one in reversed(tuple(self._jobs.values())) if one.key == key and one.state in ("failed", "cancelled")), None)

    def failed(self) -> list[Job]:
        """Jobs that failed, the last one first."""
        return [job for job in reversed(tuple(self._jobs.values())) if job.state == "failed"]

    def complete(self, key: str) -> Job | None:
        """The last job that is done with a file, by the key made of its bytes."""
        return next((job for job in reversed(tuple(self._jobs.values())) if job.key == key and job.state == "complete"), None)

    def find_trace(self, job: Job) -> None:
        """Look up which trace a package has become: the catalog names the file that each was read from."""
        with contextlib.suppress(OSError, StoreError), self._folder.catalog().connect() as db:
            keys = collected_from(db, job.path)
            if keys and job.key not in keys:
                job.inner_key = keys[0]

    def dismiss(self, key: str) -> None:
        """Forget what failed of a trace, and its entry in the catalog where nothing else is left of it."""
        with self._lock:
            for job in [one for one in self._jobs.values() if one.key == key and one.state == "failed"]:
                del self._jobs[job.id]
        self._forget(key)

    def _forget(self, key: str) -> None:
        """Take the entry of a trace that was never complete out of the catalog; a process of the collector writes there."""
        if self._folder.has_trace(key) or self._folder.is_being_collected(key):
            return
        with contextlib.suppress(OSError, StoreError):
            with self._folder.catalog().connect() as db:
                is_entered = entry(db, key) is not None  # else the key's first digits could name another one
            if is_entered:
                _start(self._root, "delete", key).communicate()

    @contextlib.contextmanager
    def arriving(self, declared_bytes: int | None) -> Iterator[Spool]:
        """A place for a file; what was not handed to `collect` is deleted. Raises Busy, TooLarge, NoSpace."""
        if declared_bytes is not None and declared_bytes > self.limit_bytes + (1 << 20):  # a form has a little more than its file
            raise TooLarge(too_large(self.limit_bytes))
        with self._lock:
            if self.is_busy:
                raise Busy(f"This server is taking {AT_ONCE} traces now, as many as it takes at once. Send yours when one of them is done.")
            self._arriving += 1
        try:
            spool = Spool(self._place(declared_bytes or 0), self.limit_bytes)
            try:
                yield spool
            finally:
                if not spool.is_handed_on:
                    spool.discard()
        finally:
            with self._lock:
                self._arriving -= 1

    @property
    def spools(self) -> Path:
        """Where files are that arrive."""
        return self._root / "spool"

    def new_place(self) -> Path:
        """A folder for one file. Raises OSError."""
        place = self.spools / secrets.token_hex(8)
        place.mkdir(parents=True)
        return place

    def sweep(self) -> None:
        """Delete what a server that was killed left behind; once is enough. Raises OSError."""
        self.spools.mkdir(parents=True, exist_ok=True)
        if not self._swept:
            self._swept = True
            _sweep(self.spools)

    def _place(self, declared_bytes: int) -> Path:
        spools = self.spools
        try:
            self.sweep()
            check_room(spools, declared_bytes)
            return self.new_place()
        except OSError as error:
            raise NoSpace(f"Files cannot be kept in the server's folder ({error.strerror}).") from error

    def collect(self, spool: Spool, name: str) -> Job:
        """Start a collector for a file that has arrived. Raises UploadError."""
        if spool.size == 0:
            raise UploadError("The file is empty, or none was chosen: choose an .etl file or a package with one.")
        path, digest = spool.close(safe_name(name))
        job = self.begin(path, digest, spool.size)
        spool.is_handed_on = True
        return job

    def begin(self, path: Path, digest: str, size: int) -> Job:
        """Start a collector for a file that is alone in its folder, which is deleted afterwards. Raises UploadError."""
        job = Job(id=secrets.token_hex(8), name=path.name, key=digest[:_KEY_DIGITS], size_bytes=size, path=str(path))
        try:
            job.process = _start(self._root, "collect", str(path), options=("--unpack-limit", str(self.most_unpacked())))
        except OSError as error:
            raise UploadError(f"The collector cannot be started ({error.strerror}).") from error
        with self._lock:
            self._jobs[job.id] = job
            ended = [one.id for one in self._jobs.values() if one.state != "collecting"]
            for old in ended[: max(len(self._jobs) - JOBS_KEPT, 0)]:
                del self._jobs[old]
        threading.Thread(target=self._follow, args=(job, path), name=f"upload-{job.id}", daemon=True).start()
        return job

    def most_unpacked(self) -> int:
        """How many bytes may come out of a package: what could be sent as it is, and half of the free space, as it becomes a database.

        Raises OSError.
        """
        return max(min(self.limit_bytes, (shutil.disk_usage(self._root).free - ROOM_BYTES) // 2), 0)

    def cancel(self, job: Job) -> None:
        """Ask a collector to stop; it ends soon after, and nothing of the trace is left."""
        with self._lock:
            job.is_cancelled = job.is_cancelled or job.state == "collecting"
        self._stop(job)

    def _stop(self, job: Job) -> None:
        with self._lock:
            if job.state != "collecting" or job.process is None:
                return
            _ask_to_stop(job.process)
        timer = threading.Timer(_STOP_SECONDS, job.process.kill)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Stop all collectors and wait for them, as the server ends."""
        running = [job for job in tuple(self._jobs.values()) if job.state == "collecting"]
        for job in running:
            self._stop(job)
        deadline = time.monotonic() + _STOP_SECONDS
        for job in running:
            while job.state == "collecting" and time.monotonic() < deadline:
                time.sleep(0.02)

    def _wait(self, job: Job, process: subprocess.Popen[str]) -> str:
        """What a collector says until it ends; one that takes too long is stopped."""
        try:
            return process.communicate(timeout=self.limit_seconds)[1]
        except subprocess.TimeoutExpired:
            _log.error("the collector of %s took longer than %d seconds", job.name, self.limit_seconds)
            process.kill()
            process.communicate()
            return f"Collecting took longer than this server allows ({self.limit_seconds:,.0f} seconds). Collect the file where it lies."

    def _follow(self, job: Job, path: Path) -> None:
        """Wait for a collector, say how it ended, and clean up after it."""
        assert job.process is not None
        said = self._wait(job, job.process)
        status = job.process.returncode
        if status not in (0, 1, 3):  # killed, or stopped before it listened to signals: another process settles what it left
            with contextlib.suppress(OSError):
                _start(self._root, "list").communicate()
        shutil.rmtree(path.parent, ignore_errors=True)
        self.find_trace(job)
        if job.is_cancelled and status not in (0, 3):
            self._forget(job.trace_key)
        with self._lock:
            if status in (0, 3):
                job.state = "complete"
            elif job.is_cancelled:
                job.message, job.state = "Cancelled. Nothing was stored.", "cancelled"
            else:
                job.message, job.state = _message(said, path, status), "failed"


def safe_name(name: str) -> str:
    """A name for a file on every system, as near to the browser's as that allows."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join("_" if c in '<>:"|?*' else c for c in last if c.isprintable())
    stem, dot, suffix = kept.strip(" .").lstrip("-~").rpartition(".")
    if not dot:
        stem, suffix = suffix, "etl"
    stem = stem.encode()[:120].decode("utf-8", "ignore").strip(" .") or "trace"
    suffix = suffix.encode()[:20].decode("utf-8", "ignore").strip(" .") or "etl"
    return f"{'_' if stem.partition('.')[0].lower() in _RESERVED else ''}{stem}.{suffix}"


def too_large(limit_bytes: int) -> str:
    return (
        f"The file is too large: this server takes files of at most {limit_bytes:,} bytes. "
        "Collect it where it lies: sockscope collect FILE.etl"
    )


def check_room(place: Path, size_bytes: int) -> None:
    """Raises NoSpace where the disk cannot hold a file and its database. Raises OSError."""
    free = shutil.disk_usage(place).free
    needed = 2 * size_bytes + ROOM_BYTES
    if free < needed:
        raise NoSpace(f"The server's disk has {free:,} bytes free; this file and its database may need {needed:,}. Free some space.")


def _sweep(spools: Path) -> None:
    """Delete what a server that was killed left behind; a day is longer than any upload takes."""
    for path in spools.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _start(root: Path, verb: str, *files: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Run a verb of the collector in a process group of its own: Ctrl+C at the server's terminal reaches it through us alone."""
    packages = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH")
    arguments = [sys.executable, "-P", "-m", "collector.cli", verb, "--database", str(root), *options, *(("--", *files) if files else ())]
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONPATH": os.pathsep.join((packages, known)) if known else packages, "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _ask_to_stop(process: subprocess.Popen[str]) -> None:
    if sys.platform == "win32":
        process.send_signal(signal.CTRL_BREAK_EVENT)
    else:
        process.terminate()


def _message(said: str, path: Path, status: int) -> str:
    """What a collector said of its failure, without the paths of this machine."""
    if "Traceback (most recent call last)" in said or not said.strip():
        _log.error("the collector of %s ended with status %s: %s", path.name, status, said.strip() or "(nothing said)")
        return (
            "The collector failed; the server's log has the details." if said.strip() else f"The collector was stopped (status {status})."
        )
    text = said.strip().replace(f"{path.parent}{os.sep}", "").removeprefix("sockscope collect: ")
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + " …"

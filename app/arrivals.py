"""Files that arrive in pieces, over as many connections as it takes: what came stays on the disk until the rest is there.

A file is known by the SHA-256 of its bytes, so a sender that was broken off, or started anew, asks how much is there and goes on; and the
trace that it becomes has the key that the sender can tell beforehand.
"""

import contextlib
import hashlib
import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.uploads import Busy, Job, NoSpace, TooLarge, UploadError, Uploads, check_room, safe_name, too_large

__all__ = ["MOST_ARRIVALS", "PIECE_BYTES", "Arrival", "Arrivals", "OtherContent", "WrongPlace"]

MOST_ARRIVALS = 8
"""Files of which only a part is there."""
PIECE_BYTES = 8 << 20
"""What one request should bring; a broken connection costs no more than that."""
STALE_SECONDS = 24 * 3600.0
"""A file of which nothing more came for so long is deleted."""
_HASH_PIECE = 1 << 20


class WrongPlace(UploadError):
    """The piece does not begin where the file ends so far."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"{offset:,} bytes of this file are here: go on from there.")
        self.offset = offset


class OtherContent(UploadError):
    """What arrived is not the file that was announced."""


@dataclass(slots=True)
class Arrival:
    """One file on its way; open for one request at a time."""

    folder: Path
    digest: str
    name: str
    size: int
    offset: int

    @property
    def is_whole(self) -> bool:
        return self.offset == self.size

    def write(self, piece: bytes) -> None:
        """Append. Raises UploadError for more than was announced, NoSpace."""
        if self.offset + len(piece) > self.size:
            raise UploadError(f"The file was announced with {self.size:,} bytes, and more came. Send it from the beginning.")
        try:
            with (self.folder / "arriving").open("ab") as out:
                out.write(piece)
        except OSError as error:
            raise NoSpace(f"The file cannot be written to the server's disk ({error.strerror}).") from error
        self.offset += len(piece)


class Arrivals:
    """All files of a server that arrive in pieces. Making it touches no file."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads, self._place = uploads, uploads.spools.with_name("arriving")
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._open: set[str] = set()

    def offset(self, digest: str) -> int | None:
        """How much of a file is there; None where nothing of it is."""
        try:
            return (self._place / digest / "arriving").stat().st_size
        except OSError:
            return None

    @contextlib.contextmanager
    def opened(self, digest: str, *, size: int, name: str, offset: int) -> Iterator[Arrival]:
        """Go on with a file, or begin it.

        Raises TooLarge, NoSpace; Busy for one more file than are taken and while another request brings this one; WrongPlace.
        """
        if size > self._uploads.limit_bytes:
            raise TooLarge(too_large(self._uploads.limit_bytes))
        if self._uploads.is_collecting(digest):
            raise Busy("This file is here, and is being collected. Ask again in a moment.")
        with self._lock:
            if digest in self._open:
                raise Busy("Another request brings this file now. Ask again in a moment.")
            self._open.add(digest)
        try:
            yield self._arrival(digest, size, name, offset)
        finally:
            with self._lock:
                self._open.discard(digest)

    def _arrival(self, digest: str, size: int, name: str, offset: int) -> Arrival:
        folder = self._place / digest
        here = self.offset(digest)
        is_new = False
        try:
            if here is not None and _announced(folder) != size:
                self.discard(digest)  # announced with another size before: one of the two was wrong
                here = None
            if (here or 0) != offset:
                raise WrongPlace(here or 0)
            if here is None:
                self._sweep()
                self._uploads.sweep()
                if len(list(self._place.iterdir()) if self._place.exists() else []) >= MOST_ARRIVALS:
                    raise Busy(f"Parts of {MOST_ARRIVALS} files are here, as many as this server keeps. Send yours later.")
                is_new = True
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "about").write_text(json.dumps({"size": size}), "utf-8")
                (folder / "arriving").touch()
            check_room(folder, size - offset)
        except OSError as error:
            if is_new:
                self.discard(digest)
            raise NoSpace(f"Files cannot be kept in the server's folder ({error.strerror}).") from error
        except NoSpace:
            if is_new:
                self.discard(digest)
            raise
        return Arrival(folder, digest, safe_name(name), size, offset)

    def collect(self, arrival: Arrival) -> Job:
        """Start a collector for a file that is whole. Raises Busy, and the file stays; OtherContent, and it does not; UploadError."""
        path = arrival.folder / "arriving"
        try:
            digest = _digest_of(path)
            if digest != arrival.digest:
                self.discard(arrival.digest)
                raise OtherContent("The file that arrived is not the one that was announced, so nothing was kept. Send it again.")
            with self._starting:
                if self._uploads.is_busy:
                    raise Busy("This server is taking as many traces as it takes at once. The file is here; ask again in a moment.")
                path = path.rename(self._uploads.new_place() / arrival.name)
                self.discard(arrival.digest)
                return self._uploads.begin(path, digest, arrival.size)
        except OSError as error:
            raise NoSpace(f"The file cannot be kept in the server's folder ({error.strerror}).") from error

    def discard(self, digest: str) -> None:
        """Delete what is there of a file."""
        shutil.rmtree(self._place / digest, ignore_errors=True)

    def _sweep(self) -> None:
        """Delete files whose senders are gone for good."""
        with contextlib.suppress(OSError):
            for folder in self._place.iterdir():
                with contextlib.suppress(OSError):
                    if time.time() - _changed(folder) > STALE_SECONDS and folder.name not in self._open:
                        shutil.rmtree(folder, ignore_errors=True)


def _announced(folder: Path) -> object:
    """The size with which a file was announced; None where that was not kept, as when its server was killed at that moment."""
    try:
        about = json.loads((folder / "about").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return about.get("size") if isinstance(about, dict) else None


def _changed(folder: Path) -> float:
    """When something came of a file the last time. Raises OSError."""
    arriving = folder / "arriving"
    return (arriving if arriving.exists() else folder).stat().st_mtime


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_HASH_PIECE):
            digest.update(piece)
    return digest.hexdigest()

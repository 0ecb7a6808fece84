"""A network between a sender and a server that breaks: connections end after a number of bytes, or are refused."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from itertools import chain, repeat

__all__ = ["cutting"]

_AT_ONCE = struct.pack("ii", 1, 0)


@contextlib.contextmanager
def cutting(target: tuple[str, int], cuts: list[int | None]) -> Iterator[tuple[str, list[int]]]:
    """A proxy at the URL given; the n-th connection is reset after `cuts[n]` bytes from the sender (None, and all later ones: never).

    The list gets the bytes that each connection has passed on.
    """
    passed: list[int] = []
    open_ones: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))
    limits = chain(cuts, repeat(None))

    def pump(one: socket.socket, other: socket.socket, limit: int | None, number: int | None) -> None:
        done = 0
        with contextlib.suppress(OSError):
            while data := one.recv(4096 if limit is None else min(4096, max(1, limit - done))):
                other.sendall(data)
                done += len(data)
                if number is not None:
                    passed[number] = done
                if limit is not None and done >= limit:
                    for each in (one, other):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                        each.shutdown(socket.SHUT_RDWR)  # wakes the other thread, which would keep the connection
                        each.close()
                    return
            other.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                sender, _ = listener.accept()
                open_ones.append(sender)
                limit = next(limits)
                passed.append(0)
                if limit == 0:
                    sender.close()
                    continue
                server = socket.create_connection(target)
                open_ones.append(server)
                threading.Thread(target=pump, args=(sender, server, limit, len(passed) - 1), daemon=True).start()
                threading.Thread(target=pump, args=(server, sender, None, None), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", passed
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in open_ones:
            one.close()

"""The process that has the event log library inside: takes a chunk of a log on stdin, gives its records as XML on stdout.

A library that meets hostile bytes can end its process, or ask for more memory than there is; so it is never the collector's own.
"""

import io
import os
import signal
import struct
import sys
from contextlib import suppress
from typing import Any, BinaryIO

__all__ = ["DONE", "FAULT", "HEAD", "READY", "RECORD", "main"]

HEAD = struct.Struct("<cI")
"""Before each piece in either direction: what it is, and how many bytes follow."""
READY, RECORD, FAULT, DONE = b"r", b"R", b"F", b"."
_MOST_MEMORY = 1 << 30


def main() -> int:
    """Answer until stdin ends.

    The first answer is READY, or FAULT with the reason why the library does not work. A chunk, as a log of its own, is answered by a RECORD
    each (when it was written, a line break, its XML), a FAULT each that cannot be read, and DONE.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the collector, which ends this process with its stdin
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints is no answer
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        from evtx import PyEvtxParser
    except (ImportError, OSError) as error:
        _answer(answers, FAULT, str(error))
        return 1
    _answer(answers, READY)
    while head := sys.stdin.buffer.read(HEAD.size):
        _, size = HEAD.unpack(head)
        log = sys.stdin.buffer.read(size)
        most = len(log) // 24  # the head of a record alone
        try:
            records = iter(PyEvtxParser(io.BytesIO(log), 1).records())
            for _ in range(most):
                try:
                    record: Any = next(records)  # a dict; the library's types are vaguer
                except StopIteration:
                    break
                except (RuntimeError, ValueError, OSError) as error:
                    _answer(answers, FAULT, str(error))
                else:
                    _answer(answers, RECORD, f"{record['timestamp']}\n{record['data']}")
        except (RuntimeError, ValueError, OSError) as error:
            _answer(answers, FAULT, str(error))
        _answer(answers, DONE)
    return 0


def _answer(answers: BinaryIO, kind: bytes, text: str = "") -> None:
    content = text.encode("utf-8", "replace")
    answers.write(HEAD.pack(kind, len(content)) + content)
    if kind != RECORD:
        answers.flush()


if __name__ == "__main__":
    sys.exit(main())

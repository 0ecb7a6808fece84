"""The description of the API where the framework cannot know it: what the parts of a link mean, and in which forms pages come.

One row a parameter of pages that are no lists, the same words everywhere.
"""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

__all__ = ["EXAMPLES", "PARAMETERS", "PARTS", "DescribedApi", "described", "example_of"]

PARAMETERS = {
    "from": (
        "Start of the time range: nanoseconds since the trace's time 0, or a number with a unit. Without it: from the beginning.",
        "1.5s",
    ),
    "to": ("End of the time range, as `from`. Without it: to the end.", "2s"),
    "heap": ("Only this heap of the process, `0xHEAP@NS`.", "0x1e0000@0"),
    "kind": ("Only records of this kind; may be given several times.", "abort"),
    "text": ("Only records that have this text in one of their fields.", "WSAECONNRESET"),
    "after": ("Position that the `next` link of the page before has.", "1500000000"),
    "selected": ("The operation to mark. Its row and records are shown even where the lists end before them.", "recv:0x1f0100@1500000000"),
    "end": ("`other` for the other end of a local connection.", "other"),
    "measure": ("What the widths mean: `bytes` or `count`.", "bytes"),
    "what": ("Memory `held` at the end of the range, or all that was `allocated` in it.", "held"),
    "at": ("One moment instead of a range: what is held then.", "1.5s"),
    "a": ("The earlier moment.", "1s"),
    "b": ("The later moment.", "2s"),
    "min_age": ("Leave out blocks that are younger than this at the end.", "10s"),
    "stack": ("The stack to mark, by its hash.", "aaaabbbbccccdddd"),
    "within": ("Time before and after the moment, a second without it.", "50ms"),
    "table": ("Which of the page's tables comes as CSV; without it an error names them.", "operations"),
    "format": ("html, json or csv, for one socket or heap also report; without it the Accept header decides.", "json"),
}
"""The description and an example of each."""

_MORE = {"since": "2f1a-18c0", "trace": "fd96715a3a6d", "q": "10054"}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "process": ("client.exe",),
    "name": ("client.exe",),
    "pid": ("4242",),
    "command": ("--now",),
    "endpoint": ("0xffff9a0c2a001010",),
    "address": ("198.51.100.0/24", "0x1f0100"),
    "ip": ("198.51.100.0/24",),
    "remote": ("198.51.100.7:443",),
    "source": ("198.51.100.7",),
    "port": ("443",),
    "status": ("10054",),
    "reason": ("4",),
    "event": ("1003",),
    "tid": ("4321",),
    "header_pid": ("4",),
    "buffer": ("0x1f0100",),
    "heap": ("0x1e0000",),
    "stack": ("aaaabbbb",),
    "freed_by": ("11112222",),
    "frame": ("client.exe",),
    "from": ("1.5 s", "2025-06-03"),
    "to": ("2025-06-03T09:30:12.5Z", "2 s", "2025-06-04"),
    "day": ("2025-06-03",),
    "text": ("client",),
    "finding": ("aborted",),
    "kind": ("aborted",),
    "trace": ("client",),
    "program": ("client.exe",),
    "machine": ("build-7",),
    "live_at": ("1.5 s",),
    "began_from": ("1.5 s",),
    "began_to": ("2 s",),
}
"""An example of each filter that takes no word of a vocabulary; the first that a filter can read, where its name means several things."""

_SIZE, _SPAN, _NUMBER = "64 KiB", "200 ms", "3"


def example_of(key: str, parse: Callable[[str], object]) -> str:
    """A value that a filter can read: by its name, else a size, a time span or a number. Raises LookupError where it reads none."""
    for text in (*EXAMPLES.get(key, ()), _SIZE, _SPAN, _NUMBER):
        try:
            parse(text)
        except ValueError:
            continue
        return text
    raise LookupError(key)


PARTS = {
    "trace_key": ("First 12 hex digits of the SHA-256 of the trace's bytes; the same file has the same key everywhere.", "fd96715a3a6d"),
    "process": ("A process: its id and a time of its life, `PID@NS`; `0xEPROCESS@NS` while the id is unknown.", "4242@0"),
    "socket": ("A socket: its endpoint address and a time of its life, `0xENDPOINT@NS`.", "0xffff9a0c2a001010@10000000"),
    "operation": ("An operation of the socket: `KIND:0xBUFFER@NS`, NS when it was posted.", "recv:0x1f0100@1500000000"),
    "first_socket": ("The socket of the operation that was posted first.", "0xffff9a0c2a001010@10000000"),
    "first": ("The operation that was posted first.", "send:0x1f0000@1000000000"),
    "second_socket": ("The socket of the other operation.", "0xffff9a0c2a001010@10000000"),
    "second": ("The other operation.", "recv:0x1f0100@1500000000"),
    "heap": ("A heap handle and a time of its life, `0xHEAP@NS`.", "0x1e0000@0"),
    "address": ("A memory address or a kernel object's, in hex. In an allocation's link, a time may follow: `0xADDRESS@NS`.", "0x1f0100"),
    "stack": ("A call stack by its hash, or the first digits of it.", "aaaabbbbccccdddd"),
    "at": ("A moment: nanoseconds since the trace's time 0, or a number with a unit.", "1500000000"),
    "name": ("The name of a page of the documentation.", "recording"),
    "digest": ("SHA-256 of the whole file that is sent, 64 hex digits.", "0" * 64),
    "upload": ("The id of an upload, as the answer to sending it has it.", "1"),
}
"""The description and an example of each part of a path."""

_JSON = {
    "title": "Sockets",
    "sentence": "1 socket with port 443.",
    "listing": {
        "rows": [{"socket": "0xffff9a0c2a001010@10000000", "remote": "198.51.100.7:443", "first_ns": 10000000, "closed_ns": None}],
        "filter": {"port": "443"},
        "sort": "first_ns",
        "total": 1,
        "total_is_more": False,
        "next": None,
        "noted": [],
    },
}
_CSV = "socket,remote,first_ns,closed_ns\r\n0xffff9a0c2a001010@10000000,198.51.100.7:443,10000000,\r\n"


class DescribedApi(FastAPI):
    """A server whose description says what each part of a path means, with an example, and that pages come as JSON and CSV, too."""

    def openapi(self) -> dict[str, Any]:  # Any: OpenAPI
        api = super().openapi()
        for path, methods in api["paths"].items():
            for method, one in methods.items():
                for part in one.get("parameters", ()):
                    if part["in"] == "path" and part["name"] in PARTS:
                        part["description"], part["example"] = PARTS[part["name"]]
                    elif part["name"] in _MORE:
                        part.setdefault("example", _MORE[part["name"]])
                content = one["responses"].get("200", {}).get("content", {})
                if method == "get" and "text/html" in content and path.startswith("/t/"):
                    is_list = any(part["name"] == "sort" for part in one.get("parameters", ()))
                    content["application/json"] = {"schema": {"type": "object"}, "example": _JSON if is_list else {"title": one["summary"]}}
                    content["text/csv"] = {"schema": {"type": "string"}} | ({"example": _CSV} if is_list else {})
        return api


def described(*names: str) -> dict[str, Any]:  # Any: a piece of OpenAPI
    """The parameters of a page by their names, for `openapi_extra`; one that comes in several forms has tables to choose from, too."""
    names = (*names, "table") if "format" in names else names
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": PARAMETERS[name][0],
                "schema": {"type": "string"},
                "example": PARAMETERS[name][1],
            }
            for name in names
        ]
    }

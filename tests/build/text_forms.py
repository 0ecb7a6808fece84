"""Every text form by name, with what writes an ETL file as one; a text of any length."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.build.event_xml import event_xml
from tests.build.evtx import evtx, evtx_of
from tests.build.netsh_text import netsh_text
from tests.build.told import told_events
from tests.build.tracerpt_csv import tracerpt_csv
from tests.build.xperf_dump import xperf_dump

__all__ = ["TEXT_WRITERS", "long_text"]

TEXT_WRITERS: Mapping[str, Callable[[Path], bytes]] = {
    "XML": lambda path: event_xml(path).encode(),
    "event log": evtx,
    "CSV of tracerpt": lambda path: tracerpt_csv(path).encode(),
    "text of xperf": lambda path: xperf_dump(path).encode(),
    "text of netsh": lambda path: netsh_text(path).encode(),
}


def long_text(form: str, path: Path, *, events: int, times: int) -> bytes:
    """The text of a small trace, whose last events stand there again and again."""
    if form == "event log":
        return evtx_of(told_events(path)[1][-events:] * times)
    content = TEXT_WRITERS[form](path)
    if form == "XML":
        found: list[bytes] = re.findall(rb"(?s)<Event[ >].*?</Event>", content)
        return b"<Events>" + found[0] + b"\n".join(found[-events:] * times) + b"</Events>"
    lines = content.rstrip().split(b"\r\n")
    return b"\r\n".join([*lines[:-events], *lines[-events:] * times, b""])

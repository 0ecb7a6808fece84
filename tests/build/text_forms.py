"""Every text form by name, with what writes an ETL file as one."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.build.event_xml import event_xml
from tests.build.evtx import evtx
from tests.build.netsh_text import netsh_text
from tests.build.tracerpt_csv import tracerpt_csv
from tests.build.xperf_dump import xperf_dump

__all__ = ["TEXT_WRITERS"]

TEXT_WRITERS: Mapping[str, Callable[[Path], bytes]] = {
    "XML": lambda path: event_xml(path).encode(),
    "event log": evtx,
    "CSV of tracerpt": lambda path: tracerpt_csv(path).encode(),
    "text of xperf": lambda path: xperf_dump(path).encode(),
    "text of netsh": lambda path: netsh_text(path).encode(),
}

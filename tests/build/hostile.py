"""Text that does its worst wherever a trace can bring text along.

Markup, ends of scripts, templates, formulas, marks that turn the direction of text, controls, line breaks, what plotly and terminals read.
"""

import json

from collector.store.tables import ROW_COLUMNS
from tests.build.small_trace import SMALL

__all__ = ["HOSTILE_MARKS", "HOSTILE_TEXT", "hostile_rows", "is_free_of_marks"]

HOSTILE_TEXT = (
    "=HYPERLINK(1)</script></title></textarea><script>alert(1)</script><img src=x onerror=alert(2)>"
    '" onmouseover="alert(3)\' {{7*7}} {% x %}'
    '<a href="javascript:alert(4)">b</a>%3Cscript%3E'
    "\u202ecod\u2066\u200f\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x7f\r\nsockscope: forged\u2028!"
)

HOSTILE_MARKS = frozenset("\x00\x07\x08\x1b\x7f\x9b\u200f\u202e\u2066\u2028")

_FREE_TEXT = {
    "process": ("image", "command_line"), "thread": ("name",), "module": ("file", "pdb_name"), "stack_frame": ("module", "symbol"),
    "event_count": ("provider_name", "event_name"), "finding": ("title", "text"), "problem": ("text", "place", "effect", "advice"),
    "drop": ("reason_name",), "abort": ("reason_name",), "option": ("name",), "raw_event": ("place",),
}  # fmt: skip


def hostile_rows() -> dict[str, list[dict[str, object]]]:
    """The rows of the small trace, each free text hostile."""
    rows = {name: [dict(row) for row in rows] for name, rows in SMALL.items()}
    for table, columns in _FREE_TEXT.items():
        assert set(columns) <= set(ROW_COLUMNS[table])
        for row in rows[table]:
            row.update(dict.fromkeys(columns, HOSTILE_TEXT))
    rows["address"].append({"text": f"unix {HOSTILE_TEXT}", "family": 1})
    rows["socket"][1]["local_n"] = rows["socket"][2]["remote_n"] = len(rows["address"])
    for row in rows["socket_event"]:
        row["fields"] = json.dumps({HOSTILE_TEXT: HOSTILE_TEXT, "reason": 4})
    rows["finding"][0]["link"] = 'javascript:alert(5)//"><script>alert(6)</script>'
    return rows


def is_free_of_marks(text: str) -> bool:
    """Whether nothing in a text steers a terminal or turns its direction."""
    return not HOSTILE_MARKS & set(text)

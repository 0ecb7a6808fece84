"""Text of netsh trace convert: the sockets that its messages tell, and clear words for all that they do not."""

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import EmptyTrace
from collector.events.afd import AFD
from collector.packages import traces_in
from collector.schema import key_of
from collector.texts import form_of, keywords
from collector.texts.afd_messages import event_of_message
from tests.build import Trace, afd
from tests.build.imported import collect
from tests.build.netsh_text import MESSAGES, netsh_text
from tests.test_event_log import only_sockets
from tests.text_answers import SAME, a_trace, answers, answers_damage, collected

LINE = "[1]13A0.000B::2025/06/03-09:30:00.300009000 [Microsoft-Windows-Winsock-AFD]"
SEND = (
    "send: 0: Process 0xFFFF9A0C11223080, Endpoint 0xFFFF9A0C2A1010, Buffer Count 1, Buffer 0x1D2A4460000, Length 512, Seq 3047, Status 0x0"
)


def text_of(folder: Path, trace: Trace, **how: Any) -> str:  # Any: arguments of netsh_text
    return netsh_text(trace.write(folder / "written.etl"), **how)


def put(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "NetTrace.txt"
    path.write_bytes(text.encode(encoding))
    return path


def test_the_sockets_of_the_story_are_the_same_from_messages(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    path = only_sockets(tmp_path)
    whole = collect(path, tmp_path / "etl")
    found = collected(put(tmp_path, netsh_text(path)), tmp_path)
    wanted, given_ = answers(whole), answers(found)
    assert [view for view in SAME if wanted[view] != given_[view]] == ["v_operations", "v_processes"]
    # operations are the same; by which rule a completion found its request is not, without activities
    columns = SAME["v_operations"].replace("match, ", "")
    assert sorted(map(repr, found.rows(f"SELECT {columns} FROM v_operations"))) == sorted(
        map(repr, whole.rows(f"SELECT {columns} FROM v_operations"))
    )
    assert len(wanted["v_operations"]) > 1000
    assert len(wanted["v_overlaps"]) > 3
    # a process whose only events are of messages that do not say what they are about
    assert set(given_["v_processes"]) < set(wanted["v_processes"])
    said = found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    assert "call stacks" not in said
    for words in ("read from text of netsh trace convert", "zone it does not tell", "neither activities nor keywords", "left out: 159"):
        assert words in said


STYLES = ("{:%Y/%m/%d-%H:%M:%S}", "{:%Y-%m-%d %H:%M:%S}", "{:%m/%d/%Y-%H:%M:%S}", "{:%m/%d/%y-%H:%M:%S}")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("pointer_size", "blank"), [(4, ""), (8, " ")])
@pytest.mark.parametrize("style", STYLES)
def test_any_encoding_and_style_of_time_gives_the_same(encoding: str, pointer_size: int, blank: str, style: str, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    trace = Trace(pointer_size=pointer_size).cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100, length_bytes=512))
    text = text_of(tmp_path, trace, style=style, blank=blank, has_words=pointer_size == 8)
    found = collected(put(tmp_path, text, encoding), tmp_path)
    (about,) = found.rows("SELECT pointer_size, substr(start_utc, 1, 10) FROM v_trace")
    assert about == (pointer_size, "2024-12-31")
    assert found.rows("SELECT kind, outcome, bytes FROM v_operations ORDER BY posted_ns") == [
        ("connect", "completed", 0),
        ("send", "completed", 512),
    ]


def test_milliseconds_are_said(tmp_path: Path) -> None:
    found = collected(put(tmp_path, text_of(tmp_path, a_trace(), digits=3)), tmp_path)
    assert "milliseconds only" in found.one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")


@pytest.mark.parametrize("event_id", sorted(MESSAGES))
def test_each_message_is_the_event_that_it_was_made_of(event_id: int) -> None:
    from collector.events import SCHEMAS

    (schema,) = SCHEMAS[key_of(AFD, is_classic=False, event_id=event_id, opcode=0)]
    values = {n: "192.0.2.1:80" if field.type == "sockaddr" else str(1000 + n) for n, field in enumerate(schema.fields, 1)}
    message = re.sub(r"%(\d+)", lambda found: values[int(found[1])], MESSAGES[event_id])
    if event_id == 3007:
        assert event_of_message(message) is None
        return
    known = event_of_message(message)
    assert known is not None
    assert known[0] == event_id
    said = {field.name.replace("_", ""): values[n] for n, field in enumerate(schema.fields, 1)}
    lacking = {name for name in said if name not in known[1]}
    assert lacking <= {"addresslen"}
    assert {name: text for name, text in known[1].items() if text != "0"}.items() <= said.items()


DAMAGED = {
    "cut": SEND[:90],
    "a value twice": SEND + ", Length 4",
    "a value of another event": SEND.replace("Length", "Backlog"),
    "no number": SEND.replace("512", "many"),
    "a huge number": SEND.replace("512", "9" * 39),
    "a number that has no room": SEND.replace("Length 512", "Length 0x1FFFFFFFF"),
    "a length below nothing": SEND.replace("Length 512", "Length -240"),
    "a length of -1": SEND.replace("Length 512", "Length -1"),
    "a status below all": SEND.replace("Status 0x0", "Status -2147483649"),
    "zero bytes": SEND.replace("512", "\0" * 9),
    "a formula": SEND.replace("512", "=cmd|'/c calc'!A1"),
    "without end": SEND + "x" * 10_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_message_that_cannot_be_read_is_counted(name: str, tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace()) + f"{LINE}{DAMAGED[name]}\r\n"
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_sockets") == 1


def test_a_line_that_is_cut_in_its_head_is_counted(tmp_path: Path) -> None:
    found = collected(put(tmp_path, text_of(tmp_path, a_trace()) + LINE[:25]), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1


ODD_HEADS = {
    "a huge processor": LINE.replace("[1]", "[99999999999]"),
    "a processor that is no number": LINE.replace("[1]", "[x]"),
    "a huge process": LINE.replace("13A0", "FFFFFFFFFF"),
    "a huge thread": LINE.replace("000B", "F" * 150),
    "a processor that no system has": LINE.replace("[1]", "[2048]"),
    "a process that is no number": LINE.replace("13A0", "-1"),
    "a colon too few": LINE.replace("::", ":"),
    "an hour that no clock shows": LINE.replace("09:30", "25:30"),
    "a minute that no clock shows": LINE.replace("09:30", "09:61"),
}


@pytest.mark.parametrize("name", ODD_HEADS)
def test_an_event_with_an_odd_head_is_counted(name: str, tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace()) + f"{ODD_HEADS[name]}{SEND}\r\n"
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_operations") == 2


def test_lines_that_go_on_with_a_message_are_no_events(tmp_path: Path) -> None:
    text = text_of(tmp_path, a_trace()) + "[12] a footnote\r\n[x]\r\n[0000] 01 02 03\r\nat 09:30\r\n"
    assert not collected(put(tmp_path, text), tmp_path).rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


def test_other_providers_and_other_languages_are_counted(tmp_path: Path) -> None:
    other = LINE.replace("Winsock-AFD", "TCPIP")
    text = text_of(tmp_path, Trace().cpu(0, afd.opened(at_us=10)))
    text += f"{other}TCP: connection 0x1\r\n" * 3 + f"{LINE}Senden: 0: Prozess 0x1\r\n" * 2 + "and a line that goes on\r\n"
    said = collected(put(tmp_path, text), tmp_path).one("SELECT text || effect FROM v_problems WHERE kind = 'text_form'")
    assert "left out: 2." in said
    assert "left out: 3 (Microsoft-Windows-TCPIP)" in said


HOSTILE: dict[str, Callable[[], str]] = {
    "no message of sockets": lambda: "[0]0000.0000::2025/06/03-09:30:00.000000000 [Microsoft-Windows-TCPIP]TCP: x\r\n",
    "a head again and again": lambda: "[0]0000.0000::20" * 100_000,
    "commas": lambda: LINE + "send: 0: " + ", " * 400_000,
    "colons": lambda: LINE + "send" + ": " * 400_000,
    "brackets": lambda: LINE + "socket: 0: Process " + "(" * 400_000,
}


NOTHING_READ = {
    "events of other providers": (LINE.replace("Winsock-AFD", "TCPIP") + "TCP: x\r\n", "the 3 events .*: providers other than"),
    "old messages": (LINE + "AfdSend: 1, 2\r\n", "the 3 events .*: messages of the socket provider"),
    "wrong dates": (LINE.replace("/06/", "/13/") + SEND + "\r\n", "the 3 events .*: times that are no date"),
    "lines that are cut": (LINE[:25] + "\r\n", "the 3 events .*: lines that are cut"),
    "values that lie": (LINE + SEND + ", Length 4" + "\r\n", "the 3 events .*: values that no tool writes"),
}


@pytest.mark.parametrize("name", NOTHING_READ)
def test_a_text_of_events_that_cannot_be_read_says_why(name: str, tmp_path: Path) -> None:
    line, words = NOTHING_READ[name]
    with pytest.raises(EmptyTrace, match=rf"none of {words}.* \(the first in line 1\)\. .*\.etl file"):
        collected(put(tmp_path, line * 3), tmp_path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_in_a_message(name: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyTrace, match="the only event of this file cannot be read"):
        collected(put(tmp_path, HOSTILE[name]()), tmp_path)


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = put(tmp_path, text_of(tmp_path, a_trace()))
    with path.open("ab") as file:
        for _ in range(32):
            file.write(b"x" * (1 << 20))
    tracemalloc.start()
    try:
        for source in traces_in(path):
            source.close()
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_threads_are_remembered_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "_MOST_THREADS", 2)
    lines = [f"[0]13A0.{tid:04X}::2025/06/03-09:30:00.{tid:09d} [Microsoft-Windows-Winsock-AFD]{SEND}" for tid in range(1, 8)]
    found = collected(put(tmp_path, "\n".join(lines)), tmp_path)
    assert found.one("SELECT count(*) FROM v_operations") == 7


def test_other_text_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert form_of(b"[12] a footnote\n") is None
    path = put(tmp_path, "[1] the first\n")
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 1
    assert "this is not an ETL file" in capsys.readouterr().err


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    answers_damage(folder / "damaged.txt", text_of(folder, a_trace()).encode(), data)

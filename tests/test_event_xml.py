"""XML that a tool made of a recording: the same sockets, operations, aborts and overlaps, and clear words for all that it cannot give."""

import gzip
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import EmptyTrace, FormatError
from collector.events.afd import AFD
from collector.schema import EventSchema, bool32, i32, u32
from collector.texts import form_of
from collector.texts.unread import NoMoment
from collector.texts.values import filetime_of, number_of, values_of
from tests.build import Trace, afd
from tests.build.event_xml import event_xml
from tests.build.imported import collect
from tests.build.told import NUMBERS, Number
from tests.test_invariance import rewritten, sample_session
from tests.text_answers import SAME, a_trace, answers, answers_damage, collected


def xml_of(folder: Path, trace: Trace, *, number: Number = str, is_reversed: bool = False) -> str:
    return event_xml(trace.write(folder / "written.etl"), number=number, is_reversed=is_reversed)


def put(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "trace.xml"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture(scope="module")
def sample_etl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewritten(tmp_path_factory.mktemp("xml") / "sample.etl", replace(sample_session(), lost_events=3))


def test_the_story_is_the_same_from_xml(sample_etl: Path, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    whole = collect(sample_etl, tmp_path / "etl")
    path = put(tmp_path, event_xml(sample_etl))
    found = collected(path, tmp_path)
    wanted, given_ = answers(whole), answers(found)
    assert [view for view in SAME if wanted[view] != given_[view]] == []
    assert len(wanted["v_operations"]) > 1000
    assert found.report.key == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    (about,) = found.rows("SELECT start_utc, end_ns, clock, pointer_size, processors, os_build, events_lost FROM v_trace")
    whole_about = whole.rows("SELECT start_utc, end_ns, 'system_time', pointer_size, processors, os_build, events_lost FROM v_trace")
    assert [about] == whole_about
    said = found.one("SELECT text FROM v_problems WHERE kind = 'text_form'")
    stacks = whole.one("SELECT sum(count) FROM v_event_counts WHERE provider LIKE 'def2fe46%'")
    assert f"Events of call stacks in it are left out: {stacks:,}." in said


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pointer_size", [4, 8])
def test_any_encoding_order_and_grouping_gives_the_same(encoding: str, pointer_size: int, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    trace = a_trace(pointer_size)
    whole = collect(trace, tmp_path / "etl")
    path = put(tmp_path, xml_of(tmp_path, trace, number=NUMBERS["blanks"], is_reversed=True), encoding)
    assert answers(collected(path, tmp_path)) == answers(whole)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1024", 1024), ("0x1F", 31), ("0XffffE000", 0xFFFFE000), ("1,024", 1024), ("1.234.567", 1234567), ("1\u00a0024", 1024),
        ("1\u202f024", 1024), ("1'024", 1024), ("1’024", 1024), (" -5 ", -5), ("١٬٠٢٤", 1024),
        ("12,34,567", 1234567), ("1,23,45,678", 12345678), ("-1,00,000", -100000), ("१२,३४,५६७", 1234567),
    ],
)  # fmt: skip
def test_numbers_of_any_locale(text: str, number: int) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "x", "1,02", "0x", "1.5", "9" * 41, "1.234,567", "1,234.567", "1,234 567", "12,34", "123,45,678", "1,2345", "12,34,56", "1,,000"],
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|base 16|invalid literal"):
        number_of(text)


def test_a_port_that_has_no_room_is_counted(tmp_path: Path) -> None:
    event = (
        '<Event><System><Provider Guid="{e53c6823-7bb8-44bb-90dc-3f86090d48a6}"/><EventID>4</EventID><TimeCreated '
        'SystemTime="2025-01-01T00:00:00Z"/></System><EventData><Data>0x1</Data><Data>0x2</Data><Data>192.0.2.1</Data><Data>{port}</Data>'
        "</EventData></Event>"
    )
    text = "<Events>" + event.replace("{port}", "443") + event.replace("{port}", "70000") + "</Events>"
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT peer FROM v_operations") == "192.0.2.1:443"


def test_moments_with_zones() -> None:
    zulu = filetime_of("2024-05-06T07:08:09.123456700Z")
    assert filetime_of("2024-05-06T09:08:09.1234567+02:00") == zulu
    assert filetime_of("2024-05-06T00:08:09,1234567-0700") == zulu
    assert filetime_of("2024-05-06 07:08:09") == zulu - 1_234_567
    assert filetime_of("1970-01-01T00:00:00Z") == 116_444_736_000_000_000


IMPOSSIBLE = (
    "2024-13-06T07:08:09Z", "2024-02-30T07:08:09Z", "2024-05-06T25:30:00Z", "2024-05-06T24:00:00Z", "2024-05-06T09:61:00Z",
    "2024-05-06T09:30:60Z", "2024-05-06T09:30:00+25:00", "2024-05-06T09:30:00+02:60",
)  # fmt: skip


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(NoMoment):
        filetime_of(text)


def test_a_time_that_no_clock_shows_is_counted(tmp_path: Path) -> None:
    event = re.findall(r"(?s)<Event>.*?</Event>\n", xml_of(tmp_path, a_trace()))[-1]
    odd = re.sub(r"T\d\d:\d\d:", "T25:30:", event)
    text = xml_of(tmp_path, a_trace()).replace("</Events>", f"{odd}</Events>")
    found = collected(put(tmp_path, text), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT end_ns FROM v_trace") < 10**9


NO_ROOM = {
    "an event id": (r"<EventID>\d+", "<EventID>99999"),
    "a version": (r"<Version>\d+", "<Version>300"),
    "a level below none": (r"<Level>\d+", "<Level>-1"),
    "an opcode": (r"<Opcode>\d+", "<Opcode>256"),
    "a keyword": (r"<Keywords>\w+", "<Keywords>0x1FFFFFFFFFFFFFFFF"),
    "a process": (r'ProcessID="\d+"', 'ProcessID="4294967296"'),
    "a process below none": (r'ProcessID="\d+"', 'ProcessID="-2"'),
    "a thread": (r'ThreadID="\d+"', 'ThreadID="99999999999"'),
    "a processor": (r'ProcessorID="\d+"', 'ProcessorID="99999"'),
    "a processor below none": (r'ProcessorID="\d+"', 'ProcessorID="-1"'),
}


@pytest.mark.parametrize("name", NO_ROOM)
def test_a_number_of_the_head_that_has_no_room_is_counted(name: str, tmp_path: Path) -> None:
    text = xml_of(tmp_path, a_trace())
    event = re.findall(r"(?s)<Event .*?</Event>\n", text)[-1]
    pattern, odd = NO_ROOM[name]
    assert re.search(pattern, event)
    found = collected(put(tmp_path, text.replace("</Events>", f"{re.sub(pattern, odd, event, count=1)}</Events>")), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_operations") == 2


def test_numbers_may_have_the_sign_that_tools_write(tmp_path: Path) -> None:
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.send(at_us=100, enter_exit=1, status=0xC0000043, tid=0xFFFFFFFF))
    text = xml_of(tmp_path, trace)
    signed = re.sub(r"(?<=>)(0xC0000043|3221225539)(?=<)", str(0xC0000043 - (1 << 32)), text).replace('"4294967295"', '"-1"')
    assert ">-1073741757<" in signed
    assert 'ThreadID="-1"' in signed
    (tmp_path / "plain").mkdir()
    found = collected(put(tmp_path, signed), tmp_path)
    assert answers(found) == answers(collected(put(tmp_path / "plain", text), tmp_path / "plain"))
    assert not found.rows("SELECT * FROM v_problems WHERE kind = 'damaged_text'")


SCHEMA = EventSchema(
    name="Odd",
    provider=AFD,
    number=1,
    versions=(),
    source="",
    fields=(u32("process_id"), u32("length"), u32("status", enum="NTSTATUS"), i32("count"), bool32("is_on")),
)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["-1", "0", "-2147483648", "-5", "true"], [-1, 0, -(1 << 31), -5, 1]),
        (["4294967295", "4294967295", "0xC0000043", "0xFFFFFFFF", "-1"], [0xFFFFFFFF, 0xFFFFFFFF, 0xC0000043, 0xFFFFFFFF, 0xFFFFFFFF]),
        (["-2", "0", "0", "0", "0"], None),
        (["0", "-1", "0", "0", "0"], None),
        (["0", "0", "-2147483649", "0", "0"], None),
        (["0", "0", "0", "-2147483649", "0"], None),
        (["0", "0", "0", "4294967296", "0"], None),
        (["0", "0", "0", "0", "4294967296"], None),
    ],
)
def test_numbers_have_room_in_their_fields(texts: list[str], numbers: list[int] | None) -> None:
    if numbers is None:
        with pytest.raises(ValueError, match=r"no room|no 32 bits"):
            values_of(SCHEMA, {}, texts, 8)
    else:
        assert list(values_of(SCHEMA, {}, texts, 8).values()) == numbers


def test_a_cut_text_gives_what_is_before(tmp_path: Path) -> None:
    text = xml_of(tmp_path, a_trace())
    found = collected(put(tmp_path, text[: text.index("<Event ", len(text) // 2) + 300]), tmp_path)
    assert found.one("SELECT count(*) FROM v_sockets") == 1
    assert "the reason: line " in found.one("SELECT text FROM v_problems WHERE kind = 'damaged_text'")
    assert found.report.is_limited


def test_fields_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    text = xml_of(tmp_path, a_trace())
    found = collected(put(tmp_path, text.replace('Name="AllocSize">', 'Name="AllocSize">many')), tmp_path)
    assert found.one("SELECT count FROM v_problems WHERE kind = 'damaged_text'") == 1
    assert found.one("SELECT count(*) FROM v_sockets") == 1


def test_fields_without_names_are_taken_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    trace = Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=512, duration_us=240))
    whole = collect(trace, tmp_path / "etl")
    text = re.sub(r"(?s)(?<=</Event>\n).*", lambda rest: re.sub(r'<Data Name="\w+">', "<Data>", rest[0]), xml_of(tmp_path, trace))
    assert "<Data>" in text
    assert answers(collected(put(tmp_path, text), tmp_path)) == answers(whole)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_events_without_an_element_around_them_are_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    text = xml_of(tmp_path, a_trace())
    bare = text[text.index("<Event>") : text.index("</Events>")]
    found = collected(put(tmp_path, bare, encoding), tmp_path)
    assert answers(found) == answers(collect(a_trace(), tmp_path / "etl"))
    assert not found.report.is_limited


def test_bytes_that_the_tool_could_not_read_are_read_here(tmp_path: Path) -> None:
    (tmp_path / "etl").mkdir()
    path = a_trace().write(tmp_path / "small.etl")
    assert "<BinaryEventData>" in event_xml(path, is_undecoded=True)
    assert answers(collected(put(tmp_path, event_xml(path, is_undecoded=True)), tmp_path)) == answers(collect(path, tmp_path / "etl"))


HOSTILE = {
    "entities": ('<!DOCTYPE Events [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Events><Event>&b;</Event></Events>', FormatError, "DOCTYPE"),
    "a file from elsewhere": ('<!DOCTYPE Events SYSTEM "file:///etc/passwd"><Events><Event/></Events>', FormatError, "DOCTYPE"),
    "depth": ("<Events><Event>" + "<a>" * 100_000, FormatError, "nested deeper"),
    "one element": ('<Events><Event><Data Name="' + "x" * (10 << 20) + '"/>' + "y" * (1 << 20), FormatError, "one element"),
    "nothing": ("<Events></Events>", EmptyTrace, "no event"),
    "no time": (
        "<Events>\n<Event><System><EventID>1</EventID></System></Event></Events>",
        EmptyTrace,
        r"the only event .* no date.* \(line 2\)",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_xml_ends_in_a_message(name: str, tmp_path: Path) -> None:
    text, error, words = HOSTILE[name]
    with pytest.raises(error, match=words) as caught:
        collected(put(tmp_path, text), tmp_path)
    assert "\n" not in str(caught.value)


def test_other_xml_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert form_of(b"<?xml version='1.0'?><svg/>") is None
    assert form_of(b"the <Event> of the year") is None
    path = put(tmp_path, "<?xml version='1.0'?><project><name>x</name></project>")
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 1
    assert "this is not an ETL file" in capsys.readouterr().err


def with_prefixes(text: str) -> str:
    return re.sub(r"<(/?)(?=[A-Z])", r"<\1e:", text).replace("<e:Events>", '<e:Events xmlns:e="urn:events">')


def with_user_data(text: str) -> str:
    """As a provider's own element has values: a leaf each, instead of `Data` with a name."""
    text = re.sub(r'<Data Name="(\w+)">([^<]*)</Data>', r"<\1>\2</\1>", text)
    return text.replace("<EventData>", '<UserData><Said xmlns="urn:said">').replace("</EventData>", "</Said></UserData>")


@pytest.mark.parametrize("pointer_size", [4, 8])
@pytest.mark.parametrize("other", [with_prefixes, with_user_data])
def test_other_elements_with_the_same_values_are_the_same(other: Callable[[str], str], pointer_size: int, tmp_path: Path) -> None:
    """Without the session's own event, so that the size of pointers is to be seen in the values."""
    (tmp_path / "plain").mkdir()
    text = re.sub(r"(?s)<Event>.*?</Event>\n", "", xml_of(tmp_path, a_trace(pointer_size)), count=1)
    changed = other(text)
    assert "<Data" not in changed
    found = collected(put(tmp_path, changed), tmp_path)
    assert answers(found) == answers(collected(put(tmp_path / "plain", text), tmp_path / "plain"))
    assert found.one("SELECT pointer_size FROM v_trace") == pointer_size
    assert found.one("SELECT count(*) FROM v_operations") == 2


def test_a_packed_text_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = xml_of(tmp_path, a_trace())
    path = tmp_path / "trace.xml.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 0
    assert "1 socket," in capsys.readouterr().out
    assert main(["inspect", str(path)]) in (0, 3)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    answers_damage(folder / "damaged.xml", xml_of(folder, a_trace()).encode(), data)

"""Moments as time since the trace began, or as the wall clock's: one switch for all pages, kept by links, part of the URL."""

import csv
import io
import re
from datetime import UTC, datetime
from html import unescape

import pytest

from app import format as fmt
from app.charts.wall_ticks import wall_ticks
from app.filters import parse_time
from app.urls import with_query
from tests.build.imported import Imported
from tests.build.served import served

START = datetime(2025, 6, 3, 9, 30, tzinfo=UTC)
THIN = "\N{NARROW NO-BREAK SPACE}"
SECOND = 1_000_000_000


def test_a_query_grows_without_losing_what_is_there() -> None:
    assert with_query("/t/1/x?a=1&b=2#part", {"b": "3", "c": ""}) == "/t/1/x?a=1&b=3&c=#part"
    assert with_query("/t/1/x?a=1", {}) == "/t/1/x?a=1"
    assert with_query("/t/1/x?kind=a&kind=b", {"from": "0x1@2"}) == "/t/1/x?kind=a&kind=b&from=0x1@2"


def test_without_a_request_moments_count_from_the_start() -> None:
    assert fmt.time(1_234_567_890) == fmt.clock_time(1_234_567_890) == f"+1.234{THIN}567 s"


@pytest.mark.parametrize(
    ("from_ns", "to_ns", "first", "texts"),
    [
        (0, 60 * SECOND, 0, ["09:30:00", "09:30:10"]),
        (500_000_000, 4_400_000_000, 500_000_000, ["09:30:00.5", "09:30:01.0"]),
        (1_000, 9_000, 2_000, ["09:30:00.000002", "09:30:00.000004"]),
        (-90 * SECOND, 3 * 3600 * SECOND, 0, ["09:30:00", "10:00:00"]),
    ],
)
def test_ticks_are_round_times_of_the_day(from_ns: int, to_ns: int, first: int, texts: list[str]) -> None:
    ticks = wall_ticks(from_ns, to_ns, START)
    assert ticks[0][0] == first
    assert [text for _, text in ticks[:2]] == texts
    assert 2 <= len(ticks) <= 9
    assert all(from_ns <= ns <= to_ns for ns, _ in ticks)


def test_ticks_are_none_where_the_calendar_ends_or_the_range_is_too_narrow() -> None:
    assert wall_ticks(0, 900, START) == []
    assert wall_ticks(0, 60 * SECOND, datetime(9999, 12, 31, 23, 59, 50, tzinfo=UTC)) == []


def test_ticks_keep_to_the_day_when_the_trace_began_between_round_times() -> None:
    ticks = wall_ticks(0, 5 * SECOND, START.replace(second=59, microsecond=700_000))
    assert ticks[0] == (300_000_000, "09:31:00")


def test_every_kind_of_page_says_times_as_asked_and_its_links_keep_that(sample: Imported) -> None:
    home = f"/t/{sample.report.key}"
    ((reset,),) = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns LIMIT 1")
    with served(sample.folder) as client:
        for path in (
            "",
            "/sockets",
            "/operations?kind=send",
            f"/sockets/{reset}",
            "/heap",
            "/around/1000000000",
            "/ports",
            "/events",
            "/trust",
        ):
            separator = "&" if "?" in path else "?"
            plain = client.get(home + path, headers={"Accept": "text/html"})
            asked = client.get(f"{home}{path}{separator}clock=utc", headers={"Accept": "text/html"})
            assert (plain.status_code, asked.status_code) == (200, 200), path
            cells = re.findall(r'<span class="time"[^>]*title="([^"]*)"[^>]*>([^<]*)<', asked.text)
            assert all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}\s\d{3}", shown) and hover.startswith("+") for hover, shown in cells), path
            assert not re.search(r">\+\d+\.\d{3}\s\d{3} s<", asked.text), path
            links = [unescape(href) for href in re.findall(r'href="([^"#]+)', asked.text)]
            lost = [href for href in links if href.startswith(home) and "clock=utc" not in href]
            assert {href.partition("?")[0] for href in lost} <= {home + path.partition("?")[0]}, path  # the switch back
            assert "clock=utc" not in plain.text.replace("?clock=utc", "", 1).replace("&amp;clock=utc", "", 1), path


def test_sentences_charts_and_the_paragraph_for_a_ticket_follow(sample: Imported) -> None:
    ((reset,),) = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns LIMIT 1")
    path = f"/t/{sample.report.key}/sockets/{reset}"
    with served(sample.folder) as client:
        page = client.get(path, params={"format": "json", "clock": "utc"}).json()
        chart = client.get(f"{path}/timeline", params={"clock": "utc"}).json()["figure"]
        plain = client.get(f"{path}/timeline").json()["figure"]
    assert re.search(r"created at 09:3\d:\d\d\.\d{3}\s\d{3} UTC", page["explanation"])
    assert page["socket"]["first_ns"] == int(reset.partition("@")[2])  # numbers stay what they are
    assert chart["layout"]["xaxis"]["title"]["text"] == "UTC, 2025-06-03"
    assert chart["layout"]["xaxis"]["ticktext"][0].startswith("09:3")
    assert "tickvals" not in plain["layout"]["xaxis"]


def test_csv_has_dates_beside_nanoseconds_when_asked(sample: Imported) -> None:
    with served(sample.folder) as client:
        path = f"/t/{sample.report.key}/operations?format=csv&limit=3"
        plain, asked = (list(csv.DictReader(io.StringIO(client.get(path + more).text))) for more in ("", "&clock=utc"))
    assert "posted_utc" not in plain[0]
    for row in asked:
        seconds = int(row["posted_ns"]) // SECOND
        assert row["posted_utc"].startswith(f"2025-06-03 09:{30 + seconds // 60:02d}:{seconds % 60:02d}.")
    assert "latency_utc" not in asked[0]
    assert [{key: row[key] for key in plain[0]} for row in asked] == plain


def test_a_clock_that_there_is_not_is_refused(sample: Imported) -> None:
    with served(sample.folder) as client:
        answer = client.get(f"/t/{sample.report.key}/sockets?clock=mars", headers={"Accept": "application/json"})
    assert answer.status_code == 400
    assert "clock=mars" in answer.text
    assert "trace or utc" in answer.text


def test_a_trace_without_a_start_has_no_switch() -> None:
    from app.clockface import start_of

    assert start_of(None) is None
    assert start_of("someday") is None
    assert start_of("2025-06-03T09:30:00Z") == START


def test_a_moment_of_the_next_day_says_its_date(import_trace: object) -> None:
    from app import clockface

    token = clockface._face.set(clockface._Face("utc", START.replace(hour=23, minute=59)))
    try:
        assert fmt.clock_time(61 * SECOND) == f"2025-06-04 00:00:01.000{THIN}000"
        assert fmt.time(1) == f"23:59:00.000{THIN}000 UTC"
        assert fmt.clock_time(1 << 62) == fmt.since_start(1 << 62) or fmt.clock_time(1 << 62).startswith("2")
        assert fmt.other_clock(5, "2025-06-03T23:59:00Z").startswith("+0.")
    finally:
        clockface._face.reset(token)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2025-06-03T09:30:12.5Z", 12_500_000_000),
        ("2025-06-03 09:30:12,000000001 UTC", 12_000_000_001),
        ("2025-06-03T11:30:12+02:00", 12_000_000_000),
        ("2025-06-03T04:30-0500", 0),
        ("2025-06-03", -(9 * 3600 + 30 * 60) * SECOND),
        ("09:30:12", 12_000_000_000),
        (f"09:30:12.345{THIN}678 UTC", 12_345_678_000),
        ("1:00", -(8 * 3600 + 30 * 60) * SECOND),
    ],
)
def test_a_moment_may_be_given_by_the_wall_clock(sample: Imported, text: str, ns: int) -> None:
    with served(sample.folder) as client:
        asked = client.get(f"/t/{sample.report.key}/allocations", params={"began_from": text, "limit": "3", "format": "json"})
        plain = client.get(f"/t/{sample.report.key}/allocations", params={"began_from": str(ns), "limit": "3", "format": "json"})
        moment = client.get(f"/t/{sample.report.key}/around/{text}", params={"format": "json"})
    assert asked.status_code == plain.status_code == moment.status_code == 200, asked.text
    assert asked.json()["listing"]["rows"] == plain.json()["listing"]["rows"]
    assert asked.json()["sentence"] == plain.json()["sentence"]
    assert moment.json()["at_ns"] == ns


@pytest.mark.parametrize("text", ["2025-06-31T09:30Z", "2025-02-30", "25:00", "09:61", "2025-06-03T09:30+9", "9:30pm", ":"])
def test_a_wall_time_that_is_none_is_refused_with_what_is_allowed(sample: Imported, text: str) -> None:
    with served(sample.folder) as client:
        answer = client.get(f"/t/{sample.report.key}/sockets", params={"from": text, "format": "json"})
    assert answer.status_code == 400
    assert text in answer.json()["sentence"]


def test_a_range_in_wall_time_is_that_of_the_page_and_its_chart(sample: Imported) -> None:
    ((reset,),) = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns LIMIT 1")
    home = f"/t/{sample.report.key}/sockets"
    with served(sample.folder) as client:
        page = client.get(f"{home}/{reset}", params={"from": "09:30:00.5", "to": "2025-06-03T09:30:02Z"}, headers={"Accept": "text/html"})
        turned = client.get(home, params={"from": "09:30:05", "to": "4 s"})
    assert 'data-from="500000000" data-to="2000000000"' in page.text
    assert turned.status_code == 400


def test_a_trace_without_a_start_has_no_wall_time() -> None:
    with pytest.raises(ValueError, match="does not say when it began"):
        parse_time("2025-06-03T09:30Z")

"""A masked export: nothing of the originals is left in its bytes, equal things stay equal, and it opens like any other trace."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import LargeBinary, Text

from app.cli import main
from collector.masks import Masks, is_public_name
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from collector.store.masking import APART, KEPT, mask_file, masked_columns
from collector.store.tables import CATALOG, TRACE
from tests.build.answers import text_of
from tests.build.database import built_database
from tests.build.imported import Imported
from tests.build.served import served
from tests.build.small_trace import KEY, SMALL

MASKS = Masks(b"a secret of the tests")
SECRETS = (
    "orchard", "quince", "plum.exe", "C:\\Orchard\\plum.exe --password hunter2", "hunter2", "198.51.100.7", "192.0.2.10", "2001:db8::1",
    "worker-of-quince", "PlumSocket::send", "plum.cpp", "Quince-Provider", "QuinceEvent", "Alice Example", "orchard-session",
    "\\\\.\\pipe\\quince", "quince-capture.etl", "5f1a-payload-of-plum", "22223333-4444-5555-6666-777788889999",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    """The small trace with a secret in each place that can hold one."""
    rows = {name: [dict(row) for row in rows] for name, rows in SMALL.items()}
    rows["process"][0] |= {"image": "plum.exe", "command_line": "C:\\Orchard\\plum.exe --password hunter2"}
    rows["thread"][0]["name"] = "worker-of-quince"
    rows["module"][0] |= {"file": "C:\\Orchard\\plum.exe", "pdb_name": "quince.pdb", "pdb_guid": SECRETS[-1], "pdb_age": 1}
    rows["stack_frame"][1] |= {"module": "C:\\Orchard\\plum.exe", "symbol": "PlumSocket::send+0x12 [C:\\orchard\\plum.cpp:12]"}
    rows["event_count"].append(
        {"provider": "1" * 8, "provider_name": "Quince-Provider", "event_name": "QuinceEvent", "header_kind": "event", "count": 1}
    )
    rows["raw_event"][0]["payload"] = b"5f1a-payload-of-plum"
    rows["address"].append({"text": "unix \\\\.\\pipe\\quince", "family": 1})
    rows["finding"][0] |= {
        "title": "PLUM.EXE talked with 198.51.100.7:443",
        "text": "plum.exe's thread worker-of-quince of C:\\Orchard\\plum.exe --password hunter2 reached [2001:db8::1]:53, from 192.0.2.10.",
        "link": "sockets?remote=198.51.100.7:443&process=4242@0",
    }
    rows["problem"][1] |= {"text": "quince-capture.etl: cut.", "place": "in quince-capture.etl"}
    rows["socket_event"][0]["fields"] = json.dumps({"path": "C:\\Orchard\\plum.exe", "peer": "198.51.100.7", "n": [1, "plum.exe"]})
    made = built_database(tmp_path_factory.mktemp("secret"), rows, key=KEY, name="quince-capture.etl")
    with sqlite3.connect(made.trace_path(KEY)) as db:
        db.execute(
            "UPDATE trace SET header = ?",
            (json.dumps({"machine": "ORCHARD-PC", "session_name": "orchard-session", "file_name": "C:\\Orchard\\q.etl"}),),
        )
        db.execute("UPDATE stack SET hash = 'feedfacefeedface' WHERE n = 1")
    db.close()
    with sqlite3.connect(made.catalog_path) as db:
        db.execute(
            "INSERT INTO note (key, object, author, text, created_utc) VALUES (?, '', 'Alice Example', ?, '2025-01-01T00:00:00Z')",
            (KEY, "plum.exe at 198.51.100.7 and at [2001:db8::1]:53"),
        )
    db.close()
    return made


@pytest.fixture(scope="module")
def masked(folder: TraceFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("out") / "masked.db"
    assert main(["export", KEY, "--mask", "-o", str(target), "--database", str(folder.root)]) == 0
    return target


def rows_of(path: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as db:
        found = db.execute(sql).fetchall()
    db.close()
    return found


def test_no_byte_of_an_original_is_left(folder: TraceFolder, masked: Path) -> None:
    before = folder.trace_path(KEY).read_bytes().lower()
    after = masked.read_bytes().lower()
    notes = folder.catalog_path.read_bytes().lower()
    for secret in SECRETS:
        escaped = json.dumps(secret)[1:-1]
        spellings = {text.lower().encode(coding) for text in (secret, escaped) for coding in ("utf-8", "utf-16-le")}
        assert any(spelling in before + notes for spelling in spellings), f"{secret} is nowhere in the original: the test tests nothing"
        assert [spelling for spelling in spellings if spelling in after] == []
    for packed in (IPv4Address("198.51.100.7").packed, IPv4Address("192.0.2.10").packed, IPv6Address("2001:db8::1").packed):
        assert packed in before
        assert packed not in after
    assert b"feedfacefeedface" not in after


def test_equal_originals_have_equal_stand_ins(masked: Path) -> None:
    image = rows_of(masked, "SELECT image FROM process WHERE n = 1")[0][0]
    assert isinstance(image, str)
    assert image.endswith(".exe")
    file = rows_of(masked, "SELECT file FROM module WHERE n = 1")[0][0]
    assert str(file).endswith(f"\\{image}")
    title, text, link = map(str, rows_of(masked, "SELECT title, text, link FROM finding WHERE n = 1")[0])
    peer = str(rows_of(masked, "SELECT text FROM address WHERE n = 2")[0][0])
    v6 = str(rows_of(masked, "SELECT text FROM address WHERE n = 3")[0][0])
    assert title == f"{image} talked with {peer}"
    command = str(rows_of(masked, "SELECT command_line FROM process WHERE n = 1")[0][0])
    assert f"{image}'s thread" in text
    assert command in text
    assert v6 in text
    assert link == f"sockets?remote={peer}&process=4242@0"
    fields = json.loads(str(rows_of(masked, "SELECT fields FROM socket_event WHERE n = 1")[0][0]))
    assert fields == {"path": file, "peer": peer.partition(":")[0], "n": [1, image]}
    note, author = map(str, rows_of(masked, "SELECT text, author FROM note")[0])
    assert note == f"{image} at {peer.partition(':')[0]} and at {v6}"
    assert author.startswith("author-")
    packed = rows_of(masked, "SELECT ip FROM address WHERE n = 2")[0][0]
    assert isinstance(packed, bytes)
    assert f"{IPv4Address(packed[12:])}:443" == peer


def test_what_is_the_same_on_every_machine_stays(masked: Path) -> None:
    files = {row[0] for row in rows_of(masked, "SELECT file FROM module")}
    assert "C:\\Windows\\System32\\ntdll.dll" in files
    assert rows_of(masked, "SELECT text FROM address WHERE n = 4") == [("0.0.0.0:8080",)]
    assert rows_of(masked, "SELECT count(*) FROM operation WHERE posted_ns = 1000000000") == [(1,)]


def test_a_masked_export_opens_in_the_dashboard(masked: Path, tmp_path: Path) -> None:
    elsewhere = TraceFolder(tmp_path / "elsewhere")
    elsewhere.make()
    shutil.copy(masked, elsewhere.trace_path(f"{KEY}-masked"))
    assert Catalog(elsewhere).settle() == 1
    with served(elsewhere) as client:
        overview = client.get(f"/t/{KEY}", follow_redirects=True)
        assert overview.status_code == 200, "the link of the original leads to it, where that is absent"
        assert "masked export" in overview.text
        for page in ("trust", "processes", "sockets", "operations", "events", "heap", "aborts", "notes"):
            answer = client.get(f"/t/{KEY}-masked/{page}")
            assert answer.status_code == 200
            assert not [secret for secret in SECRETS if secret.lower() in answer.text.lower()]
        assert "stand-ins" in client.get(f"/t/{KEY}-masked/trust").text


def test_a_trace_says_what_it_contains(folder: TraceFolder) -> None:
    with served(folder) as client:
        page = client.get(f"/t/{KEY}", headers={"Accept": "text/html"}).text
        contents = client.get(f"/t/{KEY}?format=json").json()["contents"]
    assert "command lines" in page
    assert f"sockscope export {KEY} --mask" in text_of(page)
    assert contents["addresses"] == 4
    assert contents["raw_payloads"] == 1
    assert contents["is_masked"] is False


def test_every_column_that_can_hold_a_text_is_looked_after() -> None:
    covered = {(table.name, column) for table, column, _ in masked_columns(MASKS, frozenset(), has_notes=True)}
    covered |= set(APART) | {(table, column) for table, columns in KEPT.items() for column in columns}
    tables = [*TRACE.sorted_tables, CATALOG.tables["note"]]
    there = {(table.name, column.name) for table in tables for column in table.columns if isinstance(column.type, Text | LargeBinary)}
    assert there - covered == set()
    assert covered - there == set()


def test_two_exports_have_nothing_in_common(folder: TraceFolder, masked: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert main(["export", KEY, "--mask", "-o", str(other), "--database", str(folder.root)]) == 0
    assert rows_of(other, "SELECT image FROM process WHERE n = 1") != rows_of(masked, "SELECT image FROM process WHERE n = 1")


def test_the_trace_itself_is_left_alone_and_nothing_lies_about(folder: TraceFolder, tmp_path: Path) -> None:
    before = folder.trace_path(KEY).read_bytes()
    assert main(["export", KEY, "--mask", "-o", str(tmp_path / "out.db"), "--database", str(folder.root)]) == 0
    assert folder.trace_path(KEY).read_bytes() == before
    assert [path.name for path in folder.traces_path.iterdir() if "mask" in path.name] == []
    assert [path.name for path in tmp_path.iterdir()] == ["out.db"]


def test_the_sample_keeps_no_name_and_no_address(sample: Imported, tmp_path: Path) -> None:
    target = tmp_path / "sample.db"
    assert main(["export", "sample.etl", "--mask", "-o", str(target), "--database", str(sample.folder.root)]) == 0
    after = target.read_bytes().lower()
    names = [row[0] for row in sample.rows("SELECT DISTINCT image FROM process") if row[0] and not is_public_name(row[0])]
    commands = [row[0] for row in sample.rows("SELECT DISTINCT command_line FROM process WHERE command_line IS NOT NULL")]
    addresses = {row[0].rpartition(":")[0] for row in sample.rows("SELECT text FROM address WHERE ip IS NOT NULL")}
    addresses -= {"0.0.0.0", "127.0.0.1", "[::]", "[::1]"}
    assert len(names) > 5
    assert len(addresses) > 5
    assert [name for name in (*names, *commands, *addresses) if name.lower().encode() in after] == []


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_leading_bits_that_two_addresses_share_stay_shared(one: IPv4Address, other: IPv4Address) -> None:
    def shared(a: IPv4Address, b: IPv4Address) -> int:
        return 32 - (int(a) ^ int(b)).bit_length()

    a, b = MASKS.ipv4(one), MASKS.ipv4(other)
    assert (a == b) == (one == other)
    if shared(one, other) >= 16:  # what decides the range lies before
        assert shared(a, b) == shared(one, other)
    for name in ("is_loopback", "is_multicast", "is_unspecified", "is_link_local"):
        assert getattr(a, name) == getattr(one, name)


@given(st.ip_addresses(v=6))
def test_an_address_keeps_its_kind(address: IPv6Address) -> None:
    masked = MASKS.ipv6(address)
    for name in ("is_loopback", "is_multicast", "is_unspecified", "is_link_local"):
        assert getattr(masked, name) == getattr(address, name)
    assert (masked.ipv4_mapped is None) == (address.ipv4_mapped is None)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:80", "0.0.0.0:0", "[::1]:80", "[::]:0", "255.255.255.255:67", "224.0.0.251:5353", "[ff02::fb]:5353"]
)
def test_addresses_that_say_nothing_stand_for_themselves(text: str) -> None:
    assert MASKS.address(text) == text


@pytest.mark.parametrize("text", ["192.168.1.17:8080", "[fe80::1234:5678%7]:53", "[::ffff:198.51.100.9]:443", "8.8.8.8:53"])
def test_ports_scopes_and_ranges_stay(text: str) -> None:
    masked = MASKS.address(text)
    assert masked != text
    assert masked.rpartition(":")[2] == text.rpartition(":")[2]
    assert masked.startswith(("192.168.", "[fe", "[::ffff:")) == text.startswith(("192.168.", "[fe", "[::ffff:"))
    assert ("%7]" in masked) == ("%7]" in text)


@pytest.mark.parametrize("text", ["at 12:34:56.789", "version 10.0.22631", "0xffff9a0c2a001010@10", "1,234.5 ms", "C++ std::map"])
def test_what_is_no_address_is_left_alone(text: str) -> None:
    assert MASKS.text(text) == text


@pytest.mark.parametrize(
    ("name", "is_public"),
    [("ntdll.dll", True), ("C:\\Windows\\System32\\NTDLL.DLL", True), ("\\SystemRoot\\System32\\drivers\\afd.sys", True), ("System", True),
     ("C:\\Users\\alice\\ntdll.dll", False), ("D:\\ntdll\\x.dll", False), ("ntdll", False), ("", False), ("plum.exe", False)],
)  # fmt: skip
def test_files_of_windows_are_known_by_their_place(name: str, is_public: bool) -> None:
    assert is_public_name(name) is is_public


@given(st.text(), st.lists(st.text(min_size=1), max_size=5))
def test_any_text_can_be_masked(text: str, names: list[str]) -> None:
    masks = Masks(b"x")
    for name in names:
        masks.learn(name, masks.name(name))
    assert isinstance(masks.text(text), str)
    assert isinstance(masks.link(text), str)
    assert isinstance(masks.json(text), str)


def test_cancelling_leaves_nothing(folder: TraceFolder, tmp_path: Path) -> None:
    from collector.errors import CollectCancelled
    from collector.store.copying import copy_trace

    looks = iter([False] * 3)
    should_cancel: Callable[[], bool] = lambda: next(looks, True)  # noqa: E731
    with pytest.raises(CollectCancelled):
        copy_trace(folder, KEY, tmp_path / "x.db", should_cancel, lambda path: mask_file(path, b"x", should_cancel))
    assert list(tmp_path.iterdir()) == []
    assert [path.name for path in folder.traces_path.iterdir() if "mask" in path.name] == []

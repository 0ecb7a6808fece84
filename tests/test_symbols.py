"""Names of functions from symbol files: the right file by its identity, the right place for each frame, and nothing by halves."""

import gzip
import html
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("symbolic", reason="the optional package that reads symbol files is not installed")

from app.cli import main
from collector.errors import CollectCancelled, StoreLocked, SymbolsError
from collector.naming import Naming, name_trace
from collector.store.stores import TraceStore, open_store
from collector.symbols import Builds, LoadedImage, PdbError, PdbId, Place, Symbols, frame_name
from collector.symbols.reading import Reader
from tests.build import Trace, heap, system
from tests.build.database import BUILT_KEY, built_database

POOL = PdbId(UUID("5218d771-2ad0-1a2e-4c4c-44205044422e"), 1)
STORE_ID = "5218D7712AD01A2E4C4C44205044422E1"
OTHER_ID = UUID("11111111-2222-3333-4444-555555555555")
BASE, NTDLL = 0x7FF6_A000_0000, 0x7FF8_B000_0000

# Return addresses, as `llvm-objdump -d pool.exe` shows them behind the calls; the first is where the thread was.
HIDDEN, IN_ROUND_UP, IN_GROW, IN_FILL, IN_WALK, IN_START = 0x1139, 0x1017, 0x10EC, 0x1031, 0x1056, 0x109E
BEHIND_FAIL = 0x1079
SEND, SCRIPTED = 0x1100, 0x1110
SCRIPT_NAME = "<script>alert('x')</script>"

Run = Callable[..., tuple[int, str, str]]


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Path:
    """The symbol file of tests/data, unpacked; not to be changed."""
    path = tmp_path_factory.mktemp("symbols") / "pool.pdb"
    path.write_bytes(gzip.decompress((project_root / "tests/data/pool.pdb.gz").read_bytes()))
    return path


@pytest.fixture
def folder(pool: Path, tmp_path: Path) -> Path:
    """A flat folder with that file."""
    (tmp_path / "pdbs").mkdir()
    shutil.copy(pool, tmp_path / "pdbs")
    return tmp_path / "pdbs"


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line against a database of the test's own; gives exit status, stdout and stderr."""

    def run(*words: str | Path, database: str = "database") -> tuple[int, str, str]:
        status = main([*map(str, words), "--database", str(tmp_path / database)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def trace(*, guid: UUID = POOL.guid, age: int = 1, name: str = r"D:\agent\7\out\pool.pdb", is_merged: bool = True) -> Trace:
    """A program whose call stacks lie in the image of pool.pdb and in ntdll."""
    stacks = [
        (HIDDEN, IN_ROUND_UP, IN_WALK, IN_WALK, IN_START),
        (SCRIPTED, IN_GROW, IN_FILL, IN_START),
        (0x9000, BEHIND_FAIL, IN_START),  # the first one is in no image
    ]
    blocks = [
        heap.alloc(at_us=100 + n, address=heap.HEAP + 0x1000 * n, stack=(*(BASE + offset for offset in offsets), NTDLL + 0x123))
        for n, offsets in enumerate(stacks, start=1)
    ]
    identity = [system.pdb(base=BASE, guid=guid, age=age, name=name)] if is_merged else []
    return Trace().cpu(
        0,
        identity,
        system.image(base=BASE, size=0x4000, file=r"\Device\HarddiskVolume3\app\Pool.exe"),
        system.image(base=NTDLL, size=0x200000, file=r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll"),
        blocks,
    )


@pytest.fixture
def etl(tmp_path: Path) -> Path:
    return trace().write(tmp_path / "pool.etl")


EXPECTED = [
    "hidden+0x9", "cache::fill+0x17 [pool.cpp:28 → round_up pool.cpp:23]", "walk+0x16 [pool.cpp:36]", "walk+0x16 [pool.cpp:36]",
    "start+0x1e [pool.cpp:43]", None,
    f"{SCRIPT_NAME}+0x0", "Pool<Block &,64>::grow+0x1c [pool.cpp:17]", "cache::fill+0x31 [pool.cpp:29]", "start+0x1e [pool.cpp:43]", None,
    None, "fail+0x9 [pool.cpp:39]", "start+0x1e [pool.cpp:43]", None,
]  # fmt: skip


def database_of(tmp_path: Path, database: str = "database") -> TraceStore:
    return open_store(tmp_path / database)


@contextmanager
def file_of(store: TraceStore) -> Iterator[Path]:
    """The one trace of a database, as a file."""
    (key,) = store.trace_keys()
    with store.fetched(key, never) as path:
        yield path


def content(store: TraceStore) -> bytes:
    with file_of(store) as path:
        return path.read_bytes()


def asked(store: TraceStore, sql: str) -> list[tuple[Any, ...]]:  # Any: a cell may hold anything that SQLite has
    with file_of(store) as path, closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def names(store: TraceStore) -> list[str | None]:
    return [name for (name,) in asked(store, "select symbol from stack_frame order by stack_n, frame")]


# ---------------------------------------------------------------------------------------------------- names of frames


def test_frames_have_function_distance_and_line(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    key = run("collect", etl)[1].split()[0]
    before = asked(database_of(tmp_path), "select * from v_stacks")

    status, out, err = run("symbols", key, folder)

    assert (status, out) == (0, f"{key}  pool.etl: 11 of 14 frames have a name; 1 symbol file used, 11 names new\n")
    assert err == "pool.etl: the trace does not say which symbol files these modules have: ntdll.dll.\n"
    assert names(database_of(tmp_path)) == EXPECTED
    after = asked(database_of(tmp_path), "select * from v_stacks")
    assert [row[:6] + row[7:] for row in before] == [row[:6] + row[7:] for row in after]  # hash, module and offset among them


def test_a_second_time_changes_nothing(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    key = run("collect", etl)[1].split()[0]
    run("symbols", "pool.etl", folder)
    store = database_of(tmp_path)
    version, before = store.version_of(key), content(store)

    status, out, _ = run("symbols", "pool.etl", folder)

    assert status == 0
    assert out.endswith("11 of 14 frames have a name; 1 symbol file used, 0 names new\n")
    assert (store.version_of(key), content(store)) == (version, before)


def test_names_stay_when_other_folders_do_not_know_them(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    run("collect", etl)
    run("symbols", "pool.etl", folder)
    (tmp_path / "empty").mkdir()

    status, out, err = run("symbols", "pool.etl", tmp_path / "empty")

    assert status == 1
    assert "11 of 14 frames have a name; 0 symbol files used, 0 names new" in out
    assert rf"no symbol file was found for D:\agent\7\out\pool.pdb ({STORE_ID})." in err
    assert names(database_of(tmp_path)) == EXPECTED


def test_naming_while_collecting_gives_the_same(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    run("collect", etl, database="later")
    run("symbols", "pool.etl", folder, database="later")

    status, _, err = run("collect", etl, "--symbols", folder)

    assert status == 0
    assert "pool.etl: symbols: 11 of 14 frames have a name; 1 symbol file used, 11 names new\n" in err
    for sql in ("select * from stack_frame", "select * from stack", "select * from stack_ref", "select * from v_allocations"):
        assert asked(database_of(tmp_path), sql) == asked(database_of(tmp_path, "later"), sql)
    assert names(database_of(tmp_path)) == EXPECTED


# ---------------------------------------------------------------------------------------------------- which file


def flat(root: Path, pool: Path) -> None:
    shutil.copy(pool, root / "pool.pdb")


def tree(root: Path, pool: Path) -> None:
    (root / "x64/Release").mkdir(parents=True)
    shutil.copy(pool, root / "x64/Release/POOL.PDB")


def store(root: Path, pool: Path) -> None:
    for stored in (STORE_ID, "ABCDEF00" * 4 + "2"):
        (root / "pool.pdb" / stored).mkdir(parents=True)
    shutil.copy(pool, root / "pool.pdb" / STORE_ID / "pool.pdb")
    (root / "pool.pdb" / ("ABCDEF00" * 4 + "2") / "pool.pdb").write_bytes(b"another build, never opened")


def two_tier_store(root: Path, pool: Path) -> None:
    (root / "po/pool.pdb" / STORE_ID.lower()).mkdir(parents=True)
    shutil.copy(pool, root / "po/pool.pdb" / STORE_ID.lower() / "pool.pdb")


def renamed(root: Path, pool: Path) -> None:
    shutil.copy(pool, root / "pool-1.0.pdb")


@pytest.mark.parametrize("layout", [flat, tree, store, two_tier_store, renamed])
def test_layouts_of_folders(layout: Callable[[Path, Path], None], pool: Path, tmp_path: Path) -> None:
    layout(tmp_path, pool)
    with Symbols([tmp_path]) as symbols:
        found = symbols.find({POOL: "pool.pdb"}, never)

    assert found.paths.keys() == {POOL}
    assert (found.lines, found.missing) == ([], {})


def test_several_folders_and_a_file(pool: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with Symbols([tmp_path / "empty", pool]) as symbols:
        assert symbols.find({POOL: "pool.pdb"}, never).paths == {POOL: pool}


@pytest.mark.parametrize(
    ("guid", "age", "id_of_trace"), [(OTHER_ID, 1, "1" * 8 + "2222333344445555555555551"), (POOL.guid, 10, STORE_ID[:-1] + "A")]
)
def test_a_file_with_another_id_is_named_and_not_used(
    guid: UUID, age: int, id_of_trace: str, run: Run, folder: Path, tmp_path: Path
) -> None:
    run("collect", trace(guid=guid, age=age).write(tmp_path / "pool.etl"))

    status, out, err = run("symbols", "pool.etl", folder)

    assert status == 1
    assert f"found {folder / 'pool.pdb'} but its id {STORE_ID} is not the trace's {id_of_trace}; it was not used." in err
    assert "0 of 14 frames have a name" in out
    assert set(names(database_of(tmp_path))) == {None}


def test_many_files_with_other_ids_are_one_line(pool: Path, tmp_path: Path) -> None:
    shutil.copy(pool, tmp_path / "pool.pdb")
    for n in range(1, 8):
        path = tmp_path / "pool.pdb.store/pool.pdb" / f"{n:032X}1" / "pool.pdb"
        path.parent.mkdir(parents=True)
        path.touch()
    with Symbols([tmp_path]) as symbols:
        (line,) = symbols.find({PdbId(OTHER_ID, 1): "pool.pdb"}, never).lines

    assert line.startswith("found 8 files called pool.pdb but none has the trace's id 11111111222233334444555555555555" + "1 (theirs: ")
    assert line.endswith(", …).")


def test_a_folder_of_a_store_that_lies_is_found_out(pool: Path, tmp_path: Path) -> None:
    wanted = PdbId(OTHER_ID, 1)
    path = tmp_path / "pool.pdb" / str(wanted) / "pool.pdb"
    path.parent.mkdir(parents=True)
    shutil.copy(pool, path)
    with Symbols([tmp_path]) as symbols:
        found = symbols.find({wanted: "pool.pdb"}, never)

    assert found.paths == {}
    assert found.lines == [f"found {path} but its id {STORE_ID} is not the trace's {wanted}; it was not used."]


def test_a_trace_that_was_not_merged_says_so(run: Run, folder: Path, tmp_path: Path) -> None:
    run("collect", trace(is_merged=False).write(tmp_path / "pool.etl"))

    status, _, err = run("symbols", "pool.etl", folder)

    assert status == 1
    assert "this trace does not say which symbol files its modules have." in err
    assert "xperf -merge" in err


def test_ids_as_text() -> None:
    assert str(POOL) == STORE_ID
    assert PdbId.of_store(STORE_ID.lower()) == PdbId.of_library("5218d771-2ad0-1a2e-4c4c-44205044422e-1") == POOL
    assert PdbId.of_library("5218d771-2ad0-1a2e-4c4c-44205044422e-1f") == PdbId.of_store(STORE_ID[:-1] + "1F") == PdbId(POOL.guid, 31)
    assert PdbId.of_library("5218d771-2ad0-1a2e-4c4c-44205044422e") == PdbId(POOL.guid, 0)
    assert PdbId.of_store("Release") is PdbId.of_store(STORE_ID[:32]) is PdbId.of_library("0") is None


# ---------------------------------------------------------------------------------------------------- which build


def shared_stacks(images: Sequence[Mapping[str, object]], frames: Sequence[tuple[int, int]], root: Path) -> TraceStore:
    """A trace with one stack of (address, offset) in modules called pool.exe."""
    built_database(
        root,
        {
            "module": [{"size_bytes": 0x4000, "pdb_age": 1, "pdb_name": "pool.pdb"} | dict(image) for image in images],
            "stack": [{"hash": "aaaabbbbccccdddd", "depth": len(frames)}],
            "stack_frame": [
                {"stack_n": 1, "frame": n, "address": address, "module": "pool.exe", "offset": offset}
                for n, (address, offset) in enumerate(frames)
            ],
        },
    )
    return open_store(root)


OURS: Mapping[str, object] = {"file": r"C:\app\pool.exe", "base": 0x10000, "pdb_guid": str(POOL.guid)}
OTHER_BUILD: Mapping[str, object] = {"file": r"C:\old\pool.exe", "base": 0x20000, "pdb_guid": str(OTHER_ID)}


def named(store: TraceStore, pdbs: Path) -> tuple[Naming, list[str | None]]:
    with Symbols([pdbs]) as symbols:
        naming = name_trace(store, BUILT_KEY, symbols, never)
    return naming, names(store)


def test_of_two_builds_the_one_at_the_address_counts(folder: Path, tmp_path: Path) -> None:
    traces = shared_stacks([OURS, OTHER_BUILD], [(0x10000 + HIDDEN, HIDDEN), (0x20000 + IN_START, IN_START)], tmp_path / "database")

    _, found = named(traces, folder)

    assert found == ["hidden+0x9", None]


def test_builds_at_one_address_that_disagree_give_no_name(folder: Path, tmp_path: Path) -> None:
    traces = shared_stacks([OURS, {**OTHER_BUILD, "base": 0x10000}], [(0x10000 + HIDDEN, HIDDEN)], tmp_path / "database")

    naming, found = named(traces, folder)

    assert found == [None]
    assert "several builds of a module lay at one address; frames on which they disagree have no name: pool.exe." in naming.lines


def test_the_same_file_elsewhere_is_the_same_build(folder: Path, tmp_path: Path) -> None:
    again = {**OURS, "base": 0x30000, "pdb_guid": None, "pdb_age": None, "pdb_name": None}
    traces = shared_stacks([OURS, again], [(0x30000 + HIDDEN, HIDDEN)], tmp_path / "same")
    rebuilt = shared_stacks([OURS, again | {"timestamp": 7}], [(0x30000 + HIDDEN, HIDDEN)], tmp_path / "rebuilt")

    assert named(traces, folder)[1] == ["hidden+0x9"]
    assert named(rebuilt, folder)[1] == [None]


def test_a_return_address_at_the_very_end_of_an_image_is_inside() -> None:
    def image(base: int, pdb: PdbId) -> LoadedImage:
        return LoadedImage("\\a\\Pool.exe", base, 0x1000, 1, pdb, None)

    builds = Builds([image(0xFFFF_8000_0000_0000, POOL), image(0xFFFF_8000_0000_1000, PdbId(OTHER_ID, 1))])

    assert builds.at("POOL.EXE", 0xFFFF_8000_0000_0FFF) == {POOL}
    assert builds.at("pool.exe", 0xFFFF_8000_0000_1000) == {PdbId(OTHER_ID, 1)}
    assert builds.at("pool.exe", 0x1000) == builds.at("game.exe", 0xFFFF_8000_0000_0000) == frozenset()


# ---------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        ("main", "main"),
        ("main(int, char**)", "main"),
        ("Map<Key<int>>::find(void (*)(int)) const", "Map<Key<int>>::find"),
        ("Map<Key,void (*)(int)>::find(void (*)(int), Key<int>)", "Map<Key,void (*)(int)>::find"),
        ("`anonymous namespace'::run()", "`anonymous namespace'::run"),
        ("Call::operator()(int)", "Call::operator()"),
        ("Call::operator()", "Call::operator()"),
        ("odd)", "odd)"),
        ("(odd)", "(odd)"),
        ("?send@Socket@net@@QEAA_K_K@Z", "net::Socket::send"),
        ("??0Socket@net@@QEAA@XZ", "net::Socket::Socket"),
        ("??1Socket@net@@QEAA@XZ", "net::Socket::~Socket"),
        ("?grow@?$Pool@AEAUBlock@@$0EA@@@QEAA_KAEAUBlock@@@Z", "?grow@?$Pool@AEAUBlock@@$0EA@@@QEAA_KAEAUBlock@@@Z"),
        ("??2@YAPEAX_K@Z", "??2@YAPEAX_K@Z"),
        ("_RtlAllocateHeap@12", "_RtlAllocateHeap@12"),
        ("two\nlines\x1b[31m\u202e", "two\N{REPLACEMENT CHARACTER}lines\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}"),
        ("x" * 5000, "x" * 999 + "…"),
    ],
)  # fmt: skip
def test_functions_read_well(function: str, shown: str) -> None:
    assert frame_name([Place(function, 0x10, None, 0)], 0x1C) == shown + "+0xc"


def test_places_read_from_the_function_to_its_innermost_call() -> None:
    inner = [Place(f"f{n}(int)", 0xFFFF_FFFF, rf"C:\src\f{n}.h", n) for n in (1, 2, 3)]
    outer = Place("main(int)", 0x1000, "/src/main.c", 9)

    assert frame_name([outer], 0x1010) == "main+0x10 [main.c:9]"
    assert frame_name([inner[0], outer], 0x1010) == "main+0x10 [main.c:9 → f1 f1.h:1]"
    assert frame_name([*inner, outer], 0x1010) == "main+0x10 [main.c:9 → … → f1 f1.h:1]"
    assert frame_name([], 0x1010) is frame_name([Place("", 0x1000, None, 0)], 0x1010) is None


@given(st.text(), st.text(), st.integers(0, 1 << 32), st.integers(0, 1 << 32))
def test_any_text_becomes_one_printable_line(function: str, file: str, line: int, offset: int) -> None:
    shown = frame_name([Place(function, 0, file, line)] * 2, offset)

    assert shown is None or shown.isprintable()


def test_hostile_names_are_text_on_the_page(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from app.main import create_app
    from app.settings import Settings

    key = run("collect", etl, "--symbols", folder)[1].split()[0]
    (stack,) = asked(database_of(tmp_path), f"select stack from v_stacks where symbol like '{SCRIPT_NAME.replace(chr(39), chr(39) * 2)}%'")
    with TestClient(create_app(Settings(database=tmp_path / "database")), base_url="http://127.0.0.1") as client:
        page = client.get(f"/t/{key}/stacks/{stack[0]}").text.replace("<wbr>", "")  # where a long name may break

    assert SCRIPT_NAME not in page
    assert SCRIPT_NAME in html.unescape(page)
    assert "Pool<Block &,64>::grow+0x1c" in html.unescape(page)


def test_the_tree_of_calls_has_functions_wherever_they_called_from(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    from sqlalchemy import select

    from app.queries.heap_flame import call_tree
    from app.queries.heap_timeline import HeapScope
    from collector.store.tables import process

    key = run("collect", etl, "--symbols", folder)[1].split()[0]
    with database_of(tmp_path).trace(key).connect() as db:
        (n,) = db.execute(select(process.c.n)).scalars()
        root = call_tree(db, HeapScope("process", n, n), 0, 1 << 62)

    (outermost,) = root.children.values()
    start = outermost.children["Pool.exe!start"]
    assert sorted(start.children) == ["Pool.exe!cache::fill", "Pool.exe!fail", "Pool.exe!walk"]
    assert list(start.children["Pool.exe!walk"].children) == ["Pool.exe!walk"]


# ---------------------------------------------------------------------------------------------------- what goes wrong


def test_no_such_folder(run: Run, etl: Path, tmp_path: Path) -> None:
    run("collect", etl)

    for words in (("symbols", "pool.etl"), ("collect", etl, "--symbols")):
        status, out, err = run(*words, tmp_path / "nowhere")
        assert (status, out) == (1, "")
        assert err == f"sockscope {words[0]}: {tmp_path / 'nowhere'}: there is no such folder of symbol files.\n"


def test_a_file_that_was_named_and_is_no_symbol_file_is_told(run: Run, etl: Path, tmp_path: Path) -> None:
    run("collect", etl)
    (tmp_path / "notes.txt").write_text("not a symbol file")

    status, _, err = run("symbols", "pool.etl", tmp_path / "notes.txt")

    assert status == 1
    assert f"{tmp_path / 'notes.txt'}: this symbol file cannot be read" in err


@pytest.mark.folder("a folder that is not there")
def test_no_folder_of_traces_yet(run: Run, folder: Path) -> None:
    assert run("symbols", "pool.etl", folder)[0] == 2


def test_no_such_trace(run: Run, etl: Path, folder: Path) -> None:
    run("collect", etl)
    status, _, err = run("symbols", "game.etl", folder)
    assert (status, err.count("\n")) == (1, 1)
    assert "there is no such trace" in err


def test_the_library_is_missing(run: Run, etl: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("collect", etl)
    before = content(database_of(tmp_path))
    monkeypatch.setitem(sys.modules, "symbolic", None)  # as where it is not installed

    for words in (("symbols", "pool.etl"), ("collect", etl, "--symbols")):
        status, out, err = run(*words, folder)
        assert (status, out) == (1, "")
        assert err.count("\n") == 1
        assert 'pip install "sockscope[symbols]"' in err
    assert content(database_of(tmp_path)) == before


def test_the_library_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "symbolic").mkdir()
    (tmp_path / "symbolic/__init__.py").write_text("raise ImportError('GLIBC_2.99 not found')")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(SymbolsError, match=r"does not work here \(GLIBC_2.99 not found\)"):
        Reader()


@pytest.mark.parametrize(
    "damage",
    [b"", b"ATOM      1  N   MET A   1      38.198  19.582  28.998", b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", "cut", "torn"],
    ids=["empty", "protein", "start", "cut", "torn"],
)
def test_a_damaged_file_is_one_line(damage: bytes | str, run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    path = folder / "pool.pdb"
    good = path.read_bytes()
    if damage == "cut":
        damage = good[:-5000]
    elif damage == "torn":
        damage = good[:9000] + bytes(255 for _ in range(9000, 40000)) + good[40000:]
    assert isinstance(damage, bytes)
    path.write_bytes(damage)
    key = run("collect", etl)[1].split()[0]
    store = database_of(tmp_path)
    before = content(store)

    status, _, err = run("symbols", "pool.etl", folder)

    assert status == 1
    (line,) = [line for line in err.splitlines() if str(path) in line]
    assert line.startswith(f"pool.etl: {path}: this symbol file cannot be read (")
    assert "Traceback" not in err
    assert content(store) == before
    assert sorted(p.name for p in store.part_path(key).parent.iterdir()) in ([], [f"{key}.db"])  # of a server and of a folder
    assert run("collect", etl, "--symbols", folder)[0] == 0
    assert set(names(store)) == {None}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 73_727), st.integers(0, 255)), min_size=1, max_size=40))
def test_any_damage_ends_in_places_or_a_reason(changes: list[tuple[int, int]], pool: Path, reader: Reader, tmp_path: Path) -> None:
    content = bytearray(pool.read_bytes())
    for at, byte in changes:
        content[at] = byte
    (tmp_path / "damaged.pdb").write_bytes(content)
    outcome: int | str
    try:
        outcome = len(reader.places(tmp_path / "damaged.pdb", reader.id_of(tmp_path / "damaged.pdb"), range(0x1000, 0x1170)))
    except PdbError as error:
        outcome = str(error).strip()

    assert outcome == 0x170 or (isinstance(outcome, str) and outcome)


def test_a_file_that_ends_the_library_ends_nothing_else(pool: Path, reader: Reader) -> None:
    process = reader._process
    assert process is not None
    process.kill()
    process.wait(timeout=10)

    assert reader.id_of(pool) == POOL
    with pytest.raises(PdbError, match="replaced by another one"):
        reader.places(pool, PdbId(OTHER_ID, 1), [0x1000])
    assert [place.function for (place,) in reader.places(pool, POOL, [SEND, HIDDEN])] == ["?send@Socket@net@@QEAA_K_K@Z", "hidden"]


def test_the_worker_says_when_a_file_ended_it(pool: Path) -> None:
    with Reader() as reader:
        process = reader._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.write("this is no request\n")  # its process ends before it could answer the next one
        with pytest.raises(PdbError, match="ended the library"):
            reader._ask({"path": str(pool)})
        assert reader.id_of(pool) == POOL


def test_the_worker_ends_with_its_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "collector.symbols.worker"], input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"ready": True}


def test_nothing_is_written_while_another_collector_has_the_trace(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    key = run("collect", etl)[1].split()[0]
    store = database_of(tmp_path)
    with Symbols([folder]) as symbols, store.collecting(key, "busy"), pytest.raises(StoreLocked, match="another collector"):
        name_trace(store, key, symbols, never)


def test_cancelling_leaves_the_trace_as_it_was(run: Run, etl: Path, folder: Path, tmp_path: Path) -> None:
    key = run("collect", etl)[1].split()[0]
    store = database_of(tmp_path)
    before = store.version_of(key)
    with Symbols([folder]) as symbols:
        for patience in range(100):
            looks = iter([False] * patience)
            try:
                name_trace(store, key, symbols, lambda looks=looks: next(looks, True))  # type: ignore[misc]  # bound at once
            except CollectCancelled:
                assert store.version_of(key) == before
                assert not store.part_path(key).exists()
            else:
                break
    assert patience > 5
    assert names(database_of(tmp_path)) == EXPECTED

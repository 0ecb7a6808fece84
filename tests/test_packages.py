"""Traces inside of packages: found in every kind, known by their own bytes, and bad packages end in a clear message."""

import contextlib
import hashlib
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from collector.errors import CollectCancelled, PackageError, TraceError
from collector.packages import archives, traces_in
from collector.store.catalog import Catalog
from collector.store.engine import TraceFolder
from tests.build import Trace, afd, heap
from tests.build.packages import cabinet_of, gzip_of, seven_zip_of, zip_of

NOTES = b"notes of the bug\r\n" * 40


def a_trace(length_bytes: int = 512) -> bytes:
    return Trace().cpu(0, afd.opened(at_us=10), afd.sent(at_us=100, length_bytes=length_bytes)).bytes()


def key_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def found(path: Path, **more: object) -> list[tuple[str, bytes]]:
    """Name and bytes of each trace."""
    traces = []
    with closing(traces_in(path, **more)) as sources:  # type: ignore[arg-type]  # passed on as they are
        for source in sources:
            with source:
                traces.append((source.name, source.read_at(0, source.size)))
    return traces


def refusal(path: Path, **more: object) -> str:
    with pytest.raises(PackageError) as caught:
        found(path, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


KINDS: dict[str, Callable[[Path, dict[str, bytes]], bytes]] = {
    "bug.etl.zip": lambda folder, files: zip_of(files),
    "bug.diagsession": lambda folder, files: zip_of(files, zipfile.ZIP_STORED),
    "bug.cab": lambda folder, files: cabinet_of(files),
    "lzx.cab": lambda folder, files: cabinet_of(files, is_lzx=True),
    "bug.7z": seven_zip_of,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_traces_of_a_package_are_found_by_their_bytes(name: str, tmp_path: Path) -> None:
    if name.endswith(".cab"):
        pytest.importorskip("libarchive")
    first, second = a_trace(), a_trace(700)
    inside = {"notes.txt": NOTES, "deep/er/winsock.etl": first, "empty.etl": b"", "odd name": second}
    path = put(tmp_path, name, KINDS[name](tmp_path, inside))
    assert found(path) == [(f"winsock.etl (in {name})", first), (f"odd name (in {name})", second)]


def test_a_gzip_file_has_one_trace_and_may_have_parts(tmp_path: Path) -> None:
    trace = a_trace()
    assert found(put(tmp_path, "a.etl.gz", gzip_of(trace))) == [("a.etl (in a.etl.gz)", trace)]
    parts = gzip_of(trace[:700]) + gzip_of(trace[700:]) + bytes(900)
    assert found(put(tmp_path, "b.gz", parts)) == [("b (in b.gz)", trace)]


def test_packages_in_packages_are_opened_but_not_without_end(tmp_path: Path) -> None:
    trace = a_trace()
    inner = zip_of({"b.etl.gz": gzip_of(trace)})
    assert found(put(tmp_path, "c.zip", zip_of({"a.zip": inner}))) == [("b.etl (in c.zip)", trace)]
    deeper = put(tmp_path, "d.zip", zip_of({"c.zip": zip_of({"a.zip": inner})}))
    assert "b.etl.gz is a package in a package 3 deep: unpack it" in refusal(deeper)


def test_a_bare_trace_is_given_as_it_is(tmp_path: Path) -> None:
    trace = a_trace()
    assert found(put(tmp_path, "a.etl", trace)) == [("a.etl", trace)]


def test_collecting_a_package_gives_the_keys_of_its_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = a_trace(), a_trace(700)
    path = put(tmp_path, "two.zip", zip_of({"a.etl": first, "b.etl": second, "c.txt": NOTES}))
    assert main(["collect", "--database", str(tmp_path / "db"), "--name", "Tuesday", str(path)]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == [key_of(first), key_of(second)]
    assert err.splitlines()[-1] == f"2 stored: {path}: a.etl, {path}: b.etl"
    names = {entry.key: entry.name for entry in Catalog(TraceFolder(tmp_path / "db")).entries()}
    assert names == {key_of(first): "Tuesday", key_of(second): "Tuesday (b.etl (in two.zip))"}
    assert sorted(path.name for path in (tmp_path / "db").iterdir() if path.is_file() and "catalog" not in path.name) == []


def test_inspect_reports_each_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "two.zip", zip_of({"a.etl": a_trace(), "b.etl": a_trace(700)}))
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "a.etl (in two.zip)" in out
    assert "b.etl (in two.zip)" in out


def test_a_package_without_a_trace_says_what_is_in_it(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, "notes.zip", zip_of({f"{n}.txt": NOTES for n in range(7)})))
    assert message == (
        "notes.zip: there is no trace in this zip archive. It holds 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more. "
        "Name an .etl file, or a package with one inside."
    )
    assert "there is no trace in this zip archive" in refusal(put(tmp_path, "empty.zip", zip_of({})))


def test_names_that_lead_out_of_a_folder_are_only_names(tmp_path: Path) -> None:
    trace = a_trace()
    before = sorted(tmp_path.rglob("*"))
    path = put(tmp_path, "evil.zip", zip_of({"../../up.etl": trace, "/etc/root.etl": trace[:-1], "C:\\win.etl": trace[:-2]}))
    assert [name for name, _ in found(path)] == [f"{name}.etl (in evil.zip)" for name in ("up", "root", "win")]
    assert sorted(tmp_path.rglob("*")) == sorted([*before, path])


def test_a_file_without_a_name_is_one(tmp_path: Path) -> None:
    trace = a_trace()
    path = put(tmp_path, "odd.zip", zip_of({"?.etl": trace}).replace(b"?.etl", b"\0.etl"))
    assert found(path) == [("a file without a name (in odd.zip)", trace)]


def test_names_with_line_breaks_stay_in_their_line(tmp_path: Path) -> None:
    trace = a_trace()
    files = {"a\r\nb.etl": trace, "c\x1b[2J\n.gz": b"\x1f\x8b" + NOTES, "d\u2028.txt": NOTES}
    faults: list[str] = []
    assert found(put(tmp_path, "odd.zip", zip_of(files)), on_fault=faults.append) == [(r"a\r\nb.etl (in odd.zip)", trace)]
    assert len(faults) == 1
    assert faults[0].isprintable()
    del files["a\r\nb.etl"]
    assert r"It holds d\u2028.txt." in refusal(put(tmp_path, "odd.zip", zip_of(files)))


def encrypted(content: bytes) -> bytes:
    """A zip archive whose files say that they are encrypted."""
    packed = bytearray(content)
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = packed.find(signature)
        while start >= 0:
            packed[start + at] |= 1
            start = packed.find(signature, start + 1)
    return bytes(packed)


def test_an_encrypted_package_asks_to_be_unpacked(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, "secret.zip", encrypted(zip_of({"a.etl": a_trace()}))))
    assert "a.etl is encrypted: unpack it with its password and name the .etl file." in message


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_a_bound_are_refused(method: int, tmp_path: Path) -> None:
    message = refusal(put(tmp_path, "odd.zip", zip_of({"a.etl": a_trace()}, method)))
    assert "is packed by a method that is not read here" in message


BOMBS: dict[str, Callable[[Path, bytes], bytes]] = {
    "a.zip": lambda folder, bomb: zip_of({"a.etl": bomb}),
    "a.gz": lambda folder, bomb: gzip_of(bomb),
    "b.zip": lambda folder, bomb: zip_of({"a.gz": gzip_of(bomb)}),
    "a.cab": lambda folder, bomb: cabinet_of({"a.etl": bomb}),
    "b.cab": lambda folder, bomb: cabinet_of({"program.dmp": b"MDMP" + bomb, "a.etl": a_trace()}),
    "a.7z": lambda folder, bomb: seven_zip_of(folder, {"a.etl": bomb}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_swelling_package_is_stopped(name: str, tmp_path: Path) -> None:
    if name.endswith(".cab"):
        pytest.importorskip("libarchive")
    path = put(tmp_path, name, BOMBS[name](tmp_path, a_trace() + bytes(5 << 20)))
    message = refusal(path, most_bytes=1 << 20)
    assert message == (
        f"{name}: more than 1,048,576 bytes come out of this package, more than is taken here. "
        "If it is sound, unpack it where it lies and collect the .etl file inside."
    )


def test_what_may_come_out_of_a_package_can_be_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "a.zip", zip_of({"a.etl": a_trace() + bytes(5 << 20)}))
    for more in ([str(path)], ["--as", "one", str(path), str(path)]):
        assert main(["collect", "--database", str(tmp_path / "db"), "--unpack-limit", "1MiB", *more]) == 1
        assert "a.zip: more than 1,048,576 bytes come out of this package" in capsys.readouterr().err
    assert main(["collect", "--database", str(tmp_path / "db"), "--unpack-limit", "6MiB", str(path)]) in (0, 3)


def test_no_limit_lets_more_out_than_traces_pack_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.packages.unpacking._LEAST_LIMIT", 1 << 20)
    path = put(tmp_path, "a.zip", zip_of({"a.etl": a_trace() + bytes(5 << 20)}))
    most = 250 * path.stat().st_size
    assert 1 << 20 < most < 5 << 20
    for asked in (None, 1 << 40):
        assert f"more than {most:,} bytes come out of this package, far more than traces pack to" in refusal(path, most_bytes=asked)


def test_a_package_is_not_unpacked_onto_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 400 << 20
    monkeypatch.setattr("collector.room.shutil.disk_usage", lambda place: SimpleNamespace(free=free))
    path = put(tmp_path, "a.zip", zip_of({"a.etl": a_trace() + bytes(70 << 20)}))
    assert len(found(path)) == 1
    free = 300 << 20
    assert "a.zip: there is no room to unpack it: 335,544,320 bytes must be left on the disk." in refusal(path)


@pytest.mark.parametrize("name", BOMBS)
def test_more_in_a_package_takes_no_more_memory(name: str, tmp_path: Path) -> None:
    if name.endswith(".cab"):
        pytest.importorskip("libarchive")
    peaks = []
    for size in (3 << 20, 12 << 20):
        path = put(tmp_path, name, BOMBS[name](tmp_path, a_trace() + bytes(size)))
        tracemalloc.start()
        try:
            for source in traces_in(path):
                source.close()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + (1 << 20)


def test_what_is_no_trace_is_not_unpacked_of_a_zip(tmp_path: Path) -> None:
    trace = a_trace()
    path = put(tmp_path, "dump.zip", zip_of({"program.dmp": b"MDMP" + bytes(5 << 20), "a.etl": trace}))
    assert found(path, most_bytes=1 << 20) == [("a.etl (in dump.zip)", trace)]


def test_a_package_with_a_directory_of_millions_is_refused(tmp_path: Path) -> None:
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 65_535, 65_535, 12 << 20, 4, 0)
    path = put(tmp_path, "many.zip", b"PK\x03\x04" + b"PK\x01\x02" * (3 << 20) + end)
    assert "its directory has more than 8,388,608 bytes" in refusal(path)


def test_a_cut_package_gives_what_is_left_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = Trace().cpu(0, *(heap.alloc(at_us=n, address=0x1000 + 97 * n * n) for n in range(9_000))).bytes()
    packed = gzip_of(trace)
    path = put(tmp_path, "cut.etl.gz", packed[: len(packed) * 3 // 4])
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) == 3
    out, err = capsys.readouterr()
    assert "The package in which the trace came is damaged: it ends in the middle; the copy may be incomplete." in err
    assert int(out.partition(": ")[2].partition(" records")[0].replace(",", "")) > 3_000
    assert "its directory cannot be read" in refusal(put(tmp_path, "cut.zip", zip_of({"a.etl": trace})[:-300]))


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = a_trace()
    packed = bytearray(zip_of({"bad.etl": a_trace(900), "good.etl": good}))
    packed[60] ^= 0xFF
    path = put(tmp_path, "some.zip", bytes(packed))
    assert main(["collect", "--database", str(tmp_path / "db"), str(path)]) in (1, 3)
    assert key_of(good) in capsys.readouterr().out


def test_unpacking_can_be_cancelled(tmp_path: Path) -> None:
    path = put(tmp_path, "a.zip", zip_of({"a.etl": a_trace()}))
    with pytest.raises(CollectCancelled):
        found(path, should_cancel=lambda: True)


def test_without_the_library_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "libarchive", None)
    message = refusal(put(tmp_path, "a.cab", cabinet_of({"a.etl": a_trace()})))
    assert "the library that unpacks it is not installed" in message
    assert archives.__all__ == ["members_of_7z", "members_of_cabinet"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_trace_or_a_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    files = {"notes.txt": NOTES, "a.etl": a_trace()}
    kind = data.draw(st.sampled_from(["zip", "gz", "cab", "7z"]))
    content = bytearray(
        {"zip": lambda: zip_of(files), "gz": lambda: gzip_of(files["a.etl"]), "cab": lambda: cabinet_of(files)}.get(
            kind, lambda: seven_zip_of(folder, files)
        )()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(6, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = put(folder, f"damaged.{kind}", bytes(content[: data.draw(st.integers(8, len(content)))]))
    faults: list[str] = []
    with contextlib.suppress(TraceError):
        for name, unpacked in found(path, on_fault=faults.append, most_bytes=1 << 20):
            assert name.endswith(f"(in damaged.{kind})")
            assert len(unpacked) <= 1 << 20
    assert all("\n" not in fault for fault in faults)


@pytest.mark.parametrize("content", [b"\x01\x00snapshot" * 500, zip_of({"inner.etl": b"PK"}), b"<Events/>"])
def test_heap_snapshots_are_left_out_and_that_is_said(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"a/trace.etl": a_trace(), "b/one.heapstate": content, "c/Two.HeapState": content, "notes.txt": NOTES}
    path = put(tmp_path, "memory.diagsession", zip_of(files))
    notes: list[str] = []
    faults: list[str] = []
    assert [name for name, _ in found(path, on_note=notes.append, on_fault=faults.append)] == ["trace.etl (in memory.diagsession)"]
    assert faults == []
    (said,) = notes
    assert said.startswith("memory.diagsession: Heap snapshots of Visual Studio (one.heapstate, Two.HeapState) are left out")

    assert main(["collect", str(path), "--database", str(tmp_path / "database")]) == 0
    assert said in capsys.readouterr().err
    main(["inspect", str(path)])
    assert said in capsys.readouterr().err


def test_snapshots_alone_are_no_trace(tmp_path: Path) -> None:
    said = refusal(put(tmp_path, "memory.diagsession", zip_of({"one.heapstate": b"x" * 100})))
    assert "there is no trace in this" in said
    assert "A heap snapshot of Visual Studio (one.heapstate) is left out: there is no description of such files." in said


def test_a_package_without_snapshots_has_no_note(tmp_path: Path) -> None:
    notes: list[str] = []
    found(put(tmp_path, "bug.zip", zip_of({"trace.etl": a_trace(), "notes.txt": NOTES})), on_note=notes.append)
    assert notes == []

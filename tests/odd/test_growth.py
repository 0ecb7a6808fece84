"""What an import does grows no faster than its file, whatever is in it: counted, so that no clock decides."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

from bench.generate import write_trace
from bench.mixes import MIXES
from collector.inventory import Inventory
from collector.readers.etl import EtlReader
from collector.schema import DecodedBatch
from tests.build import Trace
from tests.build.packages import gzip_of, zip_of
from tests.build.text_forms import TEXT_WRITERS
from tests.odd.hostile import BUFFER, HOSTILE
from tests.odd.hostile_texts import HOSTILE_PACKAGES, HOSTILE_TEXTS
from tests.odd.work import work_of

BUFFERS = 2
EVENTS = 4_000
TOLD = 400
MOST = 4.4
"""Times the work at four times the size; what does not depend on the size is taken off first."""
ENOUGH = 2_000
"""Less than this at one times the size is nothing that could grow."""


def _generated(mix: str, times: int, folder: Path) -> bytes:
    path = folder / f"{mix}{times}.etl"
    write_trace(path, MIXES[mix], EVENTS * times)
    return path.read_bytes()


def _hostile(name: str, times: int, _folder: Path) -> bytes:
    return HOSTILE[name]((BUFFERS * times + 1) * BUFFER)  # one more is the header's


def _told(form: str, times: int, folder: Path) -> bytes:
    if form == "event log":
        pytest.importorskip("evtx", exc_type=ImportError)
    path = folder / f"told{times}.etl"
    write_trace(path, MIXES["winsock"], TOLD * times)
    return TEXT_WRITERS[form](path)


def _packed(pack: Callable[[bytes], bytes], times: int, folder: Path) -> bytes:
    return pack(_generated("winsock", times, folder))


def _costly(make: Callable[[int], bytes], times: int, _folder: Path) -> bytes:
    return make(BUFFER * times)


KINDS: dict[str, Callable[[int, Path], bytes]] = {
    **{f"mix {name}": partial(_generated, name) for name in MIXES},
    **{name: partial(_hostile, name) for name in HOSTILE},
    **{f"told as {name}": partial(_told, name) for name in TEXT_WRITERS},
    "zip": partial(_packed, lambda content: zip_of({"a.etl": content})),
    "gzip": partial(_packed, gzip_of),
    **{name: partial(_costly, make) for name, make in {**HOSTILE_TEXTS, **HOSTILE_PACKAGES}.items()},
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_four_times_the_file_is_four_times_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    work_of(Trace().bytes(), tmp_path / "first", monkeypatch)  # what is computed once a process
    fixed = asdict(work_of(Trace().bytes(), tmp_path / "empty", monkeypatch))
    one, two, four = (asdict(work_of(KINDS[kind](times, tmp_path), tmp_path / f"{times}", monkeypatch)) for times in (1, 2, 4))
    said = {name: (fixed[name], one[name], two[name], four[name]) for name in fixed}
    for name in fixed:
        once = max(one[name] - fixed[name], ENOUGH)
        assert two[name] - fixed[name] <= MOST / 2 * once, (name, said)
        assert four[name] - fixed[name] <= MOST * once, (name, said)
    assert four["lines"] > fixed["lines"], said


def test_the_same_file_is_the_same_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _generated("noise", 1, tmp_path)
    work_of(content, tmp_path / "first", monkeypatch)
    one, other = (work_of(content, tmp_path / name, monkeypatch) for name in ("one", "other"))
    assert one == other
    assert all(count > 0 for count in asdict(one).values())


def test_a_pass_over_all_rows_for_each_window_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that falls out where work grows with the square of the size."""
    add, kept = Inventory.add, list[DecodedBatch]()

    def add_all(inventory: Inventory, batch: DecodedBatch) -> None:
        kept.append(batch)
        for each in kept:
            for row in range(len(each.raw)):
                each.raw.place(row)
        add(inventory, batch)

    monkeypatch.setattr(Inventory, "add", add_all)
    monkeypatch.setattr(EtlReader.__init__, "__kwdefaults__", {"window_buffers": 1, "window_bytes": 1 << 16})
    fixed, *lines = (
        work_of(content, tmp_path / f"{n}", monkeypatch).lines
        for n, content in enumerate([Trace().bytes(), *(_hostile("nested_blocks", times, tmp_path) for times in (1, 4))])
    )
    assert lines[1] - fixed > MOST * (lines[0] - fixed)

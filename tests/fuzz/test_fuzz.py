"""A short run of the fuzzer, and all that it ever found."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from collector.embedded import EmbeddedLayouts
from collector.embedded_fields import snake_case
from tests.fuzz.__main__ import MOST_BYTES
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS, Target, TooSlow
from tests.odd.hostile import overlapping_names

FOUND = Path(__file__).parent / "found"
ROOT = Path(__file__).parents[2]
SECONDS = 4


@pytest.mark.parametrize("name", list(TARGETS))
def test_the_seeds_are_sound_inputs(name: str) -> None:
    for seed in TARGETS[name].seeds():
        assert len(seed) <= MOST_BYTES
        TARGETS[name].check(seed)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*-*")), ids=lambda path: path.name)
def test_what_was_found_stays_mended(path: Path) -> None:
    TARGETS[path.name.split("-")[0]].check(path.read_bytes())


@pytest.mark.parametrize(("name", "count"), [("container", 400), ("decoded", 200), ("collected", 12)])
def test_changed_files_end_in_a_result_or_an_error_of_ours(name: str, count: int) -> None:
    seeds = TARGETS[name].seeds()
    for number in range(count):
        TARGETS[name].check(mutated(seeds[number % len(seeds)], number))


def test_a_change_is_the_same_for_the_same_seed() -> None:
    seed = TARGETS["container"].seeds()[0]
    assert mutated(seed, 7) == mutated(seed, 7)
    assert len({mutated(seed, number) for number in range(50)}) > 40


def test_make_fuzz_runs_every_target() -> None:
    (names,) = re.findall(r"^FUZZ_TARGETS \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert names.split() == list(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_run_of_the_fuzzer_finds_nothing(tmp_path: Path, name: str) -> None:
    pytest.importorskip("atheris", reason="atheris has wheels for Linux only", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(SECONDS), "--found", str(tmp_path), "--seed", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    assert runs
    assert int(runs[1]) > 10
    assert list(tmp_path.glob(f"{name}-*")) == []


def _count_far(content: bytes) -> None:
    assert sum(range(3_000_000))


def test_an_input_that_costs_too_much_is_a_fault() -> None:
    endless = Target("endless", _count_far, lambda: (b"",), is_file=False, fixed_seconds=0.001)
    with pytest.raises(TooSlow, match="endless"):
        endless.check(b"")


def test_metadata_of_overlapping_long_names_is_damage() -> None:
    """A record of 60 KB kept the collector for minutes: long names of capitals, each read for every field."""
    blob = overlapping_names(1 << 18)[2 * (64 << 10) + 72 + 48 :][:58_000]
    layouts = EmbeddedLayouts()
    layouts.learn(32, blob)
    assert layouts.damaged == 1
    assert layouts.schemas == {}


def test_names_become_snake_case_in_one_pass() -> None:
    assert snake_case("TLBacklogCount") == "tl_backlog_count"
    assert snake_case("A" * 200_000) == "a" * 200_000
    letters = random.Random(1)
    for _ in range(500):
        name = "".join(letters.choice("AaB9") for _ in range(8))
        slow = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name))
        assert snake_case(name) == slow.lower()

"""Every recorded file that we have is collected and shown; what became of its records stands in docs/reliability.md."""

import csv
import io
import re
from pathlib import Path

import pytest

from collector.store.engine import TraceFolder
from tests.build.served import served
from tests.odd.recorded import Fate, fates, rows

pytestmark = pytest.mark.shared

LOSSY = {"AMSITrace.etl": ("lost_events 3",)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    return TraceFolder(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def found(folder: TraceFolder, shared_dir: Path) -> list[Fate]:
    return list(fates(shared_dir / "traces" / "real", folder))


def test_every_recorded_file_is_collected_without_damage(found: list[Fate]) -> None:
    assert len(found) > 20
    for fate in found:
        assert fate.problems == LOSSY.get(fate.file.name, ()), fate.file.name
        assert fate.decoded + fate.raw + fate.skipped == fate.records > 0, fate.file.name
        assert fate.skipped == 0, fate.file.name


def test_the_table_says_what_became_of_them(found: list[Fate], project_root: Path) -> None:
    text = (project_root / "docs" / "reliability.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| `[^`]+\.etl` \|.*$", text, re.MULTILINE)
    assert stated == list(rows(iter(found))), "run `python -m tests.odd.recorded FOLDER`"


def test_pages_of_recorded_files_answer_and_count_every_record(found: list[Fate], folder: TraceFolder) -> None:
    with served(folder) as client:
        for fate in found:
            for part in ("", "/trust", "/events", "/processes", "/sockets", "/heap"):
                assert client.get(f"/t/{fate.key}{part}").status_code == 200, (fate.file.name, part)
            kinds = csv.DictReader(io.StringIO(client.get(f"/t/{fate.key}/trust?format=csv").text))
            assert sum(int(kind["count"]) for kind in kinds) == fate.records, fate.file.name

"""Time follows the size of a file, and memory has a limit, whatever its bytes say."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.odd.hostile import HOSTILE
from tests.odd.hostile_texts import HOSTILE_PACKAGES, HOSTILE_TEXTS

MB = 1 << 20
SECONDS_A_MB = 40
"""Of processor time; on a machine of its own each takes less than 6."""
MEMORY_MB = 1_500
"""Of addresses, which the libraries alone fill with some 500."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of this kind")


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB * MB, MEMORY_MB * MB))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_A_MB, SECONDS_A_MB))


KINDS = {**HOSTILE, **HOSTILE_TEXTS, **HOSTILE_PACKAGES}


@pytest.mark.parametrize("name", list(KINDS))
def test_a_megabyte_made_to_be_costly_is_collected_within_limits(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile"
    path.write_bytes(KINDS[name](MB))
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "collect", str(path), "--database", str(tmp_path / "database")],
        env={"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=_limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr[-2000:]
    assert "records" in done.stdout

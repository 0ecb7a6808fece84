"""A disk of the server that is really full: a small file system in memory, where the system lets one be mounted."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collector.errors import StoreFull
from collector.pipeline import import_trace
from collector.source import Source
from collector.store.catalog import Catalog
from collector.store.server import TraceServer
from tests.build import Trace, afd
from tests.server.cluster import Cluster


@pytest.fixture
def small_space(cluster: Cluster) -> Iterator[str]:
    """A tablespace of 2 MB."""
    place = cluster.folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True)
    if mounted.returncode:
        place.rmdir()
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        space, owner = place / "space", cluster.folder.stat()
        space.mkdir(mode=0o700)
        os.chown(space, owner.st_uid, owner.st_gid)
        cluster.sql(f"CREATE TABLESPACE small LOCATION '{space}'")
        yield "small"
        cluster.sql("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def test_a_full_disk_is_said_and_leaves_what_was_there(
    cluster: Cluster, database_name: str, server_url: str, small_space: str, sample_file: Path, tmp_path: Path
) -> None:
    file = Trace().cpu(0, afd.opened(at_us=10), afd.connected(at_us=50), afd.sent(at_us=100)).write(tmp_path / "small.etl")
    with closing(TraceServer(server_url, building=tmp_path / "building")) as server:
        with Source.open(file) as source:
            key = import_trace(source, server).key
        cluster.sql(f"ALTER DATABASE {database_name} SET default_tablespace = {small_space}")

        with Source.open(sample_file) as source, pytest.raises(StoreFull, match="no space is left on the disk of this server"):
            import_trace(source, server)

        states = {entry.key: entry.state for entry in Catalog(server).entries()}
        assert states.pop(key) == "complete"
        assert list(states.values()) == ["interrupted"]
        assert server.trace_keys() == [key]
        cluster.sql(f"ALTER DATABASE {database_name} RESET default_tablespace")
        with Source.open(sample_file) as source:
            assert import_trace(source, server).key in states

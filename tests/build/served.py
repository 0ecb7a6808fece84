"""The dashboard over a folder of traces, without a server."""

from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from collector.store.engine import TraceFolder

__all__ = ["served"]


def served(folder: TraceFolder, *, token: str | None = None, base_path: str = "", query_seconds: float = 8.0) -> TestClient:
    """A client of the dashboard over a folder, as a browser on this machine asks."""
    settings = Settings(database=folder.root, token=token, root_path=base_path, query_seconds=query_seconds)
    return TestClient(create_app(settings), base_url="http://127.0.0.1", follow_redirects=False)

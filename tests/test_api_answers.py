"""What the description of the API allows is asked, and what it does not: no answer fails, and each has a status that is declared."""

from pathlib import Path

import pytest

from app.errors import ANSWERS
from app.main import create_app
from app.settings import Settings
from bench.api import check, tool


def test_every_page_declares_what_it_may_answer_besides_itself() -> None:
    for path, methods in create_app(Settings()).openapi()["paths"].items():
        for method, page in methods.items():
            assert {str(status) for status in ANSWERS} <= set(page["responses"]), (method, path)


def test_no_request_fails_and_all_answers_are_declared(tmp_path: Path) -> None:
    command = tool()
    if command is None:
        pytest.skip("schemathesis is not installed: make api")

    status, said = check(command, tmp_path, seconds=8)

    assert "Traceback" not in said
    assert status == 0, said
    assert "passed" in said

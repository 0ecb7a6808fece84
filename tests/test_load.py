"""Many clients at once, while another trace is collected: a short form of `python -m bench.load`."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import load
from bench.load import SPARE_BYTES, Held, hold


def test_many_clients_are_answered_while_a_trace_is_collected_and_no_note_is_lost(tmp_path: Path) -> None:
    held = hold(tmp_path, clients=20, seconds=3, events=5_000)

    assert (held.failed, held.errors, held.complaints) == (0, {}, "")
    assert set(held.statuses) == {200, 303}
    assert held.requests >= held.clients
    assert held.notes_kept == held.statuses[303] > 0
    assert held.notes_lost == 0
    assert held.collected > 0
    _, middle, end = held.memory
    if middle is not None and end is not None:  # the first seconds still fill what is kept of pages, at most 64 MiB
        assert end <= middle + (64 << 20) + SPARE_BYTES


HELD = Held(
    clients=2, seconds=1.0, requests=9, failed=0, statuses={200: 9}, errors={}, p50_ms=1.0, p95_ms=2.0, slowest_ms=3.0, notes_kept=1,
    notes_lost=0, collected=1, memory=(1 << 20, 100 << 20, (110 << 20) + SPARE_BYTES), complaints="",
)  # fmt: skip


@pytest.mark.parametrize(
    ("held", "status"),
    [
        (HELD, 0),
        (replace(HELD, memory=(None, None, None)), 0),
        (replace(HELD, memory=(1 << 20, 100 << 20, (110 << 20) + SPARE_BYTES + 1)), 1),
        (replace(HELD, failed=1), 1),
        (replace(HELD, notes_lost=1), 1),
        (replace(HELD, complaints="Traceback"), 1),
    ],
)
def test_a_server_that_fails_forgets_or_grows_does_not_pass(
    held: Held, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load, "hold", lambda *_, **__: held)
    assert load.main([]) == status
    assert ("it went on growing" in capsys.readouterr().out) == held.has_grown

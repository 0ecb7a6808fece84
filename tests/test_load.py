"""Many clients at once, while another trace is collected: a short form of `python -m bench.load`."""

from pathlib import Path

from bench.load import hold


def test_many_clients_are_answered_while_a_trace_is_collected_and_no_note_is_lost(tmp_path: Path) -> None:
    held = hold(tmp_path, clients=20, seconds=3, events=5_000)

    assert (held.failed, held.errors, held.complaints) == (0, {}, "")
    assert set(held.statuses) == {200, 303}
    assert held.requests >= held.clients
    assert held.notes_kept == held.statuses[303] > 0
    assert held.notes_lost == 0
    assert held.collected > 0

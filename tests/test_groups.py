"""Rows added up by key: whatever the pieces in which they come, the sums are those of all of them."""

import numpy as np
import pytest

from collector.model import groups
from collector.model.groups import Groups


@pytest.mark.parametrize("pending", [2, 1_000_000])
@pytest.mark.parametrize("least", [0, -3, -(1 << 63)])
def test_pieces_add_up(monkeypatch: pytest.MonkeyPatch, pending: int, least: int) -> None:
    monkeypatch.setattr(groups, "_PENDING", pending)
    random = np.random.default_rng(7)
    keys, values = random.integers(0, 5, (2, 300)), random.integers(-9, 9, 300)
    keys[keys == 0] = least
    found = Groups(keys=2, sums=1, lows=1, highs=1)

    for piece in np.array_split(np.arange(300), 17):
        found.add(keys=(keys[0, piece], keys[1, piece]), sums=(values[piece],), lows=(values[piece],), highs=(values[piece],))

    expected = []
    for a, b in sorted(set(zip(*keys.tolist(), strict=True))):
        mine = values[(keys[0] == a) & (keys[1] == b)]
        expected.append([a, b, mine.size, mine.sum(), mine.min(), mine.max()])
    assert found.columns().T.tolist() == expected


def test_nothing_gives_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = Groups(keys=1, lows=1)

    found.add(keys=(none,), lows=(none,))

    assert found.columns().shape == (3, 0)

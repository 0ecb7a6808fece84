"""Losses on the clock: spans, overlaps, and losses without a place."""

from hypothesis import given
from hypothesis import strategies as st

from collector.losses import Losses

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda s: (s[0], s[0] + s[1])), max_size=12)


def test_nothing_lost() -> None:
    losses = Losses()
    assert not losses.between(0, 100)
    assert not losses.after(0)


def test_both_ends_of_a_span_belong_to_it() -> None:
    losses = Losses([(10, 20)])
    assert [losses.between(t, t) for t in (9, 10, 20, 21)] == [False, True, True, False]
    assert [losses.after(t) for t in (9, 19, 20)] == [True, True, False]


def test_a_loss_without_a_place_may_be_anywhere() -> None:
    losses = Losses(is_everywhere=True)
    assert losses.between(5, 5)
    assert losses.after(1 << 60)


def test_overlapping_spans_become_one() -> None:
    losses = Losses([(30, 40), (10, 20)])
    losses.add(18, 32)
    losses.add(50, 50)
    assert losses.spans == [(10, 40), (50, 50)]


@given(SPANS, st.integers(0, 90), st.integers(0, 20))
def test_answers_are_those_of_looking_at_each_span(spans: list[tuple[int, int]], first: int, length: int) -> None:
    losses = Losses()
    for span in spans:
        losses.add(*span)

    last = first + length
    assert losses.between(first, last) == any(first <= hi and lo <= last for lo, hi in spans)
    assert losses.after(first) == any(hi > first for _, hi in spans)
    assert losses.spans == sorted(losses.spans)
    assert Losses(list(spans)).spans == losses.spans

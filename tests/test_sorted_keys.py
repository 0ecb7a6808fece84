"""The ordered set of keys against a plain sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from collector.model.sorted_keys import SortedKeys

KEYS = st.tuples(st.integers(0, 40), st.integers(0, 5))


@given(st.lists(KEYS, max_size=60), st.data())
def test_it_holds_what_was_added_and_not_removed(keys: list[tuple[int, int]], data: st.DataObject) -> None:
    ordered, plain = SortedKeys(), set[tuple[int, int]]()
    for key in keys:
        if key in plain:
            ordered.remove(key)
            plain.discard(key)
        else:
            ordered.add(key)
            plain.add(key)
    first, beyond = data.draw(st.integers(-2, 45)), data.draw(st.integers(-2, 45))

    assert list(ordered.between(first, beyond)) == sorted(k for k in plain if first <= k[0] < beyond)
    assert bool(ordered) == bool(plain)


def test_blocks_split_and_empty_ones_go() -> None:
    ordered = SortedKeys()
    numbers = [(i * 7919) % 5000 for i in range(5000)]
    for number in numbers:
        ordered.add((number, number + 1))

    assert [key[0] for key in ordered.between(0, 5000)] == list(range(5000))
    assert [key[0] for key in ordered.between(1022, 1030)] == list(range(1022, 1030))
    for number in numbers:
        if number % 1000:
            ordered.remove((number, number + 1))
    assert [key[0] for key in ordered.between(0, 5000)] == [0, 1000, 2000, 3000, 4000]

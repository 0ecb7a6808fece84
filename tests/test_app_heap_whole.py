"""A whole trace on the pages of its heaps: what the collector added up must be what reading block by block gives."""

from dataclasses import replace

import pytest

from app.queries import heap_whole
from app.queries.heap_growth import growth
from app.queries.heap_timeline import HeapScope
from app.queries.heap_whole import blocks_of, covers_all
from app.queries.heap_window import heap_window
from tests.build.imported import Imported


def scopes(found: Imported) -> list[HeapScope]:
    """Every process with blocks, and every heap."""
    heaps = found.rows("SELECT n, process_n FROM heap ORDER BY n")
    return [HeapScope("process", n, n) for n in sorted({process for _, process in heaps})] + [HeapScope("heap", *heap) for heap in heaps]


def end_of(found: Imported) -> int:
    return int(found.rows("SELECT end_ns FROM trace")[0][0])


def test_sums_say_what_the_blocks_say(sample: Imported, monkeypatch: pytest.MonkeyPatch) -> None:
    t1 = end_of(sample) + 1
    with sample.folder.trace(sample.report.key).connect() as db:
        for scope in scopes(sample):
            assert covers_all(db, scope, 0, t1)
            summed, window = blocks_of(db, scope, 0, t1), heap_window(db, scope, 0, t1, stacks=1000)
            grown = growth(db, scope, 0, t1, end_ns=t1 - 1, limit=1000, counts_freed=True)
            with monkeypatch.context() as patch:
                patch.setattr(heap_whole, "covers_all", lambda *_: False)
                patch.setattr("app.queries.heap_growth.covers_all", lambda *_: False)
                read = blocks_of(db, scope, 0, t1)
                assert heap_window(db, scope, 0, t1, stacks=1000) == window
                assert growth(db, scope, 0, t1, end_ns=t1 - 1, limit=1000, counts_freed=True) == grown
            assert not read.is_all
            assert (summed.sizes == read.sizes).all()
            assert (summed.lifetimes == read.lifetimes).all()
            empty = replace(read, sizes=summed.sizes, lifetimes=summed.lifetimes, is_all=True)
            assert summed == empty


def test_only_a_window_with_all_of_the_trace_is_summed(sample: Imported) -> None:
    end = end_of(sample)
    with sample.folder.trace(sample.report.key).connect() as db:
        first = scopes(sample)[0]
        assert [covers_all(db, first, *window) for window in ((0, end + 1), (-5, end + 9), (0, end), (end // 2, end + 1))] == [
            True, True, False, False,
        ]  # fmt: skip

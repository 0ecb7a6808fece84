"""Blocks of columns: the rows that they stand for, and what is refused."""

import pickle

import numpy as np
import pytest

from collector.model.rows import Block, Column, Lines, block_of, count_of, gathered, rows_of, signed, unfolded


def test_columns_become_rows_in_the_order_of_the_table() -> None:
    block = block_of("peer", {"address_n": [7, None], "socket_n": np.array([1, 2]), "sends": 3, "bytes_sent": range(2)}, count=2)

    assert list(block.rows()) == [(1, 7, 0, None, 3, None, None), (2, None, 1, None, 3, None, None)]
    assert len(block) == 2


def test_values_are_plain_ones_that_a_database_takes() -> None:
    columns: dict[str, Column] = {
        "socket_n": np.array([5], np.uint8),
        "address_n": np.array([True]),
        "bytes_sent": np.array([2**64 - 1], np.uint64),
        "sends": "x",
    }
    (row,) = block_of("peer", columns, count=1).rows()

    assert row[:3] == (5, True, signed(2**64 - 1))
    assert row[4] == "x"
    assert {type(value) for value in row} == {int, bool, str, type(None)}


def test_a_number_or_a_mask_stands_for_what_is_not_known() -> None:
    numbers = np.array([-1, 4, 5])
    masked = np.ma.masked_array(np.array([8, 9, -1]), np.array([True, False, False]))
    columns: dict[str, Column] = {"socket_n": numbers, "address_n": masked, "bytes_sent": np.array([2**64 - 1, 0, 0], np.uint64)}

    with_number = list(block_of("peer", columns, count=3, unknown=-1).rows())
    assert [row[:3] for row in with_number] == [(None, None, -1), (4, 9, 0), (5, None, 0)]
    without = list(block_of("peer", columns, count=3).rows())
    assert [row[:2] for row in without] == [(-1, None), (4, 9), (5, -1)]


def test_strange_columns_and_lengths_are_refused() -> None:
    with pytest.raises(KeyError, match="no column"):
        block_of("peer", {"nonsense": [1]}, count=1)
    with pytest.raises(ValueError, match="column socket_n of table peer has 2 values, the block has 1 rows"):
        block_of("peer", {"socket_n": np.array([1, 2])}, count=1)


def test_no_rows_are_no_block() -> None:
    assert rows_of("peer", {"socket_n": np.zeros(0, np.int64)}, count=0) == []


def test_blocks_and_tuples_stand_side_by_side() -> None:
    lines: Lines = [(0, 1, 2), *rows_of("stack_ref", {"ref": np.arange(3), "stack_n": 9}, count=3), (8, 8)]

    assert list(unfolded(lines)) == [(0, 1, 2), (0, 9), (1, 9), (2, 9), (8, 8)]
    assert count_of(lines) == 5
    together = gathered([{"stack_ref": lines}, {"stack_ref": [(5, 5)]}])
    assert count_of(together["stack_ref"]) == 6


def test_a_block_travels_and_its_rows_stay() -> None:
    masked = np.ma.masked_array(np.arange(4), np.arange(4) == 2)
    block = block_of("stack_ref", {"ref": np.arange(4), "stack_n": masked}, count=4)
    buffers: list[pickle.PickleBuffer] = []

    body = pickle.dumps(block, protocol=5, buffer_callback=buffers.append)
    back: Block = pickle.loads(body, buffers=buffers)

    assert list(back.rows()) == list(block.rows()) == [(0, 0), (1, 1), (2, None), (3, 3)]
    assert len(buffers) == 3

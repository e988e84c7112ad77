"""Pieces are runs of nodes: cut where the family changes, then where they halve the work."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tunegate_hybrid.partition import Node
from tunegate_hybrid.segments import segments

FAMILIES = st.sampled_from(["", "", "convolution", "product"])


@given(st.lists(st.tuples(FAMILIES, st.integers(0, 9)), min_size=1, max_size=20), st.integers(1, 6))
def test_pieces_hold_each_node_once_in_order_and_begin_with_one_that_has_much_to_do(
    each: list[tuple[str, int]], most: int
) -> None:
    families = [family for family, _ in each]
    nodes = [Node((f"t{n}",), (f"t{n + 1}",), work) for n, (_, work) in enumerate(each)]
    found = segments(nodes, families, range(len(nodes)), {f"t{len(nodes)}"}, most)
    assert [place for piece in found for place in piece] == list(range(len(nodes)))
    assert len(found) <= most
    assert all(families[piece[0]] for piece in found[1:])


def chain(families: str, work: list[int]) -> list[tuple[int, ...]]:
    """Letters are families, and a dot is a node with little to do."""
    nodes = [Node((f"t{n}",), (f"t{n + 1}",), each) for n, each in enumerate(work)]
    named = [family.strip(".") for family in families]
    return list(segments(nodes, named, range(len(nodes)), {f"t{len(nodes)}"}, most=3))


def test_the_family_is_looked_at_first() -> None:
    assert chain("c.c.p.", [90, 1, 90, 1, 1, 1]) == [(0, 1), (2, 3), (4, 5)]
    assert chain("c.p.p.", [1, 1, 90, 1, 90, 1]) == [(0, 1), (2, 3), (4, 5)]


def test_what_follows_a_node_stays_with_it() -> None:
    assert chain("c...c", [9, 1, 1, 1, 9]) == [(0, 1, 2, 3), (4,)]
    assert chain("....", [9, 9, 9, 9]) == [(0, 1, 2, 3)]


def test_a_wide_place_is_no_place_to_cut() -> None:
    makes = Node(("x",), tuple(f"s{n}" for n in range(5)), 9)
    reads = Node(makes.outputs, ("y",), 9)
    last = Node(("y",), ("z",), 9)
    found = segments([makes, reads, last], ["c", "c", "c"], [0, 1, 2], {"z"})
    assert found == ((0, 1), (2,))
    assert all(a[-1] < b[0] for a, b in pairwise(found))

"""A partition can run part after part, keeps what is connected together, and loses no node."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from tunegate_hybrid.partition import ModelPart, Node, partition

OUTPUTS = {"out"}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], set[int]]:
    """Nodes that read of what was made before them, and those that can be compiled."""
    nodes: list[Node] = []
    names = ["x"]
    for place in range(draw(st.integers(1, 14))):
        read = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        made = [f"t{place}"] if draw(st.booleans()) else [f"t{place}", f"u{place}"]
        nodes.append(Node(tuple(read), tuple(made), draw(st.integers(0, 9))))
        names += made
    last = Node((names[-1],), ("out",), 1)
    compilable = draw(st.sets(st.integers(0, len(nodes))))
    return [*nodes, last], compilable


def can_run(nodes: Sequence[Node], parts: Sequence[ModelPart]) -> bool:
    """Whether each part has its inputs when its turn comes, and what it says comes out of it."""
    there = {"x"}
    for part in parts:
        read = {name for place in part.nodes for name in nodes[place].inputs}
        made = {name for place in part.nodes for name in nodes[place].outputs}
        if not (read - made <= set(part.inputs) <= there and set(part.outputs) <= made):
            return False
        there |= set(part.outputs)
    return there >= OUTPUTS


def places(parts: Collection[ModelPart]) -> list[int]:
    return sorted(place for part in parts for place in part.nodes)


@given(graphs(), st.integers(0, 12))
def test_parts_run_in_their_order_and_hold_each_node_once(
    graph: tuple[list[Node], set[int]], least: int
) -> None:
    nodes, compilable = graph
    parts = partition(nodes, compilable, OUTPUTS, least)
    assert can_run(nodes, parts)
    assert places(parts) == list(range(len(nodes)))
    for part in parts:
        if part.is_compiled:
            assert set(part.nodes) <= compilable
            assert sum(nodes[place].work for place in part.nodes) >= least


@given(graphs())
def test_neighbours_of_one_kind_are_apart_only_where_another_part_lies_between(
    graph: tuple[list[Node], set[int]],
) -> None:
    nodes, compilable = graph
    parts = partition(nodes, compilable, OUTPUTS)
    assert sum(not part.is_compiled for part in parts) <= len(compilable) + 1
    if not compilable:
        assert len(parts) == 1
    if compilable == set(range(len(nodes))):
        assert all(part.is_compiled for part in parts)


def chain(kinds: str, works: Sequence[float] = ()) -> tuple[ModelPart, ...]:
    """A part for each run of letters in `kinds`, where c can be compiled."""
    names = ["x", *(f"t{n}" for n in range(len(kinds) - 1)), "out"]
    work = works or [1.0] * len(kinds)
    nodes = [Node((names[n],), (names[n + 1],), work[n]) for n in range(len(kinds))]
    return partition(nodes, {n for n, kind in enumerate(kinds) if kind == "c"}, OUTPUTS, 2.0)


def test_a_chain_is_cut_where_the_kind_changes() -> None:
    assert [part.nodes for part in chain("ccoocc")] == [(0, 1), (2, 3), (4, 5)]
    assert [part.inputs for part in chain("ccoocc")] == [("x",), ("t1",), ("t3",)]


def test_what_has_too_little_work_runs_with_its_neighbours() -> None:
    assert [part.nodes for part in chain("ccoco")] == [(0, 1), (2, 3, 4)]


def test_branches_that_are_not_connected_are_parts_of_their_own() -> None:
    nodes = [
        Node(("x",), ("a",), 5),
        Node(("x",), ("b",), 5),
        Node(("a", "b"), ("out",), 5),
    ]
    parts = partition(nodes, {0, 1}, OUTPUTS, 2.0)
    assert [(part.is_compiled, part.nodes) for part in parts] == [
        (True, (0,)),
        (True, (1,)),
        (False, (2,)),
    ]
    assert parts[2].inputs == ("a", "b")

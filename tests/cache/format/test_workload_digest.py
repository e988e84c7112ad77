"""The digest of graphs as the compiler wrote them: `save_json` of
te.create_prim_func, TVM 0.27.0.post1."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_cache.format.workload_digest import WorkloadIdentity, workload_digest

GRAPHS = Path(__file__).parents[2] / "recorded" / "workloads"
NAMES = sorted(path.stem for path in GRAPHS.glob("*.json"))
INLINE = {
    "relax.ShapeType": {"ndim"},
    "relax.TensorType": {"ndim"},
    "tirx.BufferType": {"data_alignment", "offset_factor"},
    "tirx.IterVar": {"iter_type"},
    "tirx.For": {"kind"},
}
MUTANT = "Mutant"
LISTS = {"ffi.Array", "ffi.Map"}
Graph = dict[str, Any]


def is_reference(kind: str, field: str) -> bool:
    return field not in INLINE.get(kind.removesuffix(MUTANT), set())


def graph(name: str) -> Graph:
    found: Graph = json.loads((GRAPHS / f"{name}.json").read_text())
    return found


def identity(name: str) -> WorkloadIdentity:
    return workload_digest(graph(name), is_reference)


def test_names_of_blocks_and_variables_do_not_count() -> None:
    assert identity("matmul-64") == identity("matmul-64-renamed")


@pytest.mark.parametrize("other", ["matmul-512x128x2048", "matmul-64-float16", "conv-16"])
def test_an_extent_a_dtype_and_an_operator_make_another_workload(other: str) -> None:
    assert identity("matmul-64").workload != identity(other).workload


@pytest.mark.parametrize(
    ("one", "other"), [("matmul-64", "matmul-512x128x2048"), ("conv-16", "conv-64")]
)
def test_shapes_of_one_kind_share_a_skeleton_and_line_up(one: str, other: str) -> None:
    assert identity(one).skeleton == identity(other).skeleton
    assert len(identity(one).extents) == len(identity(other).extents)


@pytest.mark.parametrize(
    ("one", "other"),
    [("matmul-64", "matmul-64-float16"), ("conv-16", "conv-16-strided"), ("matmul-64", "conv-16")],
)
def test_another_dtype_stride_or_operator_is_another_skeleton(one: str, other: str) -> None:
    assert identity(one).skeleton != identity(other).skeleton


@pytest.mark.parametrize(
    ("one", "other"), [("scale-quarter", "scale-half"), ("zero-point-3", "zero-point-9")]
)
def test_a_weight_folded_into_the_code_is_not_another_workload(one: str, other: str) -> None:
    assert graph(one) != graph(other)
    assert identity(one) == identity(other)


def test_extents_come_in_the_order_of_the_walk() -> None:
    assert set(identity("matmul-64").extents) == {64}
    assert identity("matmul-512x128x2048").extents[:3] == (512, 128, 512)


@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_the_numbering_of_nodes_does_not_count(name: str, rng: random.Random) -> None:
    assert workload_digest(renumbered(graph(name), rng), is_reference) == identity(name)


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_where_the_code_came_from_does_not_count(name: str, line: int) -> None:
    changed = graph(name)
    changed["nodes"].append({"type": "ir.Span", "data": {"line": line}})
    for node in objects(changed):
        if "span" in node["data"]:
            node["data"]["span"] = len(changed["nodes"]) - 1
    assert workload_digest(changed, is_reference) == identity(name)


@given(st.sampled_from(NAMES), st.data())
def test_every_changed_extent_is_another_workload_of_the_same_skeleton(
    name: str, data: st.DataObject
) -> None:
    changed = graph(name)
    index = data.draw(st.sampled_from(extent_nodes(changed)))
    changed["nodes"][index]["data"] += data.draw(st.integers(1, 1000))
    mutant = workload_digest(changed, is_reference)
    assert mutant.workload != identity(name).workload
    assert mutant.skeleton == identity(name).skeleton
    assert mutant.extents != identity(name).extents


@given(st.sampled_from(NAMES), st.data())
def test_every_changed_kind_or_inline_attribute_is_another_workload(
    name: str, data: st.DataObject
) -> None:
    changed = graph(name)
    counted = [node for node in objects(changed) if node["type"] not in UNREACHED]
    node = data.draw(st.sampled_from(counted))
    fields = sorted(INLINE.get(node["type"], set()) & set(node["data"]))
    field = data.draw(st.sampled_from([None, *fields]))
    if field is None:
        node["type"] += MUTANT
    else:
        node["data"][field] += 1
    mutant = workload_digest(changed, is_reference)
    assert mutant.workload != identity(name).workload
    assert mutant.skeleton != identity(name).skeleton


def test_a_body_of_any_depth_is_walked() -> None:
    depth = 20_000
    nodes: list[dict[str, Any]] = [
        {"type": "tirx.Nest", "data": {"inner": index + 1}} for index in range(depth)
    ]
    nodes.append({"type": "None"})
    assert workload_digest({"root_index": 0, "nodes": nodes}, is_reference).extents == ()


def test_a_graph_that_never_ends_is_an_error_not_a_hang() -> None:
    turning = {"root_index": 0, "nodes": [{"type": "tirx.Nest", "data": {"inner": 0}}]}
    with pytest.raises(ValueError, match="cycle"):
        workload_digest(turning, is_reference)


def test_digests_are_the_same_in_every_process_and_release() -> None:
    golden = json.loads((GRAPHS.parent / "workload_digests.json").read_text())
    assert {name: identity(name).workload for name in NAMES} == golden


UNREACHED = {"ir.SourceMap", "ir.Span"}
"""Only ever behind a field that tells where the code came from."""


def objects(of: Graph) -> list[dict[str, Any]]:
    return [node for node in of["nodes"] if isinstance(node.get("data"), dict)]


def extent_nodes(of: Graph) -> list[int]:
    """The integer nodes above 1 that immediates of full width refer to."""
    wide = {"int32", "int64"}
    types = of["nodes"]
    return [
        node["data"]["value"]
        for node in objects(of)
        if node["type"] == "ir.IntImm"
        and types[node["data"]["ty"]]["data"]["dtype"] in wide
        and types[node["data"]["value"]]["data"] > 1
    ]


def renumbered(of: Graph, rng: random.Random) -> Graph:
    order = list(range(len(of["nodes"])))
    rng.shuffle(order)
    nodes: list[dict[str, Any]] = [{}] * len(order)
    for old, new in enumerate(order):
        nodes[new] = _moved(copy.deepcopy(of["nodes"][old]), order)
    return {"root_index": order[of["root_index"]], "nodes": nodes}


def _moved(node: dict[str, Any], order: list[int]) -> dict[str, Any]:
    content = node.get("data")
    if node["type"] in LISTS:
        node["data"] = [order[index] for index in content or ()]
    elif isinstance(content, dict):
        for field, value in content.items():
            if type(value) is int and is_reference(node["type"], field):
                content[field] = order[value]
    return node

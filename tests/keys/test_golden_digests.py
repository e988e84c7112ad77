"""Keys that were ever written must be found again by every later version: `--update-golden` is for
a new digest with a new prefix, and for a compiler whose search space has changed."""

import copy
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tvm

from tests.support.golden import Golden
from tests.support.models.workload_corpus import primitive, workloads
from tests.support.programs import run_program
from tests.support.simulated.cuda_intrinsics import load_cuda_intrinsics
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload, is_reference
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate_cache.format.workload_digest import workload_digest

TARGETS = (
    TargetConfig(name="cpu", kind="llvm", cpu="skylake-avx512", threads=2),
    TargetConfig(name="gpu", kind="cuda", arch="sm_90"),
)


def test_workload_and_skeleton_digests_of_the_corpus_stay(golden: Golden) -> None:
    found: dict[str, object] = {}
    for name, make in workloads().items():
        workload = canonical_workload(primitive(make))
        shape = workload.shape
        found[name] = [workload.digest, shape.skeleton, list(shape.extents)]
    golden.check("workload_digests.json", _lines(found))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.kind)
def test_target_keys_and_template_hashes_stay(golden: Golden, target: TargetConfig) -> None:
    load_cuda_intrinsics() if target.kind == "cuda" else load_intrinsics(target.kind)
    resolved = tvm_target(target)
    found: dict[str, object] = {"target": resolved.key}
    for name, make in workloads().items():
        workload = canonical_workload(primitive(make))
        found[name] = sorted(DesignSpace(workload, resolved.target).templates)
    golden.check(f"template_hashes_{target.kind}.json", _lines(found))


def _lines(found: dict[str, object]) -> str:
    """One line for each name, so that a change shows what it touches."""
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


# Any change of an extent, a data type, an operator or an attribute is another workload; a change
# of names is none.

Graph = dict[str, Any]
NARROW = {"int8", "uint8", "int16", "uint16"}
"""Values of these types are zero points of quantization, which come from a model's weights."""
OTHER_OPERATOR = {
    "prim.Add": "prim.Sub",
    "prim.Sub": "prim.Mul",
    "prim.Mul": "prim.Add",
    "prim.Div": "prim.Mul",
    "prim.Max": "prim.Min",
    "prim.LT": "prim.LE",
    "prim.LE": "prim.LT",
    "prim.And": "prim.Or",
}
OTHER_DTYPE = {
    "float32": "float16",
    "float16": "float32",
    "int64": "int32",
    "int32": "int64",
    "int8": "uint8",
    "bool": "int8",
}
OF_EACH_KIND = 8
WANTED = 1000


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    found = {}
    for name, make in workloads().items():
        found[name] = json.loads(tvm.ir.save_json(canonical_workload(primitive(make)).module))
    return found


def extents(graph: Graph) -> Iterator[int]:
    """Integer immediates, but those of narrow types."""
    nodes = graph["nodes"]
    for node in nodes:
        if node["type"] == "ir.IntImm":
            kind = nodes[node["data"]["ty"]]["data"]
            if kind.get("dtype") not in NARROW:
                yield node["data"]["value"]


def change_extent(graph: Graph, rng: random.Random) -> str:
    index = rng.choice(sorted(set(extents(graph))))
    node = graph["nodes"][index]
    node["data"] += rng.choice((1, 2, 7))
    return f"int node {index} to {node['data']}"


def change_type(graph: Graph, rng: random.Random) -> str:
    types = [n for n in graph["nodes"] if n["type"] == "ir.PrimType"]
    node = rng.choice([n for n in types if n["data"]["dtype"] in OTHER_DTYPE])
    node["data"]["dtype"] = OTHER_DTYPE[node["data"]["dtype"]]
    return f"dtype {node['data']['dtype']}"


def change_operator(graph: Graph, rng: random.Random) -> str | None:
    operators = [n for n in graph["nodes"] if n["type"] in OTHER_OPERATOR]
    if not operators:
        return None
    node = rng.choice(operators)
    node["type"] = OTHER_OPERATOR[node["type"]]
    return f"operator {node['type']}"


def change_attribute(graph: Graph, rng: random.Random) -> str:
    """Changes how a loop runs, or what kind of axis a block has, and names the change."""
    node = rng.choice([n for n in graph["nodes"] if n["type"] in {"tirx.For", "tirx.IterVar"}])
    field = "kind" if node["type"] == "tirx.For" else "iter_type"
    node["data"][field] += 1
    return f"{field} {node['data'][field]}"


CHANGES: list[Callable[[Graph, random.Random], str | None]] = [
    change_extent,
    change_type,
    change_operator,
    change_attribute,
]


def test_a_thousand_mutants_are_all_other_workloads(graphs: dict[str, Graph]) -> None:
    rng = random.Random(1)
    tried = 0
    for name, graph in graphs.items():
        original = workload_digest(graph, is_reference)
        for change in CHANGES:
            for _ in range(OF_EACH_KIND):
                mutant = copy.deepcopy(graph)
                what = change(mutant, rng)
                if what is None:
                    break
                tried += 1
                changed = workload_digest(mutant, is_reference)
                assert changed.workload != original.workload, f"{name}: {what}"
    assert tried >= WANTED


def test_no_two_workloads_of_the_corpus_are_one(graphs: dict[str, Graph]) -> None:
    digests = {workload_digest(graph, is_reference).workload for graph in graphs.values()}
    assert len(digests) == len(graphs)


def test_a_skeleton_forgets_extents_and_nothing_else() -> None:
    made = {name: canonical_workload(primitive(make)) for name, make in workloads().items()}
    one, other = made["matmul_float32"], made["matmul_square_float32"]
    assert one.shape.skeleton == other.shape.skeleton
    assert one.shape.extents != other.shape.extents
    assert one.shape.skeleton != made["matmul_float16"].shape.skeleton


def test_names_and_where_code_stood_do_not_count(graphs: dict[str, Graph]) -> None:
    for graph in graphs.values():
        renamed = copy.deepcopy(graph)
        nodes = renamed["nodes"]
        for number, node in enumerate(list(nodes)):
            field = {"ir.Var": "name", "s_tir.SBlock": "name_hint"}.get(node["type"])
            if field is not None:
                nodes.append({"type": "ffi.String", "data": f"other{number}"})
                node["data"][field] = len(nodes) - 1
        assert workload_digest(renamed, is_reference) == workload_digest(graph, is_reference)


def test_printing_and_parsing_keeps_the_workload() -> None:
    for name in ("matmul_float32", "softmax_float16", "conv2d_3x3_float32", "matmul_int8"):
        function = primitive(workloads()[name])
        parsed = tvm.script.from_source(tvm.IRModule({"main": function}).script())
        assert canonical_workload(parsed["main"]).digest == canonical_workload(function).digest


def test_another_process_comes_to_the_same_digest() -> None:
    name = "conv2d_grouped_float32"
    program = (
        "from tests.support.models.workload_corpus import primitive, workloads\n"
        "from tunegate.compiler.search.workload import canonical_workload\n"
        f"print(canonical_workload(primitive(workloads()[{name!r}])).digest)"
    )
    done = run_program([sys.executable, "-c", program], check=True)
    expected = canonical_workload(primitive(workloads()[name])).digest
    assert done.stdout.split()[-1] == expected

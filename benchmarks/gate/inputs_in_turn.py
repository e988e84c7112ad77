"""Does a launch tell what look-ups and trees cost with inputs that change?

    python -m benchmarks.gate.inputs_in_turn [--launches 8]

Each row is a head whose table or trees grow, under ONNX Runtime with one thread. `true` is the
ratio of head to base where each inference has a new input, `told` that of the gate's launches, and
`one input` what launches would tell that repeat an input. Prints a table.
"""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tests.measure.onnx_artifact import artifact

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading, row
from tunegate.measure.bench_driver import FreshProcesses

_LOOK_UPS, _WIDTH = 512, 16
_FEATURES, _TREES = 32, 100
_NEW, _ROUNDS, _PAIRS = 4096, 20, 24


def main() -> None:
    options = command_line(__doc__, launches=8)
    heading("head | true | one input | told", words=(0,))
    for rows in (2**10, 2**12, 2**14, 2**16):
        show(
            f"table of 2^8 to 2^{rows.bit_length() - 1} rows",
            table_model(2**8),
            table_model(rows),
            (1, _LOOK_UPS),
            options.launches,
        )
    for depth in (8, 10, 12):
        show(
            f"{_TREES} trees of depth 6 to {depth}",
            forest(6),
            forest(depth),
            (1, _FEATURES),
            options.launches,
        )


def show(
    what: str, base: onnx.ModelProto, head: onnx.ModelProto, shape: tuple[int, ...], launches: int
) -> None:
    sides = [base.SerializeToString(), head.SerializeToString()]
    true, repeated = (ratio(sides, shape, count) for count in (_NEW, 1))
    with scratch_folder() as folder:
        artifacts = [
            artifact(folder / name, model, shape) for name, model in (("a", base), ("b", head))
        ]
        bench = FreshProcesses(folder / "bench", 1).pair(*artifacts)
        effects = [bench.launch(_PAIRS).effect for _ in range(launches)]
    told = math.exp(statistics.median(effects))
    row(what, *(f"{100 * (each - 1):+.0f}%" for each in (true, repeated, told)))


def ratio(sides: list[bytes], shape: tuple[int, ...], count: int) -> float:
    """Returns how much longer the second model takes, of medians of runs in turn over `count`
    inputs."""
    one_thread = onnxruntime.SessionOptions()
    one_thread.intra_op_num_threads = 1
    sessions = [onnxruntime.InferenceSession(side, one_thread) for side in sides]
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.standard_normal(shape, np.float32)} for _ in range(count)]
    ratios = []
    for _ in range(_ROUNDS):
        base, head = (seconds(session, feeds) for session in sessions)
        ratios.append(head / base)
    return statistics.median(ratios)


def seconds(session: onnxruntime.InferenceSession, feeds: list[dict[str, np.ndarray]]) -> float:
    """Returns the time of `_NEW` inferences."""
    began = time.perf_counter()
    for at in range(_NEW):
        session.run(None, feeds[at % len(feeds)])
    return time.perf_counter() - began


def table_model(rows: int) -> onnx.ModelProto:
    """Returns the sum of rows that the numbers of the input choose by their digits."""
    table = np.random.default_rng(0).standard_normal((rows, _WIDTH)).astype(np.float32)
    nodes = [
        helper.make_node("Mul", ["x", "digits"], ["scaled"]),
        helper.make_node("Mod", ["scaled", "rows"], ["rest"], fmod=1),
        helper.make_node("Abs", ["rest"], ["place"]),
        helper.make_node("Cast", ["place"], ["at"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "at"], ["found"]),
        helper.make_node("ReduceSum", ["found"], ["y"]),
    ]
    constants = {"table": table, "rows": np.array(rows, "f4"), "digits": np.array(1e5, "f4")}
    return model_of(nodes, constants, [1, _LOOK_UPS], [1, 1, 1])


def forest(depth: int) -> onnx.ModelProto:
    """Returns a regressor of complete trees with random splits."""
    rng = np.random.default_rng(0)
    inner, leaves = 2**depth - 1, 2**depth
    nodes = inner + leaves
    at = np.tile(np.arange(nodes), _TREES)
    is_leaf = at >= inner
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=np.repeat(np.arange(_TREES), nodes).tolist(),
        nodes_nodeids=at.tolist(),
        nodes_featureids=np.where(is_leaf, 0, rng.integers(0, _FEATURES, at.size)).tolist(),
        nodes_modes=["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        nodes_values=np.where(is_leaf, 0, rng.normal(0, 0.5, at.size)).tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, 2 * at + 1).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, 2 * at + 2).tolist(),
        target_treeids=np.repeat(np.arange(_TREES), leaves).tolist(),
        target_nodeids=np.tile(np.arange(inner, nodes), _TREES).tolist(),
        target_ids=[0] * (_TREES * leaves),
        target_weights=rng.standard_normal(_TREES * leaves).tolist(),
    )
    return model_of([node], {}, [1, _FEATURES], [1, 1])


def model_of(
    nodes: list[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    takes: list[int],
    gives: list[int],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, takes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, gives)],
        [numpy_helper.from_array(each, name) for name, each in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


if __name__ == "__main__":
    main()

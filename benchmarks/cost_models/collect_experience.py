"""Times of candidates of operators as models have them, for the searches of others to begin with.

    python -m benchmarks.cost_models.collect_experience FILE [--operators 96]
        [--trials 40] [--part 0/2]

Operators are drawn from what image networks and transformers use (the prior over real models of
One-Shot Tuner, CC 2022), none of them an operator of a model that the benchmarks tune. Of each the
search tries `--trials` candidates: the first at random, then half of them by what it has learned
(its exploration-biased sampling). FILE gets one line for each operator. Several parts can run
beside each other, each on a core of its own; their lines together are
119 of the tasks in `plugin/tunegate/cost_model/data/llvm.jsonl.zst`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import RESOLVED, imported, measured
from benchmarks.kit.models import named_model, one_thread
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.tune.loop_nest import DecisionValues
from tunegate.tune.prior import TaskExperience

KEPT_OUT = ("squeezenet", "resnet50", "transformer-128", "transformer-96", "zfnet512")
BATCH = 8
MAX_FLOPS = 1.5e8
MIN_FLOPS = 5e5
WIDTHS = (7, 9, 13, 14, 15, 17, 26, 27, 28, 35, 52, 55, 56, 75, 112)
CHANNELS = (
    3,
    16,
    20,
    24,
    32,
    36,
    40,
    48,
    64,
    72,
    80,
    96,
    100,
    112,
    128,
    144,
    160,
    192,
    256,
    320,
    384,
    500,
    512,
    1000,
)
ROWS = (1, 8, 32, 50, 64, 77, 100, 196, 197, 256, 384)
FEATURES = (64, 96, 128, 192, 312, 384, 512, 640, 768, 1000, 1024, 1536, 2048)
HEADS = (3, 4, 6, 8, 12)
KINDS = {"conv": 0.4, "pointwise": 0.2, "product": 0.25, "batch": 0.08, "depthwise": 0.07}


def main() -> None:
    options = command_line(__doc__, ("file", Path), operators=96, trials=40, part="0/1")
    one_thread()
    load_intrinsics("llvm")
    part, parts = map(int, options.part.split("/"))
    with scratch_folder() as scratch, options.file.open("ab") as file:
        out = kept_out(scratch)
        for number, model in enumerate(operators(options.operators, random.Random(2026))):
            if number % parts == part:
                function = function_of(model, scratch / str(number))
                if function.workload.digest not in out and function.flops > MIN_FLOPS:
                    found = measure_trials(function, options.trials, scratch / f"at-{number}")
                    name = model.graph.name
                    line = msgspec.json.encode(msgspec.structs.replace(found, name=name))
                    file.write(line + b"\n")
                    file.flush()
                    best = min(row[1] for row in found.rows)
                    print(f"{name}: {len(found.rows)}, best {best:.3f} ms", flush=True)


def kept_out(scratch: Path) -> set[str]:
    """The workloads of the models that the benchmarks tune."""
    found = set()
    for name in KEPT_OUT:
        for function in imported(named_model(name), scratch / name):
            found.add(function.workload.digest)
    return found


def operators(count: int, rng: random.Random) -> Iterator[onnx.ModelProto]:
    """Different ones, of less than `MAX_FLOPS`."""
    seen: set[str] = set()
    while len(seen) < count:
        (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
        name, flops, made = drawn(kind, rng)
        if name not in seen and flops < MAX_FLOPS:
            seen.add(name)
            yield made


def drawn(kind: str, rng: random.Random) -> tuple[str, float, onnx.ModelProto]:
    if kind in {"product", "batch"}:
        return product(rng, batches=kind == "batch")
    window = 1 if kind == "pointwise" else rng.choice((3, 3, 3, 3, 5, 7))
    width, inputs, outputs = (rng.choice(c) for c in (WIDTHS, CHANNELS, CHANNELS[1:]))
    groups = 1
    if kind == "depthwise":
        inputs = groups = outputs
    stride = rng.choice((1, 1, 1, 2))
    name = f"{kind} {window}x{window}x{inputs}x{outputs} /{stride} at {width}"
    weights = np.zeros((outputs, inputs // groups, window, window), np.float32)
    node = helper.make_node(
        "Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[window // 2] * 4, group=groups
    )
    relu = helper.make_node("Relu", ["c"], ["y"])
    flops = 2.0 * weights.size * (width / stride) ** 2
    bias = np.zeros(outputs, np.float32)
    return (
        name,
        flops,
        model(name, [node, relu], [1, inputs, width, width], {"w": weights, "b": bias}),
    )


def product(rng: random.Random, *, batches: bool) -> tuple[str, float, onnx.ModelProto]:
    rows = rng.choice(ROWS)
    if batches:
        heads, depth = rng.choice(HEADS), rng.choice((32, 64))
        name = f"batch {heads}x{rows}x{depth}"
        flops = 2.0 * heads * rows * rows * depth
        turn = helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2])
        node = helper.make_node("MatMul", ["x", "t"], ["y"])
        return name, flops, model(name, [turn, node], [1, heads, rows, depth], {})
    inputs, outputs = rng.choice(FEATURES), rng.choice(FEATURES)
    name = f"product {rows}x{inputs}x{outputs}"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    weights = {"w": np.zeros((inputs, outputs), np.float32), "b": np.zeros(outputs, np.float32)}
    return name, 2.0 * rows * inputs * outputs, model(name, nodes, [1, rows, inputs], weights)


def model(
    name: str, nodes: list[onnx.NodeProto], shape: list[int], weights: dict[str, Any]
) -> onnx.ModelProto:
    random_weights = {
        key: np.random.default_rng(0).standard_normal(value.shape).astype(np.float32)
        for key, value in weights.items()
    }
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))],
        [numpy_helper.from_array(value, key) for key, value in random_weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def function_of(proto: onnx.ModelProto, scratch: Path) -> ModelFunction:
    return max(imported(proto, scratch), key=lambda function: function.flops)


def measure_trials(function: ModelFunction, trials: int, place: Path) -> TaskExperience:
    place.mkdir()
    search = TaskSearch(function.workload, RESOLVED.target, seed=1)
    templates = list(search.space.templates)
    best = math.inf
    rows: list[tuple[int, float, DecisionValues]] = []
    while len(rows) < trials:
        candidates = search.propose(BATCH, ()).candidates
        if not candidates:
            break
        results = [measured(candidate, best, place) for candidate in candidates]
        for candidate, result in zip(candidates, results, strict=True):
            if candidate.origin == "default" or result.status != "ok":
                continue
            values = tuple(values for _, values in candidate.schedule.decisions)
            ms = float(f"{result.median_ms:.4g}")
            rows.append((templates.index(candidate.schedule.template), ms, values))
            best = min(best, ms)
        search.learn(results)
    sketches = tuple(search.space.sketches().values())
    return TaskExperience("", sketches, tuple(rows))


if __name__ == "__main__":
    main()

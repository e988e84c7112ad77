"""Files of the example runtime: an ONNX file of few operators, and calls of NumPy."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "MatMul": np.matmul,
    "Relu": partial(np.maximum, np.zeros((), np.float32)),
}


def save(model: Path, directory: Path) -> str:
    proto = onnx.load(model)
    unknown = sorted({node.op_type for node in proto.graph.node} - OPERATORS.keys())
    if unknown:
        raise ValueError(f"it has no {unknown[0]}")
    onnx.save(proto, directory / "model.onnx")
    return "model.onnx"


class Step(NamedTuple):
    """One operator, and where its result goes."""

    name: str
    compute: Callable[..., Any]
    inputs: Sequence[Any]
    out: Any


class NumpyModel:
    """An artifact, loaded."""

    def __init__(self, file: Path) -> None:
        graph = onnx.load(file).graph
        self._nodes, self._outputs = list(graph.node), [output.name for output in graph.output]
        self._weights = {w.name: onnx.numpy_helper.to_array(w) for w in graph.initializer}

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        values, _ = self._computed(feed)
        return [values[name] for name in self._outputs]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        _, steps = self._computed(feed)

        def inference() -> None:
            for _, compute, inputs, out in steps:
                compute(*inputs, out=out)

        return inference

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        _, steps = self._computed(feed)
        taken: dict[str, list[float]] = defaultdict(list)
        for _ in range(inferences):
            for step in steps:
                started = time.perf_counter()
                step.compute(*step.inputs, out=step.out)
                taken[step.name].append((time.perf_counter() - started) * 1e3)
        return {name: statistics.median(times) for name, times in taken.items()}

    def _computed(self, feed: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Step]]:
        """All arrays by name, and the steps that computed them."""
        values = {**self._weights, **feed}
        steps = []
        for node in self._nodes:
            compute, inputs = OPERATORS[node.op_type], [values[name] for name in node.input]
            out = values[node.output[0]] = compute(*inputs)
            steps.append(Step(node.name, compute, inputs, out))
        return values, steps

"""ONNX Runtime as the reference, and as the graph optimizer before a compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from tunegate.models.deciding_values import nodes_of
from tunegate.models.reference.onnx_runtime import FallingBack, exact_options, onnxruntime

_ON_CPU = ["CPUExecutionProvider"]


_Level = onnxruntime.GraphOptimizationLevel
NO_OPTIMIZATION = _Level.ORT_DISABLE_ALL
LEVELS = (
    NO_OPTIMIZATION,
    _Level.ORT_ENABLE_BASIC,
    _Level.ORT_ENABLE_EXTENDED,
    _Level.ORT_ENABLE_ALL,
)
"""The levels at which ONNX Runtime optimizes a model; the last is what it does by itself."""


class Stopping:
    """Stops a run from another thread, after the operator that it is at."""

    def __init__(self) -> None:
        self.options = onnxruntime.RunOptions()
        self.is_set = False

    def set(self) -> None:
        self.is_set = True
        self.options.terminate = True


class ReferenceSession:
    """A model whose outputs others are held against: a file, or its bytes."""

    def __init__(self, model: Path | bytes, *, level: Any = _Level.ORT_ENABLE_ALL) -> None:
        def options() -> onnxruntime.SessionOptions:
            found = exact_options()
            found.graph_optimization_level = level
            return found

        self._session = FallingBack(model, options)
        outputs = self._session.opened.session.get_outputs()
        self.outputs = tuple(each.name for each in outputs)

    def run(self, feed: Mapping[str, Any], stopping: Stopping | None = None) -> Sequence[Any]:
        """Returns every output, in the order of the model's. Raises what ONNX Runtime raises, also
        where it was told to stop."""
        options = None if stopping is None else stopping.options
        return self._session.run(feed, options)


_LAYER_NORM = ["LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion"]
"""Its fusions that take `keepdims` for granted (microsoft/onnxruntime#30513)."""


def write_optimized(model: Path, to: Path, *, level: Any = _Level.ORT_ENABLE_BASIC) -> None:
    """Writes the model with constants folded and batch norms merged, and with layer norms as they
    are written where they may be none. Raises what ONNX Runtime raises, which has no common base
    class."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(to)
    options.log_severity_level = 4
    left_out = _LAYER_NORM if _drops_axes(model) else []
    onnxruntime.InferenceSession(
        str(model), options, providers=_ON_CPU, disabled_optimizers=left_out
    )


def _drops_axes(model: Path) -> bool:
    """Returns whether a mean is taken without keeping its axis."""
    try:
        nodes = nodes_of(onnx.load(model, load_external_data=False))
    except Exception:  # noqa: BLE001 -- protobuf's errors differ by version
        return False
    means = (node for node in nodes if node.op_type == "ReduceMean")
    return any(each.name == "keepdims" and each.i == 0 for node in means for each in node.attribute)

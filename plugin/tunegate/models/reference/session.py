"""ONNX Runtime as the reference, and as the graph optimizer for a compiler."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx

from tunegate.models.reference import onnx_runtime
from tunegate.models.reference.own_constants import with_unsigned_operands
from tunegate.system.onnx_scan import nodes_of

_ON_CPU = ["CPUExecutionProvider"]


_Level = onnx_runtime.onnxruntime.GraphOptimizationLevel
NO_OPTIMIZATION = _Level.ORT_DISABLE_ALL
LEVELS = (
    NO_OPTIMIZATION,
    _Level.ORT_ENABLE_BASIC,
    _Level.ORT_ENABLE_EXTENDED,
    _Level.ORT_ENABLE_ALL,
)
"""ONNX Runtime's optimization levels; the last is its default."""
_MAKING_UNSIGNED = LEVELS[2:]
"""The levels at which ONNX Runtime makes its int8 sums exact itself."""


class Stopping:
    """Stops a run from another thread, after the current operator."""

    def __init__(self) -> None:
        self.options = onnx_runtime.onnxruntime.RunOptions()
        self.is_set = False

    def set(self) -> None:
        self.is_set = True
        self.options.terminate = True


class ReferenceSession:
    """The model that others are compared with: a file, or its bytes. int8 sums are exact unless
    `is_exact` is false: some models cannot be made so. `is_written`: nothing is optimized."""

    def __init__(self, model: Path | bytes, *, level: Any = _Level.ORT_ENABLE_ALL) -> None:
        unsigned = b"" if level in _MAKING_UNSIGNED else with_unsigned_operands(model)

        def options() -> onnx_runtime.onnxruntime.SessionOptions:
            own_options = onnx_runtime.exact_options()
            own_options.graph_optimization_level = level
            if unsigned and isinstance(model, Path):
                own_options.add_session_config_entry(
                    onnx_runtime.DATA_FOLDER, str(model.absolute().parent)
                )
            return own_options

        self.is_exact = unsigned is not None
        self.is_written = level == NO_OPTIMIZATION
        self._session = onnx_runtime.FallingBack(unsigned or model, options)
        self.outputs = tuple(each.name for each in self._session.opened.session.get_outputs())

    def run(self, feed: Mapping[str, Any], stopping: Stopping | None = None) -> Sequence[Any]:
        """Returns every output in the model's order. Raises what ONNX Runtime raises, also when it
        is stopped."""
        return self._session.run(feed, None if stopping is None else stopping.options)


def session_as_written(
    model: Path, feed: Mapping[str, Any], opened: ReferenceSession | None = None
) -> tuple[ReferenceSession, Sequence[Any]]:
    """Returns the right session with its outputs: the model as written, which may be `opened`, or
    fully optimized if it does not run otherwise, or not exactly. Raises ONNX Runtime's error if
    neither runs."""
    with suppress(Exception):  # its errors have no common base class
        session = opened or ReferenceSession(model, level=NO_OPTIMIZATION)
        if session.is_exact:
            return session, session.run(feed)
    session = ReferenceSession(model)
    return session, session.run(feed)


_DIVISION = "DivMulFusion"
"""It loses an axis if the dividend has more axes, and leaves a value without a producer if it folds
a product with 1 (microsoft/onnxruntime#32413)."""
_LAYER_NORM = ("LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion")
"""ONNX Runtime's fusions that assume `keepdims` (microsoft/onnxruntime#30513)."""
_PADDING = "Pad_Fusion"
"""It takes a padding with zeros for the padding of a MaxPool, which never is the maximum."""


def write_optimized(model: Path, to: Path, *, level: Any = _Level.ORT_ENABLE_BASIC) -> None:
    """Writes the model with constants folded and batch norms merged, without fusions that would
    change the model. Raises what ONNX Runtime raises, which has no common base class."""
    options = onnx_runtime.onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(to)
    options.log_severity_level = 4
    onnx_runtime.onnxruntime.InferenceSession(
        str(model), options, providers=_ON_CPU, disabled_optimizers=_wrong_fusions(model)
    )


def _wrong_fusions(model: Path) -> list[str]:
    """Returns the fusions whose patterns occur in the model with another meaning: a mean that drops
    its axis belongs to no layer norm."""
    fusions = [_DIVISION]
    try:
        nodes = [*nodes_of(onnx.load(model, load_external_data=False))]
    except Exception:  # noqa: BLE001 -- protobuf's errors differ by version
        return fusions
    paddings = {name for node in nodes if node.op_type == "Pad" for name in node.output}
    if any(node.op_type == "MaxPool" and node.input[0] in paddings for node in nodes):
        fusions.append(_PADDING)
    means = (node for node in nodes if node.op_type == "ReduceMean")
    if any(each.name == "keepdims" and each.i == 0 for node in means for each in node.attribute):
        fusions += _LAYER_NORM
    return fusions

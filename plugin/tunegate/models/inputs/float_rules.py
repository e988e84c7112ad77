"""Rules for float inputs by what the graph does with them first: a normalization, a quantization,
or the thresholds of trees."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tunegate.artifacts import inputs
from tunegate.models.inputs.constants import attributes_of
from tunegate.models.inputs.dataflow import Dataflow, Use
from tunegate.models.inputs.facts import HIDES_NOTHING
from tunegate.models.seeded_inputs import TensorLike

_MAX_STEPS = 6
"""The number of steps within which a normalization must begin."""
_MAX_COLUMNS = 4096
_PIXELS = inputs.Uniform(0.0, 255.0)
_PIXEL_SCALES = (100.0, 300.0)
_UNSIGNED = {
    onnx.TensorProto.UINT8,
    onnx.TensorProto.UINT16,
    onnx.TensorProto.UINT32,
    onnx.TensorProto.UINT64,
}
_KEEPS = {"Identity", "Cast", "Transpose", "Unsqueeze", "Squeeze", "Reshape"}
_MIN_MASK = -100.0


def float_rule(tensor: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of a float input, None if only standard normal numbers are known to fit."""
    name = tensor.name
    for _ in range(_MAX_STEPS):
        uses = flow.uses(name)
        for use in uses:
            tell = _FLOAT_RULES.get(use.step.op)
            rule = tell(use, tensor, flow) if tell is not None else None
            if rule is not None:
                return rule
        if len(uses) != 1 or uses[0].step.op not in _KEEPS:
            return None
        name = uses[0].step.outputs[0]
    return None


def _quantization(use: Use, _: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule that covers the range of the quantization."""
    step, position = use
    if position != 0:
        return None
    scale = flow.constant(step.inputs[1])
    zero = flow.constant(step.inputs[2]) if len(step.inputs) > 2 else np.zeros(1, np.uint8)  # noqa: PLR2004
    if scale is None or zero is None or np.asarray(zero).dtype.kind not in "iu":
        return None
    limits, middle = np.iinfo(np.asarray(zero).dtype), np.ravel(zero).astype(np.float64)
    steps = np.ravel(scale).astype(np.float64)
    low = float(np.max((limits.min - middle) * steps))
    high = float(np.min((limits.max - middle) * steps))
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return None
    return inputs.InputRule(inputs.Uniform(low, high), "the range of its quantization")


def _scaling(use: Use, tensor: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of pixels if the divisor is theirs, else numbers that a following shift
    standardizes."""
    divisor = _divisor(use, flow)
    if divisor is None:
        return None
    if np.all((divisor >= _PIXEL_SCALES[0]) & (divisor <= _PIXEL_SCALES[1])):
        return inputs.InputRule(_PIXELS, "pixels: the model scales them")
    shift = _shift(_only_use(use, flow), flow)
    if shift is None:
        return None
    with np.errstate(over="ignore"):
        return _normal(divisor * shift, divisor, tensor)


def _normalization(use: Use, tensor: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of a normalized input: the subtracted number is its mean, the next divisor
    its deviation."""
    mean = _shift(use, flow)
    if mean is None:
        return None
    deviation = _divisor(_only_use(use, flow), flow)
    if deviation is not None:
        return _normal(mean, deviation, tensor)
    is_pixels = np.all((mean >= 90) & (mean <= 140))  # noqa: PLR2004 -- the means of photographs
    return (
        inputs.InputRule(_PIXELS, "pixels: the model takes their mean off") if is_pixels else None
    )


def _only_use(use: Use, flow: Dataflow) -> Use | None:
    """Returns the only use of a step's output."""
    uses = flow.uses(use.step.outputs[0])
    return uses[0] if len(uses) == 1 else None


def _divisor(use: Use | None, flow: Dataflow) -> Any:
    """Returns the positive divisor of a value, None without one."""
    if use is None or use.step.op not in {"Div", "Mul"}:
        return None
    other = flow.constant(use.step.inputs[1 - use.position])
    if not _is_usable(other) or not np.all(other > 0):
        return None
    if use.step.op == "Mul":
        return 1.0 / np.asarray(other, np.float64)
    return np.asarray(other) if use.position == 0 else None


def _shift(use: Use | None, flow: Dataflow) -> Any:
    """Returns the constant that is subtracted from a value, None without one."""
    if use is None or use.step.op not in {"Add", "Sub"}:
        return None
    other = flow.constant(use.step.inputs[1 - use.position])
    if not _is_usable(other):
        return None
    if use.step.op == "Add":
        return -np.asarray(other)
    return np.asarray(other) if use.position == 0 else None


def _batch_norm(use: Use, tensor: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    step, position = use
    if position != 0:
        return None
    mean, variance = (flow.constant(name) for name in step.inputs[3:5])
    if not _is_usable(mean) or not _is_usable(variance) or len(tensor.shape) < 2:  # noqa: PLR2004
        return None
    shape = (1, -1, *[1] * (len(tensor.shape) - 2))
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    return _normal(np.reshape(mean, shape), np.reshape(deviation, shape), tensor)


def _scaler(use: Use, tensor: TensorLike, _: Dataflow) -> inputs.InputRule | None:
    attributes = attributes_of(use.step.node)
    offset = np.asarray(attributes.get("offset", [0.0]), np.float64)
    scale = np.asarray(attributes.get("scale", [1.0]), np.float64)
    if not np.all(scale > 0):
        return None
    return _normal(offset, 1.0 / scale, tensor)


_NO_BRANCH = "LEAF"
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
"""A node's modes by their numbers in `TreeEnsemble`; a further one tests membership in a set."""
_OF_SETS = len(_MODES)
_BETWEEN_FLAGS = 0.5
"""The only threshold of a column of zeros and ones."""
_EQUALS = {"BRANCH_EQ", "BRANCH_NEQ"}


def _trees(use: Use, tensor: TensorLike, _: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of features around the thresholds that each is compared with."""
    attributes = attributes_of(use.step.node)
    limits = attributes.get("nodes_values", attributes.get("nodes_values_as_tensor"))
    modes = [mode.decode(errors="replace") for mode in attributes.get("nodes_modes", ())]
    return _threshold_rule(attributes.get("nodes_featureids"), limits, modes, tensor)


def _tree_ensemble(use: Use, tensor: TensorLike, _: Dataflow) -> inputs.InputRule | None:
    """Returns the same for the operator of ai.onnx.ml 5, which stores leaves elsewhere, and whose
    nodes may each have a set of values."""
    attributes = attributes_of(use.step.node)
    numbers, limits = (
        numpy_helper.to_array(attributes[name]) if name in attributes else np.zeros(0)
        for name in ("nodes_modes", "nodes_splits")
    )
    modes = [_MODES[int(mode)] if mode < _OF_SETS else "BRANCH_EQ" for mode in numbers]
    features = np.asarray(attributes.get("nodes_featureids", ()))
    if "membership_values" in attributes:
        of_sets = features[: numbers.size][numbers[: features.size] == _OF_SETS]
        members, features_of = _members(
            numpy_helper.to_array(attributes["membership_values"]), of_sets
        )
        single = numbers[: features.size] != _OF_SETS
        features = np.concatenate([features[single], features_of])
        limits = np.concatenate([limits[: single.size][single], members])
        modes = [mode for mode, is_one in zip(modes, single, strict=False) if is_one]
        modes += ["BRANCH_EQ"] * members.size
    return _threshold_rule(features, limits, modes, tensor)


def _members(values: Any, features: Any) -> tuple[Any, Any]:
    """Returns the values of the NaN-terminated sets, and the feature of each."""
    ends = np.isnan(values)
    number = np.cumsum(ends) - ends
    is_known = ~ends & (number < features.size)
    return values[is_known], features[number[is_known]]


def _threshold_rule(
    features: Any, limits: Any, modes: Sequence[str], tensor: TensorLike
) -> inputs.InputRule | None:
    if features is None or limits is None or len(tensor.shape) < 1:
        return None
    if isinstance(limits, onnx.TensorProto):
        limits = numpy_helper.to_array(limits)
    count, size = tensor.shape[-1], min(len(features), len(limits), len(modes))
    feature, limit = np.asarray(features)[:size], np.asarray(limits, np.float64)[:size]
    mode = np.asarray(modes[:size], object)
    is_used = (mode != _NO_BRANCH) & (feature >= 0) & (feature < count) & np.isfinite(limit)
    if not 0 < count <= _MAX_COLUMNS or not is_used.any():
        return None
    is_equal = np.isin(mode.astype(str), [*_EQUALS])
    parts = tuple(
        _around(limit[own], are_categories=bool(is_equal[own].all()))
        for own in (is_used & (feature == number) for number in range(count))
    )
    return inputs.InputRule(
        inputs.Columns(len(tensor.shape) - 1, parts), "the thresholds of the trees"
    )


def _around(limits: Any, *, are_categories: bool) -> inputs.Draw:
    if not limits.size:
        return inputs.Normal()
    if np.all(limits == _BETWEEN_FLAGS):
        return inputs.Integers(0, 1)
    low, high = float(limits.min()), float(limits.max())
    if are_categories and np.all(limits == np.round(limits)):
        return inputs.Integers(int(low), int(high) + 1)
    margin = (high - low) / 10 or abs(low) / 10 or 1.0
    return inputs.Uniform(low - margin, high + margin)


def _inverted_mask(use: Use, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of an inverted mask: subtracted from 1, and scaled to a large negative
    number."""
    one, after = flow.constant(use.step.inputs[0]), _only_use(use, flow)
    if use.position != 1 or one is None or not np.all(one == 1) or after is None:
        return None
    is_product = after.step.op == "Mul"
    factor = flow.constant(after.step.inputs[1 - after.position]) if is_product else None
    if factor is None or not np.all(factor <= _MIN_MASK):
        return None
    return inputs.InputRule(inputs.Constant(1), HIDES_NOTHING)


def _subtraction(use: Use, tensor: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    return _inverted_mask(use, flow) or _normalization(use, tensor, flow)


def _positive(_: Use, __: TensorLike, ___: Dataflow) -> inputs.InputRule:
    """Returns the rule of positive numbers, such as a level of noise in a diffusion model."""
    return inputs.InputRule(
        inputs.Uniform(0.1, 2.0), "positive: the model takes its logarithm or root"
    )


def _exponent(use: Use, _: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of exponents of whole numbers, whose powers are no fractions."""
    if use.position != 1 or not flow.is_whole(use.step.outputs[0]):
        return None
    return inputs.InputRule(inputs.Uniform(0.0, 3.0), "exponents of integers")


def _unsigned(use: Use, _: TensorLike, flow: Dataflow) -> inputs.InputRule | None:
    """Returns the rule of numbers that become unsigned ones. Negative ones differ between
    processors then."""
    if attributes_of(use.step.node).get("to") not in _UNSIGNED:
        return None
    return inputs.InputRule(inputs.Uniform(0.0, 255.0), "the model makes them unsigned integers")


def _normal(mean: Any, deviation: Any, tensor: TensorLike) -> inputs.InputRule | None:
    """Returns a normal rule with this mean and deviation: numbers, or one per index of an axis."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(deviation))
    means, deviations = (np.ravel(np.broadcast_to(each, shape)) for each in (mean, deviation))
    if not (_is_usable(means) and _is_usable(deviations)):
        return None
    parts = tuple(
        inputs.Normal(round(float(m), 6), round(float(d), 6))
        for m, d in zip(means, deviations, strict=True)
    )
    why = "the normalization that the model begins with"
    if len(parts) > _MAX_COLUMNS:
        return None
    if all(part == parts[0] for part in parts):
        return inputs.InputRule(parts[0], why)
    axes = [axis - len(shape) for axis, size in enumerate(shape) if size > 1]
    axis = axes[0] + len(tensor.shape)
    if len(axes) != 1 or not 0 <= axis < len(tensor.shape) or tensor.shape[axis] != len(parts):
        return None
    return inputs.InputRule(inputs.Columns(axis, parts), why)


def _is_usable(array: Any) -> bool:
    if array is None or np.size(array) == 0 or np.asarray(array).dtype.kind not in "iuf":
        return False
    return bool(np.all(np.isfinite(array)))


_FLOAT_RULES: dict[str, Callable[[Use, TensorLike, Dataflow], inputs.InputRule | None]] = {
    "QuantizeLinear": _quantization,
    "Div": _scaling,
    "Mul": _scaling,
    "Sub": _subtraction,
    "Add": _normalization,
    **dict.fromkeys(("Log", "Sqrt"), _positive),
    "Pow": _exponent,
    "Cast": _unsigned,
    "BatchNormalization": _batch_norm,
    "ai.onnx.ml.Scaler": _scaler,
    "ai.onnx.ml.TreeEnsemble": _tree_ensemble,
    "ai.onnx.ml.TreeEnsembleClassifier": _trees,
    "ai.onnx.ml.TreeEnsembleRegressor": _trees,
}

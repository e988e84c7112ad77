"""The activations of LSTM, GRU and RNN, written as operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import onnx

from tunegate.edges.metaschedule.importers.graph_view import attribute
from tunegate.edges.metaschedule.importers.replacement import Replacement

Activation = Callable[[Replacement, str], str]
"""Adds the nodes and returns the name of the result."""

_PLAIN = {name.lower(): name for name in ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")}
_DEFAULTS = {
    "leakyrelu": ("LeakyRelu", {"alpha": 0.01}),
    "thresholdedrelu": ("ThresholdedRelu", {"alpha": 1.0}),
    "elu": ("Elu", {"alpha": 1.0}),
    "hardsigmoid": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
}
"""Operators with arguments, and what these are where the node does not say."""


def activations_of(
    node: onnx.NodeProto, defaults: Sequence[str], directions: int
) -> list[Activation] | None:
    """All of them, those of the first direction first, each behind the clip of the node; None where
    one is not known here."""
    names = cast("Sequence[str]", attribute(node, "activations", list(defaults) * directions))
    if len(names) != len(defaults) * directions:
        return None
    alphas = iter(cast("Sequence[float]", attribute(node, "activation_alpha", [])))
    betas = iter(cast("Sequence[float]", attribute(node, "activation_beta", [])))
    found = [_named(name.lower(), alphas, betas) for name in names]
    return None if None in found else cast("list[Activation]", found)


def clipped(node: onnx.NodeProto, activation: Activation) -> Activation:
    """The activation of what is cut off at the node's `clip`."""
    limit = cast("float | None", attribute(node, "clip"))
    if not limit:
        return activation

    def cut_off(new: Replacement, value: str) -> str:
        low, high = new.constant(-limit, "float32"), new.constant(limit, "float32")
        return activation(new, new.add("Clip", [value, low, high]))

    return cut_off


def _named(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation | None:
    if name in _PLAIN:
        return lambda new, value: new.add(_PLAIN[name], [value])
    if name not in _DEFAULTS:
        return None
    operator, defaults = _DEFAULTS[name]
    given = {"alpha": alphas, "beta": betas}
    arguments: dict[str, Any] = {
        key: next(given[key], default) for key, default in defaults.items()
    }
    return lambda new, value: new.add(operator, [value], **arguments)

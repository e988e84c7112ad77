"""The noise of the reference: no build can be asked to be closer to it than that.

Its optimization levels add up in another order and quantize at other places. Where all of them
share an order, weights that are moved by as much as a sum is rounded show what rounding alone does:
a model that takes the difference of nearly equal sums turns it into numbers that can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from tunegate.edges.reference.model_precision import QUANTIZED, constant_weights
from tunegate.edges.reference.session import LOWER_LEVELS, ReferenceSession
from tunegate.edges.reference.tolerance import errors

_MOVES: dict[int, float] = {
    TensorProto.FLOAT16: 2**-10,
    TensorProto.FLOAT: 2**-20,
    TensorProto.DOUBLE: 2**-49,
}
"""Relative distances: to compute with weights that far away is as exact as to add up some hundred
products in that type."""
_MAX_BYTES = 2**30
"""The largest model whose weights are moved."""
_SEED = 1


def own_noise(
    model: Path, feeds: Sequence[Mapping[str, Any]], expected: Sequence[Sequence[Any]]
) -> tuple[float, ...]:
    """Returns the largest error of each output, relative to its largest magnitude, over all feeds.
    A variant of the reference that does not run says nothing."""
    noise = [0.0] * max(map(len, expected), default=0)
    for session in _variants(model):
        for feed, wanted in zip(feeds, expected, strict=True):
            for at, relative in enumerate(_relative_errors(session, feed, wanted)):
                noise[at] = max(noise[at], relative)
    return tuple(noise)


def _variants(model: Path) -> Iterator[ReferenceSession]:
    """The model at other levels, and with moved weights. One at a time is open."""
    for level in LOWER_LEVELS:
        with suppress(Exception):  # the errors of ONNX Runtime have no common base class
            yield ReferenceSession(model, level=level)
    moved = _with_moved_weights(model)
    if moved:
        with suppress(Exception):
            yield ReferenceSession(moved)


def _relative_errors(
    session: ReferenceSession, feed: Mapping[str, Any], expected: Sequence[Any]
) -> Iterator[float]:
    try:
        got = session.run(feed)
    except Exception:  # noqa: BLE001 -- likewise
        return
    for ours, theirs in zip(got, expected, strict=True):
        yield _relative_error(ours, theirs)


def _relative_error(ours: Any, theirs: Any) -> float:
    """0 where one of them is no tensor of floats or of quantized numbers, or has another shape."""
    if not (_is_inexact(ours) and _is_inexact(theirs)) or ours.shape != theirs.shape:
        return 0.0
    return errors(ours.astype("float64"), theirs.astype("float64"))[1]


def _is_inexact(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (
        value.dtype.kind == "f" or str(value.dtype) in QUANTIZED
    )


def _with_moved_weights(model: Path) -> bytes:
    """The model, each of its weights a little up or down; nothing where it is too large."""
    proto = onnx.load(model, load_external_data=False)
    if proto.ByteSize() > _MAX_BYTES or any(map(uses_external_data, proto.graph.initializer)):
        return b""
    random = np.random.default_rng(_SEED)
    for tensor in constant_weights(proto.graph):
        move = _MOVES.get(tensor.data_type)
        if move is not None:
            value = numpy_helper.to_array(tensor)
            signs = random.integers(0, 2, value.shape) * 2 - 1
            moved = (value * (1 + signs * move)).astype(value.dtype)
            tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return bytes(proto.SerializeToString())

"""Compares a head with its base: other outputs, and other numbers though the weights are the same.

Neither fails a gate, which is about time. Whoever consumes the outputs wants to know both.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tunegate.models.model_inputs import model_input
from tunegate.models.reference.comparison import RANDOM, is_random
from tunegate.models.reference.session import ReferenceSession
from tunegate.models.reference.tolerance import differs, is_numeric
from tunegate.models.seeded_inputs import RuledTensor, seeded_inputs
from tunegate.system.onnx_scan import is_external, nodes_of, tensors_in

_MAX_SHOWN = 300


def lines_beside_base(
    base: Path, head: Path, inputs: Sequence[RuledTensor], seed: int
) -> tuple[str, ...]:
    """Returns a line for each kind of difference, none if the base cannot be read."""
    with suppress(Exception):  # protobuf's errors differ by version, and a base may be anything
        was, now = (onnx.load(file, load_external_data=False) for file in (base, head))
        if was == now:
            return ()
        lines = [*_other_outputs(was, now)]
        if not lines and _weights(was) == _weights(now) is not None:
            lines += _other_numbers(base, head, inputs, seed)
        return tuple(line[:_MAX_SHOWN] for line in lines)
    return ()


def _other_outputs(was: onnx.ModelProto, now: onnx.ModelProto) -> Iterator[str]:
    before, after = (
        {value.name: model_input(value) for value in each.graph.output} for each in (was, now)
    )
    if list(before) != list(after):
        yield f"its outputs are {', '.join(after)}; the base's are {', '.join(before)}"
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if one.dtype != other.dtype:
            yield f"its output {name} is {other.dtype}; the base's is {one.dtype}"
        elif one.is_ranked and other.is_ranked and len(one.dimensions) != len(other.dimensions):
            ranks = len(other.dimensions), len(one.dimensions)
            yield f"its output {name} is of rank {ranks[0]}; the base's is of rank {ranks[1]}"


def _weights(model: onnx.ModelProto) -> Counter[str] | None:
    """Returns the weights by content, None if they are in data files, which are not read here."""
    counts: Counter[str] = Counter()
    for tensor in tensors_in(model):
        if is_external(tensor):
            return None
        array = numpy_helper.to_array(tensor)
        counts[f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"] += 1
    for node in nodes_of(model):  # the numbers of trees, and of what scikit-learn has
        if node.domain == "ai.onnx.ml":
            numbers = b"".join(sorted(each.SerializeToString() for each in node.attribute))
            counts[hashlib.sha256(numbers).hexdigest()] += 1
    return counts


def _other_numbers(
    base: Path, head: Path, inputs: Sequence[RuledTensor], seed: int
) -> Iterator[str]:
    """Runs both as in production, with all optimizations, if they take the same inputs."""
    feed = seeded_inputs(inputs, seed)
    before = ReferenceSession(base).run(feed)
    session = ReferenceSession(head)
    for name, was, now in zip(session.outputs, before, session.run(feed), strict=True):
        if not all(isinstance(each, np.ndarray) and is_numeric(each) for each in (was, now)):
            continue
        other = differs(now, was)
        if other and (is_random(head, feed) or is_random(base, feed)):
            yield RANDOM
            return
        if other:
            yield f"with the same weights its output {name} is {other}, beside the base's"
            return

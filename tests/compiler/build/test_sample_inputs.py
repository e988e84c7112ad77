from __future__ import annotations

import numpy as np
import tvm

from tunegate.compiler.build.single_kernel import sample, sample_inputs
from tunegate.tune.protocol import TensorArgument

IMAGE, WEIGHTS = TensorArgument((1, 3, 8, 8), "float32"), TensorArgument((4, 3, 3, 3), "float32")


def test_the_inputs_of_a_task_are_made_once_and_those_of_the_next_take_their_place() -> None:
    first = sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1)
    assert sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1) is first
    other = sample_inputs((WEIGHTS,), tvm.cpu(), 1)
    again = sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1)
    assert again is not first
    assert [t.shape for t in other] == [WEIGHTS.shape]
    assert all(
        np.array_equal(a.numpy(), b.numpy()) for a, b in zip(first, again, strict=True)
    )  # another worker, too, has these values


def test_the_seed_and_the_place_decide_the_values() -> None:
    first, second = (t.numpy() for t in sample_inputs((IMAGE, IMAGE), tvm.cpu(), 1))
    (other, _) = (t.numpy() for t in sample_inputs((IMAGE, IMAGE), tvm.cpu(), 2))
    assert not (first == second).any()
    assert not (first == other).any()


def test_values_are_spread_between_minus_one_and_one() -> None:
    for dtype in ("float32", "float16", "float64"):
        values = sample(TensorArgument((1000,), dtype), tvm.cpu(), 1).numpy()
        assert values.dtype == dtype
        assert -1 <= values.min() < -0.9
        assert 0.9 < values.max() <= 1
        assert abs(float(values.mean())) < 0.1


def test_integers_are_zero_because_they_may_be_indices() -> None:
    values = sample(TensorArgument((5,), "int64"), tvm.cpu(), 1).numpy()
    assert values.tolist() == [0] * 5

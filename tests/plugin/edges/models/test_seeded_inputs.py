from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tunegate.edges.models.seeded_inputs import seeded_inputs


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str


TENSORS = (Tensor("x", (50, 40), "float32"), Tensor("ids", (200,), "int64"))


def test_one_seed_gives_one_set_of_arrays() -> None:
    first, again, other = (seeded_inputs(TENSORS, seed) for seed in (1, 1, 2))
    for name in ("x", "ids"):
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


def test_floats_are_standard_normal() -> None:
    values = seeded_inputs(TENSORS, 1)["x"]
    assert (values.shape, values.dtype) == ((50, 40), np.dtype("float32"))
    assert abs(values.mean()) < 0.1
    assert abs(values.std() - 1) < 0.1


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_are_valid_indices_of_any_table(dtype: str) -> None:
    (values,) = seeded_inputs([Tensor("i", (300,), dtype)], 1).values()
    assert values.dtype == np.dtype(dtype)
    assert set(values.tolist()) == {0, 1}

from __future__ import annotations

from itertools import islice

from research.experience.layers.drawing import drawn_layers, is_measurable
from research.tests.experience.layers.test_layer import (
    CONVOLUTION,
    DEPTHWISE,
    GEMM,
    GROUPED,
    PRODUCT,
)

FOUND = [("b", CONVOLUTION), *[("a", CONVOLUTION)] * 50, ("a", GROUPED), ("a", PRODUCT)]


def test_the_same_seed_draws_the_same_layers() -> None:
    first, again, other = ([*islice(drawn_layers(FOUND, seed), 20)] for seed in (1, 1, 2))
    assert first == again != other


def test_each_is_drawn_once_until_nothing_is_new() -> None:
    digests = [each.layer.digest for each in drawn_layers(FOUND, 1)]
    assert len(digests) == len(set(digests)) > 20


def test_a_kind_that_models_seldom_have_is_drawn_as_often_as_others() -> None:
    kinds = [each.layer.kind for each in islice(drawn_layers(FOUND, 1), 30)]
    assert min(kinds.count(kind) for kind in ("convolution", "grouped", "product")) >= 5


def test_a_layer_names_all_models_that_have_it() -> None:
    drawn = {each.layer.digest: each.models for each in drawn_layers(FOUND, 1)}
    assert drawn[CONVOLUTION.digest] == ("a", "b")
    assert drawn[GROUPED.digest] == ("a",)


def test_what_is_too_small_or_too_large_to_measure_is_not_drawn() -> None:
    assert is_measurable(CONVOLUTION)
    assert not is_measurable(GEMM)
    assert all(is_measurable(each.layer) for each in drawn_layers([("a", DEPTHWISE)], 1))
    assert list(drawn_layers([], 1)) == []

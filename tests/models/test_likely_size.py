from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelInput
from tunegate.models.sizes import is_for_sound, is_generated, likely_size


@pytest.mark.parametrize(
    ("symbol", "size"),
    [
        ("batch", 1),
        ("batchSize", 1),
        ("N", 1),
        ("seq_len", 128),
        ("sequence", 128),
        ("max_tokens", 128),
        ("past_sequence_length", 16),
        ("image_height", 224),
        ("num_nodes", 16),
        ("num_edges", 32),
        ("time", 128),
    ],
)
def test_a_name_says_what_a_dimension_is(symbol: str, size: int) -> None:
    assert likely_size(ModelInput("x", (8, None), ("", symbol)), 1).sizes[0] == size


@pytest.mark.parametrize(
    ("dimensions", "sizes"),
    [
        ((None, 4), [1]),
        ((None, None), [1, 128]),
        ((None, 3, None, None), [1, 224, 224]),
        ((None, None, None, 3), [1, 224, 224]),
        ((None, None, None, None), [1, 3, 224, 224]),
        ((1, 1, 64, None), [256]),
        ((1, 3, 320, None), [320]),
    ],
)
def test_without_a_name_the_place_says_it(
    dimensions: tuple[int | None, ...], sizes: list[int]
) -> None:
    value = ModelInput("x", dimensions)
    found = [likely_size(value, axis).sizes[0] for axis, n in enumerate(dimensions) if n is None]
    assert found == sizes


def test_the_state_of_a_recurrent_model_has_its_batch_in_the_middle() -> None:
    assert likely_size(ModelInput("state", (2, None, 128)), 1).sizes == (1,)


def test_a_length_of_sound_is_counted_in_samples() -> None:
    rate, sound = ModelInput("sr", ()), ModelInput("input", (None, None))
    assert is_for_sound((sound, rate))
    assert likely_size(sound, 1, is_sound=True).sizes[0] == 512


@pytest.mark.parametrize("name", ["unk__214", "DynamicDimension.0", "p2o.DynamicDimension.1", "s0"])
def test_a_number_of_an_exporter_says_nothing(name: str) -> None:
    assert is_generated(name)
    assert likely_size(ModelInput("x", (None, 8), (name, "")), 0).sizes == (1,)

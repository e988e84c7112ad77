from __future__ import annotations

from tunegate.artifacts.changes import ModelInput
from tunegate.cli.handlers.init import entry_lines, shared_sizes, shared_text
from tunegate.models.finder import FoundModel
from tunegate.models.sizes import GuessedSize


def model(path: str, **sizes: int) -> FoundModel:
    guesses = tuple(
        GuessedSize("x", axis, symbol, size, "why")
        for axis, (symbol, size) in enumerate(sizes.items())
    )
    inputs = (ModelInput("x", tuple(None for _ in sizes), tuple(sizes)),)
    return FoundModel(path=path, inputs=inputs, guesses=guesses)


def test_a_symbol_that_means_the_same_everywhere_is_said_once() -> None:
    one, other = model("a.onnx", batch=1, side=224), model("b.onnx", batch=1, side=320)
    shared = shared_sizes([one, other])
    assert list(shared) == ["batch"]
    assert '  "batch": 1  # guessed: why\n' in shared_text(shared)
    assert [*entry_lines(one, shared)] == ["    dims:", '      "side": 224  # guessed: why']


def test_a_number_of_an_exporter_is_of_one_model() -> None:
    found = model("a.onnx", unk__7=1)
    assert shared_sizes([found]) == {}
    assert shared_text({}) == ""
    assert '      "unk__7": 1  # guessed: why' in [*entry_lines(found, {})]


def test_an_input_without_a_rank_gets_a_shape_to_look_over() -> None:
    found = FoundModel(path="a.onnx", inputs=(ModelInput("x", (), is_ranked=False),))
    why = "the model does not say how many dimensions"
    assert [*entry_lines(found, {})] == ["    inputs:", f'      "x": [1]  # guessed: {why}']


def test_an_input_without_a_rank_gets_the_shape_that_its_readers_demand() -> None:
    guesses = tuple(GuessedSize("x", axis, "", size, "why") for axis, size in enumerate((1, 37)))
    inputs = (ModelInput("x", (), is_ranked=False),)
    found = FoundModel(path="a.onnx", inputs=inputs, guesses=guesses)
    assert [*entry_lines(found, {})] == ["    inputs:", '      "x": [1, 37]  # guessed: why']


def test_a_sum_of_other_symbols_is_not_written() -> None:
    guesses = (
        GuessedSize("x", 0, "past", 16, "why"),
        GuessedSize("x", 1, "past + 1", 17, "why", is_sum=True),
    )
    found = FoundModel(path="a.onnx", inputs=(ModelInput("x", (None, None)),), guesses=guesses)
    assert list(shared_sizes([found])) == ["past"]
    assert [*entry_lines(found, shared_sizes([found]))] == []

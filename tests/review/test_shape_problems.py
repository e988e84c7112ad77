from __future__ import annotations

from tests.support.measured_cells import MODEL, make_version
from tests.support.models.outlines import Outlines
from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.review.model_settings import shape_problems, stray_symbols

OPEN = (ModelInput("x", (None, 8), ("batch", "")),)
FOUND = {MODEL: make_version("h")}


def config(entry: dict[str, int], **dims: int) -> Config:
    profiles = {"long": ProfileConfig(dims=entry)}
    return Config(models=(ModelConfig(path="**", dims=entry, profiles=profiles),), dims=dims)


def test_a_symbol_that_no_model_has_is_named_wherever_it_stands() -> None:
    found = [*stray_symbols(config({"rows": 1}, batsh=1, batch=1), {"m.onnx": OPEN, "n.onnx": ()})]
    said = "no dynamic dimension of these models has this name."
    assert found == [
        f"dims.batsh: {said} Did you mean batch?",
        f"models: **: dims.rows: {said} Remove it.",
        f"models: **: profiles.long.dims.rows: {said} Remove it.",
    ]


def test_nothing_is_said_of_what_a_model_may_have_that_cannot_be_read() -> None:
    assert not [*stray_symbols(config({"rows": 1}, other=1), {"m.onnx": OPEN, "n.onnx": None})]
    assert not [*stray_symbols(config({"rows": 1}, other=1), {})]


def test_models_are_looked_into_only_where_the_configuration_says_something_new() -> None:
    reader = Outlines(None, 8, symbols=("batch", ""))
    wrong = config({}, other=1)
    assert len(shape_problems(reader, wrong, None, FOUND)) == 1
    assert shape_problems(reader, wrong, wrong, FOUND) == ()
    assert shape_problems(Outlines(), wrong, None, FOUND) == ()

from typing import Any

import msgspec
import pytest

from tests.support.measured_cells import MODEL as MEASURED_CELLS_MODEL
from tests.support.measured_cells import make_version
from tests.support.models.outlines import Outlines
from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.review.config_problems import problem_of
from tunegate.review.model_settings import shape_problems, stray_symbols

MODEL = {"path": "m.onnx"}


def problem(**content: Any) -> str:
    whole = {"models": [MODEL], **content}
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(whole, Config)
    return problem_of(raised.value, whole).text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"gate": {"minutes": 3}}, "unknown key gate.minutes. Did you mean min-launches?"),
        ({"gate": {"usd": 3}}, "unknown key gate.usd. Did you mean budget.usd?"),
        ({"runtime": "tvm"}, "unknown key runtime. Did you mean targets[].runtime?"),
        (
            {"targets": [{"name": "a", "providers": []}]},
            "unknown key targets[0].providers. Remove it.",
        ),
        ({"models": {"a": 1}}, "models: expected a list of at least one, not a mapping."),
        ({"gate": [1]}, "gate: expected a mapping, not a list."),
        ({"gate": {"seconds": True}}, "gate.seconds: expected a number of seconds > 0, not true."),
        ({"dims": {"a": 1, "b": "n"}}, 'dims.b: expected a whole number >= 0, not "n".'),
        (
            {"models": [{**MODEL, "profiles": {"a": {}, "b": {"dim": {}}}}]},
            "unknown key models[0].profiles.b.dim. Did you mean dims?",
        ),
        (
            {"models": [{**MODEL, "profiles": [{"dims": {}}]}]},
            "models[0].profiles: expected a mapping, not a list. Give each profile a name.",
        ),
        (
            {"models": [{**MODEL, "profiles": {"a": {"inputs": {"x": [-1]}}}}]},
            "models[0].profiles.a.inputs.x[0]: expected a whole number >= 0, not -1.",
        ),
        (
            {"models": [{**MODEL, "inputs": {"x.y": {"values": {"lo": 1}}}}]},
            "unknown key models[0].inputs.x.y.values.lo. Did you mean low?",
        ),
        (
            {"models": [{**MODEL, "inputs": {"x": {"values": {"low": 0, "high": "1e12"}}}}]},
            (
                'models[0].inputs.x.values.high: expected a number, not "1e12". '
                "YAML wants a point and a sign: 1.0e+12."
            ),
        ),
        (
            {"models": [{**MODEL, "inputs": {"x": ["010"]}}]},
            ("models[0].inputs.x[0]: some read 010 as octal. Write it without the zero in front."),
        ),
        (
            {"custom-operators": [{"library": "a", "sha256": "0123"}]},
            'custom-operators[0].sha256: expected a text like ^[0-9a-f]{64}$, not "0123".',
        ),
        (
            {"models": [MODEL], "targets": [{"name": "cpu\n"}]},
            (
                "targets[0].name: expected up to 100 letters, digits, dots, dashes and "
                'underscores, not "cpu\\n".'
            ),
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_file(content: dict[str, Any], said: str) -> None:
    """The values that one key alone may have are in test_config_file.py."""
    assert problem(**content) == said


def test_a_long_value_is_cut_and_stays_on_its_line() -> None:
    said = problem(gate="word\n" * 100)
    assert "\n" not in said
    assert len(said) < 120


OPEN = (ModelInput("x", (None, 8), ("batch", "")),)
FOUND = {MEASURED_CELLS_MODEL: make_version("h")}


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
    assert len(shape_problems(reader, wrong, None, wrong, FOUND)) == 1
    assert shape_problems(reader, wrong, None, config({}, batch=1), FOUND) == ()  # is behind
    assert shape_problems(reader, wrong, wrong, wrong, FOUND) == ()
    assert shape_problems(Outlines(), wrong, None, wrong, FOUND) == ()

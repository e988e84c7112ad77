from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import ConfigError
from tunegate_action.inputs import read_inputs


def test_nothing_set_is_the_whole_run_with_the_files_settings() -> None:
    inputs = read_inputs({})
    assert (inputs.stage, inputs.out, inputs.comment) == ("all", Path(".tunegate"), True)
    assert (inputs.budget, inputs.cache) == ((), ())


def test_limits_become_options_with_their_value_attached() -> None:
    inputs = read_inputs({"TUNEGATE_USD": " 0.5 ", "TUNEGATE_CACHE_URL": "--out=x"})
    assert (inputs.budget, inputs.cache) == (("--usd=0.5",), ("--cache-url=--out=x",))


@pytest.mark.parametrize(("text", "value"), [("true", True), ("NO", False), ("1", True)])
def test_a_boolean_arrives_as_a_word(text: str, value: bool) -> None:
    assert read_inputs({"TUNEGATE_COMMENT": text}).comment is value


@pytest.mark.parametrize(
    ("name", "text"), [("TUNEGATE_STAGE", "build"), ("TUNEGATE_COMMENT", "perhaps")]
)
def test_a_bad_value_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_inputs({name: text})


def test_the_token_never_shows_itself() -> None:
    inputs = read_inputs({"TUNEGATE_GITHUB_TOKEN": "ghs_secret"})
    assert "ghs_secret" not in repr(inputs) + str(inputs)
    assert inputs.token.reveal() == "ghs_secret"

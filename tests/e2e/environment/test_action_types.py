"""The types of the action's inputs and outputs, which `action-types.yml` tells generators of
workflows."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tunegate.artifacts.verdicts import Status
from tunegate.errors import ConfigError
from tunegate_action.inputs import read_request

ROOT = Path(__file__).resolve().parents[3]
KINDS = {"string": str, "boolean": bool, "integer": int, "float": float}


def read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return read


TYPES, ACTION = read("action-types.yml"), read("action.yml")


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_each_has_a_type_and_in_the_same_order(kind: str) -> None:
    assert list(TYPES[kind]) == list(ACTION[kind])
    for given in TYPES[kind].values():
        assert given["type"] in {*KINDS, "enum"}
        assert ("allowed-values" in given) == (given["type"] == "enum")


def test_a_default_is_of_its_type() -> None:
    for name, given in TYPES["inputs"].items():
        default = ACTION["inputs"][name]["default"]
        if default and given["type"] == "enum":
            assert default in given["allowed-values"]
        elif default and given["type"] != "string":
            assert isinstance(yaml.safe_load(default), KINDS[given["type"]])


def test_the_words_are_those_that_the_action_takes_and_gives() -> None:
    assert set(TYPES["outputs"]["verdict"]["allowed-values"]) >= set(get_args(Status))
    for name in ("stage", "comment"):
        for word in TYPES["inputs"][name]["allowed-values"]:
            if word != TYPES["inputs"]["stage"]["allowed-values"][-1]:  # it is no step of a run
                read_request({f"TUNEGATE_{name.upper()}": word})
        with pytest.raises(ConfigError):
            read_request({f"TUNEGATE_{name.upper()}": "another"})

"""Attacks by sizes: less work looks faster. And what is no attack: other words, new profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout
from tests.support.models.detected_changes import after, content, kinds, project_of
from tests.support.small_onnx import matmul_model
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.errors import ConfigError


def opened_content(seed: int = 0) -> bytes:
    return content(matmul_model(seed=seed, rows="batch"))


def sized(batch: int, *names: str, **profiles: int) -> Config:
    """The batch of the whole file, and of each profile."""
    named = {name: ProfileConfig() for name in names} | {
        name: ProfileConfig(dims={"batch": size}) for name, size in profiles.items()
    }
    entry = ModelConfig(path="models/product.onnx", profiles=named)
    return Config(models=(entry,), dims={"batch": batch})


@pytest.fixture
def dynamic(tmp_path: Path) -> Checkout:
    project = project_of(tmp_path)
    project.commit({"models/product.onnx": opened_content()})
    return project


def test_other_shapes_have_no_effect_while_those_of_the_base_fit(dynamic: Checkout) -> None:
    changes, opened = after(dynamic, {}, sized(1), sized(8))
    assert (changes.models, opened) == ((), [])
    (told,) = changes.policy_changes
    assert (told.key, told.old, told.new) == ("models[].dims", "{x: [8, 16]}", "{x: [1, 16]}")
    assert (told.effect, told.counts) == ("changed", "once merged")


def test_other_names_of_dimensions_make_no_model_smaller(dynamic: Checkout) -> None:
    renamed = content(matmul_model(seed=9, rows="tiny"))
    entry = ModelConfig(path="models/product.onnx", dims={"tiny": 1})
    changes, _ = after(dynamic, {"models/product.onnx": renamed}, Config(models=(entry,)), sized(8))
    (told,) = changes.policy_changes
    assert (told.old, told.new, told.counts) == ("{x: [8, 16]}", "{x: [1, 16]}", "once merged")


@pytest.mark.parametrize("rows", ["batch - 7", "tiny"])
def test_sums_in_names_of_dimensions_make_no_model_smaller(dynamic: Checkout, rows: str) -> None:
    renamed = content(matmul_model(seed=9, rows=rows))
    entry = ModelConfig(path="models/product.onnx", dims={rows: 1})
    changes, _ = after(dynamic, {"models/product.onnx": renamed}, Config(models=(entry,)), sized(8))
    (told,) = changes.policy_changes
    assert (told.old, told.counts) == ("{x: [8, 16]}", "once merged")


def test_the_same_shapes_in_other_words_are_no_change(dynamic: Checkout) -> None:
    entry = ModelConfig(path="models/product.onnx", inputs={"x": (8, 16)})
    changes, _ = after(dynamic, {}, Config(models=(entry,)), sized(8))
    assert (changes.models, changes.policy_changes) == ((), ())


def test_each_profile_is_a_change_of_its_own(dynamic: Checkout) -> None:
    new = opened_content(seed=9)
    config = sized(1, "one", many=8)
    changes, _ = after(dynamic, {"models/product.onnx": new}, config, config)
    assert kinds(changes) == {
        "models/product.onnx@one": "modified",
        "models/product.onnx@many": "modified",
    }
    assert {change.head.path for change in changes.models if change.head} == {"models/product.onnx"}


def test_a_profile_that_is_added_is_new_and_stricter(dynamic: Checkout) -> None:
    changes, _ = after(dynamic, {}, sized(1, "one", many=8), sized(1, "one"))
    assert kinds(changes) == {"models/product.onnx@many": "added"}
    assert changes.unchanged == ("models/product.onnx@one",)
    (told,) = changes.policy_changes
    assert (told.key, told.new, told.effect) == ("models[].profiles", "many", "tightened")


def test_a_profile_that_is_removed_is_loosened_and_still_gated(dynamic: Checkout) -> None:
    new = opened_content(seed=9)
    change = {"models/product.onnx": new}
    changes, _ = after(dynamic, change, sized(1, "one"), sized(1, "one", many=8))
    assert sorted(kinds(changes)) == ["models/product.onnx@many", "models/product.onnx@one"]
    (told,) = changes.policy_changes
    assert (told.key, told.old, told.effect) == ("models[].profiles", "many", "loosened")


def test_the_first_profiles_of_a_model_keep_the_shapes_that_it_had(dynamic: Checkout) -> None:
    changes, _ = after(dynamic, {}, sized(1, "one", many=8), sized(1))
    assert kinds(changes) == {"models/product.onnx@many": "added"}
    assert [told.effect for told in changes.policy_changes] == ["tightened"]


def test_all_mistakes_of_new_sizes_are_told_at_once(dynamic: Checkout) -> None:
    entry = ModelConfig(path="models/*.onnx", inputs={"x": (1, 3)})
    wrong = Config(models=(entry,), dims={"batsh": 1})
    with pytest.raises(ConfigError) as raised:
        after(dynamic, {}, wrong, sized(1))
    assert [str(raised.value), *raised.value.others] == [
        (
            "tunegate.yaml: dims.batsh: no dynamic dimension of these models has this name. "
            "Did you mean batch?"
        ),
        "tunegate.yaml: models/conv.onnx: inputs.x has 2 numbers, the model's has 4 dimensions.",
        "tunegate.yaml: models/product.onnx: inputs.x: axis 1 is 16 in the model, not 3.",
    ]

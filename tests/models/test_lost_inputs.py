from __future__ import annotations

import msgspec

from tests.support.measured_cells import make_changes
from tunegate.artifacts.changes import ModelChange, ModelInput
from tunegate.config import Config, InputConfig, Inputs, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.models.export_models import SaidOfLost, said_of_lost
from tunegate.review.input_shapes import ResolvedShapes

(CHANGE,) = make_changes().models
X = ModelInput("x", (None,), ("seq",))
INPUTS = (X, ModelInput("mask", (None,), ("n",)))
VALUES = ValuesConfig(low=0, high=1)


def said(config: Config | None, change: ModelChange = CHANGE, **wanted: int) -> SaidOfLost:
    shapes = ResolvedShapes(shapes={name: (size,) for name, size in wanted.items()})
    return said_of_lost(config, change, INPUTS, {"mask"}, shapes)


def of_profiles(**profiles: int) -> Config:
    named = {name: ProfileConfig(dims={"seq": size, "n": size}) for name, size in profiles.items()}
    return Config(models=(ModelConfig(path="**", profiles=named),))


def test_the_base_says_the_shapes_and_values_of_what_only_it_has() -> None:
    given: Inputs = {"x": (4,), "mask": InputConfig(shape=(4,), values=VALUES)}
    config = Config(models=(ModelConfig(path="**", inputs=given),))
    assert said(config) == SaidOfLost({"mask": (4,)}, {"mask": VALUES})


def test_nothing_is_said_without_a_configuration_or_a_base() -> None:
    config = Config(models=(ModelConfig(path="**"),), dims={"seq": 1, "n": 1})
    assert said(None) == SaidOfLost()
    assert said(config, msgspec.structs.replace(CHANGE, base=None)) == SaidOfLost()
    assert said(config).shapes == {"mask": (1,)}


def test_the_profile_of_the_same_name_says_it() -> None:
    long = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@long")
    assert said(of_profiles(short=4, long=64), long).shapes == {"mask": (64,)}


def test_a_profile_that_is_called_otherwise_now_is_found_by_its_shapes() -> None:
    tall = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@tall")
    assert said(of_profiles(short=4, long=64), tall, x=64).shapes == {"mask": (64,)}
    assert said(of_profiles(short=4, long=64), tall, x=9) == SaidOfLost()

"""Attacks by an edited `tunegate.yaml`, each as base and head of the configuration."""

from __future__ import annotations

import msgspec
import pytest

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    GateConfig,
    ModelConfig,
    ObjectiveConfig,
    TargetConfig,
)
from tunegate.review.effective_config import Effective, effective
from tunegate.review.model_settings import entry_for, needs_of

PATHS = ("a/x.onnx", "a/y.onnx")


def judging(base: Config, head: Config) -> Effective:
    return effective(base, head, {path: path for path in PATHS}, lambda _: None)


USUAL = Config(
    models=(ModelConfig(path="a/*.onnx", objective=ObjectiveConfig(ms=20)),),
    targets=(TargetConfig(name="cpu"), TargetConfig(name="gpu", kind="cuda")),
    cache=CacheConfig(trusted_keys={"main": ("k",)}),
)
WITHOUT_ENTRY = ModelConfig(path="b/*.onnx")
ONE_TARGET = ModelConfig(path="a/*.onnx", targets=("cpu",), objective=ObjectiveConfig(ms=20))
ATTACKS: dict[str, tuple[dict[str, object], PolicyChange]] = {}


def attack(key: str, old: str, new: str, effect: str, **fields: object) -> None:
    place = {name: str(fields.pop(name)) for name in ("model", "target") if name in fields}
    ATTACKS[f"{key} {new}"] = (
        fields,
        PolicyChange(key=key, old=old, new=new, effect=effect, counts="once merged", **place),  # type: ignore[arg-type]
    )


attack(
    "gate.absolute-floor-us",
    "0.5",
    "1000000",
    "loosened",
    gate=GateConfig(absolute_floor_us=1e6),
)
attack("gate.margin-percent", "3", "60", "loosened", gate=GateConfig(margin_percent=60))
attack("gate.waiver-trailers", "false", "true", "loosened", gate=GateConfig(waiver_trailers=True))
attack("gate.inconclusive", "fail", "warn", "loosened", gate=GateConfig(inconclusive="warn"))
attack("gate.waivers-from", "base", "head", "loosened", gate=GateConfig(waivers_from="head"))
attack("gate.seconds", "240", "1", "changed", gate=GateConfig(seconds=1))
attack("gate.pairs", "12", "4", "changed", gate=GateConfig(pairs=4))
attack("gate.release-tags", "v*", "none", "changed", gate=GateConfig(release_tags="none"))
attack("cache.trusted-keys", "{main: [k]}", "{}", "changed", cache=CacheConfig())
attack(
    "cache.zone",
    "main",
    "theirs",
    "changed",
    cache=CacheConfig(zone="theirs", trusted_keys={"main": ("k",)}),
)
attack(
    "cache.url",
    "~/.cache/tunegate",
    "s3://theirs",
    "changed",
    cache=CacheConfig(url="s3://theirs", trusted_keys={"main": ("k",)}),
)
attack("budget.trials", "not set", "0", "changed", budget=BudgetConfig(trials=0))
attack("budget.minutes", "10", "99", "changed", budget=BudgetConfig(minutes=99))
attack("executor", "local", "ray", "changed", executor="ray")
attack(
    "targets[].name",
    "gpu",
    "removed",
    "loosened",
    target="gpu",
    targets=(TargetConfig(name="cpu"),),
)
attack(
    "targets[].threads",
    "0",
    "64",
    "changed",
    target="cpu",
    targets=(TargetConfig(name="cpu", threads=64), TargetConfig(name="gpu", kind="cuda")),
)
attack(
    "models[].path",
    "a/*.onnx",
    "no entry matches it",
    "loosened",
    model="a/*.onnx",
    models=(WITHOUT_ENTRY,),
)
attack(
    "models[].objective",
    "{ms: 20, percentile: 99}",
    "not set",
    "loosened",
    model="a/*.onnx",
    models=(ModelConfig(path="a/*.onnx"),),
)
attack(
    "models[].objective.ms",
    "20",
    "99",
    "loosened",
    model="a/*.onnx",
    models=(ModelConfig(path="a/*.onnx", objective=ObjectiveConfig(ms=99)),),
)
attack(
    "models[].targets",
    "[cpu, gpu]",
    "[cpu]",
    "loosened",
    model="a/*.onnx",
    models=(ONE_TARGET,),
)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_by_the_configuration_has_no_effect_and_is_told(name: str) -> None:
    fields, told = ATTACKS[name]
    judged, changes = judging(USUAL, msgspec.structs.replace(USUAL, **fields))
    assert changes == (told,)
    sections = (judged.gate, judged.cache, judged.budget, judged.executor)
    assert sections == (USUAL.gate, USUAL.cache, USUAL.budget, USUAL.executor)
    for path in PATHS:
        entry = entry_for(judged, path)
        assert entry is not None
        assert entry.objective == ObjectiveConfig(ms=20)
        assert needs_of(judged, path) == needs_of(USUAL, path)

from __future__ import annotations

from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.review.base_rules import merged_targets, names, target_changes

CPU, GPU = TargetConfig(name="cpu", threads=2), TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def config(*targets: TargetConfig) -> Config:
    return Config(models=(ModelConfig(path="*.onnx"),), targets=targets)


def test_the_base_defines_its_targets_and_comes_first() -> None:
    base = config(CPU, GPU)
    head = config(TargetConfig(name="new"), TargetConfig(name="cpu", threads=9))
    assert merged_targets(base, head) == (CPU, GPU, TargetConfig(name="new"))


def test_the_head_prices_a_target_that_had_no_price() -> None:
    head = config(TargetConfig(name="cpu", threads=2, usd_per_hour=1.5))
    (target,) = merged_targets(config(CPU), head)
    assert (target.threads, target.usd_per_hour) == (2, 1.5)


def test_a_target_that_is_gone_loosens_and_a_new_one_tightens() -> None:
    gone, new = target_changes(config(CPU), config(GPU))
    assert (gone.key, gone.old, gone.new, gone.target) == (
        "targets[].name",
        "cpu",
        "removed",
        "cpu",
    )
    assert (gone.effect, gone.counts) == ("loosened", "once merged")
    assert (new.key, new.old, new.new, new.target) == ("targets[].name", "not set", "gpu", "gpu")
    assert (new.effect, new.counts) == ("tightened", "now")


def test_a_target_that_is_defined_otherwise_is_told_key_by_key() -> None:
    other = TargetConfig(name="cpu", threads=9)
    (change,) = target_changes(config(CPU, GPU), config(other, GPU))
    assert (change.key, change.old, change.new) == ("targets[].threads", "2", "9")
    assert (change.effect, change.target) == ("changed", "cpu")
    assert list(target_changes(config(CPU), config(CPU))) == []


def test_names_are_in_the_order_of_the_file() -> None:
    assert names(config(GPU, CPU)) == ("gpu", "cpu")

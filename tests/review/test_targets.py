from __future__ import annotations

import pytest

from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.review.base_rules import merged_targets, names, on_known_runners, target_changes
from tunegate.review.effective_config import effective

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


SECRETS = TargetConfig(name="new", runner=("self-hosted", "signing"))


@pytest.mark.parametrize("labels", [("signing",), ("self-hosted", "signing"), ("SELF-HOSTED",), ()])
def test_a_new_target_on_runners_that_no_target_has_counts_once_it_is_merged(
    labels: tuple[str, ...],
) -> None:
    base, head = config(CPU), config(CPU, TargetConfig(name="new", runner=labels))
    assert on_known_runners(base, head).targets == (CPU,)
    (change,) = target_changes(base, head)
    assert (change.key, change.target) == ("targets[].runner", "new")
    assert (change.old, change.effect, change.counts) == ("not set", "changed", "once merged")


def test_a_new_target_on_the_runners_of_another_counts_at_once() -> None:
    ours = TargetConfig(name="gpu", kind="cuda", arch="sm_90", runner=("a", "b"))
    new = TargetConfig(name="more", runner=("b", "a"))
    assert on_known_runners(config(CPU, ours), config(CPU, ours, new)).targets == (CPU, ours, new)


def test_an_entry_keeps_the_targets_that_count() -> None:
    def of(*targets: str) -> Config:
        models = (ModelConfig(path="*.onnx", targets=targets), ModelConfig(path="a/*.onnx"))
        return Config(models=models, targets=(CPU, GPU, SECRETS))

    base = Config(models=(ModelConfig(path="*.onnx", targets=("cpu",)),), targets=(CPU, GPU))
    assert on_known_runners(base, of("gpu", "new")).models[0].targets == ("gpu",)
    assert on_known_runners(base, of("new")).models[0].targets == ("cpu",)
    assert on_known_runners(base, of("new")).models[1].targets == ()


def test_no_job_of_the_matrix_goes_to_runners_that_only_the_head_names() -> None:
    head = Config(models=(ModelConfig(path="m.onnx"),), targets=(CPU, SECRETS))
    found = effective(config(CPU), head, {"m.onnx": "m.onnx"}, lambda _: None)
    assert {target.runner for target in found.config.targets} == {CPU.runner}
    assert ("targets[].runner", "once merged") in {(c.key, c.counts) for c in found.changes}

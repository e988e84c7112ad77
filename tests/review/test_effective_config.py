from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    GateConfig,
    ModelConfig,
    ObjectiveConfig,
    TargetConfig,
)
from tunegate.review.effective_config import Effective, effective, in_report_order
from tunegate.review.model_settings import entry_for, needs_of, shapes_for, targets_for
from tunegate.review.rules import BUDGET, CACHE, GATE, OBJECTIVE, TARGET, Rules

PATHS = ("a/x.onnx", "a/y.onnx", "b/x.onnx", "b[1]/*.onnx")
SECTIONS = [("gate", GATE), ("budget", BUDGET), ("cache", CACHE)]


def optional(values: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.none() | values


percents = st.sampled_from([0.5, 3.0, 60.0])
objectives = st.builds(ObjectiveConfig, ms=percents, percentile=st.sampled_from([50.0, 99.0]))
targets = st.builds(
    TargetConfig,
    name=st.sampled_from(["cpu", "gpu", "old"]),
    threads=st.integers(0, 2),
    usd_per_hour=optional(percents),
    expect_gpu=st.sampled_from([None, "L4"]),
)
gates = st.builds(
    GateConfig,
    margin_percent=percents,
    waiver_trailers=st.booleans(),
    seconds=percents,
    absolute_floor_us=st.sampled_from([0.0, 1e6]),
    rare_launches=st.sampled_from([0.0, 0.05, 0.2]),
    tail_margin_percent=percents,
    inconclusive=st.sampled_from(["fail", "warn"]),
    policy_changes=st.sampled_from(["report", "fail"]),
    waivers_from=st.sampled_from(["base", "head"]),
    size_margin_percent=optional(percents),
    memory_margin_percent=optional(percents),
    workspace_margin_percent=optional(percents),
    energy_margin_percent=optional(percents),
    release_margin_percent=percents,
)
budgets = st.builds(
    BudgetConfig,
    minutes=optional(percents),
    trials=st.none() | st.integers(0, 9),
    usd=optional(percents),
    usd_per_hour=optional(percents),
)
caches = st.builds(
    CacheConfig,
    url=st.sampled_from(["ours", "theirs"]),
    zone=st.sampled_from(["main", "pr/theirs"]),
    mode=st.sampled_from(["off", "ro", "rw"]),
    trusted_keys=st.sampled_from([{}, {"main": ("k",)}, {"main": ("k", "l")}]),
)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    found = draw(st.lists(targets, min_size=1, max_size=3, unique_by=lambda target: target.name))
    named = st.lists(st.sampled_from([target.name for target in found]), unique=True, max_size=2)
    entries = st.builds(
        ModelConfig,
        path=st.sampled_from(["a/*.onnx", "**/x.onnx", "**", "b/x.onnx"]),
        inputs=st.sampled_from([{}, {"x": (1, 512)}, {"x": (1, 2)}]),
        targets=named.map(tuple),
        objective=st.none() | objectives,
    )
    return Config(
        models=tuple(draw(st.lists(entries, min_size=1, max_size=3))),
        targets=tuple(found),
        cache=draw(caches),
        budget=draw(budgets),
        gate=draw(gates),
        executor=draw(st.sampled_from(["local", "ray"])),
    )


def judging(base: Config, head: Config) -> Effective:
    return effective(base, head, {path: path for path in PATHS}, lambda _: None)


def is_loosened(judged: object, base: object, rules: Rules) -> bool:
    return any(
        weight(getattr(judged, name)) < weight(getattr(base, name))
        for name, weight in rules.ordered.items()
    )


@given(configs(), configs())
def test_no_rule_of_the_base_is_loosened(base: Config, head: Config) -> None:
    judged = judging(base, head).config
    assert not is_loosened(judged.gate, base.gate, GATE)
    assert (judged.cache, judged.executor) == (base.cache, base.executor)
    assert judged.budget == base.budget
    for path in PATHS:
        old, new = entry_for(base, path), entry_for(judged, path)
        if old is None:
            continue
        assert new is not None
        assert set(targets_for(judged, path)) >= set(targets_for(base, path))
        assert shapes_for(judged, path, None).shapes == old.inputs
        assert old.objective is None or new.objective is not None
        if old.objective is not None:
            assert not is_loosened(new.objective, old.objective, OBJECTIVE)


@given(configs(), configs())
def test_what_has_no_order_is_the_base_s(base: Config, head: Config) -> None:
    judged = judging(base, head).config
    for name, rules in SECTIONS:
        ours, theirs = getattr(base, name), getattr(judged, name)
        for field in ours.__struct_fields__:
            if field not in rules.ordered and field not in rules.filled:
                assert getattr(ours, field) == getattr(theirs, field), field
    named = {target.name: target for target in judged.targets}
    for target in base.targets:
        kept = named[target.name]
        filled = {name: getattr(kept, name) for name in TARGET.filled}
        assert kept == msgspec.structs.replace(target, **filled)


@given(configs(), configs())
def test_what_the_head_tightens_counts_at_once(base: Config, head: Config) -> None:
    judged = judging(base, head).config
    assert not is_loosened(judged.gate, head.gate, GATE)
    assert {target.name for target in head.targets} <= {target.name for target in judged.targets}
    for path in PATHS:
        entry, theirs = entry_for(judged, path), entry_for(head, path)
        if theirs is not None:
            assert entry is not None
            assert set(targets_for(judged, path)) >= set(targets_for(head, path))
            assert theirs.objective is None or entry.objective is not None


@given(configs())
def test_the_same_configuration_twice_is_itself(config: Config) -> None:
    assert judging(config, config) == Effective(config, ())


@given(configs(), configs())
def test_tightening_twice_changes_nothing_more(base: Config, head: Config) -> None:
    once = judging(base, head).config
    twice = judging(once, head)
    assert twice.config == once
    assert not [change for change in twice.changes if change.effect == "tightened"]


@given(configs(), configs())
def test_every_difference_that_has_no_effect_is_told(base: Config, head: Config) -> None:
    judged, changes = judging(base, head)
    lost = {change for change in changes if change.weakens}
    same_needs = all(
        needs_of(judged, path) == needs_of(head, path) for path in PATHS if entry_for(base, path)
    )
    sections = (judged.gate, judged.budget, judged.cache, judged.executor)
    if not lost:
        assert sections == (head.gate, head.budget, head.cache, head.executor)
        assert same_needs
    assert all(change.old != change.new for change in changes)
    assert {change.counts for change in changes if change.effect == "tightened"} <= {"now"}


@given(configs(), configs())
def test_what_weakens_the_gate_is_told_first(base: Config, head: Config) -> None:
    weakens = [change.weakens for change in judging(base, head).changes]
    assert weakens == sorted(weakens, reverse=True)


def test_the_gate_s_own_keys_come_first_of_what_weakens_it() -> None:
    base = Config(models=(ModelConfig(path="**", objective=ObjectiveConfig(ms=1)),))
    head = Config(
        models=(ModelConfig(path="**"),),
        targets=(TargetConfig(name="cpu"), TargetConfig(name="new")),
        gate=GateConfig(margin_percent=9),
    )
    told = [change.key for change in in_report_order(reversed(judging(base, head).changes))]
    assert told == ["gate.margin-percent", "models[].objective", "targets[].name"]


@pytest.mark.parametrize(
    ("base", "head", "counts"), [(0.2, 0.0, 0.2), (0.2, 0.1, 0.1), (0.2, 0.4, 0.2), (0.0, 0.3, 0.3)]
)
def test_rarer_launches_may_be_looked_for_and_never_fewer(
    base: float, head: float, counts: float
) -> None:
    models = (ModelConfig(path="**"),)
    before, after = (
        Config(models=models, gate=GateConfig(rare_launches=share)) for share in (base, head)
    )
    assert judging(before, after).config.gate.rare_launches == counts

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate import config
from tunegate.artifacts.changes import PolicyChange
from tunegate.review.effective_config import Effective, effective, in_report_order, rebased
from tunegate.review.model_settings import entry_for, needs_of, shapes_for, targets_for
from tunegate.review.rules import BUDGET, CACHE, GATE, OBJECTIVE, TARGET, Rules

PATHS = ("a/x.onnx", "a/y.onnx", "b/x.onnx", "b[1]/*.onnx")
SECTIONS = [("gate", GATE), ("budget", BUDGET), ("cache", CACHE)]


def optional(values: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.none() | values


percents = st.sampled_from([0.5, 3.0, 60.0])
objectives = st.builds(
    config.ObjectiveConfig, ms=percents, percentile=st.sampled_from([50.0, 99.0])
)
targets = st.builds(
    config.TargetConfig,
    name=st.sampled_from(["cpu", "gpu", "old"]),
    threads=st.integers(0, 2),
    usd_per_hour=optional(percents),
    expect_gpu=st.sampled_from([None, "L4"]),
)
gates = st.builds(
    config.GateConfig,
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
    load_margin_percent=optional(percents),
    layers_margin_percent=optional(percents),
    release_margin_percent=percents,
)
budgets = st.builds(
    config.BudgetConfig,
    minutes=optional(percents),
    trials=st.none() | st.integers(0, 9),
    usd=optional(percents),
    usd_per_hour=optional(percents),
)
caches = st.builds(
    config.CacheConfig,
    url=st.sampled_from(["ours", "theirs"]),
    zone=st.sampled_from(["main", "pr/theirs"]),
    mode=st.sampled_from(["off", "ro", "rw"]),
    trusted_keys=st.sampled_from([{}, {"main": ("k",)}, {"main": ("k", "l")}]),
)


LIBRARIES = tuple(config.OperatorLibraryConfig(library=name, sha256=name * 64) for name in "ab")


@st.composite
def configs(draw: st.DrawFn) -> config.Config:
    found = draw(st.lists(targets, min_size=1, max_size=3, unique_by=lambda target: target.name))
    named = st.lists(st.sampled_from([target.name for target in found]), unique=True, max_size=2)
    entries = st.builds(
        config.ModelConfig,
        path=st.sampled_from(["a/*.onnx", "**/x.onnx", "**", "b/x.onnx"]),
        inputs=st.sampled_from([{}, {"x": (1, 512)}, {"x": (1, 2)}]),
        targets=named.map(tuple),
        objective=st.none() | objectives,
    )
    return config.Config(
        models=tuple(draw(st.lists(entries, min_size=1, max_size=3))),
        targets=tuple(found),
        cache=draw(caches),
        budget=draw(budgets),
        gate=draw(gates),
        executor=draw(st.sampled_from(["local", "ray"])),
        custom_operators=draw(st.sampled_from([(), LIBRARIES[:1], LIBRARIES])),
    )


def judging(base: config.Config, head: config.Config) -> Effective:
    return effective(base, head, {path: path for path in PATHS}, lambda _: None)


def is_loosened(judged: object, base: object, rules: Rules) -> bool:
    return any(
        weight(getattr(judged, name)) < weight(getattr(base, name))
        for name, weight in rules.ordered.items()
    )


@given(configs(), configs())
def test_a_head_tightens_the_rules_of_its_base_and_loosens_none(
    base: config.Config, head: config.Config
) -> None:
    """All that is promised of any two configurations; to draw them takes most of the time."""
    judged, changes = judging(base, head)
    no_rule_of_the_base_is_loosened(base, judged)
    what_has_no_order_is_the_base_s(base, judged)
    what_the_head_tightens_counts_at_once(head, judged)
    every_difference_that_has_no_effect_is_told(base, head, judged, changes)
    weakens = [change.weakens for change in changes]
    assert weakens == sorted(weakens, reverse=True), "what weakens the gate is told first"
    twice = judging(judged, head)
    assert twice.config == judged
    assert not [change for change in twice.changes if change.effect == "tightened"]
    assert judging(head, head) == Effective(head, ())


@given(configs(), configs())
def test_what_one_side_alone_changed_since_the_fork_is_the_other_s_too(
    fork: config.Config, later: config.Config
) -> None:
    for base, head in ((later, fork), (fork, later), (later, later)):
        assert rebased(fork, base, head) == later


def no_rule_of_the_base_is_loosened(base: config.Config, judged: config.Config) -> None:
    assert not is_loosened(judged.gate, base.gate, GATE)
    assert (judged.cache, judged.executor) == (base.cache, base.executor)
    assert judged.budget == base.budget
    assert judged.custom_operators == base.custom_operators
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


def what_has_no_order_is_the_base_s(base: config.Config, judged: config.Config) -> None:
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


def what_the_head_tightens_counts_at_once(head: config.Config, judged: config.Config) -> None:
    assert not is_loosened(judged.gate, head.gate, GATE)
    assert {target.name for target in head.targets} <= {target.name for target in judged.targets}
    for path in PATHS:
        entry, theirs = entry_for(judged, path), entry_for(head, path)
        if theirs is not None:
            assert entry is not None
            assert set(targets_for(judged, path)) >= set(targets_for(head, path))
            assert theirs.objective is None or entry.objective is not None


def every_difference_that_has_no_effect_is_told(
    base: config.Config, head: config.Config, judged: config.Config, changes: Sequence[PolicyChange]
) -> None:
    if not any(change.weakens for change in changes):
        sections = (judged.gate, judged.budget, judged.cache, judged.executor)
        assert sections == (head.gate, head.budget, head.cache, head.executor)
        assert judged.custom_operators == head.custom_operators
        assert all(
            needs_of(judged, path) == needs_of(head, path)
            for path in PATHS
            if entry_for(base, path)
        )
    assert all(change.old != change.new for change in changes)
    assert {change.counts for change in changes if change.effect == "tightened"} <= {"now"}


def test_the_gate_s_own_keys_come_first_of_what_weakens_it() -> None:
    base = config.Config(
        models=(config.ModelConfig(path="**", objective=config.ObjectiveConfig(ms=1)),)
    )
    head = config.Config(
        models=(config.ModelConfig(path="**"),),
        targets=(config.TargetConfig(name="cpu"), config.TargetConfig(name="new")),
        gate=config.GateConfig(margin_percent=9),
    )
    told = [change.key for change in in_report_order(reversed(judging(base, head).changes))]
    assert told == ["gate.margin-percent", "models[].objective", "targets[].name"]


@pytest.mark.parametrize(
    ("base", "head", "counts"), [(0.2, 0.0, 0.2), (0.2, 0.1, 0.1), (0.2, 0.4, 0.2), (0.0, 0.3, 0.3)]
)
def test_rarer_launches_may_be_looked_for_and_never_fewer(
    base: float, head: float, counts: float
) -> None:
    models = (config.ModelConfig(path="**"),)
    before, after = (
        config.Config(models=models, gate=config.GateConfig(rare_launches=share))
        for share in (base, head)
    )
    assert judging(before, after).config.gate.rare_launches == counts

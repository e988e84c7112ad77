"""No command of a head is ever in what judges, whatever base and head write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import (
    Accuracy,
    AccuracyConfig,
    Config,
    MetricCommandConfig,
    ModelConfig,
    OperatorLibraryConfig,
)
from tunegate.review.base_rules import metric_of
from tunegate.review.effective_config import Effective, effective, of_head_alone
from tunegate.review.model_settings import entry_for

PATHS = ("a/x.onnx", "b/x.onnx")
percents = st.sampled_from([None, 1.0, 5.0])


def accuracies(runs: list[str]) -> st.SearchStrategy[Accuracy]:
    metrics = st.none() | st.builds(
        MetricCommandConfig, run=st.sampled_from(runs), at_most=st.sampled_from([0.1, 0.2])
    )
    parts = st.tuples(percents, metrics).filter(any)
    budgets = parts.map(lambda part: AccuracyConfig(max_error=part[0], metric_command=part[1]))
    same: st.SearchStrategy[Accuracy] = st.just("same")
    return same | budgets


def configs(*runs: str) -> st.SearchStrategy[Config]:
    entries = st.builds(
        ModelConfig,
        path=st.sampled_from(["a/*.onnx", "b/x.onnx", "**"]),
        accuracy=accuracies([*runs]),
    )
    return st.lists(entries, min_size=1, max_size=2).map(lambda each: Config(models=tuple(each)))


def judged(base: Config, head: Config) -> Effective:
    return effective(base, head, {path: path for path in PATHS}, lambda _: None)


@given(configs("base", "both"), configs("head", "both"))
def test_only_the_bases_command_runs_where_it_runs_now(base: Config, head: Config) -> None:
    found = judged(base, head).config
    for path in PATHS:
        entry, old = entry_for(found, path), entry_for(base, path)
        metric = metric_of(entry.accuracy) if entry is not None else None
        before = metric_of(old.accuracy) if old is not None else None
        if metric is not None:
            assert before is not None
            assert metric.run == before.run
            assert metric.at_most <= before.at_most
        if old is not None and entry is not None and entry.accuracy != "same":
            assert metric == before or (metric and before and metric.run == before.run)


@given(configs("head", "both"))
def test_a_head_that_no_base_judges_has_no_command(head: Config) -> None:
    found = of_head_alone(head)
    assert not any(metric_of(each.accuracy) for each in found.config.models)
    asked = [each.path for each in head.models if metric_of(each.accuracy)]
    assert [told.model for told in found.changes] == asked


def test_a_head_that_no_base_judges_has_no_library() -> None:
    library = OperatorLibraryConfig(library="onnxruntime_extensions", sha256="0" * 64)
    head = Config(models=(ModelConfig(path="*.onnx"),), custom_operators=(library,))
    found = of_head_alone(head)
    assert found.config.custom_operators == ()
    assert [(told.key, told.counts) for told in found.changes] == [
        ("custom-operators", "once merged")
    ]


def config(accuracy: Accuracy) -> Config:
    return Config(models=(ModelConfig(path="a/*.onnx", accuracy=accuracy),))


def metric(run: str, at_most: float, max_error: float | None = None) -> AccuracyConfig:
    command = MetricCommandConfig(run=run, at_most=at_most)
    return AccuracyConfig(max_error=max_error, metric_command=command)


@pytest.mark.parametrize(
    ("new", "key", "effect", "counts"),
    [
        (metric("wer", 0.1), ".at-most", "tightened", "now"),
        (metric("wer", 0.3), ".at-most", "loosened", "once merged"),
        (metric("other", 0.1), "", "changed", "once merged"),
        (AccuracyConfig(max_error=1.0), "", "loosened", "once merged"),
    ],
)
def test_what_a_head_changes_of_a_command_is_told(
    new: AccuracyConfig, key: str, effect: str, counts: str
) -> None:
    changes = judged(config(metric("wer", 0.2)), config(new)).changes
    told = [each for each in changes if "metric-command" in each.key]
    assert [(each.key, each.effect, each.counts) for each in told] == [
        (f"models[].accuracy.metric-command{key}", effect, counts)
    ]


def test_a_model_that_only_the_head_covers_has_float32_until_its_command_is_merged() -> None:
    old = config(metric("wer", 0.2))
    new = Config(models=(*old.models, ModelConfig(path="b/*", accuracy=metric("evil", 9.0, 9.0))))
    found = judged(old, new)
    entry = entry_for(found.config, "b/x.onnx")
    assert entry is not None
    assert entry.accuracy == "same"
    assert [(each.model, each.effect) for each in found.changes] == [("b/*", "changed")]

"""The choice of the `metric-command` that runs: the base's alone. A pull request chooses nothing
that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tunegate.artifacts.changes import ModelPath, PolicyChange
from tunegate.config import Accuracy, MetricCommandConfig, ModelConfig
from tunegate.policy.rules import METRIC_COMMAND
from tunegate.policy.sections import merged_section, section_changes
from tunegate.policy.written import written

METRIC_KEY = "models[].accuracy.metric-command"
_Metric = MetricCommandConfig | None


def metric_of(accuracy: Accuracy) -> _Metric:
    return None if accuracy == "same" else accuracy.metric_command


def merged_metric(old: _Metric, new: _Metric) -> _Metric:
    """The base's command; of two bounds on the same command the stricter."""
    if old is None or new is None or old.run != new.run:
        return old
    return merged_section(old, new, METRIC_COMMAND)


def metric_changes(old: _Metric, new: _Metric, model: ModelPath) -> Iterator[PolicyChange]:
    if old is not None and new is not None and old.run == new.run:
        yield from section_changes(old, new, METRIC_COMMAND, METRIC_KEY, model=model)
    elif old != new:
        yield PolicyChange(
            key=METRIC_KEY,
            old=written(old),
            new=written(new),
            effect="loosened" if new is None else "changed",
            counts="once merged",
            model=model,
        )


def without_commands(models: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    """Entries of a head that no base judges: those with a command have float32 alone, since its
    bound is not known to be kept."""
    return tuple(
        msgspec.structs.replace(each, accuracy="same") if metric_of(each.accuracy) else each
        for each in models
    )


def new_commands(models: Iterable[ModelConfig]) -> Iterator[PolicyChange]:
    """Yields the policy changes for these entries' commands, which nobody has merged."""
    for each in models:
        metric = metric_of(each.accuracy)
        if metric is not None:
            yield from metric_changes(None, metric, each.path)

"""The test whether a model is fast enough: Trimmer's cost objective, on the
end-to-end estimate over all tasks.

(IEEE CLOUD 2022. In the authors' code the sum is over the tasks that still run, so that it drops
when one is stopped, and it knows no weights; here every task counts, as often as it is called.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunegate.artifacts.tasks import TuningTask

TimedTask = tuple[TuningTask, float]
"""A task, and the milliseconds of one call: measured, or what is expected."""


def model_ms(tasks: Iterable[TimedTask]) -> dict[str, float]:
    """The estimate of every model at head."""
    found: dict[str, float] = {}
    for task, milliseconds in tasks:
        for use in task.uses:
            if use.side == "head":
                found[use.model] = found.get(use.model, 0.0) + use.weight * milliseconds
    return found


def is_reached(estimates: Mapping[str, float], targets_ms: Mapping[str, float]) -> bool:
    """Returns whether there is a target, and every model is within its own."""
    return bool(targets_ms) and all(
        estimates.get(model, 0.0) <= limit for model, limit in targets_ms.items()
    )


def parts_of_target(
    shards: Sequence[Sequence[TimedTask]], target_ms: float
) -> list[dict[str, float]]:
    """The time that the tasks of each shard of one hardware target may take of a model's target: in
    proportion to what they are expected to take now."""
    whole = model_ms(timed for shard in shards for timed in shard)
    return [
        {model: target_ms * part / whole[model] for model, part in model_ms(shard).items() if part}
        for shard in shards
    ]

"""The identity of a whole model on a target, to the tuner: which tasks it has, and how often."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.tasks import TuningTask
from tunegate_cache.format.records import WorkloadKey

ModelOnTarget = tuple[ModelPath, str]


def model_keys(
    tasks: Iterable[TuningTask], version: str
) -> dict[ModelOnTarget, dict[Side, WorkloadKey]]:
    """A key for each side of a model: equal for models of equal tasks, whatever their weights.
    `version` is that of this product: another one may compile them otherwise."""
    parts: dict[tuple[ModelOnTarget, Side], list[tuple[str, int]]] = {}
    targets: dict[tuple[ModelOnTarget, Side], str] = {}
    for task in tasks:
        for use in task.uses:
            where = ((use.model, task.target), use.side)
            parts.setdefault(where, []).append((task.key.workload, use.weight))
            targets[where] = task.key.target
    found: dict[ModelOnTarget, dict[Side, WorkloadKey]] = {}
    for (model, side), used in parts.items():
        text = msgspec.json.encode(["model", version, sorted(used)])
        key = WorkloadKey(hashlib.sha256(text).hexdigest(), targets[model, side])
        found.setdefault(model, {})[side] = key
    return found

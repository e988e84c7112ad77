"""Ordinary tuning that teaches others: what a trusted run measured goes to zone `exp`, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from tunegate.artifacts.tasks import TuningTask
from tunegate.config import CacheConfig, Config
from tunegate.cost_model.experience import TaskExperience
from tunegate.edges.cache.experience_zone import write_task
from tunegate.edges.layers.layer_files import word_for_model
from tunegate.edges.machine.cores import default_threads
from tunegate.engine.experience.measured_tasks import TaskIdentity
from tunegate.engine.experience.teaching_tuner import DescribingTuner, Lessons, TeachingTuner
from tunegate.ports import Tuner
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectStore

_WRITE_SECONDS = 3.0
_LAYER_DIGITS = 16
_LONGEST_NAME = 200


class OpenStore(Protocol):
    """The door to the store of a cache; it asks the store nothing yet."""

    def __call__(self, config: CacheConfig, *, root: Path) -> ObjectStore: ...


def sharing(
    tuner: DescribingTuner,
    config: Config,
    open_store: OpenStore,
    root: Path,
    warn: Callable[[str], None],
) -> Tuner:
    """The tuner, which keeps lines where the configuration says so and this run may be trusted."""
    if not teaches_others(config):
        return tuner
    keep = _Keeping(open_store(config.cache, root=root), warn)
    return TeachingTuner(tuner, Lessons(partial(_identity, config), keep))


def teaches_others(config: Config) -> bool:
    """Whether it is asked for, may be written, and comes from a zone that is trusted: a pull
    request that writes to a zone of its own teaches nobody."""
    cache = config.cache
    is_trusted = cache.mode == "rw" and cache.zone in cache.read_zones
    return cache.share_experience and is_trusted


def _identity(config: Config, task: TuningTask) -> TaskIdentity:
    """The compiler's operator is the kind: what it was in the model is not asked again."""
    threads = {target.name: target.threads or default_threads() for target in config.targets}
    sizes = "x".join(map(str, task.shape.extents))
    models = sorted({word_for_model(use.model) for use in task.uses})
    layer = task.key.workload[:_LAYER_DIGITS]
    name = f"{task.operator} {sizes}"[:_LONGEST_NAME]
    return TaskIdentity(name, task.operator, layer, tuple(models), threads[task.target])


class _Keeping:
    """Writes each task within seconds, or warns once and writes no more."""

    def __init__(self, store: ObjectStore, warn: Callable[[str], None]) -> None:
        self._store, self._warn = store, warn
        self._has_failed = False

    def __call__(self, task: TaskExperience) -> None:
        if self._has_failed:
            return
        deadline = time.monotonic() + _WRITE_SECONDS
        asked = {"": partial(write_task, self._store, task)}
        answers = dict(gather_with_deadline(asked, deadline=deadline, monotonic=time.monotonic))
        problem = str(answers.get("", f"no answer in {_WRITE_SECONDS:g} s"))
        if problem:
            self._has_failed = True
            self._warn(f"measured tasks were not written to zone exp ({problem}).")

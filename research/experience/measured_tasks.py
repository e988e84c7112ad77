"""Gathers the tasks of a tuning run as experience for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tunegate.artifacts.tasks import TuningTask
from tunegate.tune.loop_nest import DecisionValues
from tunegate.tune.prior import Sketch, TaskExperience
from tunegate_cache.format.records import TuningRecord

MIN_ROWS = 16
"""A task with fewer teaches too little to be kept."""


class TaskIdentity(NamedTuple):
    """The words of a line about its task; `models` are words for models, the same for the same one,
    and `threads` are those that a candidate gets."""

    name: str
    kind: str
    layer: str
    models: tuple[str, ...]
    threads: int


class MeasuredTasks:
    """Sketches and times by workload. The latest time of a schedule counts: a confirmation comes
    after the quick measurement."""

    def __init__(self) -> None:
        self._sketches: dict[str, dict[str, Sketch]] = {}
        self._times: dict[str, dict[tuple[str, DecisionValues], float]] = {}
        self._device = ""

    def describe(self, workload: str, sketches: Mapping[str, Sketch]) -> None:
        """Notes the templates of a workload."""
        self._sketches[workload] = dict(sketches)

    def enter(self, records: Sequence[TuningRecord]) -> None:
        """Notes what was measured. What failed, and default schedules, have no row."""
        for record in records:
            if record.template and record.status == "ok":
                decided = tuple(values for _, values in record.decisions)
                times = self._times.setdefault(record.key.workload, {})
                self._device = record.device.name
                times[record.template, decided] = float(f"{record.median_ms:.4g}")

    def experience(self, task: TuningTask, identity: TaskIdentity) -> TaskExperience | None:
        """None without a loop nest, or with too few rows."""
        workload = task.key.workload
        sketches = self._sketches.get(workload, {})
        templates = list(sketches)
        rows = tuple(
            (templates.index(template), ms, decided)
            for (template, decided), ms in self._times.get(workload, {}).items()
            if template in sketches
        )
        has_nest = any(sketch.nest is not None for sketch in sketches.values())
        if not has_nest or len(rows) < MIN_ROWS:
            return None
        return TaskExperience(
            name=identity.name,
            sketches=tuple(sketches.values()),
            rows=rows,
            kind=identity.kind,
            layer=identity.layer,
            workload=workload,
            models=identity.models,
            device=self._device,
            threads=identity.threads,
        )

"""Builds whose process died, or that are refused after long work: what would end the same way is
not paid for twice in a run."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tunegate.artifacts.builds import Build
from tunegate.artifacts.candidates import LAUNCH
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import opened_key


class DeadBuilds:
    """`kernels` gives the digest of a model's kernels, '' where there is none: base and head have
    the same one where they differ in weights alone."""

    def __init__(self, kernels: Callable[[ModelJob], str]) -> None:
        self._kernels = kernels
        self._builds: dict[Hashable, Build] = {}

    def add(self, job: BuildJob, build: Build) -> None:
        """Remembers a build that died before anything was linked, and one launch that is refused,
        for which every kernel is timed. What fails when it is run may do so on the inputs of its
        side alone."""
        is_costly = build.crashed or LAUNCH in job.settings
        if build.error is not None and is_costly and not build.key:
            self._builds[self._alike(job)] = build

    def of(self, job: BuildJob) -> Build | None:
        """Returns the dead build of a job with the same kernels, schedules and settings."""
        return self._builds.get(self._alike(job)) if self._builds else None

    def _alike(self, job: BuildJob) -> Hashable:
        file, shapes, target = opened_key(job.model)
        return (
            (job.model.path, self._kernels(job.model) or file, shapes, target),
            tuple(sorted(job.settings.items())),
            frozenset((key, tuple(records)) for key, records in job.records.items()),
            frozenset(job.sources.items()),
        )

"""The files that the configuration names, and whether the models here take the values in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.changes import Revisions
from tunegate.config import WatchConfig
from tunegate.edges.inputs.checked_values import value_problems
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.models.finder import FoundModel
from tunegate.errors import ConfigError, EnvironmentUnfitError, RevisionError
from tunegate.policy.watching import unmatched_globs
from tunegate.project import Project
from tunegate.sides.named_files import described_missing, missing_files
from tunegate.upgrades import installed_watcher


def files_check(project: Project, models: Sequence[FoundModel]) -> Iterator[HealthCheck]:
    """Yields what a run would refuse: it reads commits alone. Nothing of what a run finds by itself
    is told where there is no commit yet."""
    try:
        head = project.repository.head()
    except RevisionError:
        return
    committed = [entry.path for entry in project.repository.files(head)]
    yield from _watch_check(project.config.watch, committed)
    missing = [*missing_files(project.config, Revisions(base=None, head=head), project.identity)]
    problems = [described_missing(each, committed) for each in missing]
    files = {
        each.path: project.repository.root / each.path for each in models if each.inputs is not None
    }
    problems += value_problems(project.repository, project.config, files, head)
    yield from (HealthCheck("files", ok=False, detail=each) for each in problems)


def _watch_check(watch: WatchConfig, committed: Sequence[str]) -> Iterator[HealthCheck]:
    if not watch.files:
        return
    try:
        installed_watcher()
    except (ConfigError, EnvironmentUnfitError) as error:
        yield HealthCheck("watch", ok=False, detail=str(error))
    for each in unmatched_globs(watch, committed):
        yield HealthCheck("watch", ok=True, warns=True, detail=each)

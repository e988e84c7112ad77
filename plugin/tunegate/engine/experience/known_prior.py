"""A search that knows a team's own tasks: the file that the configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tunegate.config import CacheConfig
from tunegate.cost_model.team_prior import NoPriorError, read_team_prior
from tunegate.errors import RevisionError
from tunegate.plurals import plural
from tunegate.ports import Progress

_FILE = "known-prior.json"
_WITHOUT = "Searches know what comes with this version alone."


class Readable(Protocol):
    """The part of a repository that gives files."""

    def read(self, revision: str, path: str) -> bytes: ...


def known_prior(
    cache: CacheConfig, repository: Readable, at: str, workdir: Path, progress: Progress
) -> str:
    """What the file that `cache` names has, as a file for searches; '' where there is none for
    them. It is read `at` the commit whose configuration judges: what a pull request changes in it
    counts once it is merged. One that cannot be used is told, and the run goes on without."""
    if cache.prior is None:
        return ""
    try:
        body = repository.read(at, cache.prior)
        team = read_team_prior(body)
    except RevisionError as error:
        progress.warn(f"cache.prior: {error} {_WITHOUT}")
        return ""
    except NoPriorError as error:
        progress.warn(f"cache.prior: {cache.prior}: {error}. {_WITHOUT}")
        return ""
    workdir.mkdir(parents=True, exist_ok=True)
    file = workdir.absolute() / _FILE
    file.write_bytes(body)
    worth = f"{team.judged.ratio:.2f} of what is lost without"
    progress.step(
        f"searches know {plural(len(team.tasks), 'task')} of {cache.prior}: {worth}, on "
        f"{plural(team.judged.tasks, 'task')} left out"
    )
    return str(file)

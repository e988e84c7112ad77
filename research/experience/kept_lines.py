"""The lines of a collection: each goes to the cache as soon as its task is measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from research.experience.lines import lines_of
from research.experience.zone_tasks import write_task
from tunegate.artifacts import artifact_io
from tunegate.errors import EnvironmentUnfitError
from tunegate.tune.prior import TaskExperience
from tunegate.wording import plural
from tunegate_cache.stores.store import ObjectStore

FILE = "experience.jsonl"


class KeptLines:
    """Measured tasks, and those of them that the cache has not taken."""

    def __init__(self, store: ObjectStore, url: str) -> None:
        self._store, self._url = store, url
        self._unwritten: list[TaskExperience] = []
        self._problem = ""
        self.kinds: Counter[str] = Counter()
        self.rows = 0

    def __call__(self, task: TaskExperience) -> None:
        """Never raises: a task that is not written is kept for `save`."""
        self.kinds[task.kind] += 1
        self.rows += len(task.rows)
        problem = write_task(self._store, task)
        if problem:
            self._problem = problem
            self._unwritten.append(task)

    @property
    def tasks(self) -> int:
        return self.kinds.total()

    @property
    def has_failed(self) -> bool:
        return bool(self._unwritten)

    def save(self, out: Path) -> None:
        """Writes what the cache has not taken to a file. Raises EnvironmentUnfitError, which names
        it, where there is any; OutputError where that cannot be written either."""
        if not self._unwritten:
            return
        artifact_io.write_bytes(out / FILE, lines_of(self._unwritten))
        message = (
            f"{plural(len(self._unwritten), 'task')} could not be written to the cache "
            f"{self._url} ({self._problem}); the lines are in {out / FILE}. "
            "Run tunegate cache doctor."
        )
        raise EnvironmentUnfitError(message)

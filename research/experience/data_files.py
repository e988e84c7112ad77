"""Files of measured tasks, as the scripts of this folder are given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from research.experience.lines import NoTaskError, distinct, task_of_line
from tunegate.cli.option import Argument
from tunegate.errors import ArtifactError, ConfigError
from tunegate.regular_files import read_regular
from tunegate.tune.prior import TaskExperience, experience_of

MEASURED_FILES = Argument(
    "measured tasks, a line of JSON each; default: those that come with this version",
    "FILE",
    Path,
    count=0,
)


def measured_tasks(files: Sequence[Path]) -> tuple[TaskExperience, ...]:
    """The tasks of all files, each once; without a file those that come with this version. Raises
    ArtifactError for a file that cannot be read, or has a line that is no measured task, and
    ConfigError for tasks of CPUs beside those of GPUs."""
    if not files:
        return tuple(experience_of("llvm"))
    tasks = distinct([task for file in files for task in _tasks_of(file)])
    if len({task.is_of_gpu for task in tasks}) > 1:
        message = (
            "the files have tasks of CPUs and of GPUs, whose loops mean other things. Export those "
            "of one kind: --kind llvm, or --kind cuda."
        )
        raise ConfigError(message)
    return tasks


def tasks_of_cpus(files: Sequence[Path]) -> tuple[TaskExperience, ...]:
    """Does what `measured_tasks` does. Raises ConfigError for those of GPUs, too."""
    tasks = measured_tasks(files)
    if any(task.is_of_gpu for task in tasks):
        raise ConfigError("the files have tasks of GPUs. Give those of CPUs: --kind llvm.")
    return tasks


def _tasks_of(file: Path) -> Iterator[TaskExperience]:
    try:
        lines = read_regular(file).splitlines()
    except OSError as error:
        message = f"{file}: cannot be read ({error.strerror}). Give a file of measured tasks."
        raise ArtifactError(message) from error
    for number, line in enumerate(lines, 1):
        try:
            yield task_of_line(line)
        except NoTaskError as error:
            message = f"{file}: line {number} is no measured task ({error}). "
            raise ArtifactError(message + "Remove it, or export the file again.") from error

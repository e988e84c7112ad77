"""Files of measured tasks, as `experience` commands are given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tunegate.cost_model.experience import TaskExperience
from tunegate.cost_model.experience_lines import distinct, fault_of_task
from tunegate.cost_model.prior import experience_of
from tunegate.errors import ArtifactError
from tunegate.regular_files import read_regular


def measured_tasks(files: Sequence[Path]) -> tuple[TaskExperience, ...]:
    """The tasks of all files, each once; without a file those that come with this version. Raises
    ArtifactError for a file that cannot be read, or has a line that is no measured task."""
    if not files:
        return tuple(experience_of("llvm"))
    return distinct([task for file in files for task in _tasks_of(file)])


def _tasks_of(file: Path) -> Iterator[TaskExperience]:
    try:
        lines = read_regular(file).splitlines()
    except OSError as error:
        message = f"{file}: cannot be read ({error.strerror}). Give a file of measured tasks."
        raise ArtifactError(message) from error
    decoder = msgspec.json.Decoder(TaskExperience)
    for number, line in enumerate(lines, 1):
        try:
            task = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _no_task(file, number, str(error)) from error
        if problem := fault_of_task(task):
            raise _no_task(file, number, problem)
        yield task


def _no_task(file: Path, number: int, problem: str) -> ArtifactError:
    advice = "Remove it, or export the file again."
    return ArtifactError(f"{file}: line {number} is no measured task ({problem}). {advice}")

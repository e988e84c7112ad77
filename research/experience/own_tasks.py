"""Judges what tasks of one's own are worth to the trees of the search: trees that know them too,
beside those that ship, on layers left out. Run
`python -m research.experience.own_tasks FILE...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from research.command_line import carried_out
from research.experience.data_files import MEASURED_FILES, tasks_of_cpus
from research.experience.judging.prior_trial import LEAST_TASKS, PriorTrial, prior_trial
from tunegate.cli.command import Command
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.shared_options import Options
from tunegate.errors import PASS, ConfigError
from tunegate.tune.prior import experience_of
from tunegate.wording import plural


class OwnTasksOptions(Options, frozen=True, kw_only=True):
    """Options of a judgement of own tasks."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()


COMMAND = Command(
    name="research.experience.own_tasks",
    summary="judge what your own measured tasks are worth to the trees of the search",
    options=OwnTasksOptions,
    handler="research.experience.own_tasks:run",
    examples=("python -m research.experience.own_tasks experience.jsonl",),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


def run(options: OwnTasksOptions) -> int:
    """Prints both losses and their ratio. Raises ConfigError for tasks of which none can be left
    out, ArtifactError for a file."""
    if not options.files:
        raise ConfigError("give a FILE of your own tasks: what ships is known already.")
    judged = prior_trial(experience_of("llvm"), tasks_of_cpus(options.files))
    if judged is None:
        raise ConfigError(
            "all tasks share a layer or a model, so nothing can be left out. Add tasks of another "
            "model."
        )
    if options.settings.as_json:
        write_json(judged)
    else:
        write_line(_worth(judged))
    return PASS


def _worth(judged: PriorTrial) -> str:
    measured = (
        f"The first 8 picks of trees that know your tasks are {judged.own:.2f} times the best, "
        f"{judged.shipped:.2f} without: {judged.ratio:.2f} of it ({judged.low:.2f} to "
        f"{judged.high:.2f}) on {plural(judged.tasks, 'task')} left out. "
    )
    if judged.is_better:
        return measured + "They are better."
    return (
        measured + f"Nothing is shown: the interval must be below 1, of {LEAST_TASKS} tasks or "
        "more. Collect more."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`tunegate experience train --trees`: a file of own tasks for searches, with what it is worth."""

from __future__ import annotations

import msgspec

from tunegate import artifact_io
from tunegate.cli.commands.experience.train import TrainOptions
from tunegate.commands.experience.data_files import measured_tasks
from tunegate.commands.standard_output import write_json, write_line
from tunegate.cost_model.judging.prior_trial import LEAST_TASKS, PriorTrial, prior_trial
from tunegate.cost_model.prior import experience_of
from tunegate.cost_model.team_prior import KIND, MOST_TASKS, TeamPrior, shipped_sha256
from tunegate.edges.git.repository import MAX_COMMITTED_TEXT_BYTES
from tunegate.edges.output.directory import shared_output
from tunegate.errors import PASS, ConfigError
from tunegate.plurals import plural

_FILE = "prior.json"


def teach_trees(options: TrainOptions) -> int:
    """Raises ConfigError for tasks of which none can be left out, ArtifactError or OutputError for
    a file."""
    if not options.files:
        raise ConfigError("experience train --trees: give a FILE, what ships is known already.")
    tasks = measured_tasks(options.files)
    if len(tasks) > MOST_TASKS:
        raise ConfigError(f"experience train --trees: over {MOST_TASKS} tasks. Give fewer.")
    judged = prior_trial(experience_of(KIND), tasks)
    if judged is None:
        message = (
            "experience train --trees: all tasks share a layer or a model, so nothing can be left "
            "out. Add tasks of another model."
        )
        raise ConfigError(message)
    team = TeamPrior(shipped_sha256=shipped_sha256(), judged=judged, tasks=tasks)
    body = msgspec.json.encode(team)
    if len(body) > MAX_COMMITTED_TEXT_BYTES:
        raise ConfigError("experience train --trees: it would be over 4 MiB. Give fewer tasks.")
    artifact_io.write_bytes(shared_output(options.settings.out) / _FILE, body)
    if options.settings.as_json:
        write_json(judged)
        return PASS
    known = f"{options.settings.out}/{_FILE}: trees that know {plural(len(tasks), 'task')} more"
    write_line(f"{known}. {_worth(judged)}")
    return PASS


def _worth(judged: PriorTrial) -> str:
    measured = (
        f"Their first 8 picks are {judged.own:.2f} times the best, {judged.shipped:.2f} without: "
        f"{judged.ratio:.2f} of it ({judged.low:.2f} to {judged.high:.2f}) on "
        f"{plural(judged.tasks, 'task')} left out. "
    )
    if judged.is_better:
        return measured + "Commit it, and name it as cache.prior."
    return (
        measured + f"Searches do not take it: the interval must be below 1, of {LEAST_TASKS} tasks "
        "or more. Collect more."
    )

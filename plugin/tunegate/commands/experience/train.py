"""`tunegate experience train`: a network meta-trained on measured tasks, as ONNX and JSON."""

from __future__ import annotations

from tunegate.cli.commands.experience.train import TrainOptions
from tunegate.commands.experience.data_files import measured_tasks
from tunegate.commands.experience.taught_trees import teach_trees
from tunegate.commands.experience.training_library import training_library
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.output.directory import shared_output
from tunegate.edges.training.network_files import BODY, CARD, write_network
from tunegate.errors import PASS, ConfigError
from tunegate.plurals import plural

_LEAST_TASKS = 2


def run(options: TrainOptions) -> int:
    """Writes what was trained. Raises ConfigError, EnvironmentUnfitError, ArtifactError or
    OutputError."""
    return teach_trees(options) if options.is_trees else _train_network(options)


def _train_network(options: TrainOptions) -> int:
    """Raises ConfigError for too few tasks, EnvironmentUnfitError without the training library,
    ArtifactError or OutputError for a file."""
    tasks = measured_tasks(options.files)
    if len(tasks) < _LEAST_TASKS:
        raise ConfigError("experience train: one task teaches nothing about others. Give more.")
    body, card = training_library().taught_network(tasks)
    out = shared_output(options.settings.out)
    write_network(out, body, card)
    if options.settings.as_json:
        write_json(card)
        return PASS
    learned = f"{plural(card.tasks, 'task')} with {plural(card.measurements, 'measurement')}"
    write_line(
        f"{options.settings.out}/{BODY} and {CARD}: a network meta-trained on {learned} "
        f"({card.trained_with}). What it is worth: tunegate experience evaluate --network"
    )
    return PASS

"""Meta-trains a network on measured tasks, and writes it as ONNX and JSON. Needs jax and optax. Run
`python -m research.experience.train [FILE...] [--out DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from research.command_line import carried_out
from research.experience.data_files import MEASURED_FILES, tasks_of_cpus
from research.experience.network.network_files import BODY, CARD, write_network
from research.experience.training_library import training_library
from tunegate.cli.command import Command
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.shared_options import Options
from tunegate.errors import PASS, ConfigError
from tunegate.system.output.directory import shared_output
from tunegate.wording import plural

_LEAST_TASKS = 2


class TrainOptions(Options, frozen=True, kw_only=True):
    """Options of the training."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()


COMMAND = Command(
    name="research.experience.train",
    summary="meta-train a network on measured tasks, to compare with the trees",
    options=TrainOptions,
    handler="research.experience.train:run",
    examples=(
        "python -m research.experience.train experience.jsonl",
        "python -m research.experience.train experience.jsonl --out trained",
    ),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


def run(options: TrainOptions) -> int:
    """Writes what was trained. Raises ConfigError for too few tasks, EnvironmentUnfitError without
    the training library, ArtifactError or OutputError for a file."""
    tasks = tasks_of_cpus(options.files)
    if len(tasks) < _LEAST_TASKS:
        raise ConfigError("one task teaches nothing about others. Give more.")
    body, card = training_library().taught_network(tasks)
    out = shared_output(options.settings.out)
    write_network(out, body, card)
    if options.settings.as_json:
        write_json(card)
        return PASS
    learned = f"{plural(card.tasks, 'task')} with {plural(card.measurements, 'measurement')}"
    write_line(
        f"{options.settings.out}/{BODY} and {CARD}: a network meta-trained on {learned} "
        f"({card.trained_with}). What it is worth: research.experience.evaluate --network"
    )
    return PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

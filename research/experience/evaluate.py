"""Judges cost models on layers and models that they have not seen: regrets of first picks, and of
picks after few measurements. Run
`python -m research.experience.evaluate [FILE...] [--network | --trained DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from research.command_line import carried_out
from research.experience.data_files import MEASURED_FILES, measured_tasks
from research.experience.judging.evaluation import WayRegret, way_regrets
from research.experience.judging.folds import Fold, folds
from research.experience.judging.rankers import ADAPTED_TREES, ANALYSIS, TREES, Teach
from research.experience.network.network_card import unseen_fold
from research.experience.network.network_files import read_network
from research.experience.network.network_ranker import FrozenNetwork, NetworkRanker
from research.experience.training_library import training_library
from tunegate.cli.command import Command
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options
from tunegate.errors import PASS, ConfigError
from tunegate.tune.prior import TaskExperience

_COLUMNS = ("ranked by", "picks", "tasks", "median", "95% interval", "geometric mean")


class EvaluateOptions(Options, frozen=True, kw_only=True):
    """Options of a judgement of cost models."""

    files: Annotated[tuple[Path, ...], MEASURED_FILES] = ()
    is_network: Annotated[
        bool,
        Option(
            "judge a network too, trained in each fold: needs jax and optax, and minutes",
            flags=("--network",),
        ),
    ] = False
    trained: Annotated[
        Path | None,
        Option(
            "judge the network that research.experience.train has written there, on tasks of FILE "
            "that share no layer and no model with its own",
            "DIR",
            Path,
            instead_of="is_network",
        ),
    ] = None


COMMAND = Command(
    name="research.experience.evaluate",
    summary="judge what is known before the first trial, on layers and models that it has not seen",
    options=EvaluateOptions,
    handler="research.experience.evaluate:run",
    examples=(
        "python -m research.experience.evaluate",
        "python -m research.experience.evaluate experience.jsonl --json",
        "python -m research.experience.evaluate experience.jsonl --network",
        "python -m research.experience.evaluate experience.jsonl new.jsonl --trained .tunegate",
    ),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    tasks: int
    measurements: int
    judged: tuple[WayRegret, ...]


def run(options: EvaluateOptions) -> int:
    """Prints how much time is lost by each way to pick. Raises ConfigError or ArtifactError."""
    tasks = measured_tasks(options.files)
    ways = _ways(options, tasks)
    judged = way_regrets(ways.parts, TREES | ways.first, ADAPTED_TREES | ways.adapted)
    if not judged:
        raise ConfigError(
            "all tasks share a layer or a model, so nothing can be left out. "
            "Add tasks of another model."
        )
    rows = sum(len(task.rows) for task in tasks)
    if options.settings.as_json:
        write_json(Evaluation(tasks=len(tasks), measurements=rows, judged=judged))
        return PASS
    show_lines([f"{len(tasks)} tasks, {rows} measurements. Best time of the picks over the best:"])
    show_table("", _COLUMNS, _rows(judged))
    return PASS


class _Ways(NamedTuple):
    """The folds of the data, and the ways to rank beside the trees."""

    parts: Iterable[Fold]
    first: dict[str, Teach]
    adapted: dict[str, Teach]


def _ways(options: EvaluateOptions, tasks: Sequence[TaskExperience]) -> _Ways:
    is_of_gpus = any(task.is_of_gpu for task in tasks)
    if is_of_gpus and (options.is_network or options.trained is not None):
        raise ConfigError("the network knows CPUs alone. Give tasks of CPUs, or judge without it.")
    if is_of_gpus:
        return _Ways(folds(tasks), ANALYSIS, {})
    if options.is_network:
        network = training_library()
        return _Ways(folds(tasks), network.NETWORK, network.ADAPTED_NETWORK)
    if options.trained is None:
        return _Ways(folds(tasks), {}, {})
    return _of_file(options.trained, tasks)


def _of_file(directory: Path, tasks: Sequence[TaskExperience]) -> _Ways:
    """Raises ConfigError where FILE lacks what the network was trained on: the trees beside it
    would know less."""
    body, card = read_network(directory)
    fold = unseen_fold(card, tasks)
    if not fold.taught or not fold.left_out:
        lacks = "all of them" if fold.taught else "none of them"
        raise ConfigError(
            f"{directory}: the network was trained on {lacks}. Give the tasks that it was trained "
            "on, and others of other models."
        )
    trained, frozen = NetworkRanker(body, card), FrozenNetwork(body, card)
    adapted: dict[str, Teach] = {
        "network, meta-trained": lambda _: trained,
        "network, frozen": lambda _: frozen,
    }
    return _Ways((fold,), {"network": lambda _: trained}, adapted)


def _rows(judged: Sequence[WayRegret]) -> Iterator[tuple[object, ...]]:
    for each in sorted(judged, key=lambda one: (one.shots, one.picks, one.mean)):
        picks = f"{each.shots} random + {each.picks - each.shots}" if each.shots else each.picks
        interval = f"{each.low:.2f} to {each.high:.2f}"
        yield (each.way, picks, each.tasks, f"{each.median:.2f}", interval, f"{each.mean:.2f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`tunegate experience evaluate`: regrets of first picks, and of picks after few measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.cli.commands.experience.evaluate import EvaluateOptions
from tunegate.commands.experience.data_files import measured_tasks
from tunegate.commands.experience.training_library import training_library
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.cost_model.experience import TaskExperience
from tunegate.cost_model.judging.evaluation import WayRegret, way_regrets
from tunegate.cost_model.judging.folds import Fold, folds
from tunegate.cost_model.judging.rankers import ADAPTED_TREES, TREES, Teach
from tunegate.cost_model.network.network_card import unseen_fold
from tunegate.cost_model.network.network_ranker import FrozenNetwork, NetworkRanker
from tunegate.edges.training.network_files import read_network
from tunegate.errors import PASS, ConfigError

_COLUMNS = ("ranked by", "picks", "tasks", "median", "95% interval", "geometric mean")


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
            "experience evaluate: all tasks share a layer or a model, so nothing can be left out. "
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
    """What is left out, and the ways to rank beside the trees."""

    parts: Iterable[Fold]
    first: dict[str, Teach]
    adapted: dict[str, Teach]


def _ways(options: EvaluateOptions, tasks: Sequence[TaskExperience]) -> _Ways:
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

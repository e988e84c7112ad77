"""The numbers beside the body of a trained network: its scaling, its head, and what it has seen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import msgspec
import numpy as np

from research.experience.judging.folds import Fold, layer_of, unseen
from research.experience.judging.measured_task import MeasuredTask
from tunegate.tune.prior import NEST_COLUMNS, TaskExperience

HIDDEN = 64
WIDTH = 32
"""The numbers that the body makes of a candidate: the head is a line over them."""

_FAR = 8.0
"""The deviations beyond which a column says no more."""


class Scaling(msgspec.Struct, frozen=True):
    """The mean and the deviation of each column in the data that it was trained on."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def scaled(self, columns: np.ndarray) -> np.ndarray:
        """Columns that a candidate lacks are average."""
        found = (columns - np.array(self.means)) / np.array(self.deviations)
        return np.asarray(np.nan_to_num(found).clip(-_FAR, _FAR), np.float32)


class NetworkCard(msgspec.Struct, frozen=True, kw_only=True):
    """`body_sha256` is that of the ONNX file; `head` and `strength` are those of `adapted_head`.
    `layers` and `models` are what it was trained on, and is never judged on."""

    schema: int = 1
    body_sha256: str
    scaling: Scaling
    head: tuple[float, ...]
    strength: float
    data_sha256: str
    tasks: int
    measurements: int
    layers: tuple[str, ...]
    models: tuple[str, ...]
    trained_with: str


def scaling_of(tasks: Sequence[MeasuredTask]) -> Scaling:
    columns = np.concatenate([task.columns for task in tasks])
    known = np.where(np.isnan(columns).all(axis=0), 0.0, columns)
    means, deviations = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    return Scaling(tuple(means.tolist()), tuple((deviations + 1e-3).tolist()))


def data_sha256(tasks: Sequence[TaskExperience]) -> str:
    """The same for the same tasks in any order."""
    lines = sorted(map(msgspec.json.encode, tasks))
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def problem_of_card(card: NetworkCard) -> str:
    """Returns the reason that no network can be made of it, '' where one can."""
    means, deviations = card.scaling.means, card.scaling.deviations
    if not len(means) == len(deviations) == NEST_COLUMNS:
        return f"it is for {len(means)} columns, and this version has {NEST_COLUMNS}"
    if len(card.head) != WIDTH:
        return f"its head is {len(card.head)} wide, not {WIDTH}"
    if not all(map(math.isfinite, (*means, *deviations, *card.head, card.strength))):
        return "it has numbers that are not finite"
    return "" if min(*deviations, card.strength) > 0 else "it divides by zero"


def unseen_fold(card: NetworkCard, tasks: Sequence[TaskExperience]) -> Fold:
    """The tasks that it was trained on, and those that share no layer and no model with them."""
    layers = set(card.layers)
    taught = tuple(task for task in tasks if layer_of(task) in layers)
    return Fold(taught, unseen(tasks, layers, card.models))

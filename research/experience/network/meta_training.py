"""The one door to jax and optax: a small network, meta-trained over many tasks.

Each step draws tasks, and of each 8 or 16 measurements. The inner loop solves for the head on these
(ANIL with a closed form); the outer loop lowers a ranking loss on the others, and one of the head
that nothing has adapted. The loss is LambdaRank's (Burges, 2010): a logistic loss over pairs, each
weighted by how far apart the two time ratios are. MetaTune (Ryu and Sung, 2021) meta-trains a graph
network by MAML; its hyper-parameters are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from research.experience.judging.measured_task import MeasuredTask
from research.experience.network.network_card import HIDDEN, WIDTH, Scaling
from tunegate.tune.prior import NEST_COLUMNS

STEPS = 400
_RATE, _DECAY = 3e-3, 1e-3
_TASKS_A_STEP = 24
_SHOTS = (8, 16)
_SEED = 1
_Weights = dict[str, Any]


class TrainedNetwork(NamedTuple):
    """`body` has the numbers of each layer by name."""

    body: dict[str, np.ndarray]
    head: np.ndarray
    strength: float


class _Batch(NamedTuple):
    """Tasks beside each other, filled up to one length: scaled columns, logarithms of the time
    ratio to 2, and which rows are measurements."""

    columns: np.ndarray
    labels: np.ndarray
    is_row: np.ndarray


def trained_with() -> str:
    return f"jax {jax.__version__}, optax {optax.__version__}"


def meta_trained(
    tasks: Sequence[MeasuredTask], scaling: Scaling, steps: int = STEPS
) -> TrainedNetwork:
    """The same numbers for the same tasks on the same machine. Without steps nothing is learned."""
    rng = np.random.default_rng(_SEED)
    weights = _draw_weights(jax.random.PRNGKey(_SEED))
    state = _optimizer(steps).init(weights)
    whole = _batch(tasks, scaling)
    for _ in range(steps):
        chosen = rng.choice(len(tasks), min(_TASKS_A_STEP, len(tasks)), replace=False)
        batch = _Batch(*(part[chosen] for part in whole))
        weights, state = _step(weights, state, batch, _mark_shots(batch.is_row, rng), steps)
    numbers = {name: np.asarray(value) for name, value in weights.items()}
    strength = float(jax.nn.softplus(numbers.pop("strength")))
    return TrainedNetwork(head=numbers.pop("head"), strength=strength, body=numbers)


@partial(jax.jit, static_argnames="steps")
def _step(
    weights: _Weights, state: Any, batch: _Batch, is_told: Any, steps: int
) -> tuple[_Weights, Any]:
    """Compiled once for tasks of one length."""
    gradient = jax.grad(_loss)(weights, batch, is_told)
    updates, state = _optimizer(steps).update(gradient, state, weights)
    return optax.apply_updates(weights, updates), state


def _optimizer(steps: int) -> Any:
    rate = optax.cosine_decay_schedule(_RATE, max(steps, 1))
    return optax.adamw(rate, weight_decay=_DECAY)


def body_features(body: dict[str, np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Returns the features that the body makes of scaled columns, by jax."""
    return np.asarray(_features(body, columns))


def _draw_weights(key: Any) -> _Weights:
    first, second, third = jax.random.split(key, 3)
    draw, by_columns = jax.random.normal, (2 / NEST_COLUMNS) ** 0.5
    return {
        "first_weight": draw(first, (NEST_COLUMNS, HIDDEN)) * by_columns,
        "first_bias": jnp.zeros(HIDDEN),
        "second_weight": draw(second, (HIDDEN, WIDTH)) * (2 / HIDDEN) ** 0.5,
        "second_bias": jnp.zeros(WIDTH),
        "head": draw(third, (WIDTH,)) * 0.1,
        "strength": jnp.array(1.0),
    }


def _features(weights: _Weights, columns: Any) -> Any:
    hidden = jax.nn.relu(columns @ weights["first_weight"] + weights["first_bias"])
    return jnp.tanh(hidden @ weights["second_weight"] + weights["second_bias"])


def _loss(weights: _Weights, batch: _Batch, is_told: Any) -> Any:
    return jax.vmap(_loss_of_task, (None, 0, 0))(weights, batch, is_told).mean()


def _loss_of_task(weights: _Weights, task: _Batch, is_told: Any) -> Any:
    features = _features(weights, task.columns)
    head = _solve_head(weights, features, task.labels, is_told)
    untold = task.is_row * (1 - is_told)
    before = ranking_loss(features @ weights["head"], task.labels, task.is_row)
    return before + ranking_loss(features @ head, task.labels, untold)


def ranking_loss(scores: Any, labels: Any, counts: Any) -> Any:
    """The loss of pairs of rows that count; 0 is the least. `labels` are logarithms to 2."""
    ratios = 2.0**labels
    better = jnp.maximum(ratios[:, None] - ratios[None], 0) * counts[:, None] * counts[None]
    lost = jax.nn.softplus(scores[None] - scores[:, None])
    return (better * lost).sum() / jnp.maximum(better.sum(), 1e-6)


def _solve_head(weights: _Weights, features: Any, labels: Any, is_told: Any) -> Any:
    """`few_shot_head.adapted_head`, of rows that are marked in place of taken out."""
    count = is_told.sum()
    centred = (features - (features * is_told[:, None]).sum(0) / count) * is_told[:, None]
    wrong = (labels - (labels * is_told).sum() / count) * is_told - centred @ weights["head"]
    strength = jax.nn.softplus(weights["strength"])
    products = centred.T @ centred + strength * jnp.eye(WIDTH)
    return weights["head"] + jnp.linalg.solve(products, centred.T @ wrong)


def _mark_shots(is_row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Marks as many rows of each task as a few shots are."""
    drawn = np.where(is_row > 0, rng.random(is_row.shape), 2.0)
    places = np.argsort(np.argsort(drawn, axis=1), axis=1)
    return np.asarray((places < rng.choice(_SHOTS)) * is_row, np.float32)


def _batch(tasks: Sequence[MeasuredTask], scaling: Scaling) -> _Batch:
    longest = max(len(task.milliseconds) for task in tasks)
    columns = np.zeros((len(tasks), longest, NEST_COLUMNS), np.float32)
    labels = np.zeros((len(tasks), longest), np.float32)
    is_row = np.zeros_like(labels)
    for number, (rows, milliseconds) in enumerate(tasks):
        count = len(milliseconds)
        columns[number, :count] = scaling.scaled(rows)
        labels[number, :count] = np.log2(milliseconds.min() / milliseconds)
        is_row[number, :count] = 1
    return _Batch(columns, labels, is_row)

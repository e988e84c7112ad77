"""The numbers around a network's body, and what it has seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from tests.tune.test_prior import experience

from research.experience.judging.measured_task import in_columns
from research.experience.network.network_card import (
    WIDTH,
    NetworkCard,
    Scaling,
    data_sha256,
    problem_of_card,
    scaling_of,
    unseen_fold,
)
from tunegate.tune.prior import NEST_COLUMNS

CARD = NetworkCard(
    body_sha256="",
    scaling=Scaling((0.0,) * NEST_COLUMNS, (1.0,) * NEST_COLUMNS),
    head=(1.0,) * WIDTH,
    strength=1.0,
    data_sha256="",
    tasks=1,
    measurements=1,
    layers=("a",),
    models=("m",),
    trained_with="",
)


def test_scaled_columns_vary_by_one_about_zero() -> None:
    seen = in_columns(experience())
    scaled = scaling_of([seen]).scaled(seen.columns)
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-3)
    varies = seen.columns.std(axis=0) > 0.1
    assert scaled.std(axis=0)[varies] == pytest.approx(1, abs=0.05)


def test_a_column_that_is_lacking_is_average_and_a_far_one_is_bounded() -> None:
    row = np.full((1, NEST_COLUMNS), math.nan)
    row[0, 1] = 1e30
    assert CARD.scaling.scaled(row)[0, :2].tolist() == [0.0, 8.0]


def test_all_candidates_may_lack_a_column() -> None:
    seen = in_columns(experience())
    seen.columns[:, 3] = math.nan
    assert not np.isnan(scaling_of([seen]).scaled(seen.columns)).any()


def test_the_digest_of_data_knows_no_order() -> None:
    one, other = experience(), replace(experience(), name="other")
    assert data_sha256([one, other]) == data_sha256([other, one]) != data_sha256([one])


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (CARD, ""),
        (replace(CARD, scaling=Scaling((), ())), "columns"),
        (replace(CARD, head=(1.0,)), "1 wide"),
        (replace(CARD, head=(math.nan,) * WIDTH), "not finite"),
        (replace(CARD, strength=0.0), "divides by zero"),
        (replace(CARD, scaling=replace(CARD.scaling, deviations=(0.0,) * NEST_COLUMNS)), "divides"),
    ],
)
def test_a_card_out_of_bounds_says_why(card: NetworkCard, said: str) -> None:
    found = problem_of_card(card)
    assert said in found if said else not found


def test_what_shares_a_layer_or_a_model_with_its_tasks_is_not_unseen() -> None:
    given = [
        replace(experience(), layer=layer, models=(model,)) for layer, model in ("am", "an", "bm")
    ]
    new = replace(experience(), layer="b", models=("n",))
    fold = unseen_fold(CARD, [*given, new])
    assert fold.left_out == (new,)
    assert fold.taught == tuple(given[:2])

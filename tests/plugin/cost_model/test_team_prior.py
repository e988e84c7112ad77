"""A file of own tasks, which may be another's: what of it a search takes."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.plugin.cost_model.judging.test_prior_trial import contrary
from tests.plugin.cost_model.test_experience import SKETCH, decided
from tunegate.cost_model.experience import nest_columns
from tunegate.cost_model.judging.prior_trial import PriorTrial
from tunegate.cost_model.prior import prior_of
from tunegate.cost_model.team_prior import (
    NoPriorError,
    TeamPrior,
    prior_knowing,
    read_team_prior,
    shipped_sha256,
)

BETTER = PriorTrial(tasks=9, shipped=2.0, own=1.5, ratio=0.75, low=0.6, high=0.9)
TEAM = TeamPrior(
    shipped_sha256=shipped_sha256(),
    judged=BETTER,
    tasks=tuple(contrary(str(number)) for number in range(9)),
)


def problem_of(team: TeamPrior) -> str:
    with pytest.raises(NoPriorError) as caught:
        read_team_prior(msgspec.json.encode(team))
    return str(caught.value)


def test_what_was_better_is_taken_and_changes_what_is_expected() -> None:
    team = read_team_prior(msgspec.json.encode(TEAM))
    assert team == TEAM
    rows = [nest_columns(SKETCH, decided(lanes, rows=4)) for lanes in (1, 16)]
    ships = prior_of("llvm")
    assert ships is not None
    narrow, wide = ships.ratios(rows)
    own_narrow, own_wide = prior_knowing(team).ratios(rows)
    assert own_narrow - own_wide > narrow - wide


def test_what_was_not_better_is_refused_with_its_figures() -> None:
    problem = problem_of(replace(TEAM, judged=replace(BETTER, ratio=1.09, high=1.19)))
    assert "not shown to be better" in problem
    assert "1.09 of its loss (0.60 to 1.19) on 9 tasks" in problem


def test_figures_beside_other_data_say_nothing() -> None:
    assert "of another version" in problem_of(replace(TEAM, shipped_sha256="0" * 64))


def test_a_task_that_does_not_hold_together_is_refused() -> None:
    bad = replace(TEAM.tasks[0], rows=((7, 1.0, decided(1)),))
    assert "a row of no sketch" in problem_of(replace(TEAM, tasks=(bad,)))
    assert "no tasks" in problem_of(replace(TEAM, tasks=()))
    assert "another version" in problem_of(replace(TEAM, schema=2))


def test_a_figure_that_is_no_number_is_refused() -> None:
    body = msgspec.json.encode(TEAM).replace(b'"ratio":0.75', b'"ratio":1e999')
    with pytest.raises(NoPriorError):
        read_team_prior(body)
    assert not math.isfinite(1e999)


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(NoPriorError):
        read_team_prior(body)

"""Trees that know a team's own tasks: a file of data, with what it was judged to be worth."""

from __future__ import annotations

import math

import msgspec

from tunegate.cost_model.experience import TaskExperience
from tunegate.cost_model.experience_lines import fault_of_task
from tunegate.cost_model.judging.prior_trial import LEAST_TASKS, PriorTrial
from tunegate.cost_model.network.network_card import data_sha256
from tunegate.cost_model.prior import Prior, experience_of

KIND = "llvm"
"""The kind of target that experience is of."""
MOST_TASKS = 5_000


class TeamPrior(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks` are what the trees are fitted to beside the data that ship, whose digest is
    `shipped_sha256`; `judged` is what that was worth on layers left out."""

    schema: int = 1
    shipped_sha256: str
    judged: PriorTrial
    tasks: tuple[TaskExperience, ...]


class NoPriorError(ValueError):
    """A file is nothing that a search may know; the text says why."""


def read_team_prior(body: bytes) -> TeamPrior:
    """Raises NoPriorError, also for one that was not shown to be better than what ships."""
    try:
        found = msgspec.json.decode(body, type=TeamPrior)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NoPriorError(f"not written by experience train --trees ({error})") from error
    if problem := _problem(found):
        raise NoPriorError(problem)
    return found


def prior_knowing(team: TeamPrior) -> Prior:
    return Prior((*experience_of(KIND), *team.tasks))


def shipped_sha256() -> str:
    return data_sha256(experience_of(KIND))


def _problem(team: TeamPrior) -> str:
    if team.schema != 1:
        return "of another version of tunegate"
    if not 0 < len(team.tasks) <= MOST_TASKS:
        return "no tasks, or too many"
    if fault := next(filter(None, map(fault_of_task, team.tasks)), ""):
        return f"a task that cannot be used: {fault}"
    if team.shipped_sha256 != shipped_sha256():
        return "judged beside the data of another version: train it again"
    return _doubt(team.judged)


def _doubt(judged: PriorTrial) -> str:
    if not all(map(math.isfinite, msgspec.structs.astuple(judged))):
        return "judged by numbers that are not finite"
    if judged.is_better:
        return ""
    return (
        f"not shown to be better than what ships: {judged.ratio:.2f} of its loss "
        f"({judged.low:.2f} to {judged.high:.2f}) on {judged.tasks} tasks left out, and all of "
        f"the interval must be below 1, of {LEAST_TASKS} tasks or more"
    )

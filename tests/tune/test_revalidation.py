import io
import math
import re
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import tuning_tasks
from tests.support.measured_cells import MODEL, TARGET, make_build, make_builds, make_context
from tests.support.simulated.hand_clock import HandClock
from tunegate.artifacts.builds import ErrorEstimate, RefusedCandidate, RuntimeChoice
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Shard
from tunegate.artifacts.tasks import ResolvedTask, TaskUse
from tunegate.artifacts.verdicts import WarmedModel
from tunegate.config import BudgetConfig, Config, TargetConfig
from tunegate.models.export_models import ModelFiles
from tunegate.ports import Publish
from tunegate.system.progress.shown_progress import PlainLog
from tunegate.tune.outcomes import known_after, shippings, warmed_models
from tunegate.tune.refit import adapt, nearest_factors
from tunegate.tune.revalidation import (
    Challenge,
    RevalidationStatus,
    challenges,
    revalidate,
)
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions
from tunegate_cache.format.records import ExactHit, Miss, TuningRecord

MODELS: ModelFiles = {("m.onnx", "head"): ShapedModel(Path("/m.onnx"), {})}


class Rechecking:
    """Measures every schedule at the time that it claims."""

    notes = ()

    def __init__(self, clock: HandClock | None = None) -> None:
        self.shards: list[Shard] = []
        self.clock = clock or HandClock()

    def tune(self, shard: Shard, models: ModelFiles, publish: Publish) -> Iterator[TaskOutcome]:
        raise NotImplementedError

    def recheck(self, shard: Shard, models: ModelFiles) -> Iterator[TaskOutcome]:
        assert models == MODELS
        self.shards.append(shard)
        for planned in shard.tasks:
            task, lookup = planned.resolved.task, planned.resolved.lookup
            records = lookup.records  # type: ignore[union-attr]  # what stands is a start
            self.clock.now += 40
            yield replace(
                tuning_tasks.make_outcome(records=records, before_ms=10.0),
                key=task.key,
                target=task.target,
            )


def standing(name: str, target: str) -> Challenge:
    theirs = tuning_tasks.make_record(name, milliseconds=1.0, target=target)
    theirs = replace(theirs, decisions=((3, (1, 1)),))
    ours = tuning_tasks.make_record(name, milliseconds=2.0, target=target)
    return Challenge(
        task=tuning_tasks.make_task(name, target=target), challengers=(theirs,), incumbent=ours
    )


NO_CAP = BudgetConfig(minutes=None)


def config_of(every: Sequence[Challenge], budget: BudgetConfig) -> Config:
    targets = (TargetConfig(name=name) for name in {each.task.target for each in every})
    return Config(models=(), targets=tuple(targets), budget=budget)


def outcome_of(
    every: Sequence[Challenge], tuner: Rechecking, budget: BudgetConfig = NO_CAP
) -> tuple[list[RevalidationStatus], list[TuningRecord], str]:
    said, published = io.StringIO(), list[TuningRecord]()

    def publish(records: Sequence[TuningRecord]) -> bool:
        published.extend(records)
        return True

    context = make_context(Path(), PlainLog(said, update_seconds=0.0), tuner.clock)
    results, are_published = revalidate(
        every, MODELS, tuner, config_of(every, budget), context=context, publish=publish
    )
    assert are_published
    return [result.status for result in results], published, said.getvalue()


def test_every_target_is_measured_once_and_every_candidacy_is_decided_in_its_order() -> None:
    every = [standing("a", "cpu"), standing("b", "gpu"), standing("c", "cpu")]
    tuner = Rechecking()
    results, published, said = outcome_of(every, tuner)
    assert [(shard.target, len(shard.tasks)) for shard in tuner.shards] == [("cpu", 2), ("gpu", 1)]
    assert re.findall("measure: .*", said) == ["measure: 2 tasks on cpu", "measure: 1 task on gpu"]
    assert results == ["taken"] * 3
    assert published == [every[at].challengers[0] for at in (0, 2, 1)]


@pytest.mark.parametrize(
    ("budget", "shares"),
    [
        (BudgetConfig(minutes=1.0), [(60, None), (20, None)]),
        (BudgetConfig(minutes=None, usd=1.0, usd_per_hour=60.0), [(60, None), (20, None)]),
        (BudgetConfig(minutes=None, trials=16), [(None, 16), (None, 8)]),
    ],
    ids=["minutes", "dollars", "trials"],
)
def test_all_targets_share_the_budget(budget: BudgetConfig, shares: list[object]) -> None:
    every = [standing(name, name) for name in ("cpu", "gpu", "npu")]
    tuner = Rechecking()
    assert outcome_of(every, tuner, budget)[0] == ["taken", "taken", "not-measured"]
    budgets = [shard.budget for shard in tuner.shards]
    assert [(b.seconds and round(b.seconds), b.trials) for b in budgets] == shares


def test_the_winners_of_a_target_are_published_before_the_next_is_measured() -> None:
    """A cancelled run keeps them. Later ones may be delivered where one was not."""
    answers = iter([False, True])
    clock, times = HandClock(), list[tuple[float, int]]()

    def publish(records: Sequence[TuningRecord]) -> bool:
        times.append((clock.now, len(records)))
        return next(answers)

    every = [standing("a", "cpu"), standing("b", "gpu"), standing("c", "cpu")]
    context = make_context(Path(), PlainLog(io.StringIO()), clock)
    tuner = Rechecking(clock)
    config = config_of(every, NO_CAP)
    found = revalidate(every, MODELS, tuner, config, context=context, publish=publish)
    assert (times, found[1]) == ([(80, 2), (120, 1)], False)


def test_where_nothing_stands_nothing_is_measured() -> None:
    tuner = Rechecking()
    assert outcome_of([], tuner)[:2] == ([], [])
    assert tuner.shards == []


def test_that_the_default_schedule_won_is_promoted_where_the_zone_knows_nothing() -> None:
    """Otherwise the push of the merge searches again for what its pull request did not find."""
    task = tuning_tasks.make_task("a", target="cpu")
    slower = replace(tuning_tasks.make_record("a", milliseconds=11.0), key=task.key)
    won = replace(slower, template="", decisions=(), run_nanoseconds=(10_000_000,))
    theirs = {task.key: ExactHit((won, slower))}
    found = challenges([task], theirs, {})
    assert outcome_of(found, Rechecking())[:2] == (["taken"], [won])
    assert challenges([task], theirs, {task.key: ExactHit((won,))})[0].challengers == (slower,)
    faster = replace(slower, run_nanoseconds=(1_000_000,))
    found = challenges([task], {task.key: ExactHit((won, faster))}, {})
    assert outcome_of(found, Rechecking())[:2] == (["taken"], [faster])


RESOLVED = (
    ResolvedTask(tuning_tasks.make_task("known"), tuning_tasks.exact("known")),
    ResolvedTask(tuning_tasks.make_task("tuned"), Miss("absent")),
    ResolvedTask(tuning_tasks.make_task("begun"), tuning_tasks.transfer()),
    ResolvedTask(tuning_tasks.make_task("small"), Miss("absent")),
    ResolvedTask(tuning_tasks.make_task("left"), Miss("absent")),
)
DEFAULT = replace(tuning_tasks.make_record("small", times=3), template="", decisions=())
OUTCOME = tuning_tasks.make_tuning(
    tuning_tasks.make_outcome("tuned", records=(tuning_tasks.make_record("tuned"),)),
    tuning_tasks.make_outcome("begun", records=(tuning_tasks.make_record("begun", times=3),)),
    tuning_tasks.make_outcome("small", records=(DEFAULT,), trials=0),
    tuning_tasks.make_outcome("left", records=tuning_tasks.transfer().records),
)


def test_what_is_confirmed_or_has_only_a_default_schedule_is_known() -> None:
    known = known_after(RESOLVED, [OUTCOME])
    assert known == {tuning_tasks.key_of(name) for name in ("known", "tuned", "small")}


def test_every_model_counts_its_own_tasks() -> None:
    other = TaskUse(model="n.onnx", side="head", weight=2, name="conv")
    shared = replace(RESOLVED[1].task, uses=(*RESOLVED[1].task.uses, other))
    resolved = (RESOLVED[0], ResolvedTask(shared, Miss("absent")), *RESOLVED[2:])
    assert warmed_models(resolved, [OUTCOME]) == (
        WarmedModel(model="m.onnx", target="cpu", tasks=5, known_before=1, known=3, measured=1),
        WarmedModel(model="n.onnx", target="cpu", tasks=1, known_before=0, known=1),
    )


def test_a_model_ships_as_it_was_built_now_and_else_as_it_was_elected() -> None:
    error = ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=74)
    head = replace(make_build(), title="Any (int8)", error_estimate=(error,))
    built = make_builds(None, head)
    int8 = CandidateBuild(runtime="any", title="Any (int8)", settings={"precision": "int8"})
    alone = CandidateBuild(runtime="any", title="Any")
    now, earlier, only, nothing = ((MODEL, TARGET), ("e", "cpu"), ("o", "cpu"), ("n", "cpu"))
    elected = {earlier: int8, only: alone}
    found = shippings((now, earlier, only, nothing), (built,), elected, {earlier})
    expected = [(MODEL, "Any (int8)"), ("e", "Any (int8)"), ("o", "Any")]
    assert [(each.model, each.title) for each in found] == expected
    assert found[0].estimates == (error,)
    assert [each.has_unknown_error for each in found] == [False, True, False]
    assert [each.is_remembered for each in found] == [False, True, False]


def test_it_is_told_which_candidate_died_and_what_the_others_gave_up() -> None:
    refused = (
        RefusedCandidate(
            candidate="tvm-whole",
            title="TVM (whole)",
            reason="the compiler failed (CUDA error 700)",
        ),
        RefusedCandidate(candidate="odd", title="Odd", reason="no LSTM", is_lasting=True),
    )
    head = replace(
        make_build(),
        title="TVM",
        choice=RuntimeChoice(refused=refused),
        without_picks="the compiler failed (CUDA error 716)",
    )
    (found,) = shippings([(MODEL, TARGET)], [make_builds(None, head)], {}, ())
    assert found.trouble == (
        "built without transferred schedules, with them: the compiler failed (CUDA error 716)",
        "TVM (whole): the compiler failed (CUDA error 700)",
    )


def test_a_model_that_nothing_runs_ships_with_nothing() -> None:
    (found,) = shippings([(MODEL, TARGET)], [make_builds(None, make_build(error="odd"))], {}, ())
    assert (found.title, found.reason) == ("", "odd")


# Refitted tiles multiply to the extent, keep their bounds, and are the nearest there are.

sources = st.lists(st.integers(1, 64), min_size=1, max_size=5).map(tuple)


@given(st.integers(1, 100_000), sources, st.integers(1, 64))
def test_the_factors_multiply_to_the_extent(
    extent: int, source: tuple[int, ...], max_innermost: int
) -> None:
    factors = nearest_factors(extent, source, max_innermost)
    assert len(factors) == len(source)
    assert math.prod(factors) == extent
    assert all(factor >= 1 for factor in factors)


@given(st.integers(1, 360), st.lists(st.integers(1, 32), min_size=2, max_size=4).map(tuple))
def test_no_other_factorization_is_nearer(extent: int, source: tuple[int, ...]) -> None:
    def distance(factors: tuple[int, ...]) -> float:
        apart = sum(abs(math.log2(f / d)) for f, d in zip(factors[1:], source[1:], strict=True))
        return apart + 0.25 * max(0.0, math.log2(factors[-1] / source[-1]))

    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    inner = product(divisors, repeat=len(source) - 1)
    all_factors = [(extent // math.prod(i), *i) for i in inner if extent % math.prod(i) == 0]
    allowed = [factors for factors in all_factors if factors[-1] <= 16]
    assert distance(nearest_factors(extent, source, 16)) <= min(map(distance, allowed)) + 1e-9


def test_an_extent_with_many_divisors_takes_no_noticeable_time() -> None:
    started = time.process_time()
    assert math.prod(nearest_factors(98_280, (3, 7, 5, 11, 13), 64)) == 98_280
    assert time.process_time() - started < 2.0


TEMPLATE = (
    SamplingInstruction(index=2, kind="perfect-tile", n=3, max_innermost=16, extent=500),
    SamplingInstruction(index=5, kind="categorical", candidates=4),
    SamplingInstruction(index=9, kind="compute-location"),
)


def test_tiles_are_refitted_and_the_rest_is_kept() -> None:
    adapted = adapt(((2, (8, 8, 8)), (5, (3,)), (9, (-1,))), TEMPLATE)
    assert adapted is not None
    assert math.prod(adapted[0][1]) == 500
    assert adapted[1:] == ((5, (3,)), (9, (-1,)))
    assert check_decisions(adapted, TEMPLATE) is None


@pytest.mark.parametrize(
    "decisions",
    [
        ((2, (8, 8, 8)), (5, (3,))),
        ((3, (8, 8, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 0, 8)), (5, (3,)), (9, (-1,))),
        ((2, (8, 8, 8)), (5, (4,)), (9, (-1,))),
    ],
    ids=["one missing", "another place", "another depth", "no factor", "no such choice"],
)
def test_decisions_of_another_template_are_not_adapted(
    decisions: tuple[tuple[int, tuple[int, ...]], ...],
) -> None:
    assert adapt(decisions, TEMPLATE) is None


def test_a_partitioned_tile_is_used_only_where_it_fits() -> None:
    template = (SamplingInstruction(index=0, kind="partitioned-tile", n=2, extent=32),)
    assert adapt(((0, (4, 8)),), template) == ((0, (4, 8)),)
    assert adapt(((0, (4, 4)),), template) is None


def test_a_tile_of_unknown_extent_stays_as_it_is() -> None:
    template = (SamplingInstruction(index=0, kind="perfect-tile", n=2),)
    assert adapt(((0, (4, 8)),), template) == ((0, (4, 8)),)

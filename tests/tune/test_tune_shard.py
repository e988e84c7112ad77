"""Driving a tuner: what is kept, counted and said, also when it is cancelled."""

import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.plan.shelf import Shelf
from tests.support.measured_cells import StillMachine, make_context
from tests.support.plans import plan_of
from tests.support.simulated.hand_clock import HandClock
from tests.support.tuning_tasks import (
    exact,
    key_of,
    make_outcome,
    make_planned,
    make_record,
    make_shard,
    make_task,
    make_tuning,
    transfer,
)
from tunegate.artifacts import plans
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.tasks import Skipped, TaskUse
from tunegate.errors import CancelledError, EnvironmentUnfitError
from tunegate.models.export_models import ModelFiles
from tunegate.ports import Publish
from tunegate.system.processes.signals import cancellable, raise_if_cancelled
from tunegate.tune.expected_time import nobody, skipped_tasks
from tunegate.tune.model_keys import ModelOnTarget
from tunegate.tune.outcomes import tally
from tunegate.tune.tune_shard import tune
from tunegate_cache.format.records import Lookup, Miss, TransferHit

Step = TaskOutcome | BaseException


class ScriptedTuner:
    """Publishes one record and yields one outcome per step, or raises it."""

    def __init__(self, clock: HandClock, steps: Sequence[Step]) -> None:
        self._clock, self._steps = clock, steps
        self.is_closed = False
        self.notes = ("the clocks float",)

    def tune(
        self, shard: plans.Shard, models: ModelFiles, publish: Publish
    ) -> Iterator[TaskOutcome]:
        try:
            for number, step in enumerate(self._steps):
                self._clock.now += 10
                if isinstance(step, BaseException):
                    raise step
                publish([make_record(step.name, at=number)])
                yield step
        finally:
            self.is_closed = True

    def recheck(self, shard: plans.Shard, models: ModelFiles) -> Iterator[TaskOutcome]:
        """Tuning never asks for it."""
        raise NotImplementedError


class Lines:
    def __init__(self, raises_at: int = 0) -> None:
        self.updates: list[str] = []
        self._raises_at = raises_at

    def expect(self, steps: Sequence[plans.ExpectedStep]) -> None: ...
    def step(self, text: str, kind: plans.StepKind | None = None) -> None: ...
    def warn(self, text: str) -> None: ...
    def update(self, text: str, seconds_left: float | None = None) -> None:
        self.updates.append(text)
        if len(self.updates) == self._raises_at:
            raise CancelledError("stopped by SIGTERM")


def tuned(
    *steps: Step,
    planned: Sequence[plans.PlannedTask] = (),
    shelf: Shelf | None = None,
    lines: Lines | None = None,
    budget: plans.Budget | None = None,
) -> tuple[TuningOutcome, ScriptedTuner]:
    usual = plans.Budget(seconds=600, trials=None, usd_per_hour=3.6)
    tasks = planned or (make_planned(make_task("a")), make_planned(make_task("b")))
    shard = make_shard(*tasks, index=3, budget=budget or usual, predicted_seconds=60)
    clock = HandClock(1000.0)
    tuner = ScriptedTuner(clock, steps)
    outcome = tune(
        shard,
        {},
        tuner=tuner,
        index=shelf or Shelf(),
        context=make_context(Path(), lines or Lines(), clock),
    )
    return outcome, tuner


def test_the_last_outcome_of_each_task_is_the_one_that_counts() -> None:
    outcome, _ = tuned(
        make_outcome("a", best_ms=5.0, stopped="finished"),
        make_outcome("b", best_ms=2.0),
        make_outcome("a", best_ms=1.0, trials=24),
    )
    assert [(t.name, t.best_ms, t.trials) for t in outcome.tasks] == [("a", 1.0, 24), ("b", 2.0, 8)]
    assert (outcome.shard, outcome.target, outcome.stopped) == (3, "cpu", "converged")


def test_thousands_of_tasks_that_the_cache_answers_take_no_time() -> None:
    names = [f"t{number}" for number in range(2_000)]
    started = time.process_time()
    tuned(
        *(make_outcome(name, trials=0) for name in names),
        planned=[make_planned(make_task(name)) for name in names],
    )
    assert time.process_time() - started < 2.0


def test_the_curve_is_of_all_tasks_and_starts_before_anything_is_spent() -> None:
    planned = [
        make_planned(make_task("a", weight=3)),
        make_planned(make_task("b"), exact("b", milliseconds=4.0), trials=0),
    ]
    outcome, _ = tuned(make_outcome("a", best_ms=2.0), planned=planned)
    assert outcome.curve[0][0] == 0.0
    assert outcome.curve[0][1] > outcome.curve[-1][1]
    assert outcome.curve[-1] == (10.0, 3 * 2.0 + 4.0)


@pytest.mark.parametrize("signal", [KeyboardInterrupt(), CancelledError("stopped by SIGTERM")])
def test_what_is_done_when_cancelled_is_kept(signal: BaseException) -> None:
    outcome, _ = tuned(make_outcome("a", best_ms=1.5), signal)
    assert outcome.stopped == "cancelled"
    expected = [("cancelled", 1.5), ("not-started", None)]
    assert [(t.stopped, t.best_ms) for t in outcome.tasks] == expected


def test_a_cancelled_tuner_is_closed_at_once() -> None:
    outcome, tuner = tuned(make_outcome("a"), make_outcome("b"), lines=Lines(raises_at=1))
    assert tuner.is_closed
    assert (outcome.stopped, outcome.spent.seconds) == ("cancelled", 10)


def test_a_cancel_while_the_last_records_are_sent_keeps_the_outcome_and_ends_the_run() -> None:
    class Interrupted(Shelf):
        def flush(self, seconds: float) -> int:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().flush(seconds)

    kept = []

    def run() -> None:
        with cancellable():
            kept.append(tuned(make_outcome("a", best_ms=1.5), shelf=Interrupted())[0])
            raise_if_cancelled()  # as the next step does
            raise AssertionError("the run goes on")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert kept[0].tasks[0].best_ms == 1.5


def test_a_broken_machine_is_not_taken_for_an_outcome() -> None:
    with pytest.raises(EnvironmentUnfitError, match="no compiler"):
        tuned(make_outcome("a"), EnvironmentUnfitError("no compiler here"))


def test_records_are_published_while_tuning_and_trouble_is_a_note() -> None:
    shelf = Shelf(is_open=lambda call: call != 2)
    outcome, _ = tuned(make_outcome("a"), make_outcome("b"), make_outcome("b"), shelf=shelf)
    assert len(shelf.records) == 2
    assert outcome.notes == ("records not published to the cache: 1", "the clocks float")


def test_records_that_are_still_on_their_way_at_the_end_are_told() -> None:
    shelf = Shelf()
    shelf.on_their_way = 3
    outcome, _ = tuned(make_outcome("a"), shelf=shelf)
    assert outcome.notes == ("records not published to the cache: 3", "the clocks float")


def test_a_run_at_its_limit_says_which() -> None:
    steps = make_outcome("a", stopped="budget"), make_outcome("b", stopped="budget")
    money = plans.Budget(seconds=10.0, trials=None, usd=0.01, usd_per_hour=3.6)
    assert tuned(*steps, budget=money)[0].stopped == "usd"
    assert tuned(*steps, budget=plans.Budget(seconds=15, trials=None))[0].stopped == "seconds"
    assert tuned(*steps, budget=plans.Budget(seconds=None, trials=16))[0].stopped == "trials"


@pytest.mark.parametrize(("trials", "told"), [(0, True), (3, False)])
def test_a_machine_that_was_too_busy_for_a_trial_is_told(
    trials: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = {"load average": "13.70 8.00 4.00", "cores": "2"}
    monkeypatch.setattr(StillMachine, "environment", lambda _: busy)
    steps = [make_outcome(name, trials=trials, stopped="budget") for name in "ab"]
    found, _ = tuned(*steps, budget=plans.Budget(seconds=15, trials=None))
    said = "no trial fitted into the time: the load was 13.7 on 2 cores. Tune on a quieter runner"
    assert (said in found.notes) is told


def test_progress_is_one_line_for_each_batch() -> None:
    lines = Lines()
    tuned(make_outcome("a", best_ms=1.25), make_outcome("b", best_ms=None), lines=lines)
    assert lines.updates[0].startswith("a: 1.250 ms so far, 8 trials; all tasks of head ")
    assert lines.updates[0].endswith("10 of 600 s, 8 trials")
    assert lines.updates[1].startswith("b: no time yet, 8 trials")


def test_the_time_told_is_of_one_side_and_a_layer_of_base_says_so() -> None:
    """A layer that was changed is two tasks of one name; both together are the time of no model."""
    lines = Lines()
    planned = [make_planned(make_task("a")), make_planned(make_task("b", sides=("base",)))]
    outcomes = make_outcome("a", best_ms=2.0), make_outcome("b", best_ms=5.0, trials=0)
    tuned(*outcomes, planned=planned, lines=lines)
    assert lines.updates[-1].startswith("b (base): 5.000 ms, no trial; all tasks of head 2.000 ms;")


M, N = ("m.onnx", "cpu"), ("n.onnx", "cpu")


@pytest.mark.parametrize(
    ("uses", "behind", "reason"),
    [
        (("m head",), (), ""),
        (("m base",), (), ""),
        (("m base", "m head"), (), "shared"),
        (("m head",), (M,), "behind"),
        (("m base", "m head"), (M,), "behind"),
        (("m head", "n head"), (M,), ""),
        (("m head", "n base", "n head"), (M,), "behind"),
        (("m base", "m head", "n head"), (M,), ""),
        (("m base", "m head", "n head"), (M, N), "behind"),
    ],
)
def test_why_a_task_is_left_as_it_is(
    uses: tuple[str, ...], behind: Collection[ModelOnTarget], reason: Skipped
) -> None:
    made = tuple(use_of(text) for text in uses)
    task = replace(make_task(), uses=made)
    heads = make_task("of every head")
    compiled = replace(heads, uses=(use_of("m head"), use_of("n head")))
    assert skipped_tasks([task, compiled], behind)[task.key, "cpu"] == reason


def use_of(text: str) -> TaskUse:
    model, side = text.split()
    sides: dict[str, Side] = {"base": "base", "head": "head"}
    return TaskUse(model=f"{model}.onnx", side=sides[side], weight=1, name="conv")


def test_nobody_is_behind_where_nothing_says_so() -> None:
    assert nobody([make_task()]) == ()


NAMES = ("known", "tuned", "begun", "resumed", "failed", "left", "waiting", "small")
RESUMED = TransferHit((key_of("resumed"),), 0.0, (make_record("resumed", times=3),))
LOOKUPS: dict[str, Lookup] = {"known": exact("known"), "begun": transfer(), "resumed": RESUMED}
OUTCOME = make_tuning(
    make_outcome("tuned", records=(make_record("tuned"),)),
    make_outcome("begun", records=(make_record("begun", times=3),), stopped="budget"),
    make_outcome("failed", stopped="failed"),
    make_outcome("left", trials=0, stopped="not-started"),
    make_outcome("small", trials=0, records=(make_record("small"),)),
    stopped="seconds",
)


def planned() -> plans.TuningPlan:
    made = plan_of(
        [make_task(name) for name in NAMES], [LOOKUPS.get(name, Miss("absent")) for name in NAMES]
    )
    skipped: dict[str, Skipped] = {"waiting": "shared"}
    tasks = tuple(
        replace(each, skipped=skipped.get(name, ""))
        for name, each in zip(NAMES, made.resolution.tasks, strict=True)
    )
    return replace(made, resolution=replace(made.resolution, tasks=tasks))


def test_the_summary_of_tuning_counts_these_parts() -> None:
    told = tally(planned(), [OUTCOME])
    counted = (told.tasks, told.exact, told.tuned, told.measured, told.begun, told.waiting)
    assert counted == (8, 1, 1, 1, 2, 1)

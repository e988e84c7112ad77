import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.measured_cells import make_job
from tests.support.present import present
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_tasks import make_planned, make_shard
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget, PlannedTask
from tunegate.artifacts.tasks import Claims, RecordOrigin, ResolvedTask, TuningTask
from tunegate.compiler.versions import toolchain
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError
from tunegate.ports import ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.tune.parallel_measurement import Parallelism
from tunegate.tune.tuner import EngineTuner
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Miss,
    Provenance,
    TuningRecord,
)

TARGET = TargetConfig(name="cpu", threads=1)
DEVICE = DeviceFingerprint(name="test", kind="cpu", units=1, memory_bytes=1)


class Workshop:
    """The real compiler and the real tuner over one model."""

    def __init__(self, directory: Path, model: Path, *, on_ray: bool = False) -> None:
        self.model = model
        self.published: list[TuningRecord] = []
        self.compiler = MetaScheduleCompiler(directory / "compiler", seed=1)
        self.tuner = EngineTuner(
            seed=1,
            config=Config(
                models=(ModelConfig(path="m.onnx"),),
                targets=(TARGET,),
                executor="ray" if on_ray else "local",
            ),
            origin=RecordOrigin(device=DEVICE, toolchain=toolchain(), source=Provenance()),
            clock=time,
            programs=PROGRAMS,
            scratch=directory / "tuner",
        )
        self.job = ModelJob(file=model, path="m.onnx", shapes={}, target=TARGET)

    def tasks(self) -> Sequence[TuningTask]:
        (answer,) = self.compiler.tasks([self.job])
        assert not isinstance(answer, ModelError)
        return answer

    def tune(
        self, budget: Budget, lookup: Lookup | None = None, trials: int = 16
    ) -> list[TaskOutcome]:
        return list(self.outcomes(budget, lookup, trials))

    def outcomes(
        self, budget: Budget, lookup: Lookup | None = None, trials: int = 16
    ) -> Iterator[TaskOutcome]:
        """The outcomes as they come."""
        tasks = [t for t in self.tasks() if "conv" in t.operator]
        planned = (make_planned(each, lookup, trials=trials) for each in tasks)
        shard = make_shard(*planned, budget=budget)
        return self.tuner.tune(
            shard, {("m.onnx", "head"): ShapedModel(self.model, {})}, self._publish
        )

    def _publish(self, records: Sequence[TuningRecord]) -> bool:
        self.published.extend(records)
        return True


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    directory = tmp_path_factory.mktemp("workshop")
    # With three channels out no default schedule is good.
    model = save(conv_model(channels=16, out=3, size=28), directory / "m.onnx")
    made = Workshop(directory, model)
    yield made
    made.compiler.close()


@pytest.fixture(scope="module")
def tuned(workshop: Workshop) -> TaskOutcome:
    return workshop.tune(Budget(seconds=None, trials=16))[-1]


def test_tuning_beats_the_default_schedule_and_publishes_every_candidate(
    workshop: Workshop, tuned: TaskOutcome
) -> None:
    assert tuned.trials == 16
    assert present(tuned.best_ms) < present(tuned.before_ms)
    assert len(workshop.published) >= 16
    assert {record.key for record in workshop.published} == {tuned.key}


def test_the_history_has_every_candidate_and_why_it_was_tried(tuned: TaskOutcome) -> None:
    looks = [cost for cost in tuned.costs if cost.stage == "quick"]
    assert len(looks) == tuned.trials + 1  # the default schedule
    picks = [cost.pick for cost in looks]
    assert picks.count("given") == 1
    assert picks.count("predicted") >= 4  # by what is known from before, from the first batch on
    assert [cost for cost in tuned.costs if cost.stage == "confirm"]
    assert any(cost.improved for cost in looks)
    spent = sum(cost.build_seconds + cost.run_seconds for cost in looks)
    assert spent == pytest.approx(tuned.seconds)
    assert tuned.search_seconds > 0


def test_the_winner_was_measured_again(tuned: TaskOutcome) -> None:
    """Five times, and five times more where the second was near."""
    assert len(tuned.records[0].run_nanoseconds) in {5, 10}
    assert len([cost for cost in tuned.costs if cost.stage == "confirm"]) in {2, 3, 4, 6}


@pytest.mark.proof
def test_a_model_that_is_fast_enough_is_tuned_no_further(workshop: Workshop) -> None:
    budget = Budget(seconds=None, trials=200, target_ms={"m.onnx": 1000.0})
    outcome = workshop.tune(budget)[-1]
    assert outcome.stopped == "target-latency"
    assert outcome.trials <= 8


@pytest.mark.proof
def test_a_gain_that_is_not_promised_ends_the_search(workshop: Workshop) -> None:
    budget = Budget(seconds=None, trials=400, min_gain_percent_per_minute=1e6)
    outcome = workshop.tune(budget)[-1]
    assert outcome.stopped == "converged"
    assert outcome.trials <= 16


def test_an_exact_hit_is_served_without_a_trial(workshop: Workshop, tuned: TaskOutcome) -> None:
    (outcome,) = workshop.tune(Budget(seconds=60, trials=24), ExactHit(tuned.records), trials=0)
    assert (outcome.trials, outcome.source, outcome.stopped) == (0, "exact", "exact")
    assert outcome.records == tuned.records


@pytest.mark.proof
def test_a_record_of_another_device_is_measured_here_and_nothing_is_searched(
    workshop: Workshop, tuned: TaskOutcome
) -> None:
    other = replace(DEVICE, name="another machine")
    theirs = tuple(replace(record, device=other, run_nanoseconds=(1,)) for record in tuned.records)
    outcome = workshop.tune(Budget(seconds=60, trials=24), ExactHit(theirs), trials=0)[-1]
    assert (outcome.source, outcome.stopped) in {("exact", "finished"), ("default", "finished")}
    assert outcome.trials == 1
    assert all(record.device == DEVICE for record in outcome.records)
    assert present(outcome.best_ms) > 1e-6


def test_a_record_of_another_device_is_used_as_it_is_where_there_is_no_budget(
    workshop: Workshop, tuned: TaskOutcome
) -> None:
    other = replace(DEVICE, name="another machine")
    theirs = tuple(replace(record, device=other) for record in tuned.records)
    (outcome,) = workshop.tune(Budget(seconds=0, trials=0), ExactHit(theirs), trials=0)
    assert (outcome.source, outcome.stopped) == ("exact", "exact")
    assert outcome.records == theirs


def test_a_schedule_of_an_older_toolchain_is_a_candidate_and_what_it_claims_counts_nothing(
    workshop: Workshop, tuned: TaskOutcome
) -> None:
    older = replace(toolchain(), schedules="older")
    theirs = tuple(
        replace(record, toolchain=older, run_nanoseconds=(1,) * 5) for record in tuned.records
    )
    outcomes = workshop.tune(Budget(seconds=None, trials=24), ExactHit(theirs), trials=0)
    first, last = outcomes[0], outcomes[-1]
    assert (first.older, first.source, first.best_ms) == ("not-asked", "older", None)
    assert (last.older, last.trials) in {("kept", 1), ("lost", 1)}
    assert all(record.toolchain == toolchain() for record in last.records)
    assert present(last.best_ms) > 1e-6
    (left,) = workshop.tune(Budget(seconds=0, trials=0), ExactHit(theirs), trials=0)
    assert (left.older, left.source, left.best_ms) == ("not-asked", "older", None)


@pytest.mark.parametrize(("schedules", "trials", "measured"), [("", 1, 0), ("", 2, 2), ("1", 1, 1)])
def test_a_claim_is_measured_as_far_as_trials_are_left_for_it_and_what_it_must_beat(
    workshop: Workshop, tuned: TaskOutcome, schedules: str, trials: int, measured: int
) -> None:
    today = toolchain()
    older = replace(today, schedules=schedules or today.schedules)
    trusted = replace(tuned.records[0], toolchain=older)
    ran = [record for record in workshop.published if record.template and record.status == "ok"]
    claim = next(record for record in ran if record.decisions != trusted.decisions)
    task = next(each for each in workshop.tasks() if each.key == tuned.key)
    resolved = ResolvedTask(task, ExactHit((trusted,)), Claims((claim,), is_searched=True))
    planned = PlannedTask(resolved=resolved, trials=0, gain_ms=0.0)
    shard = make_shard(planned, budget=Budget(seconds=None, trials=trials))
    model = ShapedModel(workshop.model, {})
    *_, outcome = workshop.tuner.tune(shard, {("m.onnx", "head"): model}, lambda _: True)
    assert outcome.trials == measured
    assert outcome.trials or outcome.records == (trusted,)


def test_what_failed_before_with_this_compiler_is_not_tried_again(
    workshop: Workshop, tuned: TaskOutcome
) -> None:
    failures = tuple(
        replace(record, status="runtime", run_nanoseconds=())
        for record in workshop.published
        if record.template
    )
    before = len(workshop.published)
    workshop.tune(Budget(seconds=None, trials=4), Miss("absent", failures))
    tried = {(r.template, r.decisions) for r in workshop.published[before:] if r.template}
    assert len(tried) >= 4
    assert not tried & {(r.template, r.decisions) for r in failures}


def test_the_best_records_build_a_model_that_computes_the_same(
    workshop: Workshop, tuned: TaskOutcome, tmp_path: Path
) -> None:
    records, sources = {tuned.key: tuned.records}, {tuned.key: "search"}
    job = make_job(workshop.job, tmp_path / "build", records=records, sources=sources)
    plain = make_job(workshop.job, tmp_path / "plain")
    build, untuned = workshop.compiler.build([job, plain])
    assert build.error is None
    assert present(build.check).passed
    assert [t.source for t in build.tasks if t.key == tuned.key] == ["search"]
    assert (tmp_path / "build" / "artifact.json").exists()
    assert build.key != untuned.key


def test_a_limit_of_time_ends_what_would_take_many_minutes(workshop: Workshop) -> None:
    started = time.monotonic()
    outcomes = workshop.tune(Budget(seconds=3.0, trials=None), trials=10_000)
    assert time.monotonic() - started < 100
    assert outcomes[-1].stopped in {"budget", "not-started"}


def test_no_child_outlives_an_interrupted_run(workshop: Workshop) -> None:
    tasks = [t for t in workshop.tasks() if "conv" in t.operator]
    planned = make_planned(tasks[0], trials=999)
    shard = make_shard(planned, budget=Budget(seconds=120, trials=None))
    before = len(workshop.published)
    run = workshop.tuner.tune(
        shard, {("m.onnx", "head"): ShapedModel(workshop.model, {})}, workshop._publish
    )
    next(run)
    run.close()
    assert len(workshop.published) > before
    workshop.compiler.close()
    assert not [line for line in _children() if "tunegate.system.processes.run_child" in line]


def _children() -> list[str]:
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if f"run_child {_own_pid()} " in text:
                lines.append(text)
    return lines


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


@pytest.mark.proof
def test_candidates_may_be_timed_beside_each_other(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real workers, two at once from the beginning, on a core each."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core")
    try:
        two_at_once = partial(Parallelism, first=2)
        monkeypatch.setattr("tunegate.tune.tuning_run.Parallelism", two_at_once)
        # A machine that others load is slow; only one that hangs is a failure here.
        monkeypatch.setattr("tunegate.tune.workers._CANDIDATE_LIMIT_SECONDS", 120.0)
        budget = Budget(seconds=None, trials=6, min_gain_percent_per_minute=0.0)
        (*_, outcome) = workshop.tune(budget, trials=6)
    finally:
        os.sched_setaffinity(0, before)
    assert outcome.trials == 6
    assert outcome.best_ms is not None
    assert outcome.failures == {}
    assert any("candidates were timed at once" in note for note in workshop.tuner.notes)

"""Times models that nobody has measured: built with the prior's picks, and after few trials.

    python -m benchmarks.cost_models.no_measurement squeezenet magika [--real DIRECTORY]
        [--cpu native haswell] [--trials 8] [--seconds 120] [--rounds 20]

Each model is built with default schedules; with a random schedule, the pick of a prior whose labels
are shuffled, and the prior's pick for each task, whatever they are worth; with what a run without
trials ships, which drops what is slower in the model; and, with `--seconds`, after so many
`--trials` for each task and after a search of so many seconds. All builds of a model run in turn in
one process, on one thread; medians. Prints a row of docs/benchmarks for each model and
processor. Models that are not light ones are those of `init_to_gate.py`, in `--real`. What is
saved already is not made a second time but with `--again`: `--save NAME --merge` goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgspec
import onnx
from research.experience.judging.rankers import with_shuffled_times

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import imported as functions_in
from benchmarks.kit.models import TARGET, named_model, one_thread
from benchmarks.kit.neighbours import DEVICE
from benchmarks.kit.our_model import imported, shard_of, tuner_of
from benchmarks.kit.results import saved_rows
from benchmarks.kit.tables import heading, row
from benchmarks.kit.timed_builds import medians_in_turn
from tunegate.artifacts.builds import Build
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.schedule_choice import prior_pick
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.targets import tvm_target
from tunegate.compiler.versions import toolchain
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.tune.prior import Prior, experience_of, prior_of
from tunegate.tune.protocol import Schedule
from tunegate_cache.format.records import TuningRecord, WorkloadKey

SHAPES = Path(__file__).parents[1] / "data" / "real_shapes.json"
Records = Mapping[WorkloadKey, tuple[TuningRecord, ...]]
ZERO = ("default", "random", "shuffled labels", "picks", "ships")


def main() -> None:
    options = command_line(
        __doc__,
        "models...",
        real=Path(),
        cpu=["native"],
        trials=[8],
        seconds=0.0,
        rounds=20,
        again=False,
    )
    one_thread()
    load_intrinsics("llvm")
    tuned = [f"{trials} trials" for trials in options.trials] + [f"{options.seconds:g} s"]
    columns = [*ZERO, *(tuned if options.seconds else ())]
    done = {} if options.again else saved_rows()
    told = "model, processor | tasks | picked | dropped | built, s"
    heading(f"{told} | {' | '.join(columns)}")
    for name, cpu in product(options.models, options.cpu):
        if f"{name}, {cpu}" not in done:
            with scratch_folder() as scratch:
                show(name, cpu, options, scratch, columns)


def show(
    name: str, cpu: str, options: argparse.Namespace, scratch: Path, columns: Sequence[str]
) -> None:
    model = Model(model_of(name, options.real), cpu, scratch)
    ships, seconds = model.shipped()
    model.built("default", {}, {})
    for what, pick in model.picks().items():
        model.built(what, model.records(pick), {})
    if options.seconds:
        for trials in options.trials:
            model.tuned(f"{trials} trials", options.seconds, trials)
        model.tuned(f"{options.seconds:g} s", options.seconds, None)
    model.close()
    picked = sum(task.source == "prior" for task in ships.tasks)
    times = medians_in_turn([scratch / what for what in columns], options.rounds)
    told = (f"{name}, {cpu}", len(model.tasks), picked, len(ships.dropped), f"{seconds:.0f}")
    row(*told, *(f"{ms:.2f}" for ms in times))


class Model:
    """One model on one processor, and its builds, which are folders of `scratch`."""

    def __init__(self, proto: onnx.ModelProto, cpu: str, scratch: Path) -> None:
        self._scratch = scratch
        self.target: TargetConfig = msgspec.structs.replace(TARGET, cpu=cpu)
        self.file = scratch / "m.onnx"
        onnx.save(proto, self.file)
        self._job = ModelJob(file=self.file, path="m.onnx", shapes={}, target=self.target)
        self._compiler = MetaScheduleCompiler(scratch / "compiler", seed=1)
        self.tasks = imported(self._compiler, self._job)

    def close(self) -> None:
        self._compiler.close()

    def shipped(self) -> tuple[Build, float]:
        """Returns the build that a run without trials ships, and the seconds that it takes."""
        started = time.monotonic()
        sources: dict[WorkloadKey, ScheduleSource] = {t.key: "prior" for t in self.tasks}
        return self.built("ships", {}, sources), time.monotonic() - started

    def built(
        self,
        what: str,
        records: Records,
        sources: Mapping[WorkloadKey, ScheduleSource],
        *,
        settled: frozenset[WorkloadKey] | None = None,
    ) -> Build:
        """The build with these records; what is not `settled` is tried in the model, and all that
        was measured is settled where nothing is said."""
        work = BuildJob(
            model=self._job,
            records=records,
            sources=sources,
            directory=self._scratch / what,
            settled=frozenset(records) if settled is None else settled,
        )
        (built,) = self._compiler.build([work])
        assert built.error is None, built.error
        return built

    def picks(self) -> dict[str, Callable[[DesignSpace, ModelFunction], Schedule | None]]:
        target = tvm_target(self.target).target

        def by(prior: Prior | None) -> Callable[[DesignSpace, ModelFunction], Schedule | None]:
            def pick(space: DesignSpace, function: ModelFunction) -> Schedule | None:
                found = prior_pick(function.workload, target, space, prior)
                return None if found is None else found.schedule

            return pick

        return {
            "random": at_random,
            "shuffled labels": by(meaningless()),
            "picks": by(prior_of("llvm")),
        }

    def records(self, pick: Callable[[DesignSpace, ModelFunction], Schedule | None]) -> Records:
        """The picks of all tasks that the prior knows, as if they had been measured."""
        resolved = tvm_target(self.target)
        known = {task.key.workload: task for task in self.tasks}
        found: dict[WorkloadKey, tuple[TuningRecord, ...]] = {}
        place = self._scratch / f"p{time.monotonic_ns()}"
        for function in functions_in(onnx.load(self.file), place, resolved):
            task = known.get(function.workload.digest)
            space = DesignSpace(function.workload, resolved.target)
            is_known = any(sketch.nest for sketch in space.sketches().values())
            schedule = pick(space, function) if task is not None and is_known else None
            if task is not None and schedule is not None:
                found[task.key] = (record_of(task.key, function, schedule),)
        return found

    def tuned(self, what: str, seconds: float, trials_per_task: int | None) -> None:
        budget = Budget(
            seconds=seconds,
            trials=None,
            min_gain_percent_per_minute=0.0,
            trials_per_task=trials_per_task,
        )
        tuner = tuner_of(self.target, self._scratch / what.replace(" ", "-"))
        shard = shard_of(self.tasks, self.target, budget)
        models = {("m.onnx", "head"): ShapedModel(self.file, {})}
        outcomes = {o.key: o for o in tuner.tune(shard, models, lambda _: True)}  # type: ignore[arg-type]
        records = {key: o.records for key, o in outcomes.items() if o.records}
        picked: dict[WorkloadKey, ScheduleSource] = {
            task.key: "search" if task.key in records else "prior" for task in self.tasks
        }
        self.built(what, records, picked)


def at_random(space: DesignSpace, function: ModelFunction) -> Schedule | None:
    rng = random.Random(int(function.workload.digest[:8], 16))
    found = space.sample(1, rng)
    return space.describe(found[0].trace) if found else None


@cache
def meaningless() -> Prior:
    """A prior that was fitted to times that mean nothing."""
    return Prior([with_shuffled_times(task) for task in experience_of("llvm")])


def record_of(key: WorkloadKey, function: ModelFunction, schedule: Schedule) -> TuningRecord:
    return TuningRecord(
        key=key,
        shape=function.workload.shape,
        template=schedule.template,
        decisions=schedule.decisions,
        run_nanoseconds=(1,),
        status="ok",
        device=DEVICE,
        toolchain=toolchain(),
        measured_at=1,
    )


def model_of(name: str, real: Path) -> onnx.ModelProto:
    """A light model, or one of those in `real` with the sizes that it is deployed with."""
    shapes = json.loads(SHAPES.read_text())
    if name not in shapes:
        return named_model(name)
    model = onnx.load(real / name / "model.onnx")
    for given in model.graph.input:
        for dimension, size in zip(
            given.type.tensor_type.shape.dim, shapes[name].get(given.name, ()), strict=False
        ):
            dimension.dim_value = size
    return model


if __name__ == "__main__":
    main()

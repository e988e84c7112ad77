"""Latency and error of each runtime in each precision, side by side in one run.

    python -m benchmarks.real_models.runtimes [--models squeezenet ppocr_v2_cls ...]
        [--real DIRECTORY] [--minutes 0] [--threads 1] [--launches 3] [--samples 10] [--json FILE]
        [--settings] [--cuda]

Models: light ones by name; with `--real`, the sixteen that init_to_gate.py collects there. All
candidates that this installation offers are built, and launched in pairs of fresh processes with
float32 ONNX Runtime, a launch of each in turn. TVM's candidates are among them with `--minutes` of
tuning, all built from the same records. Static int8 is calibrated on the drawn inputs, and tells
its error on others. Prints the table of docs/benchmarks: of ONNX Runtime's time, with the error
as a share of the largest output, then what would ship at `same` and within budgets. Models that
are in `--json` already are not measured again: the table can be made in several calls.
`--settings` asks another question: what ONNX Runtime's own settings are worth, in one process.
With `--cuda` the candidates are those of the first GPU, beside ONNX Runtime on the CPU.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.kit.averages import geometric
from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.session_settings import SETTINGS, settings_ms
from benchmarks.kit.tables import heading, row
from benchmarks.kit.tvm_candidates import tvm_builds
from tunegate.artifacts.builds import Build
from tunegate.artifacts.candidates import FLOAT32, REFERENCE, CandidateBuild
from tunegate.artifacts.inputs import KnownInputs
from tunegate.config import TargetConfig
from tunegate.errors import TunegateError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import Bench, BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import installed_runtimes, offer_runtimes, runtime_named

LIGHT = ("squeezenet", "resnet50", "shufflenet", "densenet121", "inception_v2")
SHAPES = Path(__file__).parents[1] / "data" / "real_shapes.json"
BUDGETS = (0.0, 1.0, 5.0)
GPU = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=60.0)
PAIRS = 6


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """A candidate of one model: `ratio` is of the reference's time, and `error_percent` the worst
    of the samples; `refused` says why there is neither."""

    candidate: str
    precision: str
    ratio: float = math.nan
    ms: float = math.nan
    error_percent: float = 0.0
    refused: str = ""

    def ships(self, budget_percent: float) -> bool:
        """Says whether it may: in float32 where it passed its check, else within the budget."""
        if self.refused or self.precision == FLOAT32:
            return not self.refused
        return self.error_percent <= budget_percent > 0


class Compared(msgspec.Struct, frozen=True, omit_defaults=True):
    """`reference_ms` is missing where ONNX Runtime does not run the model."""

    model: str
    reference_ms: float = math.nan
    candidates: tuple[Measured, ...] = ()

    def shipped(self, budget_percent: float) -> float:
        """The ratio of what would ship: the reference where nothing is faster."""
        fit = [each.ratio for each in self.candidates if each.ships(budget_percent)]
        return min([1.0, *fit])


def main() -> None:
    options = command_line(
        __doc__,
        models=[""],
        real=Path,
        minutes=0.0,
        threads=1,
        launches=3,
        samples=10,
        json=Path,
        settings=False,
        cuda=False,
    )
    if options.settings:
        show_settings(options)
        return
    found = {each.model: each for each in earlier_results(options.json)}
    for name, model in models(options):
        if name in found:
            continue
        with scratch_folder() as scratch:
            file = model or saved(name, scratch)
            found[name] = compared(name, file, options, scratch)
        show_model(found[name])
        if options.json:
            encoded = msgspec.json.encode([*found.values()])
            options.json.write_bytes(msgspec.json.format(encoded))
    show([*found.values()])


def show_settings(options: argparse.Namespace) -> None:
    """A row for each model: its time by defaults, and that of each setting as a share of it."""
    first, *others = SETTINGS
    heading(" | ".join(["model", f"{first}, ms", *others]))
    shares: dict[str, list[float]] = {name: [] for name in others}
    for name, model in models(options):
        with scratch_folder() as scratch:
            job = job_of(name, model or saved(name, scratch), cpu(options))
            build = built(CandidateBuild(runtime=REFERENCE, title=""), job, 0, scratch)
            if build.error:
                continue
            times = settings_ms(scratch / REFERENCE, options.threads, options.launches)
        for each in others:
            shares[each].append(times[each] / times[first])
        row(name, f"{times[first]:.2f}", *(f"{shares[each][-1]:.2f}" for each in others))
    row("geometric mean", "", *(f"**{geometric(shares[each]):.2f}**" for each in others))


def earlier_results(file: Path | None) -> list[Compared]:
    """Reads the measurements of an earlier call."""
    if file is None or not file.is_file():
        return []
    return msgspec.json.decode(file.read_bytes(), type=list[Compared])


def models(options: argparse.Namespace) -> list[tuple[str, Path | None]]:
    """Files by name; a light model has none yet."""
    every: dict[str, Path | None] = dict.fromkeys((*LIGHT, "transformer"))
    if options.real:
        every |= collected(options.real)
    return [
        (name, file)
        for name, file in every.items()
        if options.models in ([""], [*every]) or name in options.models
    ]


def compared(name: str, file: Path, options: argparse.Namespace, scratch: Path) -> Compared:
    """Builds all candidates, then launches each in turn."""
    job = job_of(name, file, cpu(options))
    reference = built(CandidateBuild(runtime=REFERENCE, title=""), job, 0, scratch)
    if reference.error:
        return Compared(name)
    given = {each.name: each.rule for each in reference.inputs if each.rule is not None}
    target = GPU if options.cuda else job.target
    job = msgspec.structs.replace(job, inputs=KnownInputs(given=given), target=target)
    bench = FreshProcesses(scratch / "bench", 1, GPU)
    found: dict[str, Measured] = {}
    pairs: dict[str, Bench] = {}
    base = scratch / REFERENCE
    candidates = offer_runtimes([target], installed_runtimes()).candidates[target.name]
    builds = every_build(candidates, job, options, scratch)
    for candidate in candidates:
        if candidate.name not in builds:
            continue
        build = builds[candidate.name]
        found[candidate.name] = judged(candidate, build)
        if not build.error:
            pairs[candidate.name] = bench.pair(base, scratch / candidate.name)
    return timed(name, found, pairs, options.launches)


def cpu(options: argparse.Namespace) -> TargetConfig:
    return TargetConfig(name="cpu", threads=options.threads)


def job_of(name: str, file: Path, target: TargetConfig) -> ModelJob:
    kind = dict[str, dict[str, tuple[int, ...]]]
    shapes = msgspec.json.decode(SHAPES.read_bytes(), type=kind).get(name, {})
    return ModelJob(file=file, path=name, shapes=shapes, target=target)


def every_build(
    candidates: Sequence[CandidateBuild], job: ModelJob, options: argparse.Namespace, scratch: Path
) -> dict[str, Build]:
    """The builds of all candidates but the reference."""
    others = [each for each in candidates if not each.is_tuned and each.name != REFERENCE]
    builds = {each.name: built(each, job, options.samples, scratch) for each in others}
    if options.minutes:
        ours = [each for each in candidates if each.is_tuned]
        builds |= tvm_builds(ours, job, options.minutes, options.samples, scratch)
    return builds


def built(candidate: CandidateBuild, job: ModelJob, samples: int, scratch: Path) -> Build:
    builder = SavingBuilder(runtime_named(candidate.runtime), scratch / "builder", seed=1)
    work = BuildJob(
        model=job,
        records={},
        sources={},
        directory=scratch / candidate.name,
        variant=candidate.variant,
        settings=candidate.settings,
        samples=samples if candidate.precision != FLOAT32 else 0,
    )
    (build,) = builder.build([work])
    return build


def judged(candidate: CandidateBuild, build: Build) -> Measured:
    errors = [build.check.max_relative] if build.check else []
    errors += build.sampled.relative if build.sampled else []
    worst = 100 * max(errors, default=math.inf)
    refused = build.error or ("" if math.isfinite(worst) else "no output tells its error")
    # JSON has no infinity: it would come back as null.
    error = 0.0 if refused else worst
    return Measured(candidate.name, candidate.precision, error_percent=error, refused=refused)


def timed(
    name: str, found: Mapping[str, Measured], pairs: Mapping[str, Bench], launches: int
) -> Compared:
    effects: dict[str, list[float]] = {each: [] for each in pairs}
    reference_ms: list[float] = []
    refused: dict[str, str] = {}
    for _ in range(launches):
        for each, bench in pairs.items():
            try:
                launch = bench.launch(PAIRS)
            except TunegateError as error:
                refused[each] = str(error)
                continue
            effects[each].append(launch.effect)
            reference_ms.append(launch.base_ms)
    middle_ms = statistics.median(reference_ms) if reference_ms else math.nan
    complete = (
        outcome(measured, effects.get(each, ()), middle_ms, refused.get(each, "not run"))
        for each, measured in found.items()
    )
    return Compared(name, middle_ms, tuple(complete))


def outcome(
    measured: Measured, effects: Sequence[float], reference_ms: float, reason: str
) -> Measured:
    if measured.refused:
        return measured
    if not effects:
        return msgspec.structs.replace(measured, refused=reason)
    ratio = math.exp(statistics.median(effects))
    return msgspec.structs.replace(measured, ratio=ratio, ms=ratio * reference_ms)


def show_model(compared: Compared) -> None:
    """Shows why there is no time, as soon as it is known."""
    print(f"{compared.model}: float32 ONNX Runtime {compared.reference_ms:.3f} ms", flush=True)
    for each in compared.candidates:
        if each.refused:
            print(f"  {each.candidate}: {each.refused}", flush=True)


def show(every: Sequence[Compared]) -> None:
    names = sorted({each.candidate for one in every for each in one.candidates})
    budgets = [f"ships within {budget:g}%" if budget else "ships at `same`" for budget in BUDGETS]
    heading(" | ".join(["model", "ONNX Runtime, ms", *names, *budgets]))
    for one in every:
        cells = {each.candidate: cell(each) for each in one.candidates}
        shipped = [f"{one.shipped(budget):.2f}" for budget in BUDGETS]
        row(one.model, in_ms(one.reference_ms), *(cells.get(n, "–") for n in names), *shipped)
    ran = [one for one in every if one.candidates]
    means = [f"**{geometric([one.shipped(budget) for one in ran]):.2f}**" for budget in BUDGETS]
    row("geometric mean", "", *("" for _ in names), *means)


def in_ms(time_ms: float) -> str:
    """Shows a time; there is none where no candidate ran."""
    return "–" if math.isnan(time_ms) else f"{time_ms:.2f}"


def cell(measured: Measured) -> str:
    if measured.refused:
        return "–"
    error = "" if measured.precision == FLOAT32 else f" ({measured.error_percent:.2g}%)"
    return f"{measured.ratio:.2f}{error}"


if __name__ == "__main__":
    main()

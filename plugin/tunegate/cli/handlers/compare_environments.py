"""Compares one model under the packages of two environments: the gate for a runtime upgrade."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.builds import Build, Cell, CellBuilds, unbuilt
from tunegate.artifacts.candidates import REFERENCE
from tunegate.artifacts.changes import ChangeSet, ModelChange, Revisions
from tunegate.cli.commands.gating import CompareOptions
from tunegate.cli.handlers.compare_models import AgainstModel, Artifacts, Model, parse_operands
from tunegate.cli.handlers.reporting import finish
from tunegate.config import Config, TargetConfig
from tunegate.errors import ConfigError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.bench_messages import Sides
from tunegate.models.file_pair import FilePair
from tunegate.models.operator_libraries import Libraries
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named, saves
from tunegate.runtimes.runtime import Runtime
from tunegate.settings import Settings
from tunegate.system.output.directory import BUILDS, OutputDirectory, judged_output
from tunegate.system.processes.runtime_environment import (
    RuntimeEnvironment,
    differences,
    read_environment,
)
from tunegate.wiring import bench_limits, opened_gate_tools


def run_by_environments(base: str, head: str, options: CompareOptions) -> Model | Artifacts:
    """Returns the model that both environments run, or an artifact for each. Raises ConfigError for
    anything else."""
    both = parse_operands(base, head or base)
    if len(options.environments) != len(Sides._fields):
        raise ConfigError("--env: give it twice: the old environment, then the new one.")
    if isinstance(both, Artifacts) and both.base != both.head:
        return both
    if head or options.are_commands or not isinstance(both, AgainstModel):
        message = (
            "--env: both environments run one model, or one artifact each. Name one ONNX file or "
            "two directories."
        )
        raise ConfigError(message)
    if options.settings.metric_command:
        raise ConfigError("--metric-command scores a model, which is the same on both sides here.")
    return both.head


def compare_environments(
    settings: Settings, config: Config, model: Model, directories: Sequence[Path]
) -> int:
    """Builds the artifact once, with the runtime installed here; each side of a launch loads it
    with its environment's runtime. Raises ConfigError."""
    runtime = runtime_named(model.runtime or REFERENCE)
    if not saves(runtime):
        message = (
            f"--env: {runtime.title} compiles the model, so an artifact is of one version. "
            "Compare an artifact of each: tunegate compare --env OLD --env NEW old/ new/."
        )
        raise ConfigError(message)
    targets = [target for target in config.targets if not runtime.unsupported(target)]
    if not targets:
        reason = runtime.unsupported(config.targets[0])
        raise ConfigError(f"--env: {runtime.title} {reason}, and no target is one.")
    # Read the packages of both environments.
    base, head = directories
    names = list(runtime.versions())
    environments = Sides(base, head).map(lambda each: read_environment(each, runtime.title, names))
    changes = _changes(model, targets, environments)
    # Each side of an artifact runs in its own environment.
    with judged_output(settings.out, "compare") as out:
        out.forget(since="plan")
        builds = _Builds(runtime, model, environments, out, config.custom_operators)
        cells = {target.name: builds.directories(target) for target in targets}
        pythons = {
            directory: each.python
            for places in cells.values()
            for directory, each in zip(places, environments, strict=True)
        }

        def benchmarker(scratch: Path, seed: int) -> FreshProcesses:
            return FreshProcesses(scratch, seed, limits=bench_limits(config), pythons=pythons)

        with opened_gate_tools(settings, config, benchmarker, out) as tools:
            tools.context.progress.step(f"packages: {changes.revisions.reason}")
            shapes = config.models[0].inputs
            cell_builds = [builds.of(target, shapes, tools.context.seed) for target in targets]
            report = pipeline.judge(tools, changes, cell_builds)
        return finish(report, settings)


class _Builds:
    """The model as the runtime loads it, once per environment."""

    def __init__(
        self,
        runtime: Runtime,
        model: Model,
        environments: Sides[RuntimeEnvironment],
        out: OutputDirectory,
        libraries: Libraries,
    ) -> None:
        self._runtime, self._model, self._libraries = runtime, model, libraries
        self._environments, self._out = environments, out

    def directories(self, target: TargetConfig) -> Sides[Path]:
        place = self._out.path / BUILDS / self._model.file.name / target.name
        return Sides(place / "base", place / "head")

    def of(self, target: TargetConfig, shapes: Mapping[str, object], seed: int) -> CellBuilds:
        sizes = {name: tuple(shape) for name, shape in shapes.items() if isinstance(shape, tuple)}
        model = ModelJob(
            file=self._model.file, path=self._model.file.name, shapes=sizes, target=target
        )
        scratch = self._out.workdir / "save" / target.name
        base, head = built_under(
            self._runtime,
            model,
            self.directories(target),
            Sides(*self._environments),
            SavingBuilder(self._runtime, scratch, seed=seed, libraries=self._libraries),
        ).map(lambda build: with_relative_directory(build, self._out.path))
        cell = Cell(model=self._model.file.name, target=target.name)
        return CellBuilds(cell=cell, base=base, head=head)


def _changes(
    model: Model, targets: Sequence[TargetConfig], environments: Sides[RuntimeEnvironment]
) -> ChangeSet:
    base, head = environments
    revisions = Revisions(
        base=str(base.directory), head=str(head.directory), reason=_reason(environments)
    )
    pair = FilePair(model.file, model.file, revisions)
    name = model.file.name
    change = ModelChange(
        path=name,
        kind="modified",
        change="unknown",
        base=pair.version(revisions.base or "", name),
        head=pair.version(revisions.head, name),
        targets=tuple(target.name for target in targets),
        reason=revisions.reason,
    )
    return ChangeSet(revisions=revisions, models=(change,))


def _reason(environments: Sides[RuntimeEnvironment]) -> str:
    base, head = environments
    packages = ", ".join(differences(base.packages, head.packages)) or "equal packages"
    count = len(differences(base.others, head.others))
    return (
        f"{packages}; other packages that differ, which it does not need: {count}"
        if count
        else packages
    )


def under_environments(
    cell: CellBuilds, directories: Sequence[Path]
) -> tuple[CellBuilds, dict[Path, Path], str]:
    """Returns two artifacts as the builds of their environments, the Python that runs each, and the
    packages that differ. Raises ConfigError."""
    builds = Sides(cell.base or unbuilt("its artifact is missing"), cell.head or unbuilt(""))
    environments = [
        read_environment(directory, runtime.title, list(runtime.versions()))
        for directory, build in zip(directories, builds, strict=True)
        for runtime in (runtime_named(build.runtime),)
    ]
    base, head = (
        _of_environment(build, runtime_named(build.runtime), environment)
        for build, environment in zip(builds, environments, strict=True)
    )
    pythons = {
        Path(build.directory): environment.python
        for build, environment in zip(builds, environments, strict=True)
    }
    reason = _reason(Sides(*environments))
    return msgspec.structs.replace(cell, base=base, head=head), pythons, reason


# One artifact as two builds: each side's environment decides what runs it.


class NoEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a side has no environment. `broken` means that a retry may help: a package
    could not be fetched, as opposed to being refused."""

    reason: str
    broken: bool = False


SideEnvironment = RuntimeEnvironment | NoEnvironment | None
"""A side's environment; None if nothing requires one."""


def built_under(
    runtime: Runtime,
    model: ModelJob,
    places: Sides[Path],
    environments: Sides[SideEnvironment],
    builder: SavingBuilder,
) -> Sides[Build | None]:
    """Builds the artifact once, with the runtime installed beside tunegate. `places` are the
    directories of the sides."""
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    job = BuildJob(
        model=model,
        records={},
        sources={},
        directory=places.base,
        settings=runtime.variants(model.target)[""],
    )
    (build,) = builder.build([job])
    if build.error is None:
        shutil.copytree(places.base, places.head)
    base, head = (
        _side(runtime, build, place, environment)
        for place, environment in zip(places, environments, strict=True)
    )
    return Sides(base, head)


def with_relative_directory(build: Build | None, out: Path) -> Build | None:
    """Returns the build with its directory relative to `--out`, as reports have it."""
    if build is None or not build.directory:
        return build
    return msgspec.structs.replace(build, directory=str(Path(build.directory).relative_to(out)))


def _side(
    runtime: Runtime, build: Build, place: Path, environment: SideEnvironment
) -> Build | None:
    if environment is None:
        return None
    if isinstance(environment, NoEnvironment):
        return unbuilt(environment.reason, crashed=environment.broken)
    directory = "" if build.error else str(place)
    build = msgspec.structs.replace(build, directory=directory)
    return _of_environment(build, runtime, environment)


def _of_environment(build: Build, runtime: Runtime, environment: RuntimeEnvironment) -> Build:
    """Returns the build as the environment runs it: equal bytes are two builds in two of them."""
    decides = [build.key, str(environment.directory), dict(environment.packages)]
    return msgspec.structs.replace(
        build,
        key=digest_of_document(decides),
        title=f"{runtime.title} {environment.version}",
    )

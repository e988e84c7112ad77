"""`tunegate compare A B`: gates one thing against another, without a repository."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.builds import Build, Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, Revisions
from tunegate.artifacts.verdicts import Report
from tunegate.cli.commands.gating import CompareOptions
from tunegate.cli.handlers import compare_models
from tunegate.cli.handlers.compare_environments import (
    compare_environments,
    run_by_environments,
    under_environments,
)
from tunegate.cli.handlers.reporting import finish
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.latency_commands import Commands
from tunegate.redaction import redact, secrets_of
from tunegate.runtimes.loading import titled_artifact
from tunegate.settings import Settings
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.system.output.directory import OutputDirectory, judged_output
from tunegate.wiring import NO_PYTHONS, bench_limits, opened_gate_tools


def run(options: CompareOptions) -> int:
    """Compares two models or artifacts. Targets, cache and gate come from the configuration, if
    there is one. Models are built with the cache's schedules; without a given budget nothing is
    tuned."""
    settings = options.settings
    base, head = options.base, options.head
    if options.environments:
        model = run_by_environments(base, head, options)
        if isinstance(model, compare_models.Artifacts):
            _refuse_shapes(options)
            config = compare_models.comparison_config(settings, head, {})
            return compare_artifacts(
                settings, config, model.base, model.head, environments=options.environments
            )
        shapes = dict(options.shapes)
        config = compare_models.comparison_config(settings, model.file.name, shapes, [model.file])
        return compare_environments(settings, config, model, options.environments)
    if not head:
        raise ConfigError("HEAD is missing. See: tunegate compare --help")
    if options.are_commands:
        unusable = {"--metric-command": settings.metric_command, "--shape": options.shapes}
        if given := next(filter(unusable.get, unusable), None):
            raise ConfigError(f"{given} is for models, and --commands has none. Leave one out.")
        return compare_commands(
            settings, compare_models.comparison_config(settings, head, {}), base, head
        )
    both = compare_models.parse_operands(base, head)
    if isinstance(both, compare_models.Artifacts):
        _refuse_shapes(options)
        config = compare_models.comparison_config(settings, head, {})
        return compare_artifacts(settings, config, both.base, both.head)
    return _against_model(settings, both, dict(options.shapes))


def _refuse_shapes(options: CompareOptions) -> None:
    if options.shapes:
        raise ConfigError("--shape is for models, and both sides are artifacts. Leave it out.")


def _against_model(
    settings: Settings, both: compare_models.AgainstModel, shapes: Mapping[str, tuple[int, ...]]
) -> int:
    of_base = [both.base.file] if isinstance(both.base, compare_models.Model) else []
    files = [both.head.file, *of_base]
    config = compare_models.comparison_config(settings, both.head.file.name, shapes, files)
    pair = compare_models.pair_files(both)
    with judged_output(settings.out, "compare") as out:
        out.forget(since="plan")
        return finish(compare_models.models_report(settings, config, both, pair, out), settings)


# Compares finished things: artifacts of earlier builds, or commands that print latencies.


def compare_artifacts(
    settings: Settings,
    config: Config,
    base: Path,
    head: Path,
    *,
    environments: Sequence[Path] = (),
) -> int:
    """Compares two artifacts, in an environment each where there are any; nothing is removed before
    both can be read. Raises ArtifactError for a directory without one, and ConfigError for an
    environment that cannot run it."""
    builds, pythons = built_sides(base, head), dict[Path, Path]()
    revisions = _named_revisions(str(base), str(head))
    if environments:
        builds, pythons, packages = under_environments(builds, environments)
        revisions = msgspec.structs.replace(revisions, reason=packages)
    with judged_output(settings.out, "compare") as out:
        out.forget(since="plan")
        report = artifacts_report(settings, config, builds, revisions, out, pythons=pythons)
        return finish(report, settings)


def built_sides(base: Path, head: Path) -> CellBuilds:
    """Returns two artifacts as the builds of one model. Raises ArtifactError for a directory
    without one."""
    builds = titled_artifact(base), titled_artifact(head)
    artifact = ArtifactFile.read(head)
    return _single_cell(artifact.model or head.name, artifact.device, *builds)


def artifacts_report(
    settings: Settings,
    config: Config,
    builds: CellBuilds,
    revisions: Revisions,
    out: OutputDirectory,
    *,
    pythons: Mapping[Path, Path] = NO_PYTHONS,
) -> Report:
    """Measures two artifacts as they are, each with its Python of `pythons`, and judges them."""
    changes = _changes(builds.cell, revisions)
    processes = partial(FreshProcesses, limits=bench_limits(config), pythons=pythons)
    with opened_gate_tools(settings, config, processes, out) as tools:
        return pipeline.judge(tools, changes, [builds])


def compare_commands(settings: Settings, config: Config, base: str, head: str) -> int:
    """Compares two command lines, run as they are, without a shell."""
    lines = {settings.out / "base": base, settings.out / "head": head}
    builds = _single_cell("command", "here", _command("base"), _command("head"))
    names = (redact(line, secrets_of(os.environ)) for line in (base, head))
    changes = _changes(builds.cell, _named_revisions(*names))
    with judged_output(settings.out, "compare") as out:
        out.forget(since="plan")
        with opened_gate_tools(
            settings, config, lambda _, seed: Commands(lines, seed), out
        ) as tools:
            report = pipeline.judge(tools, changes, [builds])
        return finish(report, settings)


def _single_cell(name: str, target: str, base: Build, head: Build) -> CellBuilds:
    return CellBuilds(cell=Cell(model=name, target=target), base=base, head=head)


def _named_revisions(base: str, head: str) -> Revisions:
    return Revisions(base=base, head=head, reason="what the command line names")


def _command(side: str) -> Build:
    return Build(
        key=side, directory=side, tasks=(), check=None, error=None, size_bytes=0, seconds=0.0
    )


def _changes(cell: Cell, revisions: Revisions) -> ChangeSet:
    sides = [pin.address for pin in revisions.pins] or [revisions.base or "", revisions.head]
    change = ModelChange(
        path=cell.model,
        kind="modified",
        change="unknown",
        base=_version("base", cell.model),
        head=_version("head", cell.model),
        targets=(cell.target,),
        reason=" against ".join(sides),
    )
    return ChangeSet(revisions=revisions, models=(change,))


def _version(side: str, name: str) -> ModelVersion:
    return ModelVersion(
        revision=side,
        path=name,
        content_digest=side,
        graph_digest=None,
        storage="git",
        size_bytes=0,
    )

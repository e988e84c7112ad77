"""Comparisons of finished things: artifacts of earlier builds, or commands that print latencies."""

from __future__ import annotations

from pathlib import Path

from tunegate import pipeline
from tunegate.artifacts.builds import Build, Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, Revisions
from tunegate.artifacts.verdicts import Report
from tunegate.cli.handlers.reporting import finish
from tunegate.config import Config
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.latency_commands import Commands
from tunegate.runtimes.loading import titled_artifact
from tunegate.settings import Settings
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.system.output.directory import OutputDirectory, opened_output
from tunegate.wiring import opened_gate_tools


def compare_artifacts(settings: Settings, config: Config, base: Path, head: Path) -> int:
    """Compares two artifacts; nothing is removed before both can be read. Raises ArtifactError for
    a directory that holds none."""
    built = built_sides(base, head)
    with opened_output(settings.out, "compare") as out:
        out.forget(since="plan")
        revisions = _named(str(base), str(head))
        return finish(artifacts_report(settings, config, built, revisions, out), settings)


def built_sides(base: Path, head: Path) -> CellBuilds:
    """Two artifacts as the builds of one model. Raises ArtifactError for a directory
    that holds none."""
    builds = titled_artifact(base), titled_artifact(head)
    artifact = ArtifactFile.read(head)
    return _one(artifact.model or head.name, artifact.device, *builds)


def artifacts_report(
    settings: Settings,
    config: Config,
    built: CellBuilds,
    revisions: Revisions,
    out: OutputDirectory,
) -> Report:
    """Measures two artifacts as they are, and judges."""
    changes = _changes(built.cell, revisions)
    with opened_gate_tools(settings, config, FreshProcesses, out) as tools:
        return pipeline.judge(tools, changes, [built])


def compare_commands(settings: Settings, config: Config, base: str, head: str) -> int:
    """The lines are run as they are, without a shell."""
    lines = {settings.out / "base": base, settings.out / "head": head}
    built = _one("command", "here", _command("base"), _command("head"))
    changes = _changes(built.cell, _named(base, head))
    with opened_output(settings.out, "compare") as out:
        out.forget(since="plan")
        with opened_gate_tools(
            settings, config, lambda _, seed: Commands(lines, seed), out
        ) as tools:
            report = pipeline.judge(tools, changes, [built])
        return finish(report, settings)


def _one(name: str, target: str, base: Build, head: Build) -> CellBuilds:
    return CellBuilds(cell=Cell(model=name, target=target), base=base, head=head)


def _named(base: str, head: str) -> Revisions:
    return Revisions(base=base, head=head, reason="what the command line names")


def _command(side: str) -> Build:
    return Build(
        key=side, directory=side, tasks=(), check=None, error=None, size_bytes=0, seconds=0.0
    )


def _changes(cell: Cell, revisions: Revisions) -> ChangeSet:
    shown = [pin.address for pin in revisions.pins] or [revisions.base or "", revisions.head]
    change = ModelChange(
        path=cell.model,
        kind="modified",
        change="unknown",
        base=_version("base", cell.model),
        head=_version("head", cell.model),
        targets=(cell.target,),
        reason=" against ".join(shown),
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

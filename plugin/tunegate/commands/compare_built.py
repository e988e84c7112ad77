"""Two things that run already: artifacts of earlier builds, or commands that print latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tunegate import pipeline
from tunegate.artifacts.builds import Build, Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, Revisions
from tunegate.bench_ports import Benchmarker
from tunegate.commands.reporting import finish
from tunegate.config import Config
from tunegate.edges.bench.commands import Commands
from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.output.directory import opened_output
from tunegate.runtimes.loading import titled_artifact
from tunegate.settings import Settings
from tunegate.wiring import opened_gate_tools


def compare_artifacts(settings: Settings, config: Config, base: Path, head: Path) -> int:
    """Nothing is removed before both can be read. Raises ArtifactError for
    a directory that holds none."""
    builds = titled_artifact(base), titled_artifact(head)
    artifact = ArtifactFile.read(head)
    name, target = artifact.model or head.name, artifact.device
    changes = _changes(name, target, base, head)
    return _judged(settings, config, FreshProcesses, changes, _one(name, target, *builds))


def compare_commands(settings: Settings, config: Config, base: str, head: str) -> int:
    """The lines are run as they are, without a shell."""
    lines = {settings.out / "base": base, settings.out / "head": head}
    builds = _command("base"), _command("head")
    changes = _changes("command", "here", base, head)
    built = _one("command", "here", *builds)
    return _judged(settings, config, lambda _, seed: Commands(lines, seed), changes, built)


def _judged(
    settings: Settings,
    config: Config,
    benchmarker: Callable[[Path, int], Benchmarker],
    changes: ChangeSet,
    built: Sequence[CellBuilds],
) -> int:
    with opened_output(settings.out, "compare") as out:
        out.forget(since="plan")
        with opened_gate_tools(settings, config, benchmarker, out) as tools:
            report = pipeline.judge(tools, changes, built)
        return finish(report, settings)


def _one(name: str, target: str, base: Build, head: Build) -> tuple[CellBuilds, ...]:
    return (CellBuilds(cell=Cell(model=name, target=target), base=base, head=head),)


def _command(side: str) -> Build:
    return Build(
        key=side, directory=side, tasks=(), check=None, error=None, size_bytes=0, seconds=0.0
    )


def _changes(name: str, target: str, base: Path | str, head: Path | str) -> ChangeSet:
    change = ModelChange(
        path=name,
        kind="modified",
        change="unknown",
        base=_version("base", name),
        head=_version("head", name),
        targets=(target,),
        reason=f"{base} against {head}",
    )
    revisions = Revisions(base=str(base), head=str(head), reason="what the command line names")
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

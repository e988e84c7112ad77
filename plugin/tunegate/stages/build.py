"""Compile both sides at their best: the base gets the best records known for it, like the head.

So what the gate sees is the change, not the luck of tuning.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, Cell, CellBuilds, Source
from tunegate.artifacts.changes import SIDES, ChangeSet, ModelPath, Side
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.config import Config, TargetConfig
from tunegate.ports import BuildJob, Compiler, ModelJob, Progress, Repository
from tunegate.selection import shapes_for
from tunegate.stages.export_models import ModelFiles, export_models
from tunegate_cache.records import ExactHit, Miss, TransferHit, TuningRecord, WorkloadKey

Best = dict[WorkloadKey, tuple[TuningRecord, ...]]


def build(
    changes: ChangeSet,
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    config: Config,
    repository: Repository,
    compiler: Compiler,
    out: Path,
    workdir: Path,
    progress: Progress,
) -> tuple[CellBuilds, ...]:
    """Every cell that has work, both sides; a side whose model does not exist is None."""
    files = export_models(changes, repository, workdir)
    cells = _cells(changes, config, files)
    sides = [(cell, side) for cell in cells for side in SIDES if (cell.model, side) in files]
    if sides:
        progress.step(f"build: {len(sides)} builds of {len(cells)} cells")
    best, sources = best_records(plan, outcomes)
    jobs = [_job(config, files, cell, side, best, sources, out) for cell, side in sides]
    builds = dict(zip(sides, compiler.build(jobs), strict=True))
    return tuple(
        CellBuilds(
            cell=cell,
            base=_located(builds.get((cell, "base")), cell, "base"),
            head=_located(builds.get((cell, "head")), cell, "head"),
        )
        for cell in cells
    )


def best_records(
    plan: TuningPlan, outcomes: Sequence[TuningOutcome]
) -> tuple[Best, dict[WorkloadKey, Source]]:
    """For every task its records, best first: this run's before the cache's. A task that nothing was
    measured for gets those of its neighbours: better than nothing, and marked as not verified."""
    best: Best = {}
    sources: dict[WorkloadKey, Source] = {}
    for resolved in plan.resolution.tasks:
        match resolved.lookup:
            case ExactHit(records=records):
                best[resolved.task.key] = records
                sources[resolved.task.key] = "exact"
            case TransferHit(records=records):
                best[resolved.task.key] = records
                sources[resolved.task.key] = "transfer"
            case Miss():
                pass
    for outcome in outcomes:
        for task in outcome.tasks:
            own = tuple(record for record in task.records if record.key == task.key)
            if own:
                known = (record for record in best.get(task.key, ()) if record.key == task.key)
                best[task.key] = (*own, *known)
                sources[task.key] = task.source
    return best, sources


def _cells(changes: ChangeSet, config: Config, files: ModelFiles) -> list[Cell]:
    names = {target.name for target in config.targets}
    return [
        Cell(model=change.path, target=name)
        for change in changes.models
        for name in change.targets
        if name in names and (change.path, "head") in files
    ]


def _job(
    config: Config,
    files: ModelFiles,
    cell: Cell,
    side: Side,
    best: Best,
    sources: Mapping[WorkloadKey, Source],
    out: Path,
) -> BuildJob:
    model = ModelJob(
        file=files[cell.model, side],
        path=cell.model,
        shapes=shapes_for(config, cell.model),
        target=_target(config, cell),
    )
    return BuildJob(
        model=model, records=best, sources=sources, directory=out / build_directory(cell, side)
    )


def build_directory(cell: Cell, side: Side) -> Path:
    """Where a build lies under `--out`, with a name that any file system takes."""
    return Path("builds") / _slug(cell.model) / cell.target / side


def _slug(path: ModelPath) -> str:
    """Two paths never share a name: one that had to be changed gets a digest of what it was."""
    stem = path.removesuffix(".onnx")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._") or "model"
    if plain == stem:
        return plain
    return f"{plain}-{hashlib.sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _target(config: Config, cell: Cell) -> TargetConfig:
    return next(target for target in config.targets if target.name == cell.target)


def _located(build: Build | None, cell: Cell, side: Side) -> Build | None:
    if build is None or build.error is not None:
        return build
    return msgspec.structs.replace(build, directory=str(build_directory(cell, side)))

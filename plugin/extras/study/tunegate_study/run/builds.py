"""Builds cells with the builders, the tuning and the cache of every run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.candidates import FLOAT32, REFERENCE
from tunegate.artifacts.changes import ChangeSet, ModelChange
from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    ModelConfig,
    TargetConfig,
)
from tunegate.decide.error_budget import samples_needed
from tunegate.errors import ModelError
from tunegate.measure.build_records import BestRecords, best_records
from tunegate.models.export_models import export_models
from tunegate.models.file_pair import FilePair
from tunegate.plan.resolve import resolve
from tunegate.plan.try_builds import plan_of_built
from tunegate.ports import BuildJob
from tunegate.project import Subject
from tunegate.settings import Settings
from tunegate.system.output.directory import STUDY, OutputDirectory
from tunegate.system.progress.shown_progress import unread_progress
from tunegate.tools import Tools
from tunegate.wiring import opened_tools
from tunegate_study.design.cost import trials_of
from tunegate_study.design.measured import ALGORITHM, TUNING, VARIANT
from tunegate_study.design.study_config import GIVEN_FILE
from tunegate_study.operation_count import operations_of
from tunegate_study.run.finished_build import (
    ANY_ERROR,
    error_of,
    layers_with,
    may_pass,
    misfit,
)
from tunegate_study.run.groups import CellGroup, versions_of
from tunegate_study.studies import StudyCell

UNTUNED = "untuned"
_NOTHING = BestRecords({}, {})


class GroupBuilder:
    """Builds below `out`; a run of another study may have its own."""

    def __init__(self, settings: Settings, out: OutputDirectory) -> None:
        self._settings, self._out = settings, out
        self.directory = out.path / STUDY / "builds"

    def build(self, group: CellGroup, minutes: float) -> list[StudyCell]:
        """Returns the cells with their builds, or why there is none. Tuning ends after `minutes`.
        Raises CancelledError: what was measured is in the study's cache."""
        runtimes = sorted({candidate.runtime for candidate in group.candidates.values()})
        with self._open_tools(group, minutes, runtimes) as tools:
            changes = _changes(group)
            tuned = _tune(tools, changes, group)
            return [self._cell(tools, changes, group, key, tuned) for key in group.cells]

    def reference(self, group: CellGroup) -> Path:
        """Returns the reference of a group's cells: ONNX Runtime in float32 with one thread, on the
        model's own file. Raises ModelError if it does not run the model."""
        at = self._out.path / STUDY / "references" / group.reference
        if (at / "artifact.json").exists():
            return at
        given = {**group.setting, VARIANT: GIVEN_FILE}
        own = msgspec.structs.replace(
            group,
            cells={"": given},
            target=TargetConfig(name=group.target.name, threads=1),
        )
        with self._open_tools(own, 0.0, [REFERENCE]) as tools:
            (build,) = tools.builders[REFERENCE].build([_job(tools, _changes(own), own, at)])
        if build.error is not None:
            raise ModelError(build.error)
        return at

    @contextmanager
    def _open_tools(
        self, group: CellGroup, minutes: float, runtimes: Sequence[str]
    ) -> Iterator[Tools]:
        subject = Subject(
            config=_config(group, self._out.path, minutes),
            repository=FilePair(group.file, group.file),
            root=group.file.parent.absolute(),
            commit="",
        )
        work = OutputDirectory(self._out.path / STUDY / "work")
        work.path.mkdir(parents=True, exist_ok=True)
        # The study shows what is built: further clocks beside its own would confuse.
        with opened_tools(
            self._settings, subject, work, runtimes, progress=unread_progress()
        ) as tools:
            yield tools

    def _cell(
        self, tools: Tools, changes: ChangeSet, group: CellGroup, key: str, tuned: _Schedules
    ) -> StudyCell:
        candidate = group.candidates[key]
        into = self.directory / key
        shutil.rmtree(into, ignore_errors=True)
        cell = StudyCell(
            key=key,
            setting=group.cells[key],
            versions=versions_of(candidate.runtime),
            device=tools.context.device.fingerprint(),
            trials=tuned.trials,
            is_cut=tuned.is_cut,
        )
        try:
            plain = _job(tools, changes, group, into)
        except ModelError as error:
            return msgspec.structs.replace(cell, reason=str(error))
        job = msgspec.structs.replace(
            plain,
            records=tuned.best.records,
            sources=tuned.best.sources,
            variant=candidate.variant,
            settings=candidate.settings,
            samples=0 if candidate.precision == FLOAT32 else samples_needed(ANY_ERROR),
        )
        (build,) = tools.builders[candidate.runtime].build([job])
        layers = layers_with(build, group.setting[ALGORITHM])
        reason = build.error or misfit(group.setting[ALGORITHM], layers)
        return msgspec.structs.replace(
            cell,
            reason=reason,
            may_pass=may_pass(build),
            size_bytes=build.size_bytes,
            error=error_of(build),
            operations=operations_of(job.model.file, job.model.shapes),
            layers=layers,
            seconds=build.seconds + tuned.seconds,
            digest="" if reason else tools.gate.shipping.keep(into, (), into),
        )


class _Schedules(msgspec.Struct, frozen=True, kw_only=True):
    best: BestRecords = _NOTHING
    trials: int = 0
    seconds: float = 0.0
    is_cut: bool = False


def _tune(tools: Tools, changes: ChangeSet, group: CellGroup) -> _Schedules:
    """Returns the schedules of a group: none if loops stay as written, else those of a run."""
    is_compiled = any(candidate.is_tuned for candidate in group.candidates.values())
    if not is_compiled or group.setting[TUNING] == UNTUNED:
        return _Schedules()
    tasks = pipeline.extract_tasks(tools, changes)
    _, planned = plan_of_built(tools, tasks, resolve(tasks, tools.index, tools.config))
    outcomes = [pipeline.tune_shard(tools, planned, shard) for shard in planned.shards]
    return _Schedules(
        best=best_records(planned, outcomes, tools.origin),
        trials=sum(task.trials for outcome in outcomes for task in outcome.tasks),
        seconds=sum(outcome.spent.seconds for outcome in outcomes),
        is_cut=any(outcome.stopped == "seconds" for outcome in outcomes),
    )


def _config(group: CellGroup, out: Path, minutes: float) -> Config:
    """Returns a configuration that hides the records of other cells: a cell of few trials would get
    those of many."""
    name = group.file.name
    model = ModelConfig(
        path="".join(f"[{each}]" if each in "*?[" else each for each in name),
        dims=group.model.dims,
        inputs=group.model.inputs,
    )
    return Config(
        models=(model,),
        targets=(group.target,),
        cache=CacheConfig(url=str((out / STUDY / "cache" / group.place).absolute())),
        budget=BudgetConfig(
            minutes=minutes,
            trials=trials_of(group.setting),
            min_gain_percent_per_minute=0.0,
        ),
    )


def _job(tools: Tools, changes: ChangeSet, group: CellGroup, into: Path) -> BuildJob:
    """Returns the build of a group's model, without schedules. Raises ModelError."""
    models = export_models(changes, tools.source)
    return BuildJob(
        model=models.job(changes.models[0].path, "head", group.target),
        records={},
        sources={},
        directory=into,
    )


def _changes(group: CellGroup) -> ChangeSet:
    repository = FilePair(group.file, group.file)
    revisions = repository.revisions(None, None)
    name = group.file.name
    change = ModelChange(
        path=name,
        kind="added",
        change=None,
        base=None,
        head=repository.version(revisions.head, name),
        targets=(group.target.name,),
    )
    return ChangeSet(revisions=revisions, models=(change,))

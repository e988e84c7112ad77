"""`tunegate cache export DIR`: what the cache knows of the models at HEAD, for plain TVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.commands.cache.export import ExportOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, ConfigError
from tunegate.ports import BuildJob, Export
from tunegate.project import open_project
from tunegate.sides.export_models import export_models
from tunegate.tools import Tools
from tunegate.wiring import opened_tools
from tunegate_cache.format.records import ExactHit


class ModelExport(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    target: str
    written: int
    misfits: tuple[str, ...]


class Exports(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    directory: str
    models: tuple[ModelExport, ...]


def run(options: ExportOptions) -> int:
    """Writes one database for each target, in a folder of its name. Raises ConfigError for a folder
    that holds a database already."""
    settings = options.settings
    project = open_project(settings)
    for target in project.config.targets:
        if (options.directory / target.name / "database_workload.json").exists():
            taken = options.directory / target.name
            raise ConfigError(f"{taken}: holds a database already. Name another directory.")
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache export") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        exports = _exports(changes, tools, options.directory)
    if settings.as_json:
        write_json(Exports(directory=str(options.directory), models=exports))
    else:
        _show(options.directory, exports)
    return PASS


def _exports(changes: ChangeSet, tools: Tools, directory: Path) -> tuple[ModelExport, ...]:
    tasks = pipeline.extracted(tools, changes).tasks
    asked = [(task.key, task.shape) for task in tasks]
    trusted = tools.index.lookup(asked)
    answers = [*tools.index.claims(asked).items(), *trusted.items()]
    records = {key: hit.records for key, hit in answers if isinstance(hit, ExactHit)}
    models = export_models(changes, tools.source)
    named = {target.name: target for target in tools.config.targets}
    wanted = [(change, named[name]) for change in changes.models for name in change.targets]
    jobs = [
        BuildJob(
            model=models.job(change.path, "head", target),
            records=records,
            sources={},
            directory=directory / target.name,
        )
        for change, target in wanted
    ]
    exported: Sequence[Export] = tools.compiler.export(jobs)
    return tuple(
        ModelExport(
            model=change.path, target=target.name, written=done.written, misfits=done.misfits
        )
        for (change, target), done in zip(wanted, exported, strict=True)
    )


def _show(directory: Path, exports: Sequence[ModelExport]) -> None:
    show_table(
        str(directory),
        ("model", "target", "records", "records that do not fit"),
        ((e.model, e.target, e.written, ", ".join(e.misfits)) for e in exports),
    )
    show_lines(
        [
            "open with tvm.s_tir.meta_schedule.database.JSONDatabase(work_dir=DIR/<target>)",
            (
                "for targets with layout nhwc (the default on CPUs) "
                "convert the module before legalizing: "
                'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]})'
            ),
        ]
    )

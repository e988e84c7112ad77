"""`tunegate cache export DIR`: the cache's schedules for the models at HEAD, for plain TVM."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.errors import PASS, ConfigError
from tunegate.models.export_models import export_models
from tunegate.project import open_project
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.wiring import opened_tools
from tunegate_cache.format.records import ExactHit
from tunegate_exchange.commands import ExportOptions
from tunegate_exchange.requests import export_database


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
    """Writes one database per target, in a folder of its name. Raises ConfigError if a folder
    already holds a database."""
    settings = options.settings
    project = open_project(settings)
    for target in project.config.targets:
        if (options.directory / target.name / "database_workload.json").exists():
            taken = options.directory / target.name
            raise ConfigError(f"{taken}: holds a database already. Name another directory.")
    changes = project.all_models()
    with (
        opened_output(settings.out, "cache export") as out,
        opened_tools(settings, replace(project.checkout(), pins=None), out) as tools,
    ):
        exports = _exports(changes, tools, options.directory)
    if settings.as_json:
        write_json(Exports(directory=str(options.directory), models=exports))
    else:
        _show_exports(options.directory, exports)
    return PASS


def _exports(changes: ChangeSet, tools: Tools, directory: Path) -> tuple[ModelExport, ...]:
    # The records of the models' tasks. The answer of a trusted zone replaces the run's own.
    tasks = pipeline.extract_tasks(tools, changes).tasks
    asked = [(task.key, task.shape) for task in tasks]
    trusted = tools.index.lookup(asked)
    answers = [*tools.index.claims(asked).items(), *trusted.items()]
    records = {key: hit.records for key, hit in answers if isinstance(hit, ExactHit)}

    # A child replays them on each model's own modules, and writes what fits.
    models = export_models(changes, tools.source)
    named = {target.name: target for target in tools.config.targets}
    wanted = [(change, named[name]) for change in changes.models for name in change.targets]
    scratch = tools.source.workdir / "exchange"
    exports = []
    for change, target in wanted:
        job = models.job(change.path, "head", target)
        done = export_database(job, records, directory / target.name, scratch)
        exports.append(
            ModelExport(
                model=change.path, target=target.name, written=done.written, misfits=done.misfits
            )
        )
    return tuple(exports)


def _show_exports(directory: Path, exports: Sequence[ModelExport]) -> None:
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

"""`tunegate doctor`: can this machine do the job, and with which settings?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.markup import escape
from rich.table import Table

from tunegate.cli.commands.doctor import DoctorOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import Output
from tunegate.edges.config import file as config_file
from tunegate.edges.config.sources import Setting, sources
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.machine.health import check_cache, machine_checks
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.models.sizes.configured_sizes import ModelSize, shape_report
from tunegate.errors import PASS, UNFIT, ConfigError, TunegateError
from tunegate.render.escape import visible
from tunegate.runtimes.health import runtime_checks
from tunegate.settings import Settings, overridden


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`settings` and `sizes`, which are those of dynamic dimensions, are empty where the
    configuration cannot be read."""

    schema: int = 1
    checks: tuple[HealthCheck, ...]
    settings: tuple[Setting, ...]
    sizes: tuple[ModelSize, ...] = ()


def run(options: DoctorOptions) -> int:
    """Exit code 4 when something is in the way."""
    settings = options.settings
    checks = [*machine_checks(), *runtime_checks()]
    found = _configuration(settings)
    checks += found.checks
    diagnosis = Diagnosis(checks=tuple(checks), settings=found.settings, sizes=found.sizes)
    if settings.as_json:
        write_json(diagnosis)
    else:
        _show(diagnosis)
    return PASS if all(check.ok for check in checks) else UNFIT


def _configuration(settings: Settings) -> Diagnosis:
    checks: list[HealthCheck] = []
    try:
        repository = GitRepository(settings.repository)
        checks.append(
            HealthCheck("repository", ok=True, detail=f"{repository.root}: {repository.state()}")
        )
        path = settings.config or repository.root / config_file.CONFIG_FILE
        of_file = config_file.load_config(path)
        effective = overridden(of_file, settings.overrides)
        checks.append(HealthCheck("configuration", ok=True, detail=str(path)))
        checks.append(check_cache(effective.cache, root=repository.root))
        shapes = shape_report(repository.root, effective)
    except TunegateError as error:
        others = error.others if isinstance(error, ConfigError) else ()
        checks += [
            HealthCheck("configuration", ok=False, detail=each) for each in (str(error), *others)
        ]
        return Diagnosis(checks=tuple(checks), settings=())
    return Diagnosis(
        checks=(*checks, *shapes.checks),
        settings=sources(path, of_file, effective),
        sizes=shapes.sizes,
    )


def _show(diagnosis: Diagnosis) -> None:
    console = Output()
    table = Table("check", "", "detail", show_edge=False)
    for check in diagnosis.checks:
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[red]no[/]", check.detail)
    console.print(table)
    if diagnosis.sizes:
        console.print(_sizes_table(diagnosis.sizes))
    if diagnosis.settings:
        console.print(_settings_table(diagnosis.settings))


def _sizes_table(sizes: Sequence[ModelSize]) -> Table:
    table = Table("model", "input", "dimension", "size", "from", show_edge=False)
    for each in sizes:
        size = "[red]open[/]" if each.size is None else str(each.size)
        dimension = f"{each.axis}: {each.symbol or '?'}"
        names = [escape(visible(name)) for name in (each.model, each.input, dimension)]
        table.add_row(*names, size, escape(visible(each.source)))
    return table


def _settings_table(settings: Sequence[Setting]) -> Table:
    table = Table("setting", "value", "from", show_edge=False)
    for setting in settings:
        table.add_row(setting.key, setting.value, setting.source)
    return table

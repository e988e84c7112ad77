"""`tunegate doctor`: can this machine do the job, and with which settings?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table

from tunegate.cli.commands.doctor import DoctorOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import Output
from tunegate.edges.config import file as config_file
from tunegate.edges.config.sources import Setting, sources
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.machine.health import check_cache, machine_checks
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.errors import PASS, UNFIT, TunegateError
from tunegate.runtimes.health import runtime_checks
from tunegate.settings import Settings, overridden


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`settings` is empty where the configuration cannot be read."""

    schema: int = 1
    checks: tuple[HealthCheck, ...]
    settings: tuple[Setting, ...]


def run(options: DoctorOptions) -> int:
    """Exit code 4 when something is in the way."""
    settings = options.settings
    checks = [*machine_checks(), *runtime_checks()]
    found, shown = _configuration(settings)
    checks += found
    diagnosis = Diagnosis(checks=tuple(checks), settings=shown)
    if settings.as_json:
        write_json(diagnosis)
    else:
        _show(diagnosis)
    return PASS if all(check.ok for check in checks) else UNFIT


def _configuration(settings: Settings) -> tuple[list[HealthCheck], tuple[Setting, ...]]:
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
    except TunegateError as error:
        checks.append(HealthCheck("configuration", ok=False, detail=str(error)))
        return checks, ()
    return checks, sources(path, of_file, effective)


def _show(diagnosis: Diagnosis) -> None:
    console = Output()
    table = Table("check", "", "detail", show_edge=False)
    for check in diagnosis.checks:
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[red]no[/]", check.detail)
    console.print(table)
    if diagnosis.settings:
        console.print(_settings_table(diagnosis.settings))


def _settings_table(settings: Sequence[Setting]) -> Table:
    table = Table("setting", "value", "from", show_edge=False)
    for setting in settings:
        table.add_row(setting.key, setting.value, setting.source)
    return table

"""`tunegate doctor`: can this machine do the job, and with which settings?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.cli.commands.starting import DoctorOptions
from tunegate.cli.handlers.doctor_checks import (
    COMMITTED,
    GatedModel,
    budgets_check,
    custom_operators_check,
    files_check,
    gated_models,
    known_tasks,
    waivers_check,
    with_tasks,
)
from tunegate.cli.handlers.doctor_page import Diagnosis, show_diagnosis, show_wrong
from tunegate.cli.handlers.reporting import write_json
from tunegate.errors import PASS, UNFIT, USAGE, ConfigError, TunegateError
from tunegate.models.configured_sizes import shape_report
from tunegate.models.finder import find_models, model_paths
from tunegate.project import Project, open_project
from tunegate.review.config_file import load_config
from tunegate.review.config_sources import sources
from tunegate.review.model_paths import unmatched_paths
from tunegate.runtimes.health import runtime_checks
from tunegate.runtimes.registry import may_compile
from tunegate.settings import Settings
from tunegate.system.clock import SystemClock, today
from tunegate.system.machine.health import check_cache, machine_checks
from tunegate.system.machine.health_check import HealthCheck, in_section

_MOST_MODELS = 8
"""The models whose tasks are looked up: each takes seconds."""
_TOLD = {"configuration", "shapes", "models", "files", "waivers"}
"""The checks of what was written down for tunegate."""


def run(options: DoctorOptions) -> int:
    """Runs the checks, and returns 4 when something prevents every run, 2 when the given
    configuration is wrong."""
    settings = options.settings
    project, checks = _configuration(settings)
    config = project.config if project else None
    checks = [*machine_checks(config), *runtime_checks(config.targets if config else ()), *checks]
    if project:
        diagnosis = _of_project(project, settings, checks)
    else:
        diagnosis = Diagnosis(checks=tuple(checks))
    if settings.as_json:
        write_json(diagnosis)
    elif options.common.quiet:
        show_wrong(diagnosis)
    else:
        show_diagnosis(diagnosis, is_whole=options.common.verbose)
    return _exit_code(diagnosis)


def _exit_code(diagnosis: Diagnosis) -> int:
    """That of a run: it reads its configuration first."""
    wrong = {check.name for check in diagnosis.checks if not check.ok}
    return USAGE if wrong & _TOLD else UNFIT if wrong else PASS


def _configuration(settings: Settings) -> tuple[Project | None, list[HealthCheck]]:
    """The repository with its configuration; None where one of them cannot be read."""
    try:
        project = open_project(settings)
        repository = project.repository
        state = f"{repository.root}: {repository.state()}"
        _ = project.config
    except TunegateError as error:
        others = error.others if isinstance(error, ConfigError) else ()
        return None, [_no("configuration", each) for each in (str(error), *others)]
    return project, [
        HealthCheck("repository", ok=True, detail=state),
        HealthCheck("configuration", ok=True, detail=str(project.config_path)),
    ]


def _of_project(project: Project, settings: Settings, checks: Sequence[HealthCheck]) -> Diagnosis:
    """The checks, with what this configuration is about."""
    config, root = project.config, project.repository.root
    cache = check_cache(config.cache, root=root, is_compiled=may_compile(config.targets))
    try:
        paths = model_paths(root)
        here = find_models(root, config, listed=paths)
        shapes = shape_report(here, config)
        models = gated_models(config, here, project.repository.uncommitted())
        files = (
            *files_check(project, here),
            *custom_operators_check(here),
            *budgets_check(config, (each.model for each in models)),
        )
    except TunegateError as error:
        broken = in_section([_no("models", str(error))], "models")
        return Diagnosis(checks=(*checks, cache, *broken))
    written = in_section((*_written(project, models, paths), *shapes.checks, *files), "models")
    found = [*checks, cache, *written]
    if all(check.ok for check in found) and any(each.state == COMMITTED for each in models):
        try:
            models = with_tasks(models, known_tasks(project, settings, _MOST_MODELS))
        except TunegateError as error:
            found += in_section([_no("tasks", str(error))], "models")
    return Diagnosis(
        checks=tuple(found),
        settings=sources(project.config_path, load_config(project.config_path), config),
        sizes=shapes.sizes,
        models=models,
    )


def _written(
    project: Project, models: Sequence[GatedModel], paths: Sequence[str]
) -> Iterator[HealthCheck]:
    """Yields the problems of paths and waivers in the working tree. Where a path is wrong, a waiver
    may be about its models."""
    problems = [*unmatched_paths(project.config, paths, "the working tree")]
    yield from (_no("models", problem) for problem in problems)
    names = None if problems else [each.model for each in models]
    yield from waivers_check(project.repository.root, project.config, names, today(SystemClock()))


def _no(name: str, detail: str) -> HealthCheck:
    return HealthCheck(name, ok=False, detail=detail)

"""`tunegate doctor`: can this machine do the job, and with which settings?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

import msgspec
from rich.text import Text

from tunegate.cli.commands.starting import DoctorOptions
from tunegate.cli.handlers import doctor_checks
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.errors import PASS, UNFIT, USAGE, ConfigError, TunegateError
from tunegate.models.finder import find_models, model_paths
from tunegate.project import Project, open_project
from tunegate.redaction import redact, secrets_of
from tunegate.report.escape import visible
from tunegate.review.config_file import load_config
from tunegate.review.globs import unmatched_paths
from tunegate.runtimes.registry import may_compile
from tunegate.runtimes.requirements import runtime_checks
from tunegate.settings import Settings
from tunegate.system.clock import SystemClock, today
from tunegate.system.machine.health import CheckPart, HealthCheck, in_section
from tunegate.wording import plural

_MOST_MODELS = 8
"""The most models whose tasks are looked up: each takes seconds."""
_USER_CHECKS = {"configuration", "shapes", "models", "files", "waivers"}
"""Checks of files that the user wrote for tunegate."""


def run(options: DoctorOptions) -> int:
    """Runs the checks. Returns 4 if something prevents every run, 2 if the given configuration is
    wrong."""
    settings = options.settings
    project, checks = _configuration(settings)
    config = project.config if project else None
    checks = [
        *doctor_checks.machine_checks(config),
        *runtime_checks(config.targets if config else ()),
        *checks,
    ]
    if project:
        diagnosis = _diagnose_project(project, settings, checks)
    else:
        diagnosis = Diagnosis(checks=tuple(checks))
    diagnosis = _without_secrets(diagnosis)
    if settings.as_json:
        write_json(diagnosis)
    elif options.common.quiet:
        show_wrong(diagnosis)
    else:
        show_diagnosis(diagnosis, is_whole=options.common.verbose)
    return _exit_code(diagnosis)


def _without_secrets(diagnosis: Diagnosis) -> Diagnosis:
    secrets = secrets_of(os.environ)
    checks = (
        msgspec.structs.replace(check, detail=redact(check.detail, secrets))
        for check in diagnosis.checks
    )
    return msgspec.structs.replace(diagnosis, checks=tuple(checks))


def _exit_code(diagnosis: Diagnosis) -> int:
    """Returns the exit code that a run would have: it reads its configuration first."""
    wrong = {check.name for check in diagnosis.checks if not check.ok}
    return USAGE if wrong & _USER_CHECKS else UNFIT if wrong else PASS


def _configuration(settings: Settings) -> tuple[Project | None, list[HealthCheck]]:
    """Returns the repository with its configuration, None if either cannot be read, and the
    checks."""
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


def _diagnose_project(
    project: Project, settings: Settings, checks: Sequence[HealthCheck]
) -> Diagnosis:
    """Returns the checks, with those of this configuration and its models."""
    config, root = project.config, project.repository.root
    cache = doctor_checks.check_cache(
        config.cache, root=root, is_compiled=may_compile(config.targets)
    )
    # The models here, and what the configuration says of them.
    try:
        paths = model_paths(root)
        here = find_models(root, config, only=paths)
        shapes = doctor_checks.shape_report(here, config)
        models = doctor_checks.gated_models(config, here, project.repository.uncommitted_paths())
        files = (
            *doctor_checks.files_check(project, here),
            *doctor_checks.custom_operators_check(config, here),
            *doctor_checks.budgets_check(config, (model.model for model in models)),
        )
    except TunegateError as error:
        broken = in_section([_no("models", str(error))], "models")
        return Diagnosis(checks=(*checks, cache, *broken))
    config_checks = in_section(
        (*_path_and_waiver_checks(project, models, paths), *shapes.checks, *files), "models"
    )
    all_checks = [*checks, cache, *config_checks]
    # Only where all is well: to list the tasks of a model takes its import, and the cache.
    if all(check.ok for check in all_checks) and any(
        model.state == doctor_checks.COMMITTED for model in models
    ):
        try:
            models = doctor_checks.with_tasks(
                models, doctor_checks.known_tasks(project, settings, _MOST_MODELS)
            )
        except TunegateError as error:
            all_checks += in_section([_no("tasks", str(error))], "models")
    return Diagnosis(
        checks=tuple(all_checks),
        settings=doctor_checks.sources(
            project.config_path, load_config(project.config_path), config
        ),
        sizes=shapes.sizes,
        models=models,
    )


def _path_and_waiver_checks(
    project: Project, models: Sequence[doctor_checks.GatedModel], paths: Sequence[str]
) -> Iterator[HealthCheck]:
    """Yields the problems of paths and waivers in the working tree. If a path is wrong, a waiver
    may concern its models."""
    problems = [*unmatched_paths(project.config, paths, "the working tree")]
    yield from (_no("models", problem) for problem in problems)
    names = None if problems else [model.model for model in models]
    yield from doctor_checks.waivers_check(
        project.repository.root, project.config, names, today(SystemClock())
    )


def _no(name: str, detail: str) -> HealthCheck:
    return HealthCheck(name, ok=False, detail=detail)


# The findings of `tunegate doctor`.


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`settings`, `models` and `sizes` (of dynamic dimensions) are empty if the configuration
    cannot be read."""

    schema: int = 2
    checks: tuple[HealthCheck, ...]
    settings: tuple[doctor_checks.Setting, ...] = ()
    sizes: tuple[doctor_checks.ModelSize, ...] = ()
    models: tuple[doctor_checks.GatedModel, ...] = ()


# Shows the findings: one line per section that is fine, then the rest.

_LONGEST = 600
_WIDEST = 100
"""The width of a table in a log; longer cells are wrapped."""
_ABSENT = Text("absent", style="dim")
_NAMES_ALONE: CheckPart = "runtimes"
"""The section whose details are lists of versions, which only `-v` shows."""


def show_diagnosis(diagnosis: Diagnosis, *, is_whole: bool) -> None:
    """Prints the diagnosis, problems last, where they are seen. Texts from checkouts are never
    markup."""
    checks, notable = diagnosis.checks, [check for check in diagnosis.checks if _is_notable(check)]
    if is_whole:
        _show_table(("check", "", "detail"), map(_check, checks))
    else:
        _show_table(("part", "", "what is fine"), _parts(diagnosis))
    _show_models(diagnosis.models if is_whole else [*filter(_is_unusual, diagnosis.models)])
    _show_sizes([size for size in diagnosis.sizes if is_whole or size.size is None])
    _show_settings(
        [
            setting
            for setting in diagnosis.settings
            if is_whole or setting.source not in ("default", "file")
        ]
    )
    if notable and not is_whole:
        show_lines([""])
        _show_table(("to look at", "", "detail"), map(_check, notable))
    show_lines(_closing(diagnosis, is_whole=is_whole))


def show_wrong(diagnosis: Diagnosis) -> None:
    """Prints only the problems; nothing if all is well."""
    show_lines(
        f"{check.name}: {visible(check.detail, _LONGEST)}"
        for check in diagnosis.checks
        if not check.ok
    )


def _show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    show_table("", columns, rows, widest=_WIDEST)


def _parts(diagnosis: Diagnosis) -> Iterator[tuple[object, ...]]:
    """Yields a folded row for each section with something fine, and one for what it lacks."""
    for section in get_args(CheckPart):
        checks = [check for check in diagnosis.checks if check.section == section]
        lines = [
            _one_line(check) for check in checks if not (_is_notable(check) or check.is_absent)
        ]
        if section == "models":
            lines = [*_counts(diagnosis), *lines]
        if lines:
            text = ", ".join(lines) if section == _NAMES_ALONE else "; ".join(lines)
            yield section, Text("ok", style="green"), text
        yield from _without(section, checks)


def _without(section: CheckPart, checks: Sequence[HealthCheck]) -> Iterator[tuple[object, ...]]:
    absent = [_one_line(check) for check in checks if check.is_absent]
    if absent:
        yield section, _ABSENT, f"{', '.join(absent)}: optional, not installed"


def _one_line(check: HealthCheck) -> str:
    if check.section == _NAMES_ALONE:
        return visible(check.name)
    if check.section == check.name:
        return visible(check.detail)
    return visible(f"{check.name} {check.detail}")


def _counts(diagnosis: Diagnosis) -> Iterator[str]:
    """Yields the number of models and of their tuned tasks."""
    if not diagnosis.models:
        return
    counts = [task for model in diagnosis.models for task in model.tasks]
    hits, tasks = sum(count.known for count in counts), sum(count.tasks for count in counts)
    of_tasks = f", {hits} of {plural(tasks, 'task')} tuned" if tasks else ""
    yield f"{plural(len(diagnosis.models), 'model')}{of_tasks}"


def _is_notable(check: HealthCheck) -> bool:
    return check.warns or not check.ok


def _is_unusual(model: doctor_checks.GatedModel) -> bool:
    return bool(model.trouble) or model.state != doctor_checks.COMMITTED


def _show_models(models: Sequence[doctor_checks.GatedModel]) -> None:
    if models:
        columns = ("model", "gated by", "state", "target", "tuned tasks")
        show_lines([""])
        _show_table(columns, (row for model in models for row in _model(model)))


def _show_sizes(sizes: Sequence[doctor_checks.ModelSize]) -> None:
    if sizes:
        columns = ("model", "input", "dimension", "size", "from")
        show_lines([""])
        _show_table(columns, map(_size, sizes))


def _show_settings(settings: Sequence[doctor_checks.Setting]) -> None:
    if settings:
        rows = ((setting.key, visible(setting.value), setting.source) for setting in settings)
        show_lines([""])
        _show_table(("setting", "value", "from"), rows)


def _closing(diagnosis: Diagnosis, *, is_whole: bool) -> Iterator[str]:
    yield ""
    if not is_whole:
        yield f"-v shows each check{_and_more(diagnosis)}"
    left = tuple(doctor_checks.left_to_do(diagnosis.models))
    yield from left
    wrong = dict.fromkeys(check.name for check in diagnosis.checks if not check.ok)
    worse = dict.fromkeys(check.name for check in diagnosis.checks if check.ok and check.warns)
    if wrong:
        yield f"to mend: {', '.join(wrong)}"
    elif worse:
        yield f"Nothing is broken. Look at: {', '.join(worse)}"
    else:
        yield "All works." if left else "All is well."


def _and_more(diagnosis: Diagnosis) -> str:
    """Returns what else there is to show, as the end of a sentence."""
    more = [
        plural(len(items), what)
        for what, items in (
            ("model", diagnosis.models),
            ("size", diagnosis.sizes),
            ("setting", diagnosis.settings),
        )
        if items
    ]
    return f", {', '.join(more)}" if more else ""


def _check(check: HealthCheck) -> tuple[object, ...]:
    if check.ok and check.is_absent:
        mark = _ABSENT
    elif check.ok and check.warns:
        mark = Text("warn", style="yellow")
    else:
        mark = Text("ok", style="green") if check.ok else Text("no", style="red")
    return check.name, mark, visible(check.detail, _LONGEST)


def _model(model: doctor_checks.GatedModel) -> Iterator[tuple[object, ...]]:
    for target in model.targets:
        summaries = [task for task in model.tasks if task.target == target]
        tasks = (
            f"{summaries[0].known} of {summaries[0].tasks}" if summaries else model.trouble or "–"
        )
        yield visible(model.model), visible(model.entry), model.state, target, visible(tasks)


def _size(model: doctor_checks.ModelSize) -> tuple[object, ...]:
    dimension = f"{model.axis}: {model.symbol or '?'}"
    size = Text("open", style="red") if model.size is None else model.size
    names = (visible(name) for name in (model.model, model.input, dimension))
    return (*names, size, visible(model.source))

"""The findings of `tunegate doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

import msgspec
from rich.text import Text

from tunegate.cli.handlers.doctor_checks import COMMITTED, GatedModel, left_to_do
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.models.configured_sizes import ModelSize
from tunegate.report.escape import visible
from tunegate.review.config_sources import Setting
from tunegate.system.machine.health_check import CheckPart, HealthCheck
from tunegate.wording import plural


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`settings`, `models`, and `sizes`, which are those of dynamic dimensions, are empty where the
    configuration cannot be read."""

    schema: int = 2
    checks: tuple[HealthCheck, ...]
    settings: tuple[Setting, ...] = ()
    sizes: tuple[ModelSize, ...] = ()
    models: tuple[GatedModel, ...] = ()


# The findings of `tunegate doctor` for people: a line for each part that is fine, then the rest.

_LONGEST = 600
_WIDEST = 100
"""The columns of a table in a log: what is longer is wrapped."""
_ABSENT = Text("absent", style="dim")
_NAMES_ALONE: CheckPart = "runtimes"
"""The part whose details are lists of versions: `-v` has them."""


def show_diagnosis(diagnosis: Diagnosis, *, is_whole: bool) -> None:
    """Prints the diagnosis, problems last, where they are seen. Names and texts come from
    checkouts: nothing in them is markup."""
    shown, notable = diagnosis.checks, [each for each in diagnosis.checks if _is_notable(each)]
    if is_whole:
        _show_table(("check", "", "detail"), map(_check, shown))
    else:
        _show_table(("part", "", "what is fine"), _parts(diagnosis))
    _show_models(diagnosis.models if is_whole else [*filter(_is_unusual, diagnosis.models)])
    _show_sizes([each for each in diagnosis.sizes if is_whole or each.size is None])
    _show_settings(
        [each for each in diagnosis.settings if is_whole or each.source not in ("default", "file")]
    )
    if notable and not is_whole:
        show_lines([""])
        _show_table(("to look at", "", "detail"), map(_check, notable))
    show_lines(_closing(diagnosis, is_whole=is_whole))


def show_wrong(diagnosis: Diagnosis) -> None:
    """Prints the problems alone; nothing where all is well."""
    show_lines(
        f"{check.name}: {visible(check.detail, _LONGEST)}"
        for check in diagnosis.checks
        if not check.ok
    )


def _show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    show_table("", columns, rows, widest=_WIDEST)


def _parts(diagnosis: Diagnosis) -> Iterator[tuple[object, ...]]:
    """A row for each part that has something fine, folded, and one for what it goes without."""
    for section in get_args(CheckPart):
        checks = [each for each in diagnosis.checks if each.section == section]
        told = [_folded(each) for each in checks if not (_is_notable(each) or each.is_absent)]
        if section == "models":
            told = [*_counted(diagnosis), *told]
        if told:
            joined = ", ".join(told) if section == _NAMES_ALONE else "; ".join(told)
            yield section, Text("ok", style="green"), joined
        yield from _without(section, checks)


def _without(section: CheckPart, checks: Sequence[HealthCheck]) -> Iterator[tuple[object, ...]]:
    absent = [_folded(each) for each in checks if each.is_absent]
    if absent:
        yield section, _ABSENT, f"{', '.join(absent)}: optional, not installed"


def _folded(check: HealthCheck) -> str:
    if check.section == _NAMES_ALONE:
        return visible(check.name)
    if check.section == check.name:
        return visible(check.detail)
    return visible(f"{check.name} {check.detail}")


def _counted(diagnosis: Diagnosis) -> Iterator[str]:
    """The models, and how many of their tasks are tuned."""
    if not diagnosis.models:
        return
    known = [task for model in diagnosis.models for task in model.tasks]
    tuned, tasks = sum(each.known for each in known), sum(each.tasks for each in known)
    of_tasks = f", {tuned} of {plural(tasks, 'task')} tuned" if tasks else ""
    yield f"{plural(len(diagnosis.models), 'model')}{of_tasks}"


def _is_notable(check: HealthCheck) -> bool:
    return check.warns or not check.ok


def _is_unusual(model: GatedModel) -> bool:
    return bool(model.trouble) or model.state != COMMITTED


def _show_models(models: Sequence[GatedModel]) -> None:
    if models:
        columns = ("model", "gated by", "state", "target", "tuned tasks")
        show_lines([""])
        _show_table(columns, (row for each in models for row in _model(each)))


def _show_sizes(sizes: Sequence[ModelSize]) -> None:
    if sizes:
        columns = ("model", "input", "dimension", "size", "from")
        show_lines([""])
        _show_table(columns, map(_size, sizes))


def _show_settings(settings: Sequence[Setting]) -> None:
    if settings:
        rows = ((each.key, visible(each.value), each.source) for each in settings)
        show_lines([""])
        _show_table(("setting", "value", "from"), rows)


def _closing(diagnosis: Diagnosis, *, is_whole: bool) -> Iterator[str]:
    yield ""
    if not is_whole:
        yield f"-v shows each check{_and_more(diagnosis)}"
    yield from left_to_do(diagnosis.models)
    wrong = dict.fromkeys(check.name for check in diagnosis.checks if not check.ok)
    worse = dict.fromkeys(check.name for check in diagnosis.checks if check.ok and check.warns)
    if wrong:
        yield f"to mend: {', '.join(wrong)}"
    else:
        yield f"All works; better with a look at: {', '.join(worse)}" if worse else "All is well."


def _and_more(diagnosis: Diagnosis) -> str:
    """Returns what else there is to show, as the end of a sentence."""
    more = [
        plural(len(found), what)
        for what, found in (
            ("model", diagnosis.models),
            ("size", diagnosis.sizes),
            ("setting", diagnosis.settings),
        )
        if found
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


def _model(model: GatedModel) -> Iterator[tuple[object, ...]]:
    for target in model.targets:
        found = [each for each in model.tasks if each.target == target]
        tasks = f"{found[0].known} of {found[0].tasks}" if found else model.trouble or "–"
        yield visible(model.model), visible(model.entry), model.state, target, visible(tasks)


def _size(each: ModelSize) -> tuple[object, ...]:
    dimension = f"{each.axis}: {each.symbol or '?'}"
    size = Text("open", style="red") if each.size is None else each.size
    named = (visible(name) for name in (each.model, each.input, dimension))
    return (*named, size, visible(each.source))

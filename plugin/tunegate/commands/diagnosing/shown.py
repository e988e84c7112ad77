"""What `tunegate doctor` found, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from tunegate.commands.diagnosing.diagnosis import Diagnosis
from tunegate.commands.diagnosing.gated_models import GatedModel, left_to_do
from tunegate.commands.table import show_lines, show_table
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.models.sizes.configured_sizes import ModelSize
from tunegate.plurals import plural
from tunegate.render.escape import visible

_LONGEST = 600


def show_diagnosis(diagnosis: Diagnosis, *, all_settings: bool) -> None:
    """Names and texts come from checkouts: nothing in them is markup."""
    show_table("", ("check", "", "detail"), map(_check, diagnosis.checks))
    if diagnosis.models:
        columns = ("model", "gated by", "state", "target", "tuned tasks")
        show_lines([""])
        show_table("", columns, (row for each in diagnosis.models for row in _model(each)))
    if diagnosis.sizes:
        columns = ("model", "input", "dimension", "size", "from")
        show_lines([""])
        show_table("", columns, map(_size, diagnosis.sizes))
    kept = [each for each in diagnosis.settings if all_settings or each.source != "default"]
    if kept:
        rows = ((each.key, visible(each.value), each.source) for each in kept)
        show_lines([""])
        show_table("", ("setting", "value", "from"), rows)
    show_lines(_closing(diagnosis, len(diagnosis.settings) - len(kept)))


def show_wrong(diagnosis: Diagnosis) -> None:
    """What has to be mended alone; nothing where all is well."""
    show_lines(
        f"{check.name}: {visible(check.detail, _LONGEST)}"
        for check in diagnosis.checks
        if not check.ok
    )


def _closing(diagnosis: Diagnosis, defaults: int) -> Iterator[str]:
    yield ""
    if defaults:
        at_default = plural(defaults, "setting is at its default", "settings are at their defaults")
        yield f"{at_default}: -v shows them"
    yield from left_to_do(diagnosis.models)
    wrong = [check.name for check in diagnosis.checks if not check.ok]
    yield f"to mend: {', '.join(wrong)}" if wrong else "All is well."


def _check(check: HealthCheck) -> tuple[object, ...]:
    mark = Text("ok", style="green") if check.ok else Text("no", style="red")
    return check.name, mark, visible(check.detail)


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

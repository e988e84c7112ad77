"""The tables of a report. Markdown, HTML and the terminal draw these columns, or some of them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, assert_never

from tunegate.artifacts import inputs
from tunegate.artifacts.builds import Build, OutputDifference
from tunegate.artifacts.measurements import EnergyChange, Inside, LoadChange
from tunegate.artifacts.verdicts import Finding
from tunegate.report import table
from tunegate.report.cost_table import Saving, SpendingRow
from tunegate.report.operators import Part, TunedRow
from tunegate.report.sentences import stopped_words
from tunegate.report.units import NONE, duration, energy, money, percent, share, size, sizes_of
from tunegate.wording import milliseconds


def models_table(findings: Sequence[Finding]) -> table.ReportTable:
    """Returns the table of results by model and target. ONNX Runtime's own time is only in the
    plot: it is another measurement."""
    columns: tuple[table.Column[Finding], ...] = (
        table.text_column("Verdict", lambda row: table.StatusWord(row.status)),
        table.text_column("Model", lambda row: table.Identifier(row.model)),
        table.Column(title="Target", cell=lambda row: table.Identifier(row.target), under="Model"),
        *_sizes(findings),
        table.number_column("Base", lambda row: milliseconds(row.base_ms)),
        table.number_column("Head", lambda row: milliseconds(row.head_ms)),
        table.Column(
            title="Change",
            cell=lambda row: table.ChangeInterval(row.change_percent),
            is_number=True,
            layout="wide",
        ),
        *_inference_energy(findings),
        *_loading(findings),
    )
    return table.ReportTable(columns, findings)


def _sizes(findings: Sequence[Finding]) -> tuple[table.Column[Finding], ...]:
    """Returns the column of the sizes that each finding refers to, none without any."""
    if not any(sizes_of(finding.inputs) for finding in findings):
        return ()
    return (table.Column(title="Size", cell=lambda row: sizes_of(row.inputs), under="Model"),)


def _inference_energy(findings: Sequence[Finding]) -> tuple[table.Column[Finding], ...]:
    """Returns the column of joules per inference, none without any."""
    if not any(finding.energy for finding in findings):
        return ()
    column: table.Column[Finding] = table.number_column("Energy", lambda row: _energy(row.energy))
    return (column,)


def _energy(change: EnergyChange | None) -> str:
    if change is None:
        return NONE
    return f"{energy(change.head_joules)} ({percent(change.change_percent.center)})"


def _loading(findings: Sequence[Finding]) -> tuple[table.Column[Finding], ...]:
    """Returns the column of the time to load, none without any."""
    if not any(finding.load for finding in findings):
        return ()
    column: table.Column[Finding] = table.number_column("Loading", lambda row: _load(row.load))
    return (column,)


def _load(change: LoadChange | None) -> str:
    if change is None:
        return NONE
    return f"{milliseconds(change.head_ms)} ({percent(change.change_percent.center)})"


def operators_table(parts: Sequence[Part]) -> table.ReportTable:
    """Returns the layers that make a difference. A layer that only one side has is new, or gone."""
    slower = sum(part.difference_ms > 0 for part in parts)
    columns: tuple[table.Column[Part], ...] = (
        table.text_column("Layer", lambda row: table.Identifier(row.name)),
        table.number_column("Base", lambda row: _or("new", row.base_ms)),
        table.number_column("Head", lambda row: _or("gone", row.head_ms)),
        table.number_column("Difference", lambda row: _difference(row, slower)),
        table.text_column("Run by", lambda row: row.run_by),
    )
    return table.ReportTable(columns, parts)


def _difference(row: Part, slower: int) -> table.SignedTime:
    """Returns a difference with its share of what all slower layers lost; a faster layer has none,
    nor has the only slower one."""
    has_share = row.difference_ms > 0 and slower > 1
    return table.SignedTime(row.difference_ms, row.share if has_share else None)


def _or(word: str, ms: float | None) -> str:
    return word if ms is None else milliseconds(ms)


def inside_table(tests: Sequence[Inside]) -> table.ReportTable:
    """Returns the table of mean and slow end, which a launch's median hides."""
    columns: tuple[table.Column[Inside], ...] = (
        table.text_column("Percentile", lambda row: row.what.replace("-", " ")),
        table.number_column("Base", lambda row: milliseconds(row.base_ms)),
        table.number_column("Head", lambda row: milliseconds(row.head_ms)),
        table.Column(
            title="Change",
            cell=lambda row: (
                table.ChangeInterval(row.change_percent)
                if row.is_resolved or row.decision != "pass"
                else "not resolvable here"
            ),
            is_number=True,
            layout="wide",
        ),
    )
    return table.ReportTable(columns, tests)


def builds_table(sides: Sequence[tuple[str, Build]]) -> table.ReportTable:
    """Returns the builds of base and head, each with its label."""
    columns: tuple[table.Column[tuple[str, Build]], ...] = (
        table.text_column("Build", lambda row: row[0]),
        table.text_column("Runtime", lambda row: row[1].title or row[1].candidate),
        table.text_column("Key", lambda row: table.Identifier(row[1].key[:12])),
        table.number_column(
            "Relative error",
            lambda row: _two_digits(row[1].check.max_relative if row[1].check else None),
        ),
        table.number_column(
            "Allowed", lambda row: _two_digits(row[1].check.tolerance if row[1].check else None)
        ),
        table.number_column("Size", lambda row: size(row[1].size_bytes)),
        table.number_column("Built in", lambda row: duration(row[1].seconds)),
        table.Column(title="Error", cell=lambda row: row[1].error or NONE, layout="why"),
    )
    return table.ReportTable(columns, sides)


def outputs_table(label: str, outputs: Sequence[OutputDifference]) -> table.ReportTable:
    """Returns the table of errors of a build's outputs against the reference."""
    columns: tuple[table.Column[OutputDifference], ...] = (
        table.text_column(f"Output of the {label}", lambda row: table.Identifier(row.name)),
        table.number_column("Absolute error", lambda row: _two_digits(row.max_absolute)),
        table.number_column("Relative error", lambda row: _two_digits(row.max_relative)),
    )
    return table.ReportTable(columns, outputs)


def inputs_table(findings: Sequence[Finding]) -> table.ReportTable:
    """Returns the table of inputs, and where their values come from."""
    rows = [(finding, values) for finding in findings for values in finding.inputs]
    columns: tuple[table.Column[tuple[Finding, inputs.DrawnInput]], ...] = (
        table.text_column("Input", lambda row: table.Identifier(row[1].name)),
        table.Column(title="Model", cell=lambda row: table.Identifier(row[0].model), under="Input"),
        table.text_column("Shape", lambda row: type_in_words(row[1])),
        table.text_column("Values", lambda row: values_in_words(row[1])),
        table.Column(title="From", cell=lambda row: _why(row[1]), layout="why"),
    )
    return table.ReportTable(columns, rows)


def _why(drawn: inputs.DrawnInput) -> str:
    return (drawn.rule.why if drawn.rule is not None else "") or NONE


def tasks_table(rows: Sequence[TunedRow]) -> table.ReportTable:
    """Returns the table of tuning by task."""
    columns: tuple[table.Column[TunedRow], ...] = (
        table.text_column("Task", lambda row: table.Identifier(row.label)),
        table.Column(title="Target", cell=lambda row: table.Identifier(row.target), under="Task"),
        table.text_column("Schedule", lambda row: row.source),
        table.number_column("Trials", lambda row: str(row.trials)),
        table.number_column("Before", lambda row: milliseconds(row.before_ms)),
        table.number_column("Now", lambda row: milliseconds(row.best_ms)),
        table.number_column("Saved", lambda row: percent(row.gain_percent).removeprefix("+")),
        table.number_column("Calls", _calls),
        table.number_column("Time", lambda row: duration(row.seconds if row.trials else None)),
        table.Column(title="Ended", cell=_end_text, layout="wide"),
    )
    return table.ReportTable(columns, rows)


def facts_table(facts: Sequence[tuple[str, str]]) -> table.ReportTable:
    """Returns the table of the revisions and the machine."""
    columns: tuple[table.Column[tuple[str, str]], ...] = (
        table.text_column("What", lambda row: row[0]),
        table.text_column("Value", lambda row: row[1]),
    )
    return table.ReportTable(columns, facts)


def spending_table(rows: Sequence[SpendingRow]) -> table.ReportTable:
    """Returns the parts of the tuning time, with their costs."""
    columns: tuple[table.Column[SpendingRow], ...] = (
        table.text_column("What", lambda row: row.what),
        table.number_column(
            "Candidates", lambda row: NONE if row.candidates is None else f"{row.candidates:,}"
        ),
        table.number_column("Worker time", lambda row: duration(row.seconds)),
        table.number_column("Share", lambda row: share(row.share)),
        table.number_column("Cost", lambda row: money(row.usd)),
        *_energy_columns(rows),
    )
    return table.ReportTable(columns, rows)


_SAVED_BY = {
    "cache": "exact hits in the cache, at least: counted by the candidates in their records",
    "filter": "the filter: the same gains from candidates that it rejected, by audits",
}


def savings_table(rows: Sequence[Saving]) -> table.ReportTable:
    """Returns the table of savings, as far as they can be estimated."""
    columns: tuple[table.Column[Saving], ...] = (
        table.text_column("Saved by", lambda row: _SAVED_BY[row.by]),
        table.number_column("Time", lambda row: duration(row.cost.seconds)),
        table.number_column("Cost", lambda row: money(row.cost.usd)),
        table.number_column("Energy", lambda row: energy(row.cost.joules)),
    )
    return table.ReportTable(columns, rows)


def _energy_columns(rows: Sequence[SpendingRow]) -> tuple[table.Column[Any], ...]:
    """Returns the column of joules, if known."""
    if all(row.joules is None for row in rows):
        return ()
    return (table.number_column("Energy", lambda row: energy(row.joules)),)


def _calls(row: TunedRow) -> str:
    """Returns how often one inference of the head runs the task."""
    if row.weight is None:
        return NONE
    return str(row.weight) if row.weight else "base only"


def _end_text(row: TunedRow) -> str:
    words = stopped_words(row.stopped)
    return f"{words}; failed: {row.failures}" if row.failures else words


def _two_digits(error: float | None) -> str:
    return NONE if error is None else f"{error:.2g}"


# The values of an input, in a few words.

_SHOWN = 4
_MAX_TEXT = 30


def values_in_words(drawn: inputs.DrawnInput) -> str:
    """Returns the values of an input in words."""
    is_drawn = drawn.rule is None or not isinstance(drawn.rule.values, inputs.Files)
    if "sequence" in drawn.form and is_drawn:
        return f"{inputs.DRAWN_LENGTH} tensors, {_tensor_values(drawn)}"
    return _tensor_values(drawn)


def type_in_words(drawn: inputs.DrawnInput) -> str:
    """Returns the shape and the type, of each tensor for a sequence."""
    whole = f"{list(drawn.shape)} {drawn.dtype}"
    is_open = not drawn.shape and drawn.form
    return f"{drawn.form} of {drawn.dtype if is_open else whole}" if drawn.form else whole


def _tensor_values(drawn: inputs.DrawnInput) -> str:
    if drawn.rule is None:
        return "true or false"
    values = drawn.rule.values
    match values:
        case inputs.Columns():
            return _columns(values)
        case inputs.Files():
            count = len(values.files)
            noun = "value" if drawn.form else "array"
            return f"the {noun} of a file" if count == 1 else f"{count} cases, one in each launch"
        case _:
            return _draw(values)


def _draw(values: inputs.Draw) -> str:
    match values:
        case inputs.Normal(mean=mean, deviation=deviation):
            is_standard = mean == 0 and deviation == 1
            return "standard normal" if is_standard else f"normal, {mean:.4g} ± {deviation:.4g}"
        case inputs.Uniform(low=low, high=high):
            return f"{low:.4g} to {high:.4g}"
        case inputs.Integers(low=low, high=high):
            return f"{low} to {high}"
        case inputs.OneOf():
            return f"{'words' if values.words > 1 else 'one'} of {_list_few(values.values)}"
        case inputs.Constant(value=value):
            return f"always {str(value)[:_MAX_TEXT]}"
        case _:
            assert_never(values)


def _columns(values: inputs.Columns) -> str:
    """Returns the values of columns in words; neighbours with the same values are joined."""
    phrases = []
    for draw, same in groupby(enumerate(values.parts), key=lambda each: each[1]):
        places = [place for place, _ in same]
        where = str(places[0]) if len(places) == 1 else f"{places[0]} to {places[-1]}"
        phrases.append(f"column {where}: {_draw(draw)}")
    rest = len(phrases) - _SHOWN
    return "; ".join(phrases[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def _list_few(values: Sequence[object]) -> str:
    rest = len(values) - _SHOWN
    text = ", ".join(str(value)[:_MAX_TEXT] for value in values[:_SHOWN])
    return text + (f" and {rest} more" if rest > 0 else "")

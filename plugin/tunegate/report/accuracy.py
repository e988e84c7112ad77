"""The table of errors of base and head, for models with an accuracy budget."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from tunegate.artifacts.builds import ErrorEstimate, ShippedErrors, SideError, What
from tunegate.artifacts.verdicts import Finding
from tunegate.report.table import Column, Identifier, ReportTable, number_column, text_column
from tunegate.report.units import NONE
from tunegate.wording import plural


class _Row(msgspec.Struct, frozen=True):
    """One part of one model's budget; no part if both sides ship float32."""

    finding: Finding
    shipped: ShippedErrors
    what: What | None

    def of(self, side: SideError | None) -> ErrorEstimate | None:
        estimates = side.estimates if side is not None else ()
        return next((estimate for estimate in estimates if estimate.what == self.what), None)

    @property
    def any(self) -> ErrorEstimate | None:
        return self.of(self.shipped.head) or self.of(self.shipped.base)


def accuracy_table(findings: Sequence[Finding]) -> ReportTable:
    """Returns the errors of what ships, with their bounds and their origin."""
    columns: tuple[Column[_Row], ...] = (
        text_column("Model", lambda row: Identifier(row.finding.model)),
        Column(title="Target", cell=lambda row: Identifier(row.finding.target), under="Model"),
        text_column("Budget", _budget),
        text_column("Base", lambda row: _side(row.shipped.base, row.of(row.shipped.base))),
        text_column("Head", lambda row: _side(row.shipped.head, row.of(row.shipped.head))),
        number_column("Inputs", lambda row: _inputs(row.any) if row.any else NONE),
        text_column("Worst output", lambda row: _output_name(row.any.output if row.any else "")),
        text_column(
            "Tell nothing", lambda row: _output_name(", ".join(_silent(row.any)) if row.any else "")
        ),
    )
    return ReportTable(columns, tuple(_rows(findings)))


def errors_in_words(finding: Finding) -> Iterator[str]:
    """Yields a line per part of the budget: the error of the head that ships in lower precision,
    and the budget."""
    head = finding.accuracy.head if finding.accuracy is not None else None
    if head is None:
        return
    for words in estimates_in_words(head.estimates, is_drawn=_is_told_on_drawn(finding)):
        yield f"{head.title} has a {words}"


def estimates_in_words(estimates: Sequence[ErrorEstimate], *, is_drawn: bool) -> Iterator[str]:
    """Yields each error, with its budget if it has one; `is_drawn` if nobody gave inputs for it."""
    drawn = "drawn input" if is_drawn else "input"
    for estimate in estimates:
        limit = (
            "" if estimate.limit is None else f"; the budget is {estimate.limit:g}{estimate.unit}"
        )
        error, samples = error_in_words(estimate), plural(estimate.samples, drawn)
        yield f"{estimate.what} of {error} on {samples}{limit}"


def drawn_note(findings: Sequence[Finding]) -> str:
    """Returns a note on errors that were estimated on drawn inputs, '' if all were given."""
    if not any(_is_told_on_drawn(finding) for finding in findings):
        return ""
    return (
        "These errors are of drawn inputs, which say little of real ones: give real ones as "
        "`cases` of `inputs`."
    )


def _is_told_on_drawn(finding: Finding) -> bool:
    shipped = finding.accuracy
    sides = (shipped.base, shipped.head) if shipped is not None else ()
    is_told = any(side.estimates for side in sides if side is not None)
    return is_told and bool(finding.inputs) and not any(each.is_given for each in finding.inputs)


def _rows(findings: Sequence[Finding]) -> Iterator[_Row]:
    for finding in findings:
        shipped = finding.accuracy
        if shipped is None:
            continue
        sides = [side for side in (shipped.head, shipped.base) if side is not None]
        parts = dict.fromkeys(estimate.what for side in sides for estimate in side.estimates)
        yield from (_Row(finding, shipped, part) for part in parts or (None,))


def _budget(row: _Row) -> str:
    """Returns the part of the budget, or the whole budget if both sides ship float32."""
    limits = [limit for limit in row.shipped.limits if row.what in {None, limit.what}]
    return ", ".join(f"{limit.what} {limit.limit:g}{limit.unit}" for limit in limits) or NONE


def _side(side: SideError | None, estimate: ErrorEstimate | None) -> str:
    if side is None:
        return NONE
    error = "float32" if estimate is None else error_in_words(estimate)
    return f"{side.title}: {error}"


def error_in_words(estimate: ErrorEstimate) -> str:
    """Returns the sample's error with its bounds, as the budget counts it."""
    high = "?" if estimate.high is None else f"{estimate.high:.3g}"
    return f"{estimate.center:.3g}{estimate.unit} ({estimate.low:.3g} to {high})"


def _inputs(estimate: ErrorEstimate) -> str:
    """Returns how many of the inputs that were run carry information."""
    samples = str(estimate.samples)
    return f"{samples} of {estimate.samples + estimate.silent}" if estimate.silent else samples


def _silent(estimate: ErrorEstimate) -> Iterator[str]:
    """Yields the outputs without information, and those with it in few elements."""
    yield from estimate.saturated
    for each in estimate.mostly_saturated:
        yield f"{each.output} ({each.percent:.0f}% at its bounds)"


def _output_name(output: str) -> str | Identifier:
    return Identifier(output) if output else NONE


# A larger error without a latency gain, in sentences.

ERROR_MOVED = "error-moved"
"""The name of the finding in SARIF and annotations."""


def error_moves(finding: Finding, code: Callable[[str], str]) -> Iterator[str]:
    """Yields a sentence for each part of the budget; `code` marks names."""
    shipped = finding.accuracy
    if shipped is None or shipped.base is None or shipped.head is None:
        return
    where = f"{code(finding.model)} on {code(finding.target)}"
    for what in shipped.moved:
        went = "fell" if what == "min-agreement" else "rose"
        before, after = _describe_error(shipped.base, what), _describe_error(shipped.head, what)
        yield (
            f"{where}: the {what} of what ships {went} from {before} to {after}, "
            "and the head is not clearly faster"
        )


def _describe_error(side: SideError, what: What) -> str:
    estimate = next((each for each in side.estimates if each.what == what), None)
    return "float32" if estimate is None else error_in_words(estimate)

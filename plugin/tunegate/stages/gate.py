"""Decide. No measuring, no printing."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate import errors
from tunegate.artifacts.builds import Build, Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange
from tunegate.artifacts.measurements import CellMeasurement, Comparison, MeasurementRun
from tunegate.artifacts.verdicts import Finding, Status, TuningSummary, Verdict
from tunegate.config import GateConfig

# The worst decides. A proven regression comes before all that could not be found out, so that it is
# never hidden behind trouble with another model; a wrong or failed build comes before everything.
SEVERITY: tuple[Status, ...] = (
    "error", "fail", "invalid-env", "no-baseline", "inconclusive", "waived", "new", "pass",
)  # fmt: skip
EXIT_CODES: dict[Status, int] = {
    "error": errors.USAGE,
    "fail": errors.FAIL,
    "invalid-env": errors.UNFIT,
    "no-baseline": errors.NO_BASELINE,
    "inconclusive": errors.INCONCLUSIVE,
    "waived": errors.PASS,
    "new": errors.PASS,
    "pass": errors.PASS,
}


def decide(
    comparisons: Sequence[Comparison],
    run: MeasurementRun | None,
    changes: ChangeSet,
    tuning: TuningSummary,
    gate: GateConfig,
) -> Verdict:
    """A finding for every cell that the changes call for; a cell without a result is an error."""
    compared = {comparison.cell: comparison for comparison in comparisons}
    measured = {cell.cell: cell for cell in run.cells} if run is not None else {}
    builds = {built.cell: built for built in run.builds} if run is not None else {}
    findings = tuple(
        _judge(change, cell, compared.get(cell), measured.get(cell), builds.get(cell), gate)
        for change in changes.models
        for cell in expected_cells(change)
    )
    status = worst([finding.status for finding in findings])
    code = EXIT_CODES[status]
    if status == "inconclusive" and gate.inconclusive == "warn":
        code = errors.PASS
    return Verdict(
        status=status,
        exit_code=code,
        findings=findings,
        tuning=tuning,
        margin_percent=gate.margin_percent,
        revisions=changes.revisions,
    )


def expected_cells(change: ModelChange) -> tuple[Cell, ...]:
    """The manifest: nothing for a deleted model or a pure rename."""
    if change.kind in {"deleted", "renamed"}:
        return ()
    return tuple(Cell(model=change.path, target=target) for target in change.targets)


def worst(statuses: Sequence[Status]) -> Status:
    return min(statuses, key=SEVERITY.index, default="pass")


def _judge(
    change: ModelChange,
    cell: Cell,
    comparison: Comparison | None,
    measured: CellMeasurement | None,
    built: CellBuilds | None,
    gate: GateConfig,
) -> Finding:
    status, reason = _status(change, comparison, measured, built, gate)
    return Finding(
        model=cell.model,
        target=cell.target,
        status=status,
        reason=reason,
        base_ms=comparison.base_ms if comparison else None,
        head_ms=comparison.head_ms if comparison else None,
        reference_ms=comparison.reference_ms if comparison else None,
        change_percent=comparison.change_percent if comparison else None,
        launches=comparison.launches if comparison else 0,
        differences=comparison.differences if comparison else (),
    )


def _status(
    change: ModelChange,
    comparison: Comparison | None,
    measured: CellMeasurement | None,
    built: CellBuilds | None,
    gate: GateConfig,
) -> tuple[Status, str]:
    if comparison is None or measured is None or built is None or built.head is None:
        return "error", "no result for this model: it was expected and never measured"
    match measured.stopped:
        case "error":
            return "error", built.head.error or "; ".join(measured.notes)
        case "invalid" | "disturbed":
            return "invalid-env", _unfit(measured)
        case "identical":
            return "pass", "identical build, not measured"
        case "single":
            return _alone(change, built.base)
        case _:
            return _by_interval(comparison, gate)


def _unfit(measured: CellMeasurement) -> str:
    if measured.stopped == "invalid":
        return "; ".join(measured.notes) or "the measurement broke"
    canaries = ", ".join(f"{100 * effect:+.1f} %" for effect in measured.canaries)
    return (
        "this machine cannot hold still: too many launches were disturbed, or the base against "
        f"itself differed ({canaries})"
    )


def _alone(change: ModelChange, base: Build | None) -> tuple[Status, str]:
    if change.base is None:
        return "new", "new model, nothing to compare with"
    reason = base.error if base is not None else None
    return "no-baseline", reason or "the base of this model could not be built"


def _by_interval(comparison: Comparison, gate: GateConfig) -> tuple[Status, str]:
    change = comparison.change_percent
    if change is None:
        return "error", "measured, but there is no interval"
    text = f"{change.center:+.1f} % ({change.low:+.1f} to {change.high:+.1f} %)"
    margin = f"{gate.margin_percent:g} % margin"
    if comparison.decision == "fail":
        return "fail", f"slower by {text}, over the {margin}"
    if comparison.decision == "pass":
        return "pass", f"{text}, within the {margin}"
    return "inconclusive", f"{text} spans the {margin}; {_more(comparison)}"


def _more(comparison: Comparison) -> str:
    if comparison.projected_launches is None:
        return "the change lies on the margin itself"
    wanted = comparison.projected_launches
    return f"about {wanted} launches would decide, {comparison.launches} were made"

"""Decides, without measuring or printing."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate import errors
from tunegate.artifacts.builds import Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange
from tunegate.artifacts.measurements import CellMeasurement, Comparison, MeasurementRun
from tunegate.artifacts.verdicts import Finding, Status, TuningSummary, Verdict
from tunegate.config import GateConfig
from tunegate.gate.waiving import notes
from tunegate.verdict.checks import (
    NO_POLICIES,
    CheckResult,
    Policies,
    absolute,
    latency,
    memory,
    metric,
    size,
    waived,
    workspace,
)
from tunegate.verdict.severity import EXIT_CODES, worst


def decide(
    comparisons: Sequence[Comparison],
    run: MeasurementRun | None,
    changes: ChangeSet,
    tuning: TuningSummary,
    gate: GateConfig,
    policies: Policies = NO_POLICIES,
) -> Verdict:
    """A finding for every cell that the changes call for; a cell without a result is an error."""
    findings = _findings(comparisons, run, changes, gate, policies)
    status = worst([finding.status for finding in findings.values()])
    policy_fails = _policy_fails(changes, gate)
    if policy_fails:
        status = worst([status, "fail"])
    used = {cell: finding.status in {"waived", "fail"} for cell, finding in findings.items()}
    return Verdict(
        status=status,
        exit_code=_exit_code(status, gate),
        findings=tuple(findings.values()),
        tuning=tuning,
        margin_percent=gate.margin_percent,
        revisions=changes.revisions,
        seed="" if run is None else run.seed,
        policy_changes=changes.policy_changes,
        policy_fails=policy_fails,
        notes=tuple(notes(policies.waivers, used, policies.today)),
    )


def _findings(
    comparisons: Sequence[Comparison],
    run: MeasurementRun | None,
    changes: ChangeSet,
    gate: GateConfig,
    policies: Policies,
) -> dict[Cell, Finding]:
    compared = {comparison.cell: comparison for comparison in comparisons}
    measured = {cell.cell: cell for cell in run.cells} if run is not None else {}
    builds = {built.cell: built for built in run.builds} if run is not None else {}
    return {
        cell: _judge(
            change,
            cell,
            compared.get(cell),
            measured.get(cell),
            builds.get(cell),
            gate,
            policies,
        )
        for change in changes.models
        for cell in expected_cells(change)
    }


def _policy_fails(changes: ChangeSet, gate: GateConfig) -> bool:
    weakened = any(change.weakens for change in changes.policy_changes)
    return weakened and gate.policy_changes == "fail"


def _exit_code(status: Status, gate: GateConfig) -> int:
    if status == "inconclusive" and gate.inconclusive == "warn":
        return errors.PASS
    return EXIT_CODES[status]


def expected_cells(change: ModelChange) -> tuple[Cell, ...]:
    """The cells that a change must have measured: none for a deleted model or a pure rename."""
    if change.kind in {"deleted", "renamed"}:
        return ()
    return tuple(Cell(model=change.path, target=target) for target in change.targets)


def _judge(
    change: ModelChange,
    cell: Cell,
    comparison: Comparison | None,
    measured: CellMeasurement | None,
    built: CellBuilds | None,
    gate: GateConfig,
    policies: Policies,
) -> Finding:
    if change.kind == "unreadable":
        first = CheckResult("error", change.reason)
    else:
        first = latency(change, comparison, measured, built, gate)
    first = waived(first, comparison, cell, policies)
    others = (
        absolute(measured, policies.objectives.get(cell.model)),
        size(built, gate.size_margin_percent),
        memory(measured, gate.memory_margin_percent),
        workspace(measured, gate.workspace_margin_percent),
        metric(measured, policies.metric_margin),
    )
    judged = [first, *(other for other in others if other is not None)]
    status = worst([each.status for each in judged])
    deciding = [each.reason for each in judged if each.status == status]
    reasons = deciding if first.status == status else [*deciding, first.reason]
    return Finding(
        model=cell.model,
        target=cell.target,
        status=status,
        reason="; ".join(reasons),
        base_ms=comparison.base_ms if comparison else None,
        head_ms=comparison.head_ms if comparison else None,
        reference_ms=comparison.reference_ms if comparison else None,
        change_percent=comparison.change_percent if comparison else None,
        launches=comparison.launches if comparison else 0,
        differences=comparison.differences if comparison else (),
        inside=comparison.inside if comparison else (),
        excluded=comparison.excluded if comparison else None,
    )

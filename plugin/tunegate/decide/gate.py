"""Decides. Measures and prints nothing."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tunegate import errors
from tunegate.artifacts import measurements, verdicts
from tunegate.artifacts.builds import Build, CandidateTime, Cell, CellBuilds, RuntimeChoice
from tunegate.artifacts.changes import ChangeSet, ModelChange, path_of
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.config import GateConfig
from tunegate.decide import checks
from tunegate.decide.compare import compare_cell
from tunegate.decide.error_budget import shipped_errors
from tunegate.decide.margins_beside_latency import check_energy, check_layers, check_load
from tunegate.decide.waiving import apply_waiver, notes
from tunegate.errors import ArtifactError
from tunegate.review.gate_rules import GateRules, waived_gate
from tunegate_cache.format.records import WorkloadKey


def decide_verdict(
    comparisons: Sequence[measurements.Comparison],
    run: measurements.MeasurementRun | None,
    changes: ChangeSet,
    tuning: verdicts.TuningSummary,
    rules: GateRules,
    *,
    missing_shards: Sequence[measurements.UnmeasuredShard] = (),
) -> verdicts.Verdict:
    """Returns the verdict, with a finding for each expected cell. A cell without a result is an
    error, or the problem of its shard of `missing_shards`."""
    gate, policies = rules.gate, rules.policies
    # Each expected cell is judged by itself, and the worst counts.
    findings = {
        evidence.cell: _judge_cell(evidence, rules)
        for evidence in _evidence(comparisons, run, changes, missing_shards)
    }
    status = verdicts.worst_status([finding.status for finding in findings.values()])

    # A change that loosens its own gate may fail for that alone, however fast it is.
    weakens = any(change.weakens for change in changes.policy_changes)
    policy_fails = weakens and gate.policy_changes == "fail"
    if policy_fails:
        status = verdicts.worst_status([status, "fail"])

    # Waivers of the file that no slow cell used get a note. Those of commits go with their change.
    needs_waiver = {cell: finding.status != "pass" for cell, finding in findings.items()}
    file_waivers = [waiver for waiver in policies.waivers if waiver not in policies.signed_waivers]
    return verdicts.Verdict(
        status=status,
        exit_code=_exit_code(status, gate),
        findings=tuple(findings.values()),
        tuning=tuning,
        margin_percent=gate.margin_percent,
        revisions=changes.revisions,
        seed="" if run is None else run.seed,
        policy_changes=changes.policy_changes,
        policy_fails=policy_fails,
        notes=tuple(notes(file_waivers, needs_waiver, policies.today)),
    )


class _Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence on one expected cell."""

    change: ModelChange
    cell: Cell
    comparison: measurements.Comparison | None
    measurement: measurements.CellMeasurement | None
    builds: CellBuilds | None
    unmeasured: measurements.UnmeasuredShard | None


def _evidence(
    comparisons: Sequence[measurements.Comparison],
    run: measurements.MeasurementRun | None,
    changes: ChangeSet,
    missing_shards: Sequence[measurements.UnmeasuredShard],
) -> Iterator[_Evidence]:
    comparison_of = {comparison.cell: comparison for comparison in comparisons}
    measurement_of = {cell.cell: cell for cell in run.cells} if run is not None else {}
    builds = {each.cell: each for each in run.builds} if run is not None else {}
    for change in changes.models:
        for cell in expected_cells(change):
            yield _Evidence(
                change=change,
                cell=cell,
                comparison=comparison_of.get(cell),
                measurement=measurement_of.get(cell),
                builds=builds.get(cell),
                unmeasured=next((shard for shard in missing_shards if shard.has(cell)), None),
            )


def _exit_code(status: verdicts.Status, gate: GateConfig) -> int:
    if status == "inconclusive" and gate.inconclusive == "warn":
        return errors.PASS
    return verdicts.EXIT_CODES[status]


def expected_cells(change: ModelChange) -> tuple[Cell, ...]:
    """Returns the cells that a change must have measured: none for a deleted model or a pure
    rename."""
    if change.kind in {"deleted", "renamed"}:
        return ()
    return tuple(Cell(model=change.path, target=target) for target in change.targets)


def _remarks(status: verdicts.Status, remarks: list[str], differing: list[str]) -> str:
    """Returns the remarks. Of a finding without any that does not pass, the report shows the
    whole reason, which has these differences."""
    return "; ".join([*remarks, *(differing if remarks or status == "pass" else ())])


def _differing(measurement: measurements.CellMeasurement | None) -> list[str]:
    """Returns how the outputs differ, if they do."""
    launches = measurement.launches if measurement else ()
    return list(dict.fromkeys(launch.differing for launch in launches if launch.differing))


def _judge_cell(evidence: _Evidence, rules: GateRules) -> verdicts.Finding:
    gate = rules.gate
    comparison, measurement, builds = evidence.comparison, evidence.measurement, evidence.builds
    # The latency comes first: without a measurement the reason for that stands in its place. Only
    # it can be waived.
    if evidence.change.kind == "unreadable":
        latency = checks.CheckResult("error", evidence.change.reason)
    elif evidence.unmeasured is not None:
        latency = checks.CheckResult(evidence.unmeasured.status, evidence.unmeasured.reason)
    else:
        latency = checks.check_latency(evidence.change, comparison, measurement, builds, gate)
    ceiling_gate = waived_gate(rules, evidence.cell)
    at_ceiling = (
        compare_cell(measurement, builds, ceiling_gate)
        if ceiling_gate and measurement and builds
        else None
    )
    latency = apply_waiver(latency, comparison, at_ceiling, evidence.cell, rules)
    if latency.status == "waived":
        latency = latency.with_remarks(_other_name(evidence.change))

    # The worst check decides. The reason names every check that says so, and always the latency's;
    # the remarks repeat what is beside it.
    others = [*_other_checks(evidence, rules)]
    status = verdicts.worst_status([check.status for check in (latency, *others)])
    beside = [check.reason for check in others if check.status == status]
    reasons = [latency.reason, *beside] if latency.status == status else [*beside, latency.reason]
    differing = _differing(measurement)
    return verdicts.Finding(
        model=evidence.cell.model,
        target=evidence.cell.target,
        status=status,
        reason="; ".join([*reasons, *differing]),
        remarks=_remarks(status, [*filter(None, [*beside, latency.remarks])], differing),
        base_ms=comparison.base_ms if comparison else None,
        head_ms=comparison.head_ms if comparison else None,
        reference_ms=comparison.reference_ms if comparison else None,
        change_percent=comparison.change_percent if comparison else None,
        launches=comparison.launches if comparison else 0,
        differences=comparison.differences if comparison else (),
        inside=comparison.inside if comparison else (),
        excluded=comparison.excluded if comparison else None,
        inputs=builds.head.inputs if builds is not None and builds.head is not None else (),
        runtimes=candidate_outcomes(builds.head if builds else None),
        accuracy=shipped_errors(builds, comparison),
        energy=comparison.energy if comparison else None,
        load=comparison.load if comparison else None,
        layers=comparison.layers if comparison else None,
    )


def _other_name(change: ModelChange) -> str:
    """Returns the name of a model in the base, if it has another: a waiver that nobody removed may
    have its new one."""
    if change.base is None or change.base.path == path_of(change.path):
        return ""
    return f"the base has this model as {change.base.path}: is the waiver meant for it"


def _other_checks(evidence: _Evidence, rules: GateRules) -> Iterator[checks.CheckResult]:
    """Yields the results of the checks beside the latency."""
    gate, policies = rules.gate, rules.policies
    comparison, measurement, builds = evidence.comparison, evidence.measurement, evidence.builds
    others = (
        checks.check_objective(measurement, policies.objectives.get(evidence.cell.model)),
        checks.check_size(builds, gate.size_margin_percent),
        checks.check_memory(measurement, gate.memory_margin_percent),
        checks.check_workspace(measurement, gate.workspace_margin_percent),
        check_energy(comparison, gate.energy_margin_percent),
        check_load(comparison, gate.load_margin_percent),
        None if evidence.change.kind == "upgraded" else _check_layers(evidence, rules),
        checks.check_metric(measurement, policies.metric_margin),
    )
    return (other for other in others if other is not None)


def _check_layers(evidence: _Evidence, rules: GateRules) -> checks.CheckResult | None:
    """Returns the check of the layers that differ, under a waiver of the model if there is one."""
    margin_percent = rules.gate.layers_margin_percent
    ceiling_gate = waived_gate(rules, evidence.cell)
    ceiling_percent = ceiling_gate.margin_percent if ceiling_gate else None
    return check_layers(evidence.comparison, evidence.measurement, margin_percent, ceiling_percent)


# The result of each candidate of a cell, for its finding.


def candidate_outcomes(head: Build | None) -> tuple[verdicts.CandidateOutcome, ...]:
    """Returns the candidate that ships, then the slower ones, then those that do not run the
    model."""
    if head is None or not head.candidate:
        return ()
    return tuple(_outcomes(head, head.choice or RuntimeChoice()))


def _outcomes(head: Build, choice: RuntimeChoice) -> Iterator[verdicts.CandidateOutcome]:
    times = {time.candidate: _outcome(time) for time in choice.times}
    if head.error is None:
        untimed_outcome = verdicts.CandidateOutcome(
            candidate=head.candidate, title=head.title, ships=True
        )
        ours = times.pop(head.candidate, untimed_outcome)
        if head.error_estimate:
            error = head.error_estimate[0]
            ours = msgspec.structs.replace(ours, error=error, has_unknown_error=False)
        yield msgspec.structs.replace(ours, ships=True, reason=choice.reason)
    yield from times.values()
    for refusal in choice.refused:
        yield verdicts.CandidateOutcome(
            candidate=refusal.candidate,
            title=refusal.title,
            ships=False,
            reason=refusal.reason,
            error=refusal.error,
        )


def _outcome(time: CandidateTime) -> verdicts.CandidateOutcome:
    return verdicts.CandidateOutcome(
        candidate=time.candidate,
        title=time.title,
        ships=False,
        ms=time.ms,
        low_ms=time.low_ms,
        high_ms=time.high_ms,
        error=time.error,
        has_unknown_error=time.has_unknown_error,
    )


# The inputs of a judgment.


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a judgment. `unmeasured` shards decide about their models. `machine` names the
    measuring machines. `unasked` are the tasks that only an older toolchain has tuned."""

    changes: ChangeSet
    plan: TuningPlan | None = None
    outcomes: tuple[TuningOutcome, ...] = ()
    unmeasured: tuple[measurements.UnmeasuredShard, ...] = ()
    machine: str = ""
    unasked: frozenset[tuple[WorkloadKey, str]] = frozenset()


# A second machine's word on a fail: only a regression that both machines saw is one.

_ANOTHER = "Confirm a verdict with one of another machine, of the same revisions, models and rules."


def confirm(first: verdicts.Verdict, second: verdicts.Verdict) -> verdicts.Verdict:
    """Returns the first verdict, with each fail kept only if the second verdict has it too. A check
    that the second could not decide becomes undecided, never green. Raises ArtifactError if the two
    do not measure the same change."""
    problem = next(_differences(first, second), None)
    if problem is not None:
        raise ArtifactError(f"{problem}. {_ANOTHER}")
    others = {other.cell: other for other in second.findings}
    findings = tuple(_confirm(finding, others) for finding in first.findings)
    status = verdicts.worst_status([finding.status for finding in findings])
    if first.policy_fails or second.policy_fails:  # no machine decides that
        status = verdicts.worst_status([status, "fail"])
    may_pass = status == first.status == "inconclusive" and first.exit_code == errors.PASS
    code = errors.PASS if may_pass else verdicts.EXIT_CODES[status]
    return msgspec.structs.replace(first, status=status, exit_code=code, findings=findings)


def _confirm(
    finding: verdicts.Finding, second_findings: Mapping[Cell, verdicts.Finding]
) -> verdicts.Finding:
    if finding.status != "fail":
        return finding
    other = second_findings.get(finding.cell)
    second_result = "nothing was measured there" if other is None else other.reason
    status: verdicts.Status = "inconclusive"
    result = "not decided on the second machine"
    if other is not None and other.status == "fail":
        status, result = "fail", "confirmed on a second machine"
    elif other is not None and other.status == "pass":
        status, result = "pass", "not confirmed on a second machine"
    return msgspec.structs.replace(
        finding, status=status, reason=f"{finding.reason}; {result}: {second_result}"
    )


def _differences(first: verdicts.Verdict, second: verdicts.Verdict) -> Iterator[str]:
    """Yields the reasons why these are not two measurements of one change. Two runs on one machine
    are refused: a quirk of that machine would be there twice."""
    for name, one, other in (
        ("base", first.revisions.base, second.revisions.base),
        ("head", first.revisions.head, second.revisions.head),
    ):
        if one != other:
            yield f"the verdicts are of {name} {(one or 'none')[:12]} and {(other or 'none')[:12]}"
    if first.margin_percent != second.margin_percent:
        margins = f"{first.margin_percent:g}% and {second.margin_percent:g}%"
        yield f"the verdicts have margins of {margins}"
    if first.origin.rules != second.origin.rules or not first.origin.rules:
        yield "the verdicts were reached by different rules"
    if _cells(first) != _cells(second):
        only = sorted(_cells(first) ^ _cells(second))
        yield f"only one of the verdicts has {only[0][0]} on {only[0][1]}"
    if first.origin.measurements and first.origin.measurements == second.origin.measurements:
        yield "the verdicts are of one and the same run"
    elif first.origin.measurements and _machines(first) & _machines(second):
        yield "the verdicts are of one and the same machine"


def _machines(verdict: verdicts.Verdict) -> set[str]:
    """Returns the names of all machines behind the verdict. Verdicts of older versions may have
    none."""
    return set(verdict.origin.machine.split(", "))


def _cells(verdict: verdicts.Verdict) -> set[tuple[str, str]]:
    return {(finding.model, finding.target) for finding in verdict.findings}

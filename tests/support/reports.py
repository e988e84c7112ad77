"""One report for each thing a run can come to; the renderers are tested with these."""

import datetime
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.models.squeezenet import TASKS, TaskRow, slowed_row
from tests.support.outcome_parts import outcome
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import Comparison, Interval, MeasurementRun, TaskDifference
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, Cost
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Finding, Report, Verdict
from tunegate.config import GateConfig
from tunegate.decide.gate import Judged
from tunegate.decide.summarize import summarize
from tunegate.decide.waiving import waiver_offer
from tunegate.review.gate_rules import GateRules, Policies

RULES = GateRules(gate=GateConfig(), policies=Policies(today=datetime.date(2026, 11, 25)))
CURVE = tuple((seconds * 9.3, round(3.1 + 6.4 * 0.72**seconds, 3)) for seconds in range(13))


def make_report(kind: str) -> Report:
    """The report of one situation: a key of `KINDS`."""
    return KINDS[kind]()


def with_finding(report: Report, **fields: object) -> Report:
    """The report with these fields of its first finding."""
    first, *others = report.verdict.findings
    verdict = replace(report.verdict, findings=(replace(first, **fields), *others))
    return replace(report, verdict=verdict)


def identical() -> Report:
    finding = parts.finding("pass", "identical build on both sides, not measured")
    change = parts.change(change="weights-only", reason="only tensor data differs")
    return _report(parts.verdict("pass", 0, finding), parts.changes(change))


def measured() -> Report:
    compared = parts.comparison(Interval(low=-1.2, center=0.3, high=1.1), 4.812)
    finding = _finding("pass", "within the margin of 3%", compared)
    return _measured(parts.verdict("pass", 0, finding), compared)


def slowed() -> Report:
    head = tuple(slowed_row(row) for row in TASKS)
    change = Interval(low=10.9, center=12.4, high=13.9)
    compared = parts.comparison(
        change, 4.812, launches=9, spread=1.9, decision="fail", differences=parts.differences(head)
    )
    finding = _finding("fail", "slower by 12.4% (at least 10.9%), the margin is 3%", compared)
    tuning = parts.summary(exact=8, miss=2, tuned=1, trials=64, seconds=112.4, usd=0.1124)
    verdict = parts.verdict("fail", 1, finding, tuning=tuning)
    cache = parts.cache(exact=8, misses={"absent": 2})
    outcomes = (outcome(head, curve=CURVE),)
    return _measured(verdict, compared, head=head, outcomes=outcomes, cache=cache)


def new_layer() -> Report:
    """A layer that the base does not have, and nothing slower beside it."""
    report = slowed()
    (finding,), (compared,) = report.verdict.findings, report.comparisons
    added = TaskDifference(
        name="fire5/extra3x3", base_ms=None, head_ms=0.61, source="library", library="ONNX Runtime"
    )
    shown = replace(finding, differences=(added,))
    return _measured(parts.verdict("fail", 1, shown), replace(compared, differences=(added,)))


def undecided() -> Report:
    change = Interval(low=1.4, center=2.9, high=4.6)
    compared = parts.comparison(
        change, 4.812, launches=13, spread=3.4, decision="undecided", stopped="budget"
    )
    compared = replace(compared, projected_launches=28)
    finding = _finding("inconclusive", "between +1.4 and +4.6%, across the margin", compared)
    return _measured(parts.verdict("inconclusive", 3, finding), compared)


def new_model() -> Report:
    finding = parts.finding(
        "new", "no base to compare with: built and checked", head_ms=4.83, reference_ms=6.31
    )
    change = parts.change(kind="added", change=None, base=None, reason="not in the base")
    return _report(parts.verdict("new", 0, finding), parts.changes(change))


def wrong_numbers() -> Report:
    reason = "the head build is wrong: relative error 0.41 on output 'softmax', allowed 0.001"
    finding = parts.finding("error", reason)
    compared = parts.comparison(Interval(low=0, center=0, high=0), 4.8, launches=0, spread=0)
    cell = parts.measurement(compared, stopped="error", head_ms=None, reference_ms=None)
    run = parts.measured(cell, head=parts.built("d", error=reason))
    return _report(parts.verdict("error", 2, finding), run=run)


def no_baseline() -> Report:
    reason = "the base revision 4f2a1c9 cannot be built: opset 7 is not supported"
    return _report(parts.verdict("no-baseline", 5, parts.finding("no-baseline", reason)))


def unfit() -> Report:
    reason = "more than a third of the launches were disturbed by other processes"
    return _report(parts.verdict("invalid-env", 4, parts.finding("invalid-env", reason)))


def nothing_changed() -> Report:
    return _report(
        parts.verdict("pass", 0, tuning=parts.summary(tasks=0, exact=0)), parts.changes()
    )


def many() -> Report:
    """Sixty models on two targets, with one of every status among them."""
    special = [
        *(report.verdict.findings[0] for report in (slowed(), undecided(), new_model())),
        *(report.verdict.findings[0] for report in (wrong_numbers(), no_baseline(), identical())),
    ]
    passing = [
        _finding(
            "pass",
            "within the margin of 3%",
            parts.comparison(Interval(low=-1.0, center=step / 40, high=1.9), 2.0 + step / 7),
        )
        for step in range(60)
    ]
    findings = [
        replace(each, model=f"models/family_{index % 7}/net_{index:02d}.onnx", target=target)
        for index, each in enumerate([*special, *passing])
        for target in ("cpu", "cuda-h100")
    ]
    return _report(parts.verdict("error", 2, *findings))


def budget_spent() -> Report:
    cut = {"fire5/expand3x3": ("search", 22), "conv10": ("default", 0)}
    head = tuple(
        replace(
            row,
            before_ms=(row.ms or 0.0) * 2.1 if cut[row.name][1] else row.ms,
            source=cut[row.name][0],
            trials=cut[row.name][1],
            stopped="budget" if cut[row.name][1] else "not-started",
        )
        if row.name in cut
        else row
        for row in TASKS
    )
    tuned = outcome(head, stopped="usd", spent=Cost(seconds=10.0, usd=0.01), curve=CURVE[:4])
    tuning = parts.summary(
        exact=8, miss=2, begun=1, trials=22, seconds=10.0, usd=0.01, stopped="usd"
    )
    compared = parts.comparison(Interval(low=-0.9, center=0.6, high=2.1), 4.812)
    finding = _finding("pass", "within the margin of 3%", compared)
    verdict = parts.verdict("pass", 0, finding, tuning=tuning)
    return _measured(verdict, compared, head=head, outcomes=(tuned,))


def cache_down() -> Report:
    tasks = tuple(
        replace(
            row, before_ms=(row.ms or 0.0) * 3.7, source="search", trials=30, stopped="finished"
        )
        for row in TASKS
    )
    down = parts.cache(
        exact=0,
        misses={"store-unavailable": 10},
        requests=1,
        bytes_read=0,
        seconds=5.0,
        notes=("s3://acme-ml-cache/tunegate: no answer within 5 s; going on without it",),
    )
    report = measured()
    tuning = parts.summary(exact=0, miss=10, tuned=10, trials=300, seconds=540.0)
    return _report(
        replace(report.verdict, tuning=tuning),
        tasks=tasks,
        run=report.run,
        comparisons=report.comparisons,
        cache=down,
    )


def hostile() -> Report:
    """Names as somebody unfriendly would choose them."""
    name = (
        "models/`|<script>alert(1)</script>@octocat #1 ]]> \x1b[31m\u202e$x$ [a](http://x.y).onnx"
    )
    task = "fused_</svg><script>x()</script>|`conv`_@all"
    report = slowed()
    finding = report.verdict.findings[0]
    worst = replace(finding.differences[0], name=task, head_ms=9.9)
    differences = (worst, *finding.differences[1:])
    bad = replace(finding, model=name, reason=f"{name} is slower\n# see", differences=differences)
    told = parts.policy_change(key=name, new=name, model=name, target=task)
    change_set = parts.changes(parts.change(name, reason=task), uncovered=(name,))
    verdict = parts.verdict("fail", 1, bad, policy_changes=(told,))
    compared = replace(report.comparisons[0], cell=parts.cell(name), differences=differences)
    return _report(verdict, change_set, outcomes=report.outcomes, comparisons=(compared,))


def loosened() -> Report:
    """A change that loosens its own gate, where the base forbids that."""
    change_set = parts.changes(uncovered=("attic/old.onnx", "attic/older.ONNX"))
    changes = (
        parts.policy_change(),
        parts.policy_change(key="models", old="gated", new="deleted", model="m.onnx", counts="now"),
        parts.policy_change(key="cache.zone", old="main", new="theirs", effect="changed"),
        parts.policy_change(
            key="gate.size-margin-percent", old="not set", effect="tightened", counts="now"
        ),
    )
    tuning = parts.summary(tasks=0, exact=0)
    verdict = parts.verdict("fail", 1, tuning=tuning, policy_changes=changes, policy_fails=True)
    return _report(verdict, change_set)


WHOLE = ("slowed", "hostile")
"""The two that are kept whole, in every form, in tests/golden."""

KINDS: dict[str, Callable[[], Report]] = {
    "identical": identical,
    "measured": measured,
    "slowed": slowed,
    "new-layer": new_layer,
    "undecided": undecided,
    "new-model": new_model,
    "wrong-numbers": wrong_numbers,
    "no-baseline": no_baseline,
    "unfit": unfit,
    "nothing-changed": nothing_changed,
    "many": many,
    "budget-spent": budget_spent,
    "cache-down": cache_down,
    "hostile": hostile,
    "loosened": loosened,
}


def _finding(status: str, reason: str, compared: Comparison) -> Finding:
    return parts.finding(
        status,  # type: ignore[arg-type]  # a builder
        reason,
        base_ms=compared.base_ms,
        head_ms=compared.head_ms,
        reference_ms=compared.reference_ms,
        change_percent=compared.change_percent,
        launches=compared.launches,
        differences=compared.differences,
    )


def _measured(
    verdict: Verdict,
    compared: Comparison,
    *,
    head: tuple[TaskRow, ...] = TASKS,
    outcomes: Sequence[TuningOutcome] = (),
    cache: CacheUse | None = None,
) -> Report:
    run = parts.measured(parts.measurement(compared), head=parts.built("d", head))
    return _report(
        verdict, tasks=head, outcomes=outcomes, run=run, comparisons=(compared,), cache=cache
    )


def _report(
    verdict: Verdict,
    change_set: ChangeSet | None = None,
    *,
    tasks: tuple[TaskRow, ...] = TASKS,
    outcomes: Sequence[TuningOutcome] = (),
    run: MeasurementRun | None = None,
    comparisons: Sequence[Comparison] = (),
    cache: CacheUse | None = None,
) -> Report:
    changes = parts.changes(parts.change()) if change_set is None else change_set
    use = cache or parts.cache()
    budget = Budget(seconds=600.0, trials=None, usd=0.6, usd_per_hour=3.6)
    judged = Judged(
        changes=changes,
        plan=parts.plan(changes, use, tasks, budget),
        outcomes=tuple(outcomes) or (outcome(tasks),),
    )
    offer = waiver_offer(verdict, comparisons, RULES)
    return summarize(verdict, judged, run=run, comparisons=comparisons, offer=offer)

"""The report as one HTML file that needs nothing else: no script, no network."""

from __future__ import annotations

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from tunegate.artifacts.builds import Build
from tunegate.artifacts.measurements import CellMeasurement, Comparison
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.verdicts import Finding, Report
from tunegate.render import plots, units
from tunegate.render.candidates.accuracy import accuracy_table
from tunegate.render.candidates.error_moves import error_moves
from tunegate.render.candidates.plot import latency_by_error
from tunegate.render.candidates.table import candidates_table
from tunegate.render.cost_table import audit, spending
from tunegate.render.distribution import distribution
from tunegate.render.environment import facts
from tunegate.render.headline import STATUS_WORDS, headline, reason, worst_first
from tunegate.render.operators import parts, tuned_rows
from tunegate.render.page import page_environment
from tunegate.render.policy import policy_lines, uncovered_line
from tunegate.render.shipped import shipped
from tunegate.render.stopped import stopped_words, tuning_ended
from tunegate.render.tables.report_tables import (
    builds_table,
    inputs_table,
    inside_table,
    models_table,
    operators_table,
    outputs_table,
    savings_table,
    spending_table,
    tasks_table,
)
from tunegate.render.tables.table import ReportTable
from tunegate.tuning.costs.savings import savings

PLOTTED_CHECKS = 24
SHOWN_PARTS = 12


class CellSection(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one target with its plots; an empty plot has nothing to show."""

    finding: Finding
    comparison: Comparison | None
    measured: CellMeasurement | None
    inside: ReportTable
    operators: ReportTable
    builds: ReportTable
    outputs: tuple[ReportTable, ...]
    inputs: ReportTable
    launches: Markup
    latencies: Markup
    waterfall: Markup
    candidates: ReportTable
    accuracy: ReportTable
    error_moves: tuple[str, ...]
    latency_by_error: Markup
    distribution: Markup


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    outcome: TuningOutcome
    plot: Markup


def render(report: Report) -> str:
    """The page; the same report always gives the same bytes."""
    verdict = report.verdict
    worst = worst_first(verdict)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            verdict=verdict,
            headline=headline(report).removeprefix(f"{STATUS_WORDS[verdict.status]}: "),
            models=models_table(worst, verdict),
            policy=policy_lines(verdict),
            uncovered=uncovered_line(report.changes.uncovered),
            checks=[_check(report, each, at) for at, each in enumerate(worst[:PLOTTED_CHECKS])],
            curves=_curves(report),
            tasks=tasks_table(tuned_rows(report)),
            spending=spending_table(spending(report.outcomes)),
            audit=audit(report.outcomes),
            savings=savings_table(savings(report.plan, report.outcomes)),
            facts=facts(report),
            shipped=list(shipped(report, str)),
            reason=lambda finding: reason(finding, verdict),
        )
    )


def _environment() -> Environment:
    environment = page_environment(longest_text=2000)
    environment.filters |= {
        "duration": units.duration,
        "money": units.money,
        "size": units.size,
        "stopped": stopped_words,
        "tuning_ended": tuning_ended,
    }
    return environment


def _check(report: Report, finding: Finding, number: int) -> CellSection:
    comparison = _comparison(report, finding)
    measured = _measured(report, finding)
    name = f"check{number}"
    margin = report.verdict.margin_percent
    launches = plots.launches(comparison, margin, name) if comparison else ""
    pairs = measured.launches if measured else ()
    shown, builds = parts(finding.differences)[:SHOWN_PARTS], _builds(report, finding)
    return CellSection(
        finding=finding,
        comparison=comparison,
        measured=measured,
        inside=inside_table(comparison.inside if comparison else ()),
        operators=operators_table(shown),
        builds=builds_table(builds),
        outputs=tuple(
            outputs_table(label, build.check.outputs)
            for label, build in builds
            if build.check and build.check.outputs
        ),
        inputs=inputs_table([finding]).without("Model"),
        launches=_drawn(launches),
        latencies=_drawn(plots.latencies(finding, pairs, name)),
        waterfall=_drawn(plots.waterfall(finding, name)),
        candidates=candidates_table(finding.runtimes),
        accuracy=accuracy_table([finding]).without("Model", "Target"),
        error_moves=tuple(error_moves(finding, str)),
        latency_by_error=_drawn(latency_by_error(finding.runtimes, name)),
        distribution=_drawn(distribution(pairs, name)),
    )


def _comparison(report: Report, finding: Finding) -> Comparison | None:
    wanted = (finding.model, finding.target)
    found = (each for each in report.comparisons if (each.cell.model, each.cell.target) == wanted)
    return next(found, None)


def _measured(report: Report, finding: Finding) -> CellMeasurement | None:
    wanted = (finding.model, finding.target)
    cells = report.run.cells if report.run else ()
    found = (each for each in cells if (each.cell.model, each.cell.target) == wanted)
    return next(found, None)


def _builds(report: Report, finding: Finding) -> list[tuple[str, Build]]:
    wanted = (finding.model, finding.target)
    for builds in report.run.builds if report.run else ():
        if (builds.cell.model, builds.cell.target) == wanted:
            sides = (("base", builds.base), ("head", builds.head))
            return [(label, build) for label, build in sides if build]
    return []


def _curves(report: Report) -> list[Curve]:
    price = report.plan.budget.usd_per_hour if report.plan else None
    drawn = [
        Curve(outcome=each, plot=_drawn(plots.tuning(each, price, f"shard{each.shard}")))
        for each in report.outcomes
    ]
    return [curve for curve in drawn if curve.plot]


def _drawn(drawing: str) -> Markup:
    """Our own SVG, in which every text is escaped already."""
    return Markup(drawing)  # noqa: S704  # made by svg.py, texts escaped by matplotlib

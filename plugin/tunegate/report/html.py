"""The report as one self-contained HTML file: no script, no network."""

from collections.abc import Iterator, Sequence

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from tunegate.artifacts.builds import Build
from tunegate.artifacts.measurements import CellMeasurement, Comparison
from tunegate.artifacts.verdicts import Finding, Report
from tunegate.report import plots, report_tables, sentences, units
from tunegate.report.accuracy import accuracy_table, drawn_note, error_moves
from tunegate.report.candidates import candidates_table, latency_by_error
from tunegate.report.comment import CHANGE_NOTE, change_note, rest_sentence, shown_findings
from tunegate.report.cost_table import audit, audit_words, savings, spending, spending_words
from tunegate.report.environment import facts
from tunegate.report.escape import visible
from tunegate.report.headline import STATUS_WORDS, headline, policy_lines, reason, uncovered_line
from tunegate.report.html_page import page_environment
from tunegate.report.operators import parts, tuned_rows
from tunegate.report.plots import distribution
from tunegate.report.table import ReportTable
from tunegate.report.waiver_text import waiver_advice, waiver_yaml
from tunegate.wording import plural

LONGEST_TEXT = 2000
PLOTTED_CHECKS = 24
SHOWN_PARTS = 12


class Plot(msgspec.Struct, frozen=True):
    """A drawing under its title, with a sentence on what it shows."""

    title: str
    drawing: Markup
    caption: str


class CellSection(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one target, with the plots that have something to show."""

    finding: Finding
    comparison: Comparison | None
    measurement: CellMeasurement | None
    plots: tuple[Plot, ...]
    inside: ReportTable
    operators: ReportTable
    layers_note: str
    builds: ReportTable
    outputs: tuple[ReportTable, ...]
    inputs: ReportTable
    candidates: ReportTable
    accuracy: ReportTable
    drawn_note: str
    error_moves: tuple[str, ...]


def render(report: Report) -> str:
    """Returns the page; the same report always gives the same bytes."""
    verdict, offer = report.verdict, report.waiver_offer
    shown = shown_findings(verdict)
    # In the order of the page: the verdict with its table, each model's measurements, what tuning
    # did and cost, the facts of the run, and how to accept a slowdown. The template decides
    # nothing: an empty value leaves its section out.
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            verdict=verdict,
            headline=headline(report).removeprefix(f"{STATUS_WORDS[verdict.status]}: "),
            models=report_tables.models_table(shown.rows),
            change_note=change_note(shown.rows),
            more_models=report_tables.models_table(shown.rest),
            counted=rest_sentence(report, shown.rest),
            policy=policy_lines(verdict),
            uncovered=uncovered_line(report.changes.uncovered),
            checks=_checks(report, shown.rows, 0),
            more_checks=_checks(report, shown.rest, len(shown.rows)),
            curves=list(_curves(report)),
            tasks=report_tables.tasks_table(tuned_rows(report)),
            spending=report_tables.spending_table(spending(report.outcomes)),
            audit=_audit(report),
            spending_note=spending_words(report.outcomes),
            short_curves=list(_short_curves(report)),
            savings=report_tables.savings_table(savings(report.plan, report.outcomes)),
            cached=_cache_text(report),
            traffic=sentences.cache_traffic(report.cache) if report.cache else "",
            facts=facts(report),
            shipped=list(sentences.shipped_sentences(report, str)),
            accept=waiver_advice(offer) if offer else "",
            waivers=waiver_yaml(offer) if offer else "",
            tuned=sentences.tuning_words(verdict.tuning),
            reason=lambda finding: _capitalize(reason(finding, verdict)),
        )
    )


def _audit(report: Report) -> str:
    spent = audit(report.outcomes)
    return audit_words(spent) if spent else ""


def _cache_text(report: Report) -> str:
    return sentences.cache_words(report.verdict.tuning, report.cache) if report.cache else ""


def _environment() -> Environment:
    environment = page_environment(longest_text=LONGEST_TEXT)
    environment.filters |= {
        "duration": units.duration,
        "money": units.money,
        "size": units.size,
        "plural": plural,
        "block": Markup.escape,
        "words": _keep_spaces,
        "stopped": sentences.stopped_words,
    }
    environment.globals["CHANGE_NOTE"] = CHANGE_NOTE
    return environment


def _capitalize(sentence: str) -> str:
    """Returns the sentence with a capital, unless it begins with a name."""
    first = sentence.partition(" ")[0]
    return sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence


def _keep_spaces(piece: str) -> Markup:
    """Returns a piece of a step beside a name, with the spaces at its ends."""
    before, after = (" " * (piece[at : at + 1 or None] == " ") for at in (0, -1))
    return Markup.escape(f"{before}{visible(piece, LONGEST_TEXT)}{after}")


def _checks(report: Report, findings: Sequence[Finding], first: int) -> list[CellSection]:
    """Returns the checks that still fit after the first ones."""
    rows = findings[: max(0, PLOTTED_CHECKS - first)]
    return [_check(report, each) for each in rows]


def _check(report: Report, finding: Finding) -> CellSection:
    comparison = _comparison(report, finding)
    measured = _find_measurement(report, finding)
    layers, builds = parts(finding.differences)[:SHOWN_PARTS], _builds(report, finding)
    return CellSection(
        finding=finding,
        comparison=comparison,
        measurement=measured,
        plots=tuple(_plots(report, finding)),
        inside=report_tables.inside_table(comparison.inside if comparison else ()),
        operators=report_tables.operators_table(layers),
        layers_note=plots.of_layers(finding, measured, report.verdict.margin_percent),
        builds=report_tables.builds_table(builds),
        outputs=tuple(
            report_tables.outputs_table(label, build.check.outputs)
            for label, build in builds
            if build.check and build.check.outputs
        ),
        inputs=report_tables.inputs_table([finding]).without("Model"),
        candidates=candidates_table(finding.runtimes),
        accuracy=accuracy_table([finding]).without("Model", "Target"),
        drawn_note=drawn_note([finding]),
        error_moves=tuple(error_moves(finding, str)),
    )


def _plots(report: Report, finding: Finding) -> Iterator[Plot]:
    """Yields the plots of a check in the order of its questions: how much, since when, by what."""
    comparison, measured = _comparison(report, finding), _find_measurement(report, finding)
    margin = report.verdict.margin_percent
    pairs = measured.launches if measured else ()
    if comparison and (drawn := plots.launches(comparison, margin)):
        yield _plot("Change in each launch", drawn, plots.of_launches(comparison, margin))
    if drawn := plots.waterfall(finding):
        yield _plot("From base to head, layer by layer", drawn, plots.of_waterfall(finding))
    if drawn := plots.latencies(finding, pairs):
        yield _plot("Latency", drawn, plots.of_latencies(finding))
    if drawn := distribution(pairs):
        yield _plot("All inferences", drawn, plots.of_distribution(pairs))
    if drawn := latency_by_error(finding.runtimes):
        yield _plot("Candidates: latency by error", drawn, plots.of_candidates())


def _comparison(report: Report, finding: Finding) -> Comparison | None:
    cell = (finding.model, finding.target)
    matches = (
        comparison
        for comparison in report.comparisons
        if (comparison.cell.model, comparison.cell.target) == cell
    )
    return next(matches, None)


def _find_measurement(report: Report, finding: Finding) -> CellMeasurement | None:
    place = (finding.model, finding.target)
    cells = report.run.cells if report.run else ()
    matches = (cell for cell in cells if (cell.cell.model, cell.cell.target) == place)
    return next(matches, None)


def _builds(report: Report, finding: Finding) -> list[tuple[str, Build]]:
    cell = (finding.model, finding.target)
    for builds in report.run.builds if report.run else ():
        if (builds.cell.model, builds.cell.target) == cell:
            sides = (("base", builds.base), ("head", builds.head))
            return [(label, build) for label, build in sides if build]
    return []


def _curves(report: Report) -> Iterator[Plot]:
    price = report.plan.budget.usd_per_hour if report.plan else None
    for outcome in report.outcomes:
        if drawn := plots.tuning(outcome, price):
            usd = outcome.spent.usd
            price_too = "" if usd is None else f", {units.money(usd)}"
            spent = f"{units.duration(outcome.spent.seconds)}{price_too}"
            title = f"Shard {outcome.shard} on {outcome.target}: {spent}"
            yield _plot(title, drawn, plots.of_tuning(outcome))


def _short_curves(report: Report) -> Iterator[str]:
    """Yields a sentence in place of each curve with too few points."""
    for outcome in report.outcomes:
        if plots.is_short_curve(outcome):
            spent = units.duration(outcome.spent.seconds)
            caption = plots.of_tuning(outcome)
            shard = f"Shard {outcome.shard} on {outcome.target}"
            yield f"{shard}, {spent}, too short for a plot. {caption}"


def _plot(title: str, drawing: str, caption: str) -> Plot:
    """Returns a plot; the drawing is our own SVG, whose texts are escaped already."""
    return Plot(title, Markup(drawing), caption)  # noqa: S704  # made by svg.py

"""The costs of a history as one HTML file: what tuning and gating cost, and what was saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from tunegate.artifacts.history import CostSum, CostSums, ModelCost
from tunegate.plurals import plural
from tunegate.render.history.inlined import history_style
from tunegate.render.history.page import refused_words
from tunegate.render.history.weeks_plot import weeks_plot
from tunegate.render.page import page_environment
from tunegate.render.tables.table import (
    Column,
    Identifier,
    ReportTable,
    number_column,
    text_column,
)
from tunegate.render.units import NONE, duration, money, share
from tunegate.wording.latency import milliseconds

SHOWN_ROWS = 100
NO_PRICE = (
    "Dollars need a price: set usd-per-hour of a target, or budget.usd-per-hour, in tunegate.yaml."
)


def render(sums: CostSums, location: str, refused: int = 0) -> str:
    """The page; the same sums always give the same bytes."""
    return (
        page_environment(longest_text=300)
        .get_template("costs.html.j2")
        .render(
            location=location,
            left_out=" ".join(filter(None, (refused_words(refused), _uncounted(sums.uncounted)))),
            headline=_headline(sums.total),
            figures=tuple(_figures(sums.total)),
            remarks=tuple(_remarks(sums)),
            plot=Markup(weeks_plot(sums.weeks)),  # noqa: S704  # made by svg.py
            weeks=costs_table("Week from", sums.weeks[::-1][:SHOWN_ROWS]),
            repositories=costs_table("Repository", sums.repositories[:SHOWN_ROWS]),
            models=costs_table("Model", sums.models[:SHOWN_ROWS]),
            cut=[
                f"{plural(len(rows) - SHOWN_ROWS, noun, nouns)} not shown."
                for rows, noun, nouns in (
                    (sums.weeks, "older week is", "older weeks are"),
                    (sums.repositories, "cheaper repository is", "cheaper repositories are"),
                    (sums.models, "cheaper model is", "cheaper models are"),
                )
                if len(rows) > SHOWN_ROWS
            ],
            style=history_style(),
        )
    )


def costs_table(title: str, rows: Sequence[CostSum]) -> ReportTable:
    """One row for each; columns of money only where there is a price."""
    is_priced = any(_usd(row.cost) is not None for row in rows)
    columns: tuple[Column[Any], ...] = (
        text_column(title, lambda row: Identifier(row.name or "unknown")),
        number_column("Runs", lambda row: f"{row.runs:,}"),
        number_column("Hit rate", lambda row: hit_rate(row.cost)),
        number_column("Tuning", lambda row: duration(row.cost.seconds)),
        number_column("Gate", lambda row: duration(row.cost.gate_seconds)),
        *(_money_columns() if is_priced else ()),
        number_column("Saved time", lambda row: duration(row.cost.saved_seconds)),
        number_column("Saved trials", lambda row: f"{row.cost.saved_trials:,.0f}"),
        number_column("Faster by", lambda row: milliseconds(row.cost.gained_ms or None)),
        *((number_column("A dollar bought", lambda row: bought(row.cost)),) if is_priced else ()),
    )
    return ReportTable(columns, rows)


def hit_rate(cost: ModelCost) -> str:
    """The share of tasks that the cache had."""
    return share(cost.hits / cost.tasks) if cost.tasks else NONE


def bought(cost: ModelCost) -> str:
    """What a dollar of tuning came to: time taken off an inference, by the sum of operators."""
    if not cost.usd or not cost.gained_ms:
        return NONE
    return milliseconds(cost.gained_ms / cost.usd)


def _money_columns() -> tuple[Column[Any], ...]:
    return (
        number_column("Spent", lambda row: money(_usd(row.cost))),
        number_column("Saved", lambda row: money(row.cost.saved_usd)),
    )


def _usd(cost: ModelCost) -> float | None:
    known = [usd for usd in (cost.usd, cost.gate_usd) if usd is not None]
    return sum(known) if known else None


def _headline(total: CostSum) -> str:
    cost = total.cost
    spent = _usd(cost)
    if spent is None:
        return (
            f"{duration(cost.seconds)} of tuning in {plural(total.runs, 'run')}; "
            f"the cache saved {duration(cost.saved_seconds)}"
        )
    saved = duration(cost.saved_seconds) if cost.saved_usd is None else money(cost.saved_usd)
    return f"{money(spent)} spent in {plural(total.runs, 'run')}; the cache saved {saved} of tuning"


def _remarks(sums: CostSums) -> Iterator[str]:
    """What the figures do not have, and what they have besides verdicts."""
    if _usd(sums.total.cost) is None:
        yield NO_PRICE
    if sums.unfinished:
        runs = plural(sums.unfinished, "run was", "runs were")
        yield f"{runs} cancelled or ended by an error: what they spent is counted."


def _figures(total: CostSum) -> Iterator[tuple[str, str]]:
    cost = total.cost
    yield "Hit rate", hit_rate(cost)
    yield "Look-ups", f"{cost.tasks:,.0f}"
    yield "Tuning", _with_money(cost.seconds, cost.usd)
    yield "Building and measuring", _with_money(cost.gate_seconds, cost.gate_usd)
    yield "Saved by hits", _with_money(cost.saved_seconds, cost.saved_usd)
    yield "Trials saved", f"{cost.saved_trials:,.0f}, and {cost.trials:,.0f} were run"
    if cost.usd and cost.saved_usd is not None:
        yield "Saved for each dollar of tuning", money(cost.saved_usd / cost.usd)


def _with_money(seconds: float, usd: float | None) -> str:
    """Broken between the two, and not between a number and its unit."""
    parts = [duration(seconds)] if usd is None else [money(usd), duration(seconds)]
    return ", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)


def _uncounted(lines: int) -> str:
    if not lines:
        return ""
    return f"{plural(lines, 'line')} of earlier versions without a cost not counted."

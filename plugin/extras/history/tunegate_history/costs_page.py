"""The costs of a history as one HTML file: what tuning and gating cost, and what was saved."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from tunegate.artifacts.history import CostSum, HistoryEntry, ModelCost
from tunegate.report.history import cost_sum, runs_of
from tunegate.report.html_page import page_environment
from tunegate.report.svg import FASTER, SLOWER, Axis, Plot, Scale, Tick, few_ticks, numbered_ticks
from tunegate.report.table import Column, Identifier, ReportTable, number_column, text_column
from tunegate.report.units import NONE, duration, money, share
from tunegate.wording import milliseconds, plural
from tunegate_history.history_page import TEMPLATES, history_style, refused_words

SHOWN_ROWS = 100
NO_PRICE = (
    "Dollars need a price: set usd-per-hour of a target, or budget.usd-per-hour, in tunegate.yaml."
)


def render(entries: Sequence[HistoryEntry], location: str, refused: int = 0) -> str:
    """The page; the same entries always give the same bytes."""
    sums = cost_sums(entries)
    return (
        page_environment(longest_text=300, own=TEMPLATES)
        .get_template("costs.html.j2")
        .render(
            location=location,
            left_out=" ".join(
                filter(None, (refused_words(refused), _uncounted_text(sums.uncounted)))
            ),
            headline=_headline(sums.total),
            figures=tuple(_figures(sums.total)),
            remarks=tuple(_remarks(sums)),
            plot=Markup(weeks_plot(sums.weeks)),  # noqa: S704  # made by svg.py
            weeks=costs_table("Week from", sums.weeks[::-1][:SHOWN_ROWS]),
            repositories=costs_table("Repository", sums.repositories[:SHOWN_ROWS]),
            models=costs_table("Model", sums.models[:SHOWN_ROWS], gains=True),
            is_priced=_usd(sums.total.cost) is not None,
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


def costs_table(title: str, rows: Sequence[CostSum], *, gains: bool = False) -> ReportTable:
    """Returns a table with a row per sum; columns of money only if there is a price, and of `gains`
    only if each row is one model."""
    is_priced = any(_usd(row.cost) is not None for row in rows)
    gained: tuple[Column[Any], ...] = (
        number_column("Faster by", lambda row: milliseconds(row.cost.gained_ms or None)),
        *((number_column("A dollar bought", gain_per_dollar),) if is_priced else ()),
    )
    columns: tuple[Column[Any], ...] = (
        text_column(title, lambda row: Identifier(row.name or "unknown")),
        number_column("Runs", lambda row: f"{row.runs:,}"),
        number_column("Hit rate", lambda row: hit_rate(row.cost)),
        number_column("Tuning", lambda row: duration(row.cost.seconds)),
        number_column("Gate", lambda row: duration(row.cost.gate_seconds)),
        number_column("Spent", lambda row: duration(_spent_seconds(row.cost))),
        *((_usd_column("USD", _usd),) if is_priced else ()),
        number_column("Saved", lambda row: duration(row.cost.saved_seconds)),
        *((_usd_column("USD saved", lambda cost: cost.saved_usd),) if is_priced else ()),
        *(gained if gains else ()),
    )
    return ReportTable(columns, rows)


def hit_rate(cost: ModelCost) -> str:
    """Returns the share of tasks that the cache had."""
    return share(cost.hits / cost.tasks) if cost.tasks else NONE


def gain_per_dollar(row: CostSum) -> str:
    """Returns what a dollar of tuning bought in the run with the largest gain: time off an
    inference."""
    if not row.gain_usd or not row.cost.gained_ms:
        return NONE
    return milliseconds(row.cost.gained_ms / row.gain_usd)


def _usd_column(title: str, usd: Callable[[ModelCost], float | None]) -> Column[Any]:
    return number_column(title, lambda row: money(usd(row.cost)))


def _spent_seconds(cost: ModelCost) -> float:
    return cost.seconds + cost.gate_seconds


def _usd(cost: ModelCost) -> float | None:
    known = [usd for usd in (cost.usd, cost.gate_usd) if usd is not None]
    return sum(known) if known else None


def _headline(total: CostSum) -> str:
    """Returns the headline: the cost of tuning beside its savings."""
    cost, usd = total.cost, _usd(total.cost)
    spent = duration(_spent_seconds(cost)) if usd is None else money(usd)
    tuning = duration(cost.seconds) if usd is None else money(cost.usd)
    of_it = "" if tuning == NONE else f", {tuning} of it on tuning"
    saved = duration(cost.saved_seconds) if cost.saved_usd is None else money(cost.saved_usd)
    runs = plural(total.runs, "run")
    return f"{spent} spent in {runs}{of_it}; the cache saved {saved} of tuning"


def _remarks(sums: CostSums) -> Iterator[str]:
    """Yields notes on what the figures lack, and on what they contain besides verdicts."""
    if _usd(sums.total.cost) is None:
        yield NO_PRICE
    if sums.unfinished:
        runs = plural(sums.unfinished, "was", "were")
        yield (
            f"Of {plural(sums.total.runs, 'run')}, {runs} cancelled or ended by an error: "
            "what they spent is counted."
        )


def _figures(total: CostSum) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each figure by name, in parts between which a line may break."""
    cost = total.cost
    yield "Spent", _add_money(_spent_seconds(cost), _usd(cost))
    yield "of it on tuning", _add_money(cost.seconds, cost.usd)
    yield "of it on the gate", _add_money(cost.gate_seconds, cost.gate_usd)
    yield "Tuning saved by hits", _add_money(cost.saved_seconds, cost.saved_usd)
    yield "Hit rate", (hit_rate(cost), f"of {cost.tasks:,.0f} look-ups")
    yield "Trials", (f"{cost.trials:,.0f} run,", f"{cost.saved_trials:,.0f} saved")


def _add_money(seconds: float, usd: float | None) -> tuple[str, ...]:
    return (duration(seconds),) if usd is None else (f"{money(usd)},", duration(seconds))


def _uncounted_text(lines: int) -> str:
    if not lines:
        return ""
    return f"{plural(lines, 'line')} of earlier versions without a cost not counted."


# Spent and saved, week by week, as inline SVG.

_INCHES = (4.7, 2.2)
_SHOWN_WEEKS = 52
_BAR = 0.4
_LABELS = 5


def weeks_plot(weeks: Sequence[CostSum]) -> str:
    """Returns the last year, in dollars if known, else in minutes of tuning. '' without any."""
    shown = weeks[-_SHOWN_WEEKS:]
    if not shown:
        return ""
    is_priced = any(row.cost.usd is not None for row in shown)
    spent = [(row.cost.usd or 0.0) if is_priced else row.cost.seconds / 60 for row in shown]
    saved = [
        (row.cost.saved_usd or 0.0) if is_priced else row.cost.saved_seconds / 60 for row in shown
    ]
    y = Scale(0, max(*spent, *saved) * 1.05 or 1.0)
    unit = "USD" if is_priced else "minutes"
    step = max(1, -(-len(shown) // _LABELS))
    plot = Plot(
        _INCHES,
        Axis(
            Scale(-0.6, max(len(shown) - 0.4, 3.6)),
            [Tick(at, row.name) for at, row in list(enumerate(shown))[::step]],
        ),
        Axis(y, numbered_ticks(few_ticks(y, 5)), f"{unit} a week", has_grid=True),
        legend=(("spent on tuning", SLOWER), ("saved by hits", FASTER)),
    )
    for at, (lost, won) in enumerate(zip(spent, saved, strict=True)):
        plot.box((at - _BAR, 0), (at, lost), SLOWER)
        plot.box((at, 0), (at + _BAR, won), FASTER)
    return plot.svg(f"Spent on tuning and saved by hits in {len(shown)} weeks")


# What was spent and saved, by week, repository and model.


class CostSums(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a history. Weeks are named by their Monday, in UTC. `unfinished` counts the runs
    without a verdict, `uncounted` the lines of versions that recorded no cost."""

    total: CostSum
    weeks: tuple[CostSum, ...]
    repositories: tuple[CostSum, ...]
    models: tuple[CostSum, ...]
    unfinished: int
    uncounted: int


def cost_sums(entries: Sequence[HistoryEntry]) -> CostSums:
    """Returns the sums; the most expensive repositories and models first, by money or else by
    time."""
    counted = [entry for entry in entries if entry.cost is not None]
    return CostSums(
        total=cost_sum("", counted),
        weeks=tuple(sorted(_group(counted, week_of), key=lambda row: row.name)),
        repositories=_most_expensive(_group(counted, lambda entry: entry.repository)),
        models=_most_expensive(_group(counted, lambda entry: entry.model)),
        unfinished=len(runs_of(e for e in counted if e.status in {"cancelled", "aborted"})),
        uncounted=len(entries) - len(counted),
    )


def week_of(entry: HistoryEntry) -> str:
    """Returns the Monday of a run's week, in UTC."""
    day = datetime.datetime.fromtimestamp(entry.at, tz=datetime.UTC).date()
    return (day - datetime.timedelta(days=day.weekday())).isoformat()


def _group(entries: Sequence[HistoryEntry], name: Callable[[HistoryEntry], str]) -> list[CostSum]:
    groups: dict[str, list[HistoryEntry]] = defaultdict(list)
    for entry in entries:
        groups[name(entry)].append(entry)
    return [cost_sum(key, group) for key, group in groups.items()]


def _most_expensive(rows: Iterable[CostSum]) -> tuple[CostSum, ...]:
    def price(row: CostSum) -> tuple[float, float, str]:
        cost = row.cost
        return (
            -((cost.usd or 0.0) + (cost.gate_usd or 0.0)),
            -(cost.seconds + cost.gate_seconds),
            row.name,
        )

    return tuple(sorted(rows, key=price))

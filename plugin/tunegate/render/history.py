"""The history as one HTML file: latency over runs for each model on
each machine, releases marked."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from tunegate.artifacts.history import HistoryEntry
from tunegate.render.drawing import Axes, Figure, MaxNLocator
from tunegate.render.escape import visible
from tunegate.render.page import page_environment
from tunegate.render.svg import HEAD, INK, MUTED, SLOWER, styled, svg
from tunegate.render.tables.report_tables import history_table
from tunegate.render.tables.table import ReportTable

_WIDTH_INCHES, _HEIGHT_INCHES = 5.2, 2.2
_SHOWN_ROWS = 30
_MAX_LABELS = 12


class HistorySeries(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one target of one device, oldest first; `table` has the latest
    ones, newest first."""

    model: str
    target: str
    device: str
    entries: tuple[HistoryEntry, ...]
    table: ReportTable
    plot: Markup


def render(entries: Sequence[HistoryEntry], location: str) -> str:
    """The page; the same entries always give the same bytes."""
    environment = page_environment(longest_text=300)
    page = environment.get_template("history.html.j2")
    return page.render(series=series(entries), location=location, runs=len({e.at for e in entries}))


def series(entries: Sequence[HistoryEntry]) -> list[HistorySeries]:
    """The series by model, target and device: times of two machines are not compared."""

    def key(entry: HistoryEntry) -> tuple[str, str, str]:
        return entry.model, entry.target, entry.device

    found = []
    groups = itertools.groupby(sorted(entries, key=lambda e: (key(e), e.at)), key=key)
    for number, ((model, target, device), group) in enumerate(groups):
        its = tuple(group)
        found.append(
            HistorySeries(
                model=model,
                target=target,
                device=device,
                entries=its,
                table=history_table(its[: -_SHOWN_ROWS - 1 : -1]),
                plot=_plot(its, f"history{number}"),
            )
        )
    return found


@styled()
def _plot(entries: Sequence[HistoryEntry], name: str) -> Markup:
    """Runs from left to right, whenever they were: gaps in time are of no interest."""
    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    times = [entry.head_ms if entry.head_ms is not None else float("nan") for entry in entries]
    axes.plot(range(len(times)), times, color=HEAD, linewidth=1.4, marker="o", markersize=3)
    failed = [at for at, entry in enumerate(entries) if entry.status == "fail"]
    axes.plot(
        failed, [times[at] for at in failed], "x", color=SLOWER, markersize=8, markeredgewidth=2
    )
    _mark_releases(axes, entries)
    known = (entry.head_ms for entry in entries if entry.head_ms is not None)
    axes.set_ylim(0, 1.15 * max(known, default=1.0))
    axes.set_xlim(-0.5, max(len(times) - 0.5, 1.5))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("runs, oldest first; x: failed")
    axes.set_ylabel("ms")
    told = visible(f"Latency of {entries[0].model} on {entries[0].target}, {len(entries)} runs")
    # The drawing is our own, its texts are escaped by matplotlib.
    return Markup(svg(figure, name=name, description=told))  # noqa: S704


def _mark_releases(axes: Axes, entries: Sequence[HistoryEntry]) -> None:
    releases = [(at, entry.release) for at, entry in enumerate(entries) if entry.release]
    for at, release in releases[-_MAX_LABELS:]:
        axes.axvline(at, color=MUTED, linewidth=0.8, linestyle=(0, (3, 3)))
        axes.annotate(
            visible(release, 20),
            (at, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=8,
            color=INK,
        )

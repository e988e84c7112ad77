"""Measures each mechanism that saves tuning time by switching it off: one model, equal seconds.

    python -m benchmarks.tuning.trimmer squeezenet [--seconds 120] [--rounds 3]

Every variant tunes the model from nothing for the same time. Compared is when the end-to-end
estimate (weight x best so far, over all tasks; a task without a measurement counts with the
default schedule's time of that task) first comes within 2% of what the run without any of the
mechanisms has at its end, in the same round. Looks are lucky, so what a run ends with is the same
sum over its winners as they were measured again. Prints the table of
docs/benchmarks: medians of the rounds, audits added up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import msgspec

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.costs import audited, wasted_share
from benchmarks.kit.curves import Run, curve, defaults, end_ms, seconds_to
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import lasting, tasks_of, tuned
from benchmarks.kit.paper_rule import paper_rule
from benchmarks.kit.tables import heading
from benchmarks.kit.turns import in_turn
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import TuningTask
from tunegate.tune import candidate_requests as measuring
from tunegate.tune import next_task, tuning_run
from tunegate.tune.next_task import Choice
from tunegate_cache.format.records import Miss, TuningRecord

LOSS = 1.02


class Variant(msgspec.Struct, frozen=True):
    """A choice of the three mechanisms that work; `chooses` gives the next task."""

    name: str
    filters: bool = True
    chooses: Callable[..., Choice | None] = next_task.choose
    cuts_losers: bool = True


VARIANTS = (
    Variant("none", filters=False, chooses=in_turn, cuts_losers=False),
    Variant("all"),
    Variant("without the filter", filters=False),
    Variant("without the cost objective (tasks in turn)", chooses=in_turn),
    Variant("with the paper's rule in its place", chooses=paper_rule),
    Variant("without cutting losers short", cuts_losers=False),
)


class Row(msgspec.Struct, frozen=True):
    """The figures of one variant in one round. `reached` is infinite, and `saved` says nothing,
    where it never came within 2% of the end of none."""

    trials: int
    end_ms: float
    reached: float
    saved: float
    wasted: float
    audited: int
    wrong: int


def main() -> None:
    options = command_line(__doc__, "model", seconds=120.0, rounds=3)
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = tasks_of(model, TARGET, scratch)
        rounds = []
        for number in range(options.rounds):
            place = scratch / f"round-{number}"
            rounds.append(one_round(model, tasks, options.seconds, number + 1, place))
        show(f"{options.model}, {options.seconds:g} s", rounds)


def one_round(
    model: Path, tasks: Sequence[TuningTask], seconds: float, seed: int, scratch: Path
) -> dict[Variant, Row]:
    runs = {}
    for number, variant in enumerate(VARIANTS):
        with switched(variant):
            place = scratch / str(number)
            runs[variant] = run(model, tasks, lasting(seconds), variant, seed, place)
    known = defaults(runs.values())
    curves = {variant: curve(tasks, its, known) for variant, its in runs.items()}
    goal = LOSS * curves[VARIANTS[0]][-1][1]
    end = seconds_to(goal, curves[VARIANTS[0]])
    rows = {}
    for variant, points in curves.items():
        reached = seconds_to(goal, points)
        looked, wrong = audited(runs[variant].outcomes.values())
        rows[variant] = Row(
            trials=runs[variant].trials,
            end_ms=end_ms(tasks, runs[variant], known),
            reached=reached,
            saved=1 - reached / end,
            wasted=wasted_share(runs[variant].outcomes.values()),
            audited=looked,
            wrong=wrong,
        )
        print(f"{variant.name}: {rows[variant]}", flush=True)
    return rows


@contextmanager
def switched(variant: Variant) -> Iterator[None]:
    """The mechanisms of the product have no switches: they are replaced here."""
    with (
        patch.object(tuning_run, "choose", variant.chooses),
        patch.object(
            measuring,
            "_LOSER_FACTOR",
            measuring._LOSER_FACTOR if variant.cuts_losers else float("inf"),
        ),
    ):
        yield


def run(
    model: Path,
    tasks: Sequence[TuningTask],
    budget: Budget,
    variant: Variant,
    seed: int,
    scratch: Path,
) -> Run:
    found: list[tuple[float, TuningRecord]] = []
    started = time.monotonic()

    def publish(records: Sequence[TuningRecord]) -> bool:
        found.extend((time.monotonic() - started, record) for record in records)
        return True

    answers = dict.fromkeys((task.key for task in tasks), Miss("absent"))
    outcomes = tuned(
        model,
        TARGET,
        tasks,
        answers,
        budget,
        publish,
        scratch,
        filters=variant.filters,
        seed=seed,
    )
    return Run(tuple(found), outcomes)


def show(title: str, rounds: Sequence[Mapping[Variant, Row]]) -> None:
    heading(
        f"{title} | trials | winners measured again, ms | "
        f"seconds to within 2% of the end of none | saved | worker seconds that improved "
        f"nothing | audited, of them wrongly rejected"
    )
    for variant in VARIANTS:
        rows = [found[variant] for found in rounds]
        reached = median(row.reached for row in rows)
        came = math.isfinite(reached)
        told = f"{reached:.0f}" if came else "never"
        saved = f"{100 * median(row.saved for row in rows):.0f}%" if came else ""
        print(
            f"| {variant.name} | {median(row.trials for row in rows):.0f} | "
            f"{median(row.end_ms for row in rows):.2f} | {told} | {saved} | "
            f"{100 * median(row.wasted for row in rows):.0f}% | "
            f"{sum(row.audited for row in rows)}, {sum(row.wrong for row in rows)} |"
        )


if __name__ == "__main__":
    main()

"""What each mechanism that saves tuning time is worth, by switching it off: one model, equal seconds.

    PYTHONPATH=.:benchmarks python benchmarks/trimmer.py squeezenet [--seconds 120]

Every variant tunes the model from nothing for the same time. Compared is when the end-to-end estimate
(weight x best so far, over all tasks; a task without a measurement counts with the default schedule's
time of that task) first comes within 2 % of what the run without any of the mechanisms has at its end.
Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import onnx
from our_model import tasks_of, tuned
from paper_rule import paper_rule
from stock_model import TARGET, named_model
from turns import in_turn

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TuningTask
from tunegate.edges.metaschedule import measuring, tuning_run
from tunegate.tuning import next_task
from tunegate.tuning.next_task import Choice
from tunegate_cache.records import Miss, TuningRecord, WorkloadKey

LOSS = 1.02


class Variant(msgspec.Struct, frozen=True):
    """Which of the three mechanisms work, and what `chooses` the next task."""

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


class Run(msgspec.Struct, frozen=True):
    """The records by the second they came, and what each task cost."""

    found: tuple[tuple[float, TuningRecord], ...]
    outcomes: dict[WorkloadKey, TaskOutcome]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = scratch / "m.onnx"
        onnx.save(named_model(options.model), model)
        tasks = tasks_of(model, TARGET, scratch)
        runs = {}
        for number, variant in enumerate(VARIANTS):
            with switched(variant):
                place = scratch / str(number)
                runs[variant] = run(model, tasks, options.seconds, variant, place)
            ended = curve(tasks, runs[variant], defaults(runs.values()))[-1][1]
            print(f"{variant.name}: {trials(runs[variant])} trials, {ended:.2f} ms", flush=True)
        show(options.model, tasks, runs, options.seconds)


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
    model: Path, tasks: Sequence[TuningTask], seconds: float, variant: Variant, scratch: Path
) -> Run:
    found: list[tuple[float, TuningRecord]] = []
    started = time.monotonic()

    def publish(records: Sequence[TuningRecord]) -> bool:
        found.extend((time.monotonic() - started, record) for record in records)
        return True

    answers = dict.fromkeys((task.key for task in tasks), Miss("absent"))
    outcomes = tuned(
        model, TARGET, tasks, answers, seconds, publish, scratch, filters=variant.filters
    )
    return Run(tuple(found), outcomes)


def defaults(runs: Iterable[Run]) -> dict[WorkloadKey, float]:
    """The time of each task's default schedule, from whichever run has it."""
    known: dict[WorkloadKey, float] = {}
    for _, record in itertools.chain.from_iterable(run.found for run in runs):
        if record.status == "ok" and not record.template:
            known.setdefault(record.key, record.median_ms)
    return known


def curve(
    tasks: Sequence[TuningTask], run: Run, known: Mapping[WorkloadKey, float]
) -> list[tuple[float, float]]:
    """Seconds and the estimate of the model at that time."""
    best = {task.key: known.get(task.key, 0.0) for task in tasks}
    weights = {task.key: sum(use.weight for use in task.uses) for task in tasks}
    points = [(0.0, sum(weights[key] * ms for key, ms in best.items()))]
    for seconds, record in run.found:
        if record.status == "ok":
            best[record.key] = min(best[record.key] or record.median_ms, record.median_ms)
            points.append((seconds, sum(weights[key] * ms for key, ms in best.items())))
    return points


def show(
    name: str, tasks: Sequence[TuningTask], runs: Mapping[Variant, Run], seconds: float
) -> None:
    known = defaults(runs.values())
    curves = {variant: curve(tasks, run, known) for variant, run in runs.items()}
    goal = LOSS * curves[VARIANTS[0]][-1][1]
    print(
        f"| {name}, {seconds:g} s | trials | estimate at the end, ms | seconds to within 2 % of the end "
        "of none | saved | worker seconds that improved nothing | audited, of them wrongly rejected |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    for variant, points in curves.items():
        reached = next((at for at, ms in points if ms <= goal), None)
        end = next(at for at, ms in curves[VARIANTS[0]] if ms <= goal)
        told = "never" if reached is None else f"{reached:.0f}"
        saved = "" if reached is None else f"{100 * (1 - reached / end):.0f} %"
        looked, wrong = audit(runs[variant])
        print(
            f"| {variant.name} | {trials(runs[variant])} | {points[-1][1]:.2f} | {told} | {saved} | "
            f"{100 * wasted(runs[variant]):.0f} % | {looked}, {wrong} |"
        )


def trials(run: Run) -> int:
    return sum(outcome.trials for outcome in run.outcomes.values())


def wasted(run: Run) -> float:
    costs = [c for o in run.outcomes.values() for c in o.ledger if c.stage == "look"]
    spent = sum(c.build_seconds + c.run_seconds for c in costs)
    return sum(c.build_seconds + c.run_seconds for c in costs if not c.improved) / spent


def audit(run: Run) -> tuple[int, int]:
    """Rejected candidates that were measured, and those of them within 2 % of their task's best."""
    looked = wrong = 0
    for outcome in run.outcomes.values():
        times = [c.milliseconds for c in outcome.ledger if c.milliseconds is not None]
        for cost in outcome.ledger:
            if cost.pick == "audit" and cost.stage == "look":
                looked += 1
                wrong += cost.milliseconds is not None and cost.milliseconds <= LOSS * min(times)
    return looked, wrong


if __name__ == "__main__":
    main()

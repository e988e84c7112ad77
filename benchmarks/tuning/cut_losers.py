"""Measures the cost of timing clear losers only once: pairs of runs of one model, with and without.

    python -m benchmarks.tuning.cut_losers transformer-128 [--seconds 60]
        [--rounds 4]

The two runs of a round take turns in being the first. Sums over the model (calls x time): of the
fastest looks, which are lucky, and of the winners as they were measured again. In the
runs without it, what would have been cut short is known from each candidate's first time, and what
that would have lost from the median of its three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.curves import Run, weighted
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import lasting, tasks_of
from benchmarks.kit.tables import heading, row
from benchmarks.tuning.trimmer import Variant, run, switched
from tunegate.artifacts.tasks import TuningTask
from tunegate.tune.candidate_requests import _LOSER_FACTOR, _REPEATS
from tunegate_cache.format.records import CONFIRMED_REPEATS, TuningRecord, WorkloadKey

ALL, WITHOUT = Variant("losers cut short"), Variant("without", cuts_losers=False)
NEAR = 1.15


def main() -> None:
    options = command_line(__doc__, "model", seconds=60.0, rounds=4)
    heading("round |  | trials | fastest looks, ms | winners measured again, ms", words=(1,))
    cut: list[float] = []
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = tasks_of(model, TARGET, scratch)
        for number in range(options.rounds):
            for variant in (ALL, WITHOUT) if number % 2 == 0 else (WITHOUT, ALL):
                place = scratch / f"{number}-{variant.name}"
                with switched(variant):
                    found = run(model, tasks, lasting(options.seconds), variant, number + 1, place)
                looks, sure = sums(tasks, found)
                row(number + 1, variant.name, found.trials, f"{looks:.2f}", f"{sure:.2f}")
                cut += would_be_cut(found) if variant is WITHOUT else []
    near = sum(behind <= NEAR for behind in cut)
    print(
        f"would be cut short: {len(cut)}, {near} of them within {NEAR - 1:.0%} of the best so far"
    )


def sums(tasks: Sequence[TuningTask], found: Run) -> tuple[float, float]:
    """The sums over the tasks that have both a look and a winner that was measured again."""
    looks = fastest(found, lambda record: len(record.run_nanoseconds) < CONFIRMED_REPEATS)
    sure = fastest(found, lambda record: len(record.run_nanoseconds) >= CONFIRMED_REPEATS)
    both = [task for task in tasks if task.key in looks and task.key in sure]
    return weighted(both, looks), weighted(both, sure)


def fastest(found: Run, counts: Callable[[TuningRecord], bool]) -> dict[WorkloadKey, float]:
    best: dict[WorkloadKey, float] = {}
    for _, record in found.found:
        if record.status == "ok" and counts(record):
            best[record.key] = min(best.get(record.key, record.median_ms), record.median_ms)
    return best


def would_be_cut(found: Run) -> list[float]:
    """Returns the slowdown against the best so far of each candidate whose first time was a clear
    loser's."""
    best: dict[WorkloadKey, float] = {}
    cut = []
    for _, record in found.found:
        if record.status == "ok" and record.template and len(record.run_nanoseconds) == _REPEATS:
            so_far = best.get(record.key, record.median_ms)
            if record.run_nanoseconds[0] / 1e6 > _LOSER_FACTOR * so_far:
                cut.append(record.median_ms / so_far)
            best[record.key] = min(so_far, record.median_ms)
    return cut


if __name__ == "__main__":
    main()

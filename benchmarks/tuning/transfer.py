"""Measures the worth of other models' schedules, task by task: the gates of transfer-tuning.

    python -m benchmarks.tuning.transfer squeezenet
        --sources resnet50 zfnet512 bvlc_alexnet
        [--source-seconds 80] [--seconds 300]

The source models are tuned into an empty cache. The model is tuned without them for `--seconds`,
then for a tenth of that with them, with those of another class instead, and without any. How much
of the full speed-up over the default schedule a run has is (full best) / (its best), as in the
paper; a task counts where it has sources and tuning in full makes it 5% faster or more. Invalid is
a transferred schedule that cannot be applied, does not compile, or computes something else. Prints
the table of docs/benchmarks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.kit.command import Many, command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.neighbours import answers, exchanged
from benchmarks.kit.our_model import publish_sources, tasks_of, tuned
from benchmarks.kit.tables import heading
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate_cache.format.records import Lookup, Miss, TransferHit, TuningRecord, WorkloadKey

TENTH = 0.1
LEAST = 1.05
HALF = 0.5
NOISE = 1.02
Outcomes = dict[WorkloadKey, TaskOutcome]


def main() -> None:
    options = command_line(__doc__, "model", sources=Many(str), source_seconds=80.0, seconds=300.0)
    with scratch_folder() as scratch:
        sources = publish_sources(options.sources, TARGET, options.source_seconds, scratch)
        model = saved(options.model, scratch)
        tasks = tasks_of(model, TARGET, scratch)
        found = answers(tasks, sources, scratch)
        none: dict[WorkloadKey, Lookup] = dict.fromkeys(found, Miss("absent"))
        short = TENTH * options.seconds
        offers = {
            "no sources, all the time": (none, options.seconds),
            "sources, a tenth": (found, short),
            "sources of another class, a tenth": (exchanged(found), short),
            "no sources, a tenth": (none, short),
        }
        runs = {
            name: tuned(model, TARGET, tasks, offer, seconds, published, scratch / name)
            for name, (offer, seconds) in offers.items()
        }
    show(options.model, runs, found)


def published(_: Sequence[TuningRecord]) -> bool:
    """Publishes to nobody: a later run must not find it."""
    return True


def show(name: str, runs: Mapping[str, Outcomes], found: Mapping[WorkloadKey, Lookup]) -> None:
    full = next(iter(runs.values()))
    defaults = {key: default_ms(runs.values(), key) for key in full}
    transferring = [key for key, hit in found.items() if isinstance(hit, TransferHit)]
    counted = [key for key in transferring if defaults[key] >= LEAST * best_ms(full[key], defaults)]
    print(f"{len(transferring)} of {len(found)} tasks have sources; {len(counted)} of these count")
    heading(
        f"{name} | trials | tasks with half of the full speed-up | median share of it | "
        f"transferred, invalid | slower than the default"
    )
    for label, outcomes in runs.items():
        shares = [best_ms(full[k], defaults) / best_ms(outcomes[k], defaults) for k in counted]
        half = sum(share >= HALF for share in shares)
        transferred, invalid = transferred_and_invalid(outcomes.values())
        slower = sum(is_slower(outcome) for outcome in outcomes.values())
        trials = sum(outcome.trials for outcome in outcomes.values())
        print(
            f"| {label} | {trials} | {half} of {len(counted)} | {statistics.median(shares):.0%} "
            f"| {transferred}, {invalid} | {slower} |"
        )


def default_ms(runs: Iterable[Outcomes], key: WorkloadKey) -> float:
    """The default's time in the run that found it fastest; 0 where none measured it."""
    times = [outcomes[key].before_ms for outcomes in runs]
    return min((ms for ms in times if ms is not None), default=0.0)


def best_ms(outcome: TaskOutcome, defaults: Mapping[WorkloadKey, float]) -> float:
    """The best time of a task; the default's where the task was not reached."""
    return defaults[outcome.key] if outcome.best_ms is None else outcome.best_ms


def transferred_and_invalid(outcomes: Iterable[TaskOutcome]) -> tuple[int, int]:
    transferred = invalid = 0
    for outcome in outcomes:
        looks = [c for c in outcome.costs if c.origin == "transfer" and c.stage == "quick"]
        misfits = outcome.failures.get("misfit", 0)
        transferred += len(looks) + misfits
        invalid += sum(look.status != "ok" for look in looks) + misfits
    return transferred, invalid


def is_slower(outcome: TaskOutcome) -> bool:
    if outcome.best_ms is None or outcome.before_ms is None:
        return False
    return outcome.best_ms > NOISE * outcome.before_ms


if __name__ == "__main__":
    main()

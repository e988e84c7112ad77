"""Trimmer (Borowiec et al., IEEE CLOUD 2022): what filtering and stopping early save.

The paper's tuner has a fixed number of trials. So both runs may make as many; the one with all
mechanisms may also end before, by `min-gain-percent-per-minute` as the product has it. Joules are
counted where the machine lets them be read. Elsewhere they are seconds at constant watts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.kit.costs import wasted_share
from benchmarks.kit.curves import Run, curve, defaults, end_ms, seconds_to
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import tasks_of
from benchmarks.papers.headline import Figure
from benchmarks.tuning.trimmer import VARIANTS, Variant, run, switched
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import TuningTask
from tunegate.system.energy import opened_energy
from tunegate.tune.budget import EnergyUse

MODEL = "transformer-32"
TRIALS = 240
WITHOUT_COUNTER = "seconds at constant watts"


class Ended(msgspec.Struct, frozen=True):
    """One run, and what it took."""

    run: Run
    seconds: float
    joules: float
    source: str


def figures(scratch: Path) -> Iterator[Figure]:
    model = saved(MODEL, scratch)
    tasks = tasks_of(model, TARGET, scratch)
    nothing, everything = VARIANTS[0], VARIANTS[1]
    fixed = Budget(seconds=None, trials=TRIALS, min_gain_percent_per_minute=0.0)
    ends = Budget(seconds=None, trials=TRIALS)
    without, having = (
        ended(model, tasks, budget, variant, scratch / variant.name)
        for budget, variant in ((fixed, nothing), (ends, everything))
    )
    known = defaults([without.run, having.run])
    behind = end_ms(tasks, having.run, known) / end_ms(tasks, without.run, known)
    on = f"{MODEL}, at most {TRIALS} trials"
    saved_share = 1 - having.joules / without.joules
    yield Figure(
        "energy-saved",
        f"{saved_share:.0%} ({without.source}), {behind:.2f} of the latency",
        f"{on}: {without.run.trials} and {having.run.trials}, {without.seconds:.0f} and "
        f"{having.seconds:.0f} s",
    )
    points = [curve(tasks, it.run, known) for it in (without, having)]
    reached, end = (seconds_to(points[0][-1][1], each) for each in reversed(points))
    share = 1 - reached / end
    told = f"{share:.0%}" if reached < float("inf") else "never reached"
    yield Figure("energy-to-equal-latency", told, on)
    wasted = [wasted_share(it.run.outcomes.values()) for it in (without, having)]
    yield Figure("wasted-share", f"{wasted[0]:.0%}, {wasted[1]:.0%}", on)


def ended(
    model: Path, tasks: Sequence[TuningTask], budget: Budget, variant: Variant, scratch: Path
) -> Ended:
    with opened_energy(with_gpus=False) as counter, switched(variant):
        use = EnergyUse(counter)
        started = time.monotonic()
        found = run(model, tasks, budget, variant, 1, scratch)
        seconds = time.monotonic() - started
        energy = use.total()
        return Ended(found, seconds, energy.joules or seconds, energy.source or WITHOUT_COUNTER)

"""Compares two orders to try neighbours' schedules in: the nearest first, or those of which the
prior expects most.

    python -m benchmarks.tuning.transfer_order squeezenet
        --sources resnet50 zfnet512 bvlc_alexnet
        [--source-seconds 40]

The source models are tuned into an empty cache. Of each task of the model that has neighbours
there, everything that they offer is measured, in both adaptations, alone and to the end. A row says
how much slower than the best of all the best of the first so many is, as the geometric mean over
the tasks. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.kit.averages import geometric
from benchmarks.kit.command import Many, command_line, scratch_folder
from benchmarks.kit.in_process import RESOLVED, heaviest, measured
from benchmarks.kit.models import TARGET, one_thread, saved
from benchmarks.kit.neighbours import answers
from benchmarks.kit.our_model import publish_sources, tasks_of
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.schedule_choice import expectation
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.space import DesignSpace
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Candidate, Schedule
from tunegate.tune.samples import SampleFeatures
from tunegate_cache.format.records import TransferHit

LOOKS = (1, 2, 3, 4, 6, 8)
MIN_FLOPS = 1e5
DRAWS = 100


class Offer(NamedTuple):
    """One adaptation of a neighbour's schedule; the nearest neighbour's come first."""

    expected: float
    milliseconds: float


def main() -> None:
    options = command_line(__doc__, "model", sources=Many(str), source_seconds=40.0)
    one_thread()
    load_intrinsics("llvm")
    with scratch_folder() as scratch:
        hits = neighbours(options, scratch)
        functions = {f.workload.digest: f for f in heaviest(options.model, scratch / "m")}
        tasks = []
        for digest, hit in hits.items():
            function = functions[digest]
            if function.flops >= MIN_FLOPS:
                tasks.append(offers(function, hit, scratch / digest))
                best = min(offer.milliseconds for offer in tasks[-1])
                print(f"{function.label}: {len(tasks[-1])} offered, best {best:.3f} ms", flush=True)
    show(options.model, [task for task in tasks if task])


def neighbours(options: argparse.Namespace, scratch: Path) -> Mapping[str, TransferHit]:
    """The neighbours by the digest of the task that they are neighbours of."""
    sources = publish_sources(options.sources, TARGET, options.source_seconds, scratch)
    model = saved(options.model, scratch)
    found = answers(tasks_of(model, TARGET, scratch), sources, scratch)
    return {key.workload: hit for key, hit in found.items() if isinstance(hit, TransferHit)}


def offers(function: ModelFunction, hit: TransferHit, place: Path) -> list[Offer]:
    place.mkdir()
    space = DesignSpace(function.workload, RESOLVED.target)
    expect = expectation(SampleFeatures(space.sampling(), space.sketches()), prior_of("llvm"))
    assert expect is not None
    search = TaskSearch(function.workload, RESOLVED.target, seed=1)
    default, *candidates = search.propose(
        0, [("exact", schedule) for schedule in adapt(space, hit)]
    ).candidates
    measured(default, math.inf, place)
    expected = expect([candidate.schedule for candidate in candidates])
    pairs = zip(expected, candidates, strict=True)
    return [Offer(ratio, time_of(candidate, place)) for ratio, candidate in pairs]


def adapt(space: DesignSpace, hit: TransferHit) -> list[Schedule]:
    found: dict[Schedule, None] = {}
    for record in hit.records:
        offered = Schedule(record.template, record.decisions)
        for variant in (offered, space.refit(offered)):
            replayed = None if variant is None else space.replay(variant)
            described = None if replayed is None else space.describe(replayed.trace)
            if described is not None:
                found[described] = None
    return list(found)


def time_of(candidate: Candidate, place: Path) -> float:
    result = measured(candidate, math.inf, place)
    return result.median_ms if result.status == "ok" else math.inf


def show(name: str, tasks: Sequence[Sequence[Offer]]) -> None:
    heading(f"{name}, {len(tasks)} tasks | nearest first | likeliest first | at random")
    for look in LOOKS:
        nearest = geometric([behind(task, range(look)) for task in tasks])
        by_expected = [np.argsort([-offer.expected for offer in task]) for task in tasks]
        pairs = zip(tasks, by_expected, strict=True)
        likeliest = geometric([behind(task, order[:look]) for task, order in pairs])
        row(look, f"{nearest:.3f}", f"{likeliest:.3f}", f"{at_random(tasks, look):.3f}")


def at_random(tasks: Sequence[Sequence[Offer]], look: int) -> float:
    rng = np.random.default_rng(0)
    drawn = [behind(t, rng.permutation(len(t))[:look]) for t in tasks for _ in range(DRAWS)]
    return geometric(drawn)


def behind(task: Sequence[Offer], places: Sequence[int] | np.ndarray | range) -> float:
    """Returns the factor by which the best of these is slower than the best of all."""
    first = min(task[place].milliseconds for place in places if place < len(task))
    return first / min(offer.milliseconds for offer in task)


if __name__ == "__main__":
    main()

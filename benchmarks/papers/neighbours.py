"""Transfer-tuning (Gibson and Cano, PACT 2022): one engine, with and without neighbours.

Both searches have the prior, layouts and all else of the product: neighbours alone differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kit.curves import Run, curve, defaults, seconds_to
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import build, publish_sources, tune
from benchmarks.kit.timed_builds import medians_in_turn
from benchmarks.papers.headline import Figure
from tunegate.artifacts.tasks import TuningTask
from tunegate.ports import ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

MODEL = "transformer-128"
SOURCES = ("transformer-96",)
SOURCE_SECONDS = 60.0
WITH_SECONDS, FULL_SECONDS = 40.0, 120.0
ROUNDS = 20


def figures(scratch: Path) -> Iterator[Figure]:
    sources = publish_sources(SOURCES, TARGET, SOURCE_SECONDS, scratch)
    model = saved(MODEL, scratch)
    places = scratch / "with", scratch / "without"
    for place in places:
        place.mkdir()
    having = tune(model, TARGET, [0.0, WITH_SECONDS], places[0], sources=sources)
    without = tune(model, TARGET, [FULL_SECONDS], places[1])
    on = (
        f"{MODEL}, {having.transfer} of {len(having.tasks)} tasks with neighbours from "
        f"{' and '.join(SOURCES)}, {SOURCE_SECONDS:g} s each"
    )
    yield Figure("time-without-neighbours", ratio(having.tasks, having.run, without.run), on)
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=TARGET)
    compiler = MetaScheduleCompiler(scratch / "default", seed=1)
    build(compiler, job, {}, scratch / "untuned")
    compiler.close()
    builds = [scratch / "untuned", having.builds[0.0], without.builds[FULL_SECONDS]]
    untuned, given, full = medians_in_turn(builds, ROUNDS)
    yield Figure(
        "speed-up-unmeasured",
        f"{full / given:.0%} (default schedules {full / untuned:.0%}): {untuned:.1f}, {given:.1f}, "
        f"{full:.1f} ms",
        f"{on}; full: {FULL_SECONDS:g} s without neighbours",
    )


def ratio(tasks: Sequence[TuningTask], having: Run, without: Run) -> str:
    """Seconds without neighbours over seconds with them, to the same estimate."""
    known = defaults([having, without])
    points = curve(tasks, having, known)
    tried = max(
        min((at for at, record in having.found if record.key == key), default=0.0)
        for key, outcome in having.outcomes.items()
        if any(cost.origin == "transfer" for cost in outcome.costs)
    )
    goal = min(ms for at, ms in points if at <= tried)
    took = seconds_to(goal, curve(tasks, without, known))
    reached = seconds_to(goal, points)
    if math.isinf(took):
        return f"over {FULL_SECONDS / reached:.1f}x ({reached:.0f} s with, not in {FULL_SECONDS:g})"
    return f"{took / reached:.1f}x ({reached:.0f} s with, {took:.0f} s without)"

"""One-Shot Tuner (Ryu et al., CC 2022): no measurement at compile time, the data paid for.

The paper compares the compile time of a fixed search with its own. Here the search counts until it
first has the latency of the picks, and what collecting the data takes is paid back by that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost_models.collect_experience import function_of, measure_trials, operators
from benchmarks.cost_models.no_measurement import Model
from benchmarks.kit.models import TARGET, named_model, one_thread
from benchmarks.kit.our_model import tune
from benchmarks.kit.timed_builds import medians_in_turn
from benchmarks.papers.headline import Figure
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.tune.prior import experience_of

MODEL = "transformer-128"
LOOKS = (10.0, 20.0, 40.0, 80.0)
ROUNDS = 20
SAMPLED = 24
"""Candidates of which the seconds are measured; the rest of the data took as long each."""


def figures(scratch: Path) -> Iterator[Figure]:
    one_thread()
    load_intrinsics("llvm")
    model = Model(named_model(MODEL), "native", scratch)
    ships, seconds = model.shipped()
    started = time.monotonic()
    model.built("default", {}, {})
    build_seconds = time.monotonic() - started
    for what, pick in model.picks().items():
        model.built(what, model.records(pick), {})
    model.close()
    place = scratch / "search"
    place.mkdir()
    search = tune(scratch / "m.onnx", TARGET, LOOKS, place)
    zero = ("default", "random", "shuffled labels", "ships")
    folders = [scratch / what for what in zero] + list(search.builds.values())
    default, drawn, shuffled, picked, *searched = medians_in_turn(folders, ROUNDS)
    equal = next((at for at, ms in zip(LOOKS, searched, strict=True) if ms <= picked), None)
    took = (equal or LOOKS[-1]) + build_seconds
    count = sum(task.source == "prior" for task in ships.tasks)
    on = f"{MODEL}, {len(search.tasks)} tasks, {count} picked"
    bound = "" if equal else "over "
    yield Figure(
        "compile-time", f"{bound}{took / seconds:.1f}x ({took:.0f} s, {seconds:.0f} s)", on
    )
    best = searched[-1]
    ratios = ", ".join(f"{ms / best:.2f}" for ms in (picked, drawn, shuffled, default))
    yield Figure(
        "unmeasured-latency",
        f"{ratios} (picks, random, shuffled, default schedules)",
        f"{on}; search: {LOOKS[-1]:g} s",
    )
    yield Figure("pays-from", *paid((took - seconds) / len(search.tasks), scratch))


def paid(saved_seconds: float, scratch: Path) -> tuple[str, str]:
    """Returns from how many tasks on the data has paid, where each saves so many seconds."""
    tasks = experience_of("llvm")
    rows = sum(len(task.rows) for task in tasks)
    each = seconds_of_a_row(scratch)
    collected = f"{rows:,} candidates of {len(tasks)} operators, {each:.2f} s each"
    if saved_seconds <= 0:
        return "never: the search is as fast", collected
    return f"{each * rows / saved_seconds:,.0f} tasks", collected


def seconds_of_a_row(scratch: Path) -> float:
    """Returns the seconds to measure one candidate for the data, by the first operators that are
    drawn."""
    model = next(operators(1, random.Random(2026)))
    function = function_of(model, scratch / "operator")
    started = time.monotonic()
    found = measure_trials(function, SAMPLED, scratch / "tried")
    return (time.monotonic() - started) / len(found.rows)

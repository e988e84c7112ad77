"""Workers, searchers, nodes and shards killed at random while
something is tuned: what does it cost?

    python -m benchmarks.processes.chaos [--runs 30] [--trials 48] [--seed 1]

The same convolution is tuned again and again with the same number of trials: four times
undisturbed, then with a SIGKILL to a worker every few seconds, with one to the search, on a Ray
cluster two of three nodes of which go, and by `tunegate tune`, killed as a whole and started
again. A measurement is lost when a run had finished it and the cache does not have it. Prints
the table of docs/benchmarks.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from ray.cluster_utils import Cluster
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import CONFIG, Workspace

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading
from benchmarks.processes.meanwhile import meanwhile
from benchmarks.tuning.cap_and_kill import finished_trials, kept_trials, started_loudly
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate_cache.format.records import TuningRecord

CAP_SECONDS = 180.0
UNDISTURBED = 4


class Survived(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run. `told` are trials that it reported as finished, `kept` those that
    were published; `spoiled` candidates went down with a worker."""

    kind: str
    kills: int
    told: int
    kept: int
    spoiled: int
    seconds: float
    best_ms: float | None


def main() -> None:
    options = command_line(__doc__, runs=30, trials=48, seed=1)
    rng = random.Random(options.seed)
    kinds = ["nothing"] * UNDISTURBED
    kinds += [rng.choice(("workers", "search", "node", "shard")) for _ in range(options.runs)]
    found = []
    with scratch_folder() as scratch:
        model = save(conv_model(channels=32, out=64, size=28), scratch / "m.onnx")
        for number, kind in enumerate(kinds):
            place = scratch / str(number)
            place.mkdir()
            if kind == "shard":
                survived = killed_shard(place, rng)
            else:
                survived = tuned(kind, model, options.trials, place, rng)
            print(survived, flush=True)
            found.append(survived)
    show(found)


def tuned(kind: str, model: Path, trials: int, scratch: Path, rng: random.Random) -> Survived:
    published: list[TuningRecord] = []

    def publish(records: Sequence[TuningRecord]) -> bool:
        published.extend(records)
        return True

    tasks = [task for task in tasks_of(model, TARGET, scratch) if "conv" in task.operator]
    budget = Budget(
        seconds=CAP_SECONDS, trials=trials * len(tasks), min_gain_percent_per_minute=0.0
    )
    shard = shard_of(tasks, TARGET, budget)
    harm = {"workers": killing_workers, "search": killing_the_search, "node": losing_a_node}
    with harm.get(kind, doing_nothing)(rng) as kills:
        tuner = tuner_of(TARGET, scratch, on_ray=kind == "node")
        started = time.monotonic()
        outcomes = list(tuner.tune(shard, {("m.onnx", "head"): ShapedModel(model, {})}, publish))
        seconds = time.monotonic() - started
        killed = kills()
    last = {outcome.key: outcome for outcome in outcomes}
    return Survived(
        kind=kind,
        kills=killed,
        told=sum(outcome.trials for outcome in last.values()),
        kept=len({(r.key, r.template, r.decisions) for r in published if r.template}),
        spoiled=sum(r.status != "ok" for r in published),
        seconds=seconds,
        best_ms=sum(outcome.best_ms or 0.0 for outcome in last.values()),
    )


@contextmanager
def doing_nothing(_: random.Random) -> Iterator[Callable[[], int]]:
    yield lambda: 0


@contextmanager
def killing_workers(rng: random.Random) -> Iterator[Callable[[], int]]:
    with killing(b"tunegate.compiler.worker", rng, most=1000) as kills:
        yield kills


@contextmanager
def killing_the_search(rng: random.Random) -> Iterator[Callable[[], int]]:
    with killing(b"tunegate.compiler.searcher", rng, most=1) as kills:
        yield kills


@contextmanager
def killing(what: bytes, rng: random.Random, *, most: int) -> Iterator[Callable[[], int]]:
    """Kills one every two to five seconds, after the first three, in which children start."""
    killed: list[int] = []

    def kill(ended: threading.Event) -> None:
        wait = 3.0 + rng.uniform(0, 2)
        while not ended.wait(wait) and len(killed) < most:
            children = children_that_run(what)
            if children:
                killed.append(rng.choice(children))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)
            wait = rng.uniform(2.0, 5.0)

    with meanwhile(kill):
        yield lambda: len(killed)


def children_that_run(what: bytes) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and what in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


@contextmanager
def losing_a_node(rng: random.Random) -> Iterator[Callable[[], int]]:
    """Two of three nodes go, one after the other."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    os.environ["RAY_ADDRESS"] = cluster.address
    doomed = [cluster.add_node(num_cpus=1) for _ in range(2)]
    lost: list[int] = []

    def lose(ended: threading.Event) -> None:
        while doomed and not ended.wait(rng.uniform(7, 11)):
            cluster.remove_node(doomed.pop(), allow_graceful=False)
            lost.append(1)

    try:
        with meanwhile(lose):
            yield lambda: len(lost)
    finally:
        cluster.shutdown()


def killed_shard(scratch: Path, rng: random.Random) -> Survived:
    """`tunegate tune`, killed and started again; the gate takes what there is."""
    workspace = Workspace(scratch / "w", CONFIG.replace("trials: 2", "trials: 60"))
    workspace.tunegate("plan", "--shards", "1", "--minutes", "1")
    started = time.monotonic()
    with started_loudly(workspace, "tune", "--shard", "0") as process:
        time.sleep(rng.uniform(4.0, 9.0))
        os.kill(process.pid, signal.SIGKILL)
        _, first = process.communicate()
    told = finished_trials(first)
    kept = kept_trials(workspace)
    again = workspace.tunegate("tune", "--shard", "0")
    gate = workspace.tunegate("gate")
    if again.returncode or gate.returncode:
        raise SystemExit(f"tune: {again.returncode}, gate: {gate.returncode}: {gate.stderr}")
    return Survived(
        kind="shard",
        kills=1,
        told=told,
        kept=kept,
        spoiled=0,
        seconds=time.monotonic() - started,
        best_ms=None,
    )


def show(found: Sequence[Survived]) -> None:
    usual = statistics.median(x.best_ms or 0.0 for x in found if x.kind == "nothing")
    heading(
        "killed | runs | kills | trials finished | in the cache | lost | candidates spoiled | "
        "seconds, worst | best, of undisturbed"
    )
    for kind in dict.fromkeys(x.kind for x in found):
        runs = [x for x in found if x.kind == kind]
        times = [x.best_ms / usual for x in runs if x.best_ms]
        best = (
            f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
            if times
            else ""
        )
        print(
            f"| {kind} | {len(runs)} | {sum(x.kills for x in runs)} | {sum(x.told for x in runs)} "
            f"| {sum(x.kept for x in runs)} | {sum(max(0, x.told - x.kept) for x in runs)} | "
            f"{sum(x.spoiled for x in runs)} | {max(x.seconds for x in runs):.0f} | {best} |"
        )


if __name__ == "__main__":
    main()

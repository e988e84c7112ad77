"""Real tuning on a real Ray cluster of one, two and four nodes with one worker each.

    python -m benchmarks.processes.ray_workers [squeezenet] [--nodes 1 2 4]
        [--trials 60]

The trials in a second between the first tenth of them and the last, and those of the same machine
without Ray beside them. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ray.cluster_utils import Cluster

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading, row
from benchmarks.processes.scaling import ENDLESS
from tunegate.artifacts.changes import Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.tasks import TuningTask
from tunegate_cache.format.records import TuningRecord


def main() -> None:
    options = command_line(__doc__, "model=squeezenet", nodes=[1, 2, 4], trials=60)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cores = len(os.sched_getaffinity(0))
    heading(f"{options.trials} trials of {options.model}, {cores} cores | trials/s")
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = tasks_of(model, TARGET, scratch)
        alone = rate(model, tasks, scratch, options.trials, on_ray=False)
        row("without Ray", f"{alone:.2f}")
        for nodes in options.nodes:
            found = on_cluster(nodes, model, tasks, scratch, options.trials)
            row(f"{nodes} Ray workers", f"{found:.2f}")


def on_cluster(
    nodes: int, model: Path, tasks: Sequence[TuningTask], scratch: Path, trials: int
) -> float:
    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        return rate(model, tasks, scratch, trials, on_ray=True)
    finally:
        cluster.shutdown()


def rate(
    model: Path, tasks: Sequence[TuningTask], scratch: Path, trials: int, *, on_ray: bool
) -> float:
    marks: list[tuple[int, float]] = []

    def publish(records: Sequence[TuningRecord]) -> bool:
        done = len(records) + (marks[-1][0] if marks else 0)
        marks.append((done, time.monotonic()))
        return True

    files: dict[tuple[str, Side], ShapedModel] = {("m.onnx", "head"): ShapedModel(model, {})}
    outcomes = tuner_of(TARGET, scratch, on_ray=on_ray).tune(
        shard_of(tasks, TARGET, ENDLESS), files, publish
    )
    with closing(outcomes):
        while not marks or marks[-1][0] < trials:
            next(outcomes)
        first = next(mark for mark in marks if mark[0] >= trials / 10)
        last = marks[-1]
    return (last[0] - first[0]) / (last[1] - first[1])


if __name__ == "__main__":
    main()

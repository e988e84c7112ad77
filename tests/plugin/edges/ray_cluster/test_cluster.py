"""Real tuning on a real cluster of several processes, one node of which is killed in the middle."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.plugin.edges.metaschedule.test_tuner import DEVICE, TARGET
from tests.support.small_onnx import conv_model, save
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.edges.metaschedule.compiler import MetaScheduleCompiler
from tunegate.edges.metaschedule.tuner import MetaScheduleTuner
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.errors import ModelError
from tunegate.ports import ModelJob
from tunegate_cache.records import Miss, Provenance, TuningRecord

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.cluster_utils import Cluster

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's, and not ours to mend
TRIALS = 16


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()  # type: ignore[no-untyped-call]


class Job:
    """One convolution to tune, and what is published of it."""

    def __init__(self, directory: Path) -> None:
        self.model = save(conv_model(channels=8, out=8, size=8), directory / "m.onnx")
        self.published: list[TuningRecord] = []
        compiler = MetaScheduleCompiler(directory / "compiler")
        job = ModelJob(file=self.model, path="m.onnx", shapes={}, target=TARGET)
        (tasks,) = compiler.tasks([job])
        compiler.close()
        assert not isinstance(tasks, ModelError)
        self.tasks = [task for task in tasks if "conv" in task.operator]
        self.tuner = MetaScheduleTuner(
            targets={"cpu": TARGET},
            shapes={"m.onnx": {}},
            device=DEVICE,
            toolchain=toolchain(),
            source=Provenance(),
            clock=time,
            scratch=directory / "tuner",
            on_ray=True,
        )

    def outcomes(self) -> Iterator[TaskOutcome]:
        shard = Shard(
            index=0,
            target="cpu",
            labels=(),
            tasks=tuple(
                PlannedTask(resolved=ResolvedTask(task, Miss("absent")), trials=8, gain_ms=1.0)
                for task in self.tasks
            ),
            budget=Budget(seconds=120.0, trials=TRIALS, min_gain_percent_per_minute=0.0),
            predicted_seconds=1.0,
        )
        return self.tuner.tune(shard, {("m.onnx", "head"): self.model}, self._publish)

    def _publish(self, records: Sequence[TuningRecord]) -> bool:
        self.published.extend(records)
        return True


def test_a_node_that_is_killed_costs_no_candidate(cluster: Cluster, tmp_path: Path) -> None:
    doomed = cluster.add_node(num_cpus=1)
    job = Job(tmp_path)
    started = time.monotonic()
    outcomes = job.outcomes()
    found = [next(outcomes)]
    assert len(job.published) > 0
    cluster.remove_node(doomed, allow_graceful=False)
    found += outcomes
    outcome = found[-1]
    assert time.monotonic() - started < 120
    assert (outcome.trials, outcome.failures) == (TRIALS, {})
    assert outcome.best_ms is not None
    statuses = {record.status for record in job.published}
    assert statuses == {"ok"}
    assert len({(r.template, r.decisions) for r in job.published}) == TRIALS + 1
    # The device is that of the nodes, whatever the driver's is.
    assert DEVICE.name not in {record.device.name for record in job.published}

"""Real tuning on a real cluster of several processes, one node of which is killed in the middle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save
from tests.tune.test_tuner import DEVICE, Workshop

from tunegate.artifacts.plans import Budget
from tunegate.tune import task_history
from tunegate_ray import cluster as ray_workers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.cluster_utils import Cluster

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Ray's, and not ours to mend
    pytest.mark.timeout(600),
]
TRIALS = 8


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()


def test_a_node_that_is_killed_costs_no_candidate(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout has modules with the names of those that the workers
    import, which costs none either."""
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    for name in ("msgspec", "tvm", "numpy"):
        Path(f"{name}.py").write_text("raise SystemExit('a module of the checkout was imported')\n")
    doomed = cluster.add_node(num_cpus=1)
    model = save(conv_model(channels=8, out=8, size=8), tmp_path / "m.onnx")
    job = Workshop(tmp_path, model, on_ray=True)
    # Ray takes minutes to miss a node on a busy machine, and a candidate its time: no clock
    # decides here.
    monkeypatch.setattr(ray_workers, "_LIMIT_SECONDS", 1200.0)
    monkeypatch.setattr(task_history, "patience_seconds", lambda _: None)
    budget = Budget(seconds=1200.0, trials=TRIALS, min_gain_percent_per_minute=0.0)
    with closing(job.compiler):
        outcomes = job.outcomes(budget, trials=TRIALS)
        found = [next(outcomes)]
        assert len(job.published) > 0
        cluster.remove_node(doomed, allow_graceful=False)
        found += outcomes
    outcome = found[-1]
    assert (outcome.trials, outcome.failures) == (TRIALS, {})
    assert outcome.best_ms is not None
    statuses = {record.status for record in job.published}
    assert statuses == {"ok"}
    assert len({(r.template, r.decisions) for r in job.published}) == TRIALS + 1
    # The device is that of the nodes, whatever the driver's is.
    assert DEVICE.name not in {record.device.name for record in job.published}

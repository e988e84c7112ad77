from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tunegate.cli.handlers import demo as demo_repository
from tunegate.config import AccuracyConfig
from tunegate.models.graph import graph_digest
from tunegate.review.config_file import load_config


def test_the_demo_starts_with_one_commit_of_a_model(tmp_path: Path) -> None:
    model = demo_repository.network()
    policy = demo_repository.DemoPolicy(cache=tmp_path / "c", minutes=2, pairs=6, margin_percent=3)
    repository = demo_repository.create(tmp_path / "r", model, policy)
    assert repository.text("rev-list", "--count", "HEAD") == "1"
    assert (tmp_path / "r" / demo_repository.DEMO_MODEL).exists()


@pytest.mark.parametrize("percent", [None, 5.0])
def test_the_configuration_of_the_demo_is_one(tmp_path: Path, percent: float | None) -> None:
    policy = demo_repository.DemoPolicy(
        cache=tmp_path / "c", minutes=2, pairs=6, margin_percent=3, max_error_percent=percent
    )
    demo_repository.create(tmp_path / "r", demo_repository.network(is_quick=True), policy)
    (entry,) = load_config(tmp_path / "r" / "tunegate.yaml").models
    assert entry.accuracy == ("same" if percent is None else AccuracyConfig(max_error=percent))


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_second_act_changes_weights_only_and_the_third_the_graph(is_quick: bool) -> None:
    first, retrained = (demo_repository.network(seed, is_quick=is_quick) for seed in (0, 1))
    slowed = demo_repository.slowed(is_quick=is_quick)
    digest = graph_digest(first.SerializeToString())
    assert graph_digest(retrained.SerializeToString()) == digest
    assert retrained.SerializeToString() != first.SerializeToString()
    assert graph_digest(slowed.SerializeToString()) != digest


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_slowed_model_still_runs(is_quick: bool) -> None:
    model = demo_repository.slowed(is_quick=is_quick)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (taken,) = session.get_inputs()
    (output,) = session.run(None, {taken.name: np.ones(taken.shape, np.float32)})
    assert np.isfinite(output).all()


def test_the_quick_network_computes_what_the_whole_one_does_there() -> None:
    whole = demo_repository.network()
    end = "r31"
    for name in ("r24", end):
        whole.graph.output.add(name=name)
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    taken, wanted = session.run(["r24", end], {session.get_inputs()[0].name: image})
    quick = demo_repository.network(is_quick=True)
    alone = onnxruntime.InferenceSession(quick.SerializeToString())
    (found,) = alone.run(None, {"r24": taken})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)

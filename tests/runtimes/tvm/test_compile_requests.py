"""What the compiler's children are asked: each request has a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import CompileRequests, has_graphs, opened_key


def test_requests_share_no_directory(tmp_path: Path) -> None:
    model = ModelJob(
        file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TargetConfig(name="a", threads=3)
    )
    job = BuildJob(model=model, records={}, sources={}, directory=tmp_path / "out")
    requests = CompileRequests(tmp_path, seed=1)
    assert requests.tasks(model).scratch != requests.build(job).scratch


def test_a_build_in_other_numbers_draws_what_tells_its_error_alike_in_each_run(
    tmp_path: Path,
) -> None:
    model = ModelJob(
        file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TargetConfig(name="a", threads=1)
    )
    job = BuildJob(
        model=model,
        records={},
        sources={},
        directory=tmp_path / "out",
        variant="bf16",
        settings={"precision": "bfloat16"},
        samples=3,
    )
    requests = CompileRequests(tmp_path, seed=1)
    asked = requests.build(job)
    assert (asked.variant, asked.precision) == ("bf16", "bfloat16")
    assert len(set(requests.samples(job))) == 3
    assert CompileRequests(tmp_path, seed=2).samples(job) == requests.samples(job)


@pytest.mark.parametrize("settings", [{}, {"launch": "whole"}, {"precision": "int8"}])
def test_a_build_has_the_settings_of_its_candidate(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    model = ModelJob(
        file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TargetConfig(name="a")
    )
    job = BuildJob(model=model, records={}, sources={}, directory=tmp_path, settings=settings)
    requests = CompileRequests(tmp_path, seed=1)
    assert requests.build(job).settings == settings


def test_a_model_is_open_for_one_target_and_one_set_of_shapes(tmp_path: Path) -> None:
    jobs = [
        ModelJob(file=tmp_path / "m.onnx", path="m", shapes=shapes, target=TargetConfig(name=name))
        for shapes in ({}, {"x": (1, 2)})
        for name in ("a", "b")
    ]
    assert len({opened_key(job) for job in jobs}) == 4


@pytest.mark.parametrize(
    ("target", "settings", "does"),
    [
        (TargetConfig(name="a", kind="cuda", arch="sm_90"), {}, True),
        (TargetConfig(name="a", kind="cuda", arch="sm_90"), {"launch": "whole"}, False),
        (TargetConfig(name="a", kind="cuda", arch="sm_90", cuda_graphs=False), {}, False),
        (TargetConfig(name="a"), {}, False),
    ],
    ids=["cuda", "one-launch", "without", "cpu"],
)
def test_one_launch_needs_no_graph(
    tmp_path: Path, target: TargetConfig, settings: dict[str, str], does: bool
) -> None:
    model = ModelJob(file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=target)
    job = BuildJob(model=model, records={}, sources={}, directory=tmp_path, settings=settings)
    assert has_graphs(job) is does

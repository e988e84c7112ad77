"""A build for a GPU launches its kernels as one where it is asked to."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.edges.metaschedule.persistent.models import TARGET, opened
from tests.support.small_onnx import chain_model, save
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.linked_build import LIBRARY, Finished, is_native, link
from tunegate.edges.metaschedule.low_precision.lower_kernels import TileKernels
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.models.preparation import prepare
from tunegate.edges.output.artifact_file import ArtifactTensor
from tunegate.engine.compiler_protocol import BuildModel
from tunegate.engine.protocol import ModelFile

GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_80")
SHAPE = (4, 64)


def test_one_launch_is_a_library_like_any_other(tmp_path: Path) -> None:
    request = BuildModel(
        model=ModelFile(file="m.onnx", path="m.onnx", shapes={}),
        target=GPU,
        records={},
        sources={},
        directory=str(tmp_path / "out"),
        scratch=str(tmp_path),
        cuda_graphs=False,
        seed=1,
        is_whole=True,
    )
    module = opened("chain").scheduled.plain
    file = save(chain_model(layers=3, width=64), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    finished = Finished(
        opened=OpenModel(prepared, module, []),
        module=module,
        plain=module,
        inputs=(ArtifactTensor("x", SHAPE, "float32"),),
        outputs=(ArtifactTensor("y", SHAPE, "float32"),),
        lower=TileKernels({}, TARGET),
    )
    assert not is_native(request)
    assert link(finished, request) == (tmp_path / "out" / LIBRARY).stat().st_size
    assert b"launch_whole" in (tmp_path / "out" / LIBRARY).read_bytes()

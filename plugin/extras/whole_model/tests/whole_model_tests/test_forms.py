"""Additions of this extra to TVM: candidates, and the files of their builds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import onnx.parser
import pytest
from tests.support.small_onnx import chain_model, save
from tests.support.worker_requests import build_request

from tunegate.compiler.build.build_model import Finished, link
from tunegate.compiler.compile import handle_request
from tunegate.compiler.forms import LIBRARY, form_for
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.low_precision.lower_kernels import TileKernels
from tunegate.compiler.opening import OpenModel
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.models.preparation import prepare
from tunegate.runtimes.requirements import require_installed
from tunegate.runtimes.tvm.runtime import RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import ModelFile
from tunegate_whole_model import forms
from tunegate_whole_model.forms import NATIVE, NATIVE_LAUNCH, PERSISTENT
from tunegate_whole_model.native.loader import NativeArtifact
from whole_model_tests.models import TARGET, open_model

GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_80")
SHAPE = (4, 64)


def test_one_launch_is_a_candidate_on_gpus_and_of_native_objects_with_several_threads() -> None:
    two = TargetConfig(name="a", threads=2, artifact="native")
    assert RUNTIME.variants(GPU)["whole"] == {"launch": "whole"}
    assert RUNTIME.variants(two)["whole"] == {"launch": "whole"}
    assert "whole" not in RUNTIME.variants(msgspec.structs.replace(two, threads=1))
    assert "whole" not in RUNTIME.variants(msgspec.structs.replace(two, artifact="runtime"))


def test_each_candidate_is_built_in_one_form() -> None:
    native, whole = TargetConfig(name="a", artifact="native"), {"launch": "whole"}
    assert [form_for(native, {}), form_for(native, whole)] == [NATIVE, NATIVE_LAUNCH]
    assert [form_for(GPU, {}), form_for(GPU, whole)] == [None, PERSISTENT]
    assert form_for(TargetConfig(name="a"), {}) is None


def test_a_native_artifact_needs_a_c_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def config(target: TargetConfig) -> Config:
        return Config(models=(ModelConfig(path="*.onnx"),), targets=(target,))

    native = TargetConfig(name="cpu", artifact="native")
    require_installed(config(native), "run")
    monkeypatch.setattr(forms, "c_compiler", lambda: None)
    require_installed(config(TargetConfig(name="cpu")), "run")
    require_installed(config(native), "plan")
    with pytest.raises(EnvironmentUnfitError, match="none of gcc, clang, cc is on the PATH"):
        require_installed(config(native), "run")


def test_a_native_object_has_the_maximum_of_a_row_of_minus_infinity(tmp_path: Path) -> None:
    load_intrinsics("llvm")
    (tmp_path / "scratch").mkdir()
    text = '<ir_version: 8, opset_import: ["" : 18]> m (float[2,4] x) => (float[1,1] y)'
    model = save(onnx.parser.parse_model(f"{text} {{ y = ReduceMax(x) }}"), tmp_path / "m.onnx")
    target = TargetConfig(name="cpu", threads=1, artifact="native")
    handle_request(build_request(model, tmp_path, target=target))
    at = tmp_path / "build"
    (most,) = NativeArtifact(at, ArtifactFile.read(at)).run({"x": np.full((2, 4), -np.inf)})
    assert most == -np.inf


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
        launch="whole",
    )
    module = open_model("chain").scheduled.plain
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
    linked = link(finished, request)
    assert linked.size_bytes == (tmp_path / "out" / LIBRARY).stat().st_size
    # One way for its one kernel, and the context; the same again for the other side.
    assert len(linked.decided) == 2
    again = msgspec.structs.replace(request, decided=linked.decided)
    assert set(link(finished, again).decided) == set(linked.decided)
    assert b"launch_whole" in (tmp_path / "out" / LIBRARY).read_bytes()

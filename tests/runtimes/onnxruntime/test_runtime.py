from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.small_onnx import one_node_model, save
from tunegate.config import TargetConfig
from tunegate.runtimes.onnxruntime.runtime import RUNTIME, opened
from tunegate.system.output.artifact_file import ArtifactFile


def test_onnx_runtime_runs_on_cpus_and_says_so_of_others() -> None:
    assert RUNTIME.unsupported(TargetConfig(name="cpu")) == ""
    gpu = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
    assert RUNTIME.unsupported(gpu) == "is for CPUs"


def test_a_model_is_shipped_as_it_is_or_in_int8() -> None:
    found = dict(RUNTIME.variants(TargetConfig(name="cpu")))
    assert found == {
        "": {},
        "int8": {"precision": "int8", "quantization": "static"},
        "int8.dynamic": {"precision": "int8"},
    }


def test_a_bound_inference_computes_what_a_run_does(tmp_path: Path) -> None:
    save(one_node_model("Relu"), tmp_path / "m.onnx")
    artifact = ArtifactFile(runtime="onnxruntime", file="m.onnx", inputs=(), outputs=(), threads=1)
    loaded = RUNTIME.load(tmp_path, artifact)
    (node,) = opened(tmp_path / "m.onnx", 1).get_inputs()
    feed = {node.name: -np.ones(node.shape, "float32")}
    (run,), bound = loaded.run(feed), loaded.bound(feed)()
    assert isinstance(bound, list)
    assert (run == bound[0]).all()
    assert not run.any()
    assert list(loaded.operators_ms(feed, 2)) == ["odd"]


def test_a_session_has_the_threads_of_the_artifact_and_all_optimizations(tmp_path: Path) -> None:
    session = opened(save(one_node_model("Relu"), tmp_path / "m.onnx"), 2)
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.graph_optimization_level.name == "ORT_ENABLE_ALL"
    assert session.get_providers() == ["CPUExecutionProvider"]

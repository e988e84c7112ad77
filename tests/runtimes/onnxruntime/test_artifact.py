from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.small_onnx import one_node_model, save
from tunegate.runtimes.onnxruntime.runtime import RUNTIME, opened
from tunegate.system.output.artifact_file import ArtifactFile


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

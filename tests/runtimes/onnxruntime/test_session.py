from __future__ import annotations

from pathlib import Path

from tests.support.small_onnx import one_node_model, save
from tunegate.runtimes.onnxruntime.runtime import opened


def test_a_session_has_the_threads_of_the_artifact_and_all_optimizations(tmp_path: Path) -> None:
    session = opened(save(one_node_model("Relu"), tmp_path / "m.onnx"), 2)
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.graph_optimization_level.name == "ORT_ENABLE_ALL"
    assert session.get_providers() == ["CPUExecutionProvider"]

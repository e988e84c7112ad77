"""A session that would run on the CPU in silence is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import one_node_model, save
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.onnxruntime_cuda.model import opened_on_device, require_device
from tunegate.system.nvidia.gpus import visible_gpus

WANTED = r"^the CUDA provider does not start: .* Run nvidia-smi, and pip install 'onnxruntime-gpu"


def test_a_session_on_the_cpu_alone_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedModelError, match=WANTED):
        require_device(["CPUExecutionProvider"])
    require_device(["CUDAExecutionProvider", "CPUExecutionProvider"])


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_without_a_device_no_session_opens(tmp_path: Path) -> None:
    file = save(one_node_model("Relu"), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedModelError, match=WANTED):
        opened_on_device(file, {}, 1)

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.small_onnx import chain_model, matmul_model, one_node_model, save
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.runtimes.onnxruntime.runtime import open_model_session
from tunegate.runtimes.onnxruntime_cuda import model, runtime
from tunegate.system.nvidia.gpus import visible_gpus

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def test_it_is_for_cuda_and_says_what_is_missing() -> None:
    assert runtime.RUNTIME.unsupported(CPU) == "is for CUDA devices"
    assert runtime.RUNTIME.unsupported(GPU) == runtime.missing_provider()


def test_shapes_are_fixed_in_what_it_saves(tmp_path: Path) -> None:
    file = save(matmul_model(rows="n"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={"x": (4, 16)}, into=tmp_path / "into", path="m.onnx")
    for name, variant in runtime.RUNTIME.variants(GPU).items():
        directory = tmp_path / f"artifact{name}"
        directory.mkdir()
        saved = onnx.load(directory / runtime.RUNTIME.save(prepared, directory, variant))
        shape = saved.graph.input[0].type.tensor_type.shape
        assert [each.dim_value for each in shape.dim] == [4, 16]
        types = {each.data_type for each in saved.graph.initializer}
        assert (onnx.TensorProto.FLOAT16 in types) == (name == "f16")


# What ONNX Runtime's CUDA provider is told, and what is said where there is none.

PROVIDER_CPU = ["CPUExecutionProvider"]
BOTH = ["CUDAExecutionProvider", "CPUExecutionProvider"]
MENDED = (
    "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install 'onnxruntime-gpu[cuda,cudnn]'"
)


def test_nothing_that_decides_numbers_or_times_is_left_to_defaults() -> None:
    assert runtime.provider_options({}) == {
        "device_id": "0",
        "use_tf32": "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "cudnn_conv_use_max_workspace": "1",
        "do_copy_in_default_stream": "1",
        "enable_cuda_graph": "0",
    }
    assert runtime.provider_options({"launch": "graph"})["enable_cuda_graph"] == "1"


@pytest.mark.parametrize(
    ("wheels", "said"),
    [
        ({"onnxruntime"}, "needs onnxruntime-gpu in the place of onnxruntime: "),
        ({"onnxruntime", "onnxruntime-gpu"}, "finds onnxruntime-gpu overwritten by onnxruntime: "),
    ],
)
def test_a_wheel_without_the_provider_is_named_with_a_mend(wheels: set[str], said: str) -> None:
    assert runtime.lacking_wheel(PROVIDER_CPU, wheels) == said + MENDED


def test_what_counts_is_what_is_imported_and_not_which_wheels_are_listed() -> None:
    assert runtime.lacking_wheel(BOTH, {"onnxruntime", "onnxruntime-gpu"}) == ""
    found = {"", f"needs onnxruntime-gpu in the place of onnxruntime: {MENDED}"}
    assert runtime.missing_provider() in found


# Operators that are not on the device are found, and told.

PLACEMENT_CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def test_operators_elsewhere_are_counted_and_named() -> None:
    away = ("Resize", "NonZero", "Resize")
    nodes = [
        model.PlacedNode(CUDA, "Conv"),
        *(model.PlacedNode(PLACEMENT_CPU, each) for each in away),
    ]
    assert (
        model.told_of_placement(nodes, CUDA) == "3 of 4 nodes run on the CPU: Resize (2), NonZero"
    )
    assert model.told_of_placement(nodes[:2], CUDA) == "1 of 2 nodes runs on the CPU: Resize"


def test_a_model_with_nothing_on_the_device_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="none of its operators on the device"):
        model.told_of_placement([model.PlacedNode(PLACEMENT_CPU, "Conv")], CUDA)


def test_a_session_tells_which_provider_runs_each_node(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    file = str(save(chain_model(layers=2, width=8), tmp_path / "m.onnx"))
    session = onnxruntime.InferenceSession(file, options, providers=[PLACEMENT_CPU])
    found = model.placed_nodes(session)
    assert found
    assert {each.provider for each in found} == {PLACEMENT_CPU}


# A session that would run on the CPU in silence is an error.

WANTED = r"^the CUDA provider does not start: .* Run nvidia-smi, and pip install 'onnxruntime-gpu"


def test_a_session_on_the_cpu_alone_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedModelError, match=WANTED):
        model.require_device(["CPUExecutionProvider"])
    model.require_device(["CUDAExecutionProvider", "CPUExecutionProvider"])


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_without_a_device_no_session_opens(tmp_path: Path) -> None:
    file = save(one_node_model("Relu"), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedModelError, match=WANTED):
        model.opened_on_device(file, {}, 1)


# Bound inputs and outputs, on the CPU as the device.


def test_places_stay_and_each_feed_has_its_own_outputs(tmp_path: Path) -> None:
    session = open_model_session(save(matmul_model(rows=4), tmp_path / "m.onnx"), 1)
    name = session.get_inputs()[0].name
    rng = np.random.default_rng(1)
    feeds = [{name: rng.random((16, 4), np.float32).T} for _ in range(2)]
    binding = model.DeviceBinding(session, feeds[0], "cpu")
    for feed in feeds:
        (found,) = binding.run(feed)
        np.testing.assert_array_equal(found, session.run(None, feed)[0])
    binding.bound(feeds[0])()

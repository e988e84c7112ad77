from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.support.models.external_data import lay_out
from tests.support.models.unusual import (
    BRANCHES,
    LSTM_IN_BRANCH,
    QUANTIZED,
    SEQUENCE,
    map_model,
    model,
    text_model,
)
from tests.support.runtime_packages import WHOLE, RuntimePackages
from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.artifacts.builds import Build
from tunegate.artifacts.inputs import InputRule, KnownInputs, Uniform
from tunegate.config import TargetConfig
from tunegate.models.inputs.calibration import MAX_INPUTS
from tunegate.ports import BuildJob, ModelJob, Shapes
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.build_messages import Refused, WriteArtifact, WrittenBuild
from tunegate.runtimes.builder import SavingBuilder, reference_builder
from tunegate.runtimes.loading import bound_inference
from tunegate.runtimes.onnxruntime.runtime import RUNTIME as ONNX_RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile

TARGET = TargetConfig(name="cpu", threads=1, runtime="onnxruntime")


def built(
    tmp_path: Path, model: Path, shapes: Shapes | None = None, name: str = "b", seed: int = 1
) -> Build:
    job = BuildJob(
        model=ModelJob(file=model, path="models/m.onnx", shapes=shapes or {}, target=TARGET),
        records={},
        sources={},
        directory=tmp_path / name,
    )
    (build,) = reference_builder(tmp_path / "scratch", seed).build([job])
    return build


def test_the_artifact_is_the_very_model_and_the_shapes_of_its_inputs(tmp_path: Path) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    build = built(tmp_path, file, {"x": (5, 16)})
    assert (build.error, build.runtime, build.tasks) == (None, "onnxruntime", ())
    artifact = ArtifactFile.read(tmp_path / "b")
    assert (artifact.runtime, artifact.file, artifact.threads) == ("onnxruntime", "model.onnx", 1)
    assert (tmp_path / "b/model.onnx").read_bytes() == file.read_bytes()
    assert artifact.inputs[0].shape == (5, 16)
    assert artifact.outputs[0].shape[0] == 5
    out = cast("list[np.ndarray[Any, Any]]", bound_inference(tmp_path / "b", seed=1)())[0]
    assert out.shape == artifact.outputs[0].shape
    assert built(tmp_path, file, {"x": (6, 16)}, name="other").key != build.key


@pytest.mark.parametrize(
    ("proto", "shapes", "outputs"),
    [
        (model(BRANCHES), {"x": (1, 8)}, [((1, 2), "float32")]),
        (model(LSTM_IN_BRANCH), {"x": (3, 1, 2)}, [((3, 1, 1, 1), "float32")]),
        (model(SEQUENCE), {"x": (2, 3)}, [((), "sequence(float32)")]),
        (model(QUANTIZED), {"x": (2, 4)}, [((2, 2), "float32")]),
        (map_model(), {"x": (2, 3)}, [((2,), "int64"), ((), "sequence(map)")]),
        (text_model(), {"x": (2,)}, [((2,), "float32"), ((2,), "object")]),
    ],
)
def test_whatever_onnx_runtime_runs_is_built(
    tmp_path: Path,
    proto: onnx.ModelProto,
    shapes: Shapes,
    outputs: list[tuple[tuple[int, ...], str]],
) -> None:
    build = built(tmp_path, save(proto, tmp_path / "m.onnx"), shapes)
    assert build.error is None
    found = ArtifactFile.read(tmp_path / "b").outputs
    assert [(tensor.shape, tensor.dtype) for tensor in found] == outputs


def test_weights_decide_the_key_and_nothing_else_of_the_file_does(tmp_path: Path) -> None:
    proto = conv_model()
    first = built(tmp_path, save(proto, tmp_path / "1.onnx"), name="b1")
    again = built(tmp_path, save(proto, tmp_path / "2.onnx"), name="b2", seed=2)
    weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]) * 2
    name = proto.graph.initializer[0].name
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, name))
    other = built(tmp_path, save(proto, tmp_path / "3.onnx"), name="b3")
    assert first.key == again.key != other.key


def test_data_of_a_branch_come_into_the_one_file(tmp_path: Path) -> None:
    made = onnx.helper.make_tensor_value_info("made", onnx.TensorProto.FLOAT, [2])
    weight = lay_out(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2]), "w.bin")
    add = onnx.helper.make_node("Add", ["x", "w"], ["made"])
    same = onnx.helper.make_node("Identity", ["x"], ["made"])
    branches = {
        "then_branch": onnx.helper.make_graph([add], "then", [], [made], [weight]),
        "else_branch": onnx.helper.make_graph([same], "else", [], [made]),
    }
    values = {
        name: onnx.helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("x", TensorProto.FLOAT, [2]),
            ("c", TensorProto.BOOL, []),
            ("y", TensorProto.FLOAT, [2]),
        )
    }
    node = onnx.helper.make_node("If", ["c"], ["y"], **branches)
    graph = onnx.helper.make_graph([node], "g", [values["x"], values["c"]], [values["y"]])
    opset = [onnx.helper.make_opsetid("", 17)]
    file = save(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "big/m.onnx"
    )
    keys = []
    for value in (1, 2):
        (tmp_path / "big/w.bin").write_bytes(np.full(2, value, np.float32).tobytes())
        build = built(tmp_path, file, name=f"b{value}")
        assert build.error is None
        keys.append(build.key)
    assert keys[0] != keys[1]


def test_external_data_comes_into_the_one_file(tmp_path: Path) -> None:
    file = tmp_path / "big" / "m.onnx"
    file.parent.mkdir()
    onnx.save(conv_model(), file, save_as_external_data=True, location="m.data", size_threshold=0)
    build = built(tmp_path, file)
    assert build.error is None
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["artifact.json", "model.onnx"]
    bound_inference(tmp_path / "b", seed=1)()


@pytest.mark.parametrize(
    ("content", "said"), [(b"nonsense", "not a valid ONNX model"), (None, "is missing")]
)
def test_what_cannot_be_run_is_an_error_and_leaves_no_artifact(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "m.onnx"
    if content is not None:
        file.write_bytes(content)
    build = built(tmp_path, file)
    assert said in (build.error or "")
    assert not (tmp_path / "b").exists()


def test_the_model_is_tried_on_inputs_of_the_runs_seed(tmp_path: Path) -> None:
    which = ModelJob(file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TARGET)
    job = BuildJob(model=which, records={}, sources={}, directory=tmp_path)
    assert (
        len({SavingBuilder(ONNX_RUNTIME, tmp_path, seed=n)._request(job).seeds for n in (1, 1, 2)})
        == 2
    )


def test_what_calibrates_and_what_tells_the_error_is_the_same_in_each_run(tmp_path: Path) -> None:
    """A candidate near its budget would pass in one run and fail in the next."""
    which = ModelJob(file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TARGET)
    job = BuildJob(
        model=which,
        records={},
        sources={},
        directory=tmp_path,
        settings={"precision": "int8", "quantization": "static"},
        samples=3,
    )
    one, other = (SavingBuilder(ONNX_RUNTIME, tmp_path, seed=n)._request(job) for n in (1, 2))
    assert (one.samples, one.calibration) == (other.samples, other.calibration)
    assert len({*one.samples, *one.calibration}) == 3 + MAX_INPUTS


@pytest.mark.parametrize(
    ("target", "device"),
    [(TARGET, "cpu"), (TargetConfig(name="gpu", kind="cuda", arch="sm_90"), "cuda")],
)
def test_a_build_is_for_the_device_of_its_target(
    tmp_path: Path, target: TargetConfig, device: str
) -> None:
    which = ModelJob(file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=target)
    job = BuildJob(model=which, records={}, sources={}, directory=tmp_path)
    assert SavingBuilder(ONNX_RUNTIME, tmp_path, seed=1)._request(job).device == device


def test_given_values_reach_what_calibrates(tmp_path: Path) -> None:
    which = ModelJob(
        file=save(matmul_model(), tmp_path / "m.onnx"),
        path="m",
        shapes={},
        target=TARGET,
        inputs=KnownInputs(given={"x": InputRule(Uniform(0.0, 1.0))}),
    )
    job = BuildJob(
        model=which,
        records={},
        sources={},
        directory=tmp_path / "b",
        settings={"precision": "int8", "quantization": "static"},
        samples=3,
    )
    (build,) = reference_builder(tmp_path / "scratch", 1).build([job])
    assert build.error is None
    assert build.sampled is not None
    assert all(0 < error < 0.1 for error in build.sampled.relative)


def test_a_build_in_other_numbers_is_run_on_samples_in_place_of_the_check(tmp_path: Path) -> None:
    job = BuildJob(
        model=ModelJob(
            file=save(matmul_model(), tmp_path / "m.onnx"), path="m", shapes={}, target=TARGET
        ),
        records={},
        sources={},
        directory=tmp_path / "b",
        settings={"precision": "int8"},
        samples=3,
    )
    (build,) = reference_builder(tmp_path / "scratch", 1).build([job])
    assert build.error is None
    assert build.check is None
    assert build.sampled is not None
    assert len(build.sampled.relative) == 3
    assert all(0 < error < 0.1 for error in build.sampled.relative)


# What the child answers whose runtime saves a model, whatever the runtime does.

SAME = WHOLE.format(name="fast")


class Child:
    """Asked for a model that gives back what it gets, for a runtime with this source."""

    def __init__(self, root: Path, packages: RuntimePackages) -> None:
        self._packages = packages
        self.artifact = root / "artifact"
        self.request = WriteArtifact(
            runtime="fast",
            variant="",
            settings={},
            is_reference=False,
            file=str(save(one_node_model("Identity"), root / "m.onnx")),
            path="models/m.onnx",
            shapes={},
            threads=1,
            directory=str(self.artifact),
            scratch=str(root / "scratch"),
            seeds=(1, 2),
        )

    def written(self, source: str = SAME, **changes: object) -> WrittenBuild:
        reply = self.reply(source, **changes)
        assert isinstance(reply, WrittenBuild), reply
        return reply

    def refused(self, source: str) -> str:
        reply = self.reply(source)
        assert isinstance(reply, Refused)
        return reply.reason

    def reply(self, source: str, **changes: object) -> WrittenBuild | Refused:
        self._packages.install("fast", source)
        return handle_request(msgspec.structs.replace(self.request, **changes))


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    return Child(tmp_path, RuntimePackages(tmp_path / "site", monkeypatch))


def test_what_computes_the_same_is_written_and_described(child: Child) -> None:
    written = child.written(settings={"precision": "exact"}, variant="exact")
    assert written.check is not None
    assert written.check.passed
    assert written.size_bytes == len(b"model")
    artifact = ArtifactFile.read(child.artifact)
    assert (artifact.runtime, artifact.variant) == ("fast", "exact")
    assert artifact.settings == {"precision": "exact"}
    assert (artifact.file, artifact.key) == ("model.bin", written.key)
    assert [tensor.name for tensor in artifact.outputs] == ["y"]


def test_an_artifact_says_on_which_device_it_runs(child: Child) -> None:
    on_cpu = child.written()
    assert ArtifactFile.read(child.artifact).device == "cpu"
    on_gpu = child.written(device="cuda")
    assert ArtifactFile.read(child.artifact).device == "cuda"
    assert on_gpu.key != on_cpu.key


def test_what_computes_other_numbers_does_not_pass(child: Child) -> None:
    written = child.written(SAME.replace('[feed["x"]]', '[feed["x"] * 1.01]'))
    assert written.check is not None
    assert not written.check.passed
    assert written.check.detail.startswith("output y is off by")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('return "model.bin"', 'raise ValueError("no Identity")', "cannot run the model (no Ident"),
        ("return Loaded()", "raise OSError()", "Example cannot run the model (OSError)"),
        ('return [feed["x"]]', "raise KeyError(1)", "Example does not run it on the inputs that"),
        ('return [feed["x"]]', "return []", "Example cannot run the model (zip() argument"),
        ("def versions(self): return {}", "def versions(self): return 1", "cannot run the model"),
        ("RUNTIME =", "raise OSError(1) #", "cannot be loaded (OSError: 1)"),
    ],
)
def test_whatever_a_runtime_raises_refuses_this_model(
    child: Child, before: str, after: str, said: str
) -> None:
    assert said in child.refused(SAME.replace(before, after))


def test_the_key_is_of_the_files_the_versions_the_threads_and_the_settings(child: Child) -> None:
    first = child.written().key
    assert child.written().key == first
    assert child.written(threads=2).key != first
    assert child.written(settings={"precision": "half"}).key != first
    assert child.written(SAME.replace("return {}", 'return {"fast": "2"}')).key != first
    assert child.written(SAME.replace('b"model"', 'b"other"')).key != first

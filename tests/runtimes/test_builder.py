import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.measured_cells import make_job, make_model
from tests.support.models.external_data import lay_out
from tests.support.models.unusual import (
    BRANCHES,
    LOOP,
    LSTM_IN_BRANCH,
    QUANTIZED,
    SEQUENCE,
    map_model,
    model,
    text_model,
)
from tests.support.present import present
from tests.support.programs import run_program
from tests.support.runtime_packages import WHOLE, RuntimePackages
from tests.support.simulated.small_disk import mounted_disk
from tests.support.small_onnx import (
    conv_model,
    matmul_model,
    model_of,
    one_node_model,
    part_of,
    save,
    typed,
)
from tunegate.artifacts.builds import Build
from tunegate.artifacts.inputs import Files, InputRule, Integers, KnownInputs, Uniform
from tunegate.cli.unexpected import as_full_disk
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.models.inputs import drawn_inputs
from tunegate.models.reference.onnx_runtime import onnxruntime
from tunegate.models.seeded_inputs import MAX_CALIBRATION_INPUTS
from tunegate.ports import Shapes
from tunegate.runtimes import builder, requirements
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.builder import (
    Refused,
    SavingBuilder,
    WriteArtifact,
    WrittenBuild,
    reference_builder,
)
from tunegate.runtimes.loading import bound_inferences, load, operators_ms, titled_artifact
from tunegate.runtimes.onnxruntime.runtime import RUNTIME as ONNX_RUNTIME
from tunegate.runtimes.requirements import require_installed
from tunegate.runtimes.runtime import Inference, Step
from tunegate.runtimes.tvm import health
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

TARGET = TargetConfig(name="cpu", threads=1, runtime="onnxruntime")
STATIC = {"precision": "int8", "quantization": "static"}
NO_VALUES = KnownInputs()


def built(
    tmp_path: Path,
    model: onnx.ModelProto | Path,
    shapes: Shapes | None = None,
    name: str = "b",
    seed: int = 1,
    known: KnownInputs = NO_VALUES,
    **asked: object,
) -> Build:
    file = model if isinstance(model, Path) else save(model, tmp_path / f"{name}.onnx")
    which = make_model(file, path="models/m.onnx", shapes=shapes or {}, target=TARGET, inputs=known)
    job = make_job(which, tmp_path / name, **asked)
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
    out = cast("list[np.ndarray[Any, Any]]", bound_inferences(tmp_path / "b", seed=1)[0]())[0]
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
    assert built(tmp_path, proto, shapes).error is None
    found = ArtifactFile.read(tmp_path / "b").outputs
    assert [(tensor.shape, tensor.dtype) for tensor in found] == outputs


def test_weights_decide_the_key_and_nothing_else_of_the_file_does(tmp_path: Path) -> None:
    proto = conv_model()
    first = built(tmp_path, proto, name="b1")
    again = built(tmp_path, proto, name="b2", seed=2)
    weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]) * 2
    name = proto.graph.initializer[0].name
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, name))
    other = built(tmp_path, proto, name="b3")
    assert first.key == again.key != other.key


def test_data_of_a_branch_come_into_the_one_file(tmp_path: Path) -> None:
    made = {"made": [2]}
    weight = lay_out(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2]), "w.bin")
    add = helper.make_node("Add", ["x", "w"], ["made"])
    same = helper.make_node("Identity", ["x"], ["made"])
    choice = helper.make_node(
        "If",
        ["c"],
        ["y"],
        then_branch=part_of([add], {}, made, [weight]),
        else_branch=part_of([same], {}, made),
    )
    model = model_of([choice], {"x": [2], "c": typed(TensorProto.BOOL, [])}, {"y": [2]})
    file = save(model, tmp_path / "big/m.onnx")
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
    assert built(tmp_path, file).error is None
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["artifact.json", "model.onnx"]
    bound_inferences(tmp_path / "b", seed=1)[0]()


@pytest.mark.parametrize(
    ("content", "said"), [(b"nonsense", "not a valid ONNX model"), (None, "is missing")]
)
def test_what_cannot_be_run_is_an_error_and_leaves_no_artifact(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "m.onnx"
    if content is not None:
        file.write_bytes(content)
    assert said in (built(tmp_path, file).error or "")
    assert not (tmp_path / "b").exists()


def test_the_model_is_tried_on_inputs_of_the_runs_seed(tmp_path: Path) -> None:
    job = make_job(make_model(tmp_path / "m.onnx", target=TARGET), tmp_path)
    one, again, other = (
        SavingBuilder(ONNX_RUNTIME, tmp_path, seed=n)._request(job).seeds for n in (1, 1, 2)
    )
    assert one == again != other


def test_what_calibrates_and_what_tells_the_error_is_the_same_in_each_run(tmp_path: Path) -> None:
    """A candidate near its budget would pass in one run and fail in the next."""
    which = make_model(tmp_path / "m.onnx", target=TARGET)
    job = make_job(which, tmp_path, settings=STATIC, samples=3)
    one, other = (SavingBuilder(ONNX_RUNTIME, tmp_path, seed=n)._request(job) for n in (1, 2))
    assert (one.samples, one.calibration) == (other.samples, other.calibration)
    assert len({*one.samples, *one.calibration}) == 3 + MAX_CALIBRATION_INPUTS


@pytest.mark.parametrize(
    ("target", "device"),
    [(TARGET, "cpu"), (TargetConfig(name="gpu", kind="cuda", arch="sm_90"), "cuda")],
)
def test_a_build_is_for_the_device_of_its_target(
    tmp_path: Path, target: TargetConfig, device: str
) -> None:
    job = make_job(make_model(tmp_path / "m.onnx", target=target), tmp_path)
    assert SavingBuilder(ONNX_RUNTIME, tmp_path, seed=1)._request(job).device == device


def test_given_values_reach_what_calibrates(tmp_path: Path) -> None:
    known = KnownInputs(given={"x": InputRule(Uniform(0.0, 1.0))})
    build = built(tmp_path, matmul_model(), known=known, settings=STATIC, samples=3)
    assert build.error is None
    assert all(0 < error < 0.1 for error in present(build.sampled).relative)


def test_a_build_in_other_numbers_is_run_on_samples_in_place_of_the_check(tmp_path: Path) -> None:
    build = built(tmp_path, matmul_model(), settings={"precision": "int8"}, samples=3)
    assert (build.error, build.check) == (None, None)
    errors = present(build.sampled).relative
    assert len(errors) == 3
    assert all(0 < error < 0.1 for error in errors)


def test_what_is_built_and_what_it_is_compared_with_are_opened_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, open_session = [], onnxruntime.InferenceSession

    def counted(model: str, *given: Any, **more: Any) -> Any:
        opened.append(Path(model).name)
        return open_session(model, *given, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", counted)
    file = save(matmul_model(rows=4), tmp_path / "m.onnx")
    job = make_job(make_model(file, path="m.onnx", target=TARGET), tmp_path / "b")
    handle_request(SavingBuilder(ONNX_RUNTIME, tmp_path / "one", seed=1)._request(job))
    assert opened == ["m.onnx", "model.onnx"]


@pytest.mark.parametrize("seed", [{"seed": 7.0}, {}])
def test_numbers_from_a_generator_are_compared_from_its_beginning(
    tmp_path: Path, seed: dict[str, Any]
) -> None:
    """They go on with each inference of a session. In one process a generator without a seed has
    the same one in each session."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"], **seed),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    build = built(tmp_path, model_of(nodes, {"x": [2, 3]}, {"y": [2, 3]}))
    assert (build.error, build.notes) == (None, ())


NOISE = helper.make_node("RandomNormalLike", ["x"], ["r"], seed=3.0)


@pytest.mark.parametrize(
    "noisy",
    [
        [NOISE, helper.make_node("Add", ["x", "r"], ["t"])],
        [helper.make_node("Dropout", ["x", "half", "training"], ["t"], seed=3)],
    ],
    ids=["generator", "dropout"],
)
def test_a_generator_in_a_branch_that_few_inputs_take_makes_no_error(
    noisy: list[onnx.NodeProto], tmp_path: Path
) -> None:
    """A first inference, on other inputs, may have drawn from it already."""
    shape = [4, 8]
    plain = [helper.make_node("Identity", ["x"], ["e"])]
    branches = {
        "then_branch": model_of(noisy, {}, {"t": shape}).graph,
        "else_branch": model_of(plain, {}, {"e": shape}).graph,
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "zero"], ["is_below"]),
        helper.make_node("If", ["is_below"], ["y"], **branches),
    ]
    weights = {"zero": np.float32(0), "half": np.float32(0.5), "training": np.bool_(True)}
    model = model_of(nodes, {"x": shape}, {"y": shape}, weights=weights)
    file = save(model, tmp_path / "m.onnx")
    for seed in range(12):
        job = make_job(make_model(file, path="m.onnx", target=TARGET), tmp_path / f"b{seed}")
        request = SavingBuilder(ONNX_RUNTIME, tmp_path / f"s{seed}", seed=seed)._request(job)
        reply = handle_request(msgspec.structs.replace(request, is_reference=False))
        assert isinstance(reply, WrittenBuild)
        assert present(reply.check).passed


def test_a_model_is_not_to_blame_for_a_disk_that_is_full_when_it_is_built(tmp_path: Path) -> None:
    file = save(conv_model(channels=64, out=64), tmp_path / "m.onnx")
    with mounted_disk(tmp_path / "small") as place:
        job = make_job(make_model(file, path="m.onnx", target=TARGET), place / "b")
        with pytest.raises(EnvironmentUnfitError) as caught:
            SavingBuilder(ONNX_RUNTIME, tmp_path / "scratch", seed=1).build([job])
    assert str(as_full_disk(caught.value, [])).startswith(f"a disk is full, that of {place}")


def test_a_model_without_an_end_is_told_as_too_slow_and_tried_by_no_other_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save(model(LOOP.replace("{5}", f"{{{2**62}}}")), tmp_path / "m.onnx")
    job = make_job(make_model(file, path="m.onnx", target=TARGET), tmp_path / "b")
    monkeypatch.setattr(drawn_inputs, "BUILT_SECONDS", 0.2)
    reply = handle_request(SavingBuilder(ONNX_RUNTIME, tmp_path / "one", seed=1)._request(job))
    said = "m.onnx: it takes longer than 0 s an inference."
    assert reply == Refused(said, is_too_slow=True)
    slow = {builder._place(job): said}
    other = SavingBuilder(ONNX_RUNTIME, tmp_path / "two", seed=1, too_slow=slow)
    (build,) = other.build([job])
    assert (build.error, (tmp_path / "two/builder.log").exists()) == (said, False)


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
    assert present(written.check).passed
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


def test_a_build_that_is_wrong_once_does_not_pass_when_it_is_opened_anew(child: Child) -> None:
    counted = SAME.replace("class Loaded:\n", "class Loaded:\n    opened = 0\n")
    counted = counted.replace("return Loaded()", "Loaded.opened += 1; return Loaded()")
    wrong = counted.replace('[feed["x"]]', '[feed["x"] * (1.01 if Loaded.opened == 1 else 1)]')
    assert not present(child.written(wrong).check).passed


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


# An artifact is loaded and run.


def outputs(run: Inference) -> list[Any]:
    return cast("list[Any]", run())


def identity(into: Path, kind: int = TensorProto.FLOAT, runtime: str = "onnxruntime") -> Path:
    """An artifact that gives back what it gets."""
    node = helper.make_node("Identity", ["x"], ["y"], name="same")
    value = typed(kind, [2, 3])
    onnx.save(model_of([node], {"x": value}, {"y": value}), into / "model.onnx")
    dtype = str(helper.tensor_dtype_to_np_dtype(kind))
    ArtifactFile(
        runtime=runtime,
        file="model.onnx",
        inputs=(ArtifactTensor("x", (2, 3), dtype),),
        outputs=(ArtifactTensor("y", (2, 3), dtype),),
        threads=1,
    ).write(into)
    return into


@pytest.mark.parametrize(
    "kind",
    [
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.BOOL,
    ],
    ids=TensorProto.DataType.Name,
)
def test_inputs_of_every_usual_type_are_made_up(tmp_path: Path, kind: int) -> None:
    (made,) = outputs(bound_inferences(identity(tmp_path, kind), seed=1)[0])
    assert made.dtype == helper.tensor_dtype_to_np_dtype(kind)
    assert made.shape == (2, 3)


def test_the_rules_of_both_sides_take_the_place_of_the_artifacts_own(tmp_path: Path) -> None:
    artifact = identity(tmp_path, TensorProto.INT64)
    inputs = (ArtifactTensor("x", (2, 3), "int64", InputRule(Integers(7, 7))),)
    (made,) = outputs(bound_inferences(artifact, 1, inputs)[0])
    assert {*made.ravel().tolist()} == {7}


def test_the_case_that_is_asked_for_is_run(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.npy") for number in range(3)]
    for number, file in enumerate(files):
        np.save(file, np.full((2, 3), number, np.float32))
    inputs = (ArtifactTensor("x", (2, 3), "float32", InputRule(Files(tuple(files), ("",) * 3))),)
    artifact = identity(tmp_path)
    made = [outputs(bound_inferences(artifact, 1, inputs, case)[0])[0].max() for case in range(4)]
    assert made == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("shape", "device", "values", "count"),
    [
        ((2, 3), "cpu", None, 64),
        ((64, 64), "cpu", None, 7),
        ((512, 512), "cpu", None, 1),
        ((2, 3), "cuda", None, 1),
        ((2, 3), "cpu", "given", 1),
    ],
)
def test_small_inputs_are_many_unless_they_are_given_or_on_a_device(
    tmp_path: Path, shape: tuple[int, int], device: str, values: str | None, count: int
) -> None:
    artifact = identity(tmp_path)
    made = ArtifactFile.read(artifact)
    tensor = ArtifactTensor("y", shape, "float32")
    msgspec.structs.replace(made, device=device, outputs=(tensor,)).write(artifact)
    np.save(tmp_path / "given.npy", np.ones((2, 3), np.float32))
    rule = InputRule(Files((str(tmp_path / f"{values}.npy"),), ("",))) if values else None
    runs = bound_inferences(artifact, 1, (ArtifactTensor("x", (2, 3), "float32", rule),))
    assert len({outputs(run)[0].tobytes() for run in runs}) == len(runs) == count


def test_the_seed_decides_the_inputs(tmp_path: Path) -> None:
    artifact = identity(tmp_path)
    first, again, other = (outputs(bound_inferences(artifact, seed)[0])[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_an_artifact_gives_its_models_outputs_and_times_of_operators(tmp_path: Path) -> None:
    artifact = identity(tmp_path)
    feed = {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
    (output,) = load(str(artifact)).run(feed)
    assert output.tolist() == feed["x"]
    assert list(operators_ms(artifact, 2, seed=1)) == ["same"]


def test_an_artifact_of_a_runtime_that_is_not_installed_is_told_as_that(tmp_path: Path) -> None:
    artifact = identity(tmp_path, runtime="absent")
    with pytest.raises(
        ConfigError, match=r"absent is not installed\. Installed: .*onnxruntime, .*tvm"
    ):
        bound_inferences(artifact, seed=1)[0]
    with pytest.raises(ConfigError, match="absent"):
        titled_artifact(artifact)


def test_a_launch_under_onnxruntime_starts_without_what_is_slow_to_import(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import tunegate.runtimes.bench_worker;"
        "from tunegate.runtimes.loading import bound_inferences;"
        "bound_inferences(Path(sys.argv[1]), 1)[0](); print(*sys.modules)"
    )
    done = run_program([sys.executable, "-c", program, str(identity(tmp_path))], check=True)
    slow = {"onnx", "scipy", "tvm", "tvm_ffi", "boto3", "git", "importlib.metadata", "tunegate.ci"}
    assert not slow & set(done.stdout.split())


CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
UNCOMPILED = TargetConfig(name="plain", runtime="onnxruntime")
STEPS: tuple[Step, ...] = ("plan", "tune", "gate", "run")


def config(*targets: TargetConfig, ray: bool = False) -> Config:
    return Config(
        models=(ModelConfig(path="*.onnx"),), targets=targets, executor="ray" if ray else "local"
    )


def missing(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    monkeypatch.setattr(
        health, "find_spec", lambda name: None if name in modules else find_spec(name)
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("module", ["tvm", "tvm_ffi", "xgboost"])
def test_without_the_compiler_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, step: Step, module: str
) -> None:
    missing(monkeypatch, module)
    with pytest.raises(ConfigError, match=f"runtime: auto, and the module {module} is") as caught:
        require_installed(config(UNCOMPILED, CPU), step)
    assert "python -m pip install 'tunegate[tvm]', or write runtime: onnxruntime." in str(
        caught.value
    )
    require_installed(config(UNCOMPILED), step)
    require_installed(config(UNCOMPILED, CPU), step, {"plain"})


@pytest.mark.parametrize("distribution", health.PINNED)
def test_another_version_of_the_compiler_is_refused(
    monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    monkeypatch.setitem(health.PINNED, distribution, "9.9")
    with pytest.raises(ConfigError, match=rf"{distribution} is .*, and only 9\.9 works"):
        require_installed(config(CPU), "plan")


def test_without_a_linker_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    require_installed(config(CPU), "plan")
    require_installed(config(UNCOMPILED), "gate")
    with pytest.raises(EnvironmentUnfitError, match=r"none of g\+\+, gcc.* to link with"):
        require_installed(config(CPU), "gate")


def test_a_gpu_needs_its_management_library_and_a_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    missing(monkeypatch, "pynvml")
    require_installed(config(GPU), "plan")
    with pytest.raises(ConfigError, match=r"kind: cuda, and pynvml .*tunegate\[nvidia\]"):
        require_installed(config(GPU), "tune")
    missing(monkeypatch)
    monkeypatch.setattr(health, "cuda_variables", dict)
    with pytest.raises(ConfigError, match=r"no CUDA toolkit .*tunegate\[nvidia\]"):
        require_installed(config(GPU), "run")


@pytest.mark.parametrize("step", ["tune", "run"])
def test_a_cluster_needs_its_extra(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    require_installed(config(CPU, ray=True), step)
    monkeypatch.setattr(requirements, "plugin_named", lambda group, name: None)
    require_installed(config(CPU, ray=True), "gate")
    with pytest.raises(ConfigError, match=r"executor ray is not installed\. .*tunegate\[ray\]"):
        require_installed(config(CPU, ray=True), step)


def test_a_runtime_that_runs_nothing_on_a_target_is_refused_there() -> None:
    gpu = msgspec.structs.replace(GPU, runtime="onnxruntime")
    with pytest.raises(ConfigError, match=r"target gpu: runtime onnxruntime is for CPUs\. Write"):
        require_installed(config(gpu), "plan")

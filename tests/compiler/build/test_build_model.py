"""A schedule proves itself inside the model, or goes."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
import tvm_ffi
from onnx import TensorProto, helper, numpy_helper
from tvm import relax, te
from tvm.relax import TensorType

from tests.compiler.importing.fused_module import imported
from tests.support.prepared_models import prepared_model
from tests.support.small_onnx import chain_model, conv_model, model_of, one_node_model, save, typed
from tests.support.tuning_records import make_record
from tests.support.worker_requests import build_request
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.compiler import compile as compiling
from tunegate.compiler import loader, runtime
from tunegate.compiler.build import build_model
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.build.single_kernel import built_kernel, sample, sample_inputs
from tunegate.compiler.compile import handle_request
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import WatchedKernels, is_faster_whole, slower_in_model
from tunegate.compiler.opening import KernelObjects, OpenModel, import_in_layout, open_model
from tunegate.compiler.runtime import machine_of
from tunegate.compiler.schedules import default_schedule
from tunegate.compiler.schedules.schedule_choice import record_id
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.targets import ResolvedTarget, tvm_target
from tunegate.compiler.versions import toolchain
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.reference.session import ReferenceSession
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.tune.compiler_protocol import Built
from tunegate.tune.protocol import Schedule, TensorArgument
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import DeviceFingerprint, TuningRecord, WorkloadKey

TARGET = TargetConfig(name="cpu", threads=1)
DEVICE = DeviceFingerprint(name="here", kind="cpu", units=1, memory_bytes=1)
load_intrinsics("llvm")


class Workshop:
    """A convolution, a schedule for it, and builds with and without."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.model = save(conv_model(channels=32, out=64, size=28), directory / "m.onnx")
        self.target: ResolvedTarget = tvm_target(TARGET)
        prepared = prepare(self.model, shapes={}, into=directory / "p", path="m.onnx")
        module = import_in_layout(prepared, self.target.target, "m.onnx", ("nhwc",))
        self.function: ModelFunction = next(f for f in functions_of(module) if "conv" in f.operator)

    def record(self) -> TuningRecord:
        return self.records(1)[0]

    def records(self, count: int, workload: str = "") -> list[TuningRecord]:
        """Records of this very task, or of another one."""
        space = DesignSpace(self.function.workload, self.target.target)
        sampled = [space.describe(s.trace) for s in space.sample(count, random.Random(1))]
        return [self._record(schedule, workload) for schedule in sampled if schedule is not None]

    def _record(self, schedule: Schedule, workload: str) -> TuningRecord:
        return make_record(
            key=WorkloadKey(workload or self.function.workload.digest, self.target.key),
            shape=self.function.workload.shape,
            template=schedule.template,
            decisions=schedule.decisions,
            toolchain=toolchain(),
        )

    def build(
        self,
        name: str,
        *records: TuningRecord,
        source: ScheduleSource = "exact",
        how: HowBuilt | None = None,
    ) -> Built:
        digest = self.function.workload.digest
        scratch = self.directory / f"{name}-scratch"
        scratch.mkdir()
        built = handle_request(
            build_request(
                self.model,
                scratch,
                records={digest: records},
                sources={digest: source},
                directory=str(self.directory / name),
                scratch=str(scratch),
                how=how,
            )
        )
        assert isinstance(built, Built)
        return built


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("build"))


@pytest.fixture
def _reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets what earlier tests found out about its schedules."""
    monkeypatch.setattr(compiling, "_open_model", None)


@pytest.fixture
def naive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops as they are written take tens of times as long as any schedule."""
    for each in ("with_default_schedule", "with_packing_schedules"):
        monkeypatch.setattr(default_schedule, each, lambda module, *_: module)


def all_slower(*_: object, kernels: set[str], **__: object) -> frozenset[str]:
    return frozenset(kernels)


def source_of(built: Built) -> str:
    return next(f.source for f in built.functions if "conv" in f.function)


@pytest.mark.usefixtures("_reopened", "naive")
def test_the_kernel_that_is_slower_inside_the_model_is_named(workshop: Workshop) -> None:
    workshop.build("plain")
    workshop.build("scheduled", workshop.record())
    libraries = [workshop.directory / name / "model.so" for name in ("plain", "scheduled")]
    inputs = ArtifactFile.read(workshop.directory / "plain").inputs
    names = {workshop.function.name}

    def slower(one: Path, other: Path) -> frozenset[str]:
        return slower_in_model(one, other, inputs=inputs, kernels=names, kind="llvm", seed=1)

    assert slower(*libraries) == names
    assert slower(*reversed(libraries)) == frozenset()


@pytest.mark.usefixtures("_reopened", "naive")
@pytest.mark.parametrize("source", ["claimed", "prior"])
def test_a_schedule_that_nobody_measured_and_is_faster_stays(
    workshop: Workshop, source: ScheduleSource
) -> None:
    built = workshop.build(f"kept-{source}", workshop.record(), source=source)
    assert built.dropped == ()
    assert source_of(built) == source


@pytest.mark.usefixtures("_reopened", "naive")
def test_the_likeliest_neighbour_is_built_with_and_not_the_nearest(workshop: Workshop) -> None:
    """A wide innermost loop over channels is what other operators were fastest with."""
    offered = sorted(workshop.records(12, workload="a neighbour's"), key=lanes)
    built = workshop.build("likeliest", *offered, source="transfer")
    (kernel,) = [f for f in built.functions if "conv" in f.function]
    assert not kernel.verified
    narrow = {record_id(kernel.key, record) for record in offered if lanes(record) < 8}
    assert record_id(kernel.key, offered[0]) in narrow
    assert kernel.rid not in narrow


def lanes(record: TuningRecord) -> int:
    _, _, _, channels, *_ = (values for _, values in record.decisions)
    return channels[-1]


@pytest.mark.usefixtures("_reopened", "naive")
def test_an_unmeasured_claim_is_not_verified_and_has_no_time(workshop: Workshop) -> None:
    sources: dict[ScheduleSource, bool] = {"claimed": False, "own-zone": True}
    for source, is_verified in sources.items():
        built = workshop.build(source, workshop.record(), source=source)
        (kernel,) = [f for f in built.functions if "conv" in f.function]
        assert (kernel.source, kernel.verified) == (source, is_verified)
        assert (kernel.ms is not None) == is_verified


@pytest.mark.usefixtures("_reopened")
@pytest.mark.parametrize("source", ["transfer", "prior", "search"])
def test_a_schedule_that_is_slower_in_the_model_is_dropped_and_named(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, source: ScheduleSource
) -> None:
    monkeypatch.setattr(build_model, "slower_in_model", all_slower)
    monkeypatch.setattr(build_model, "is_faster_whole", lambda *_, **__: False)
    built = workshop.build(f"dropped-{source}", workshop.record(), source=source)
    assert built.dropped == ("conv",)
    assert source_of(built) == "default"
    assert built.key == workshop.build(f"plain-beside-{source}").key


@pytest.mark.usefixtures("_reopened", "naive")
def test_the_priors_picks_are_the_same_in_every_build_and_not_verified(workshop: Workshop) -> None:
    one, other = (workshop.build(f"picked-{n}", source="prior") for n in (1, 2))
    (kernel,) = [f for f in one.functions if "conv" in f.function]
    assert (kernel.source, kernel.verified, kernel.ms) == ("prior", False, None)
    assert kernel.rid
    assert one.key == other.key


@pytest.mark.usefixtures("_reopened")
def test_what_makes_the_model_ten_times_as_slow_is_run_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here whatever takes time at all is too slow."""
    monkeypatch.setattr(loader, "_FAR_SLOWER", 0.0)
    for name in ("one", "two"):
        workshop.build(name)
    libraries = [workshop.directory / name / "model.so" for name in ("one", "two")]
    runs: list[Any] = []
    run = loader._Watched.run

    def counted(watched: Any, given: list[Any]) -> None:
        runs.append(watched)
        run(watched, given)

    monkeypatch.setattr(loader._Watched, "run", counted)
    inputs = ArtifactFile.read(workshop.directory / "one").inputs
    slower_in_model(*libraries, inputs=inputs, kernels=(), kind="llvm", seed=1)
    assert len(runs) == len(libraries)


@pytest.mark.usefixtures("_reopened")
def test_a_kernel_that_only_a_neighbour_on_the_machine_slows_down_stays(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is slower in most inferences, and as fast in the best one."""
    libraries = [workshop.directory / name / "model.so" for name in ("quiet", "beside")]
    for library in libraries:
        workshop.build(library.parent.name)
    monkeypatch.setattr(loader, "_MOST_ROUNDS", 5)
    disturbed = iter([9.0, 9.0, 2.0, 9.0, 9.0])
    monkeypatch.setattr(runtime, "machine_of", lambda library, _: Disturbed(library))

    def run(watched: Any, _: list[Any]) -> None:
        is_ours = watched._machine.library == libraries[0]
        watched._runs.append({"conv": next(disturbed) if is_ours else 2.0})

    monkeypatch.setattr(loader._Watched, "run", run)
    inputs = ArtifactFile.read(workshop.directory / "quiet").inputs
    found = slower_in_model(*libraries, inputs=inputs, kernels={"conv"}, kind="llvm", seed=1)
    assert found == frozenset()


class Disturbed:
    """A machine that runs nothing."""

    def __init__(self, library: Path) -> None:
        self.library = library

    def set_instrument(self, _: object) -> None:
        pass


@pytest.mark.usefixtures("_reopened")
def test_what_an_earlier_build_has_decided_is_not_put_to_the_test(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_model, "slower_in_model", lambda *_, **__: frozenset())
    kept = workshop.build("kept", workshop.record(), source="search")
    monkeypatch.setattr(build_model, "slower_in_model", lambda *_, **__: pytest.fail("asked"))
    again = workshop.build("again", workshop.record(), source="search", how=kept.how)
    assert source_of(again) == "search"
    assert again.how == kept.how
    dropped = workshop.build("without", workshop.record(), source="search", how=HowBuilt())
    assert source_of(dropped) == "default"


IMAGE, WEIGHTS = TensorArgument((1, 3, 8, 8), "float32"), TensorArgument((4, 3, 3, 3), "float32")


def test_the_inputs_of_a_task_are_made_once_and_those_of_the_next_take_their_place() -> None:
    first = sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1)
    assert sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1) is first
    other = sample_inputs((WEIGHTS,), tvm.cpu(), 1)
    again = sample_inputs((IMAGE, WEIGHTS), tvm.cpu(), 1)
    assert again is not first
    assert [t.shape for t in other] == [WEIGHTS.shape]
    assert all(
        np.array_equal(a.numpy(), b.numpy()) for a, b in zip(first, again, strict=True)
    )  # another worker, too, has these values


def test_the_seed_and_the_place_decide_the_values() -> None:
    first, second = (t.numpy() for t in sample_inputs((IMAGE, IMAGE), tvm.cpu(), 1))
    (other, _) = (t.numpy() for t in sample_inputs((IMAGE, IMAGE), tvm.cpu(), 2))
    assert not (first == second).any()
    assert not (first == other).any()


def test_values_are_spread_between_minus_one_and_one() -> None:
    for dtype in ("float32", "float16", "float64"):
        values = sample(TensorArgument((1000,), dtype), tvm.cpu(), 1).numpy()
        assert values.dtype == dtype
        assert -1 <= values.min() < -0.9
        assert 0.9 < values.max() <= 1
        assert abs(float(values.mean())) < 0.1


def test_integers_are_zero_because_they_may_be_indices() -> None:
    assert sample(TensorArgument((5,), "int64"), tvm.cpu(), 1).numpy().tolist() == [0] * 5


# A function is built by itself and takes the arguments of its workload.


def test_a_kernel_computes_into_its_last_argument() -> None:
    x = te.placeholder((4, 8), name="x")
    main = te.create_prim_func([x, te.compute((4, 8), lambda i, j: x[i, j] + 1.0)])
    kernel = built_kernel(tvm.IRModule({"main": main}), ONE_THREAD)
    value = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")
    given = [tvm.runtime.tensor(value), tvm.runtime.tensor(np.zeros_like(value))]
    kernel.function["main"](*kernel.arguments(given))
    np.testing.assert_allclose(given[-1].numpy(), value + 1)


# What is slower kernel by kernel is dropped where the model as a whole is no faster with it.


@pytest.mark.usefixtures("_reopened")
def test_a_kernel_that_is_slower_by_itself_stays_where_the_model_is_faster_with_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build in another precision keeps it, too."""
    monkeypatch.setattr(build_model, "slower_in_model", all_slower)
    monkeypatch.setattr(build_model, "is_faster_whole", lambda *_, **__: True)
    for name in ("whole", "whole-again"):
        built = workshop.build(name, workshop.record(), source="search")
        assert (built.dropped, source_of(built)) == ((), "search")
        assert ArtifactFile.read(workshop.directory / name).key == built.key


@pytest.mark.usefixtures("_reopened", "naive")
def test_of_two_builds_the_faster_one_is_told(workshop: Workshop) -> None:
    workshop.build("slow")
    workshop.build("fast", workshop.record())
    fast, plain = (workshop.directory / name / "model.so" for name in ("fast", "slow"))
    inputs = ArtifactFile.read(plain.parent).inputs

    def is_faster(one: Path, other: Path) -> bool:
        return is_faster_whole(one, other, inputs=inputs, seed=1)

    assert is_faster(fast, plain)
    assert not is_faster(plain, fast)


# A kernel is compiled once, and a library of such kernels computes what TVM's own does.

ONE_THREAD: Any = tvm_target(TARGET).target
OTHER: Any = tvm_target(TargetConfig(name="cpu", threads=1, cpu="haswell")).target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return imported(chain_model(layers=2, width=16), tmp_path_factory.mktemp("model"), ONE_THREAD)


def outputs(executable: Any, files: Any, place: Path) -> Any:
    executable.export_library(str(place), addons=[str(file) for file in files])
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(place)), tvm.cpu())
    given = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
    return machine["main"](tvm.runtime.tensor(given)).numpy()


def test_a_library_of_kernels_computes_what_the_whole_does_and_compiles_each_once(
    module: Any, tmp_path: Path
) -> None:
    with ONE_THREAD, tvm.transform.PassContext(opt_level=3):
        whole = relax.build(module, target=ONE_THREAD)
    objects = KernelObjects()
    executable, files = objects.executable(module, ONE_THREAD, {}, tmp_path / "k")
    expected = outputs(whole, [], tmp_path / "whole.so")
    np.testing.assert_array_equal(outputs(executable, files, tmp_path / "kernels.so"), expected)
    _, again = objects.executable(module, ONE_THREAD, {}, tmp_path / "later")
    assert again == files
    assert not (tmp_path / "later").exists()


def test_a_kernel_of_another_target_is_new_and_the_rest_stay(module: Any, tmp_path: Path) -> None:
    objects = KernelObjects()
    _, files = objects.executable(module, ONE_THREAD, {}, tmp_path)
    kernel = next(v.name_hint for v in module.functions if v.name_hint != "main")
    _, others = objects.executable(module, ONE_THREAD, {kernel: OTHER}, tmp_path)
    assert len({*others} - {*files}) == 1
    assert len({*others} & {*files}) == len(files) - 1


# Of an If, one branch is computed.

BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 16] x, bool c, bool k) => (float[4, 16] y, float[4, 16] z) {
  shared = Exp(x)
  a, b = If(c)<
    then_branch = t () => (float[4, 16] a1, float[4, 16] b1)
      <float two = {2.0}> { s = Softmax(shared) a1 = Mul(s, two) b1 = Identity(x) },
    else_branch = e () => (float[4, 16] a2, float[4, 16] b2)
      { m = MatMul(shared, w) a2 = Relu(m) b2 = Softmax(m) }
  >
  d = Add(a, x)
  y = If(c)<
    then_branch = t2 () => (float[4, 16] y1) { y1 = Softmax(d) },
    else_branch = e2 () => (float[4, 16] y2) { r = Sqrt(shared) y2 = If(k)<
        then_branch = t3 () => (float[4, 16] y3)
          { one = Constant<value_ints = [1]>() row = Gather(r, one) y3 = Sub(row, r) },
        else_branch = e3 () => (float[4, 16] y4) { y4 = Identity(r) }
      > }
  >
  z = Add(b, shared)
}"""


def test_only_the_branch_of_an_if_that_is_taken_is_computed(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.random.default_rng(2).random((16, 16), "float32"), "w")
    model = onnx.parser.parse_model(BRANCHES)
    model.graph.initializer.append(weights)
    module = imported(model, tmp_path, ONE_THREAD)
    executable, files = KernelObjects().executable(module, ONE_THREAD, {}, tmp_path / "k")
    executable.export_library(str(tmp_path / "m.so"), addons=[str(each) for each in files])
    ran: list[str] = []
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(tmp_path / "m.so")), tvm.cpu())

    def note(_: object, name: str, *rest: object) -> int:
        ran.append(name)
        return 0

    machine.set_instrument(note)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
    for taken, inner in ((True, True), (False, False), (False, True), (True, False)):
        ran.clear()
        feed = {"x": x, "c": np.array(taken), "k": np.array(inner)}
        found = machine["main"](*map(tvm.runtime.tensor, feed.values()))
        expected = ReferenceSession(tmp_path / "m.onnx").run(feed)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5)
        assert any("matmul" in name for name in ran) is not taken
        assert not any("where" in name for name in ran)


# A model is opened once, and asked for its kernels and tasks.


def open_at(model: onnx.ModelProto, place: Path) -> OpenModel:
    return open_model(prepared_model(model, place), ONE_THREAD, "m.onnx", layouts=("nhwc", "nchw"))


def test_its_kernels_are_found(tmp_path: Path) -> None:
    (function,) = open_at(one_node_model("Relu"), tmp_path).functions
    assert (function.operator, function.weight) == ("relu", 1)


@pytest.mark.parametrize("follower", ["Neg n", "ScatterElements n z z", "GatherND n z"])
def test_a_shape_that_depends_on_data_is_refused(tmp_path: Path, follower: str) -> None:
    operator, *read = follower.split()
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node(operator, read, ["y"])]
    found, zeros = typed(TensorProto.INT64, None), np.zeros((1, 2), np.int64)
    with pytest.raises(UnsupportedModelError, match=r"operator NonZero .*depends on data"):
        open_at(model_of(nodes, {"x": [4, 4]}, {"y": found}, {"z": zeros}), tmp_path)


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ("o = Constant<value = float[1, 3] {1, 2, 3}>()", r'If \(node "y"\) .* not \[2, 3\] and'),
        ("n = NonZero(x) f = Cast<to = 1>(n) s = ReduceSum(f) o = Add(x, s)", "NonZero .* data"),
    ],
)
def test_a_branch_that_no_build_has_is_named(tmp_path: Path, other: str, problem: str) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x, bool c) => (float[n, 3] y)
    { y = If(c)<then_branch = t () => (float[2, 3] a) { a = Relu(x) },
                else_branch = e () => (float[n, 3] o) { %s }> }"""
    with pytest.raises(UnsupportedModelError, match=problem):
        open_at(onnx.parser.parse_model(text % other), tmp_path)


@pytest.mark.parametrize(
    ("op", "starts"), [("Relu", None), ("Slice", [0])], ids=["as given", "made so"]
)
def test_an_empty_result_names_its_node(op: str, starts: list[int] | None, tmp_path: Path) -> None:
    """A slice that ends before it begins, for instance."""
    extent = 0 if starts is None else 4
    weights = {} if starts is None else {"s": starts, "e": [9], "a": [1], "by": [-1]}
    node = helper.make_node(op, ["x", *weights], ["y"], name="layer")
    with pytest.raises(UnsupportedModelError, match=rf'{op} \(node "layer"\) .*is empty'):
        open_at(model_of([node], {"x": [2, extent]}, {"y": None}, weights), tmp_path)


def test_an_empty_result_is_named_before_what_the_compiler_has_no_code_for(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 1] x) => (float[2, 0] y)
    <int64[1] end = {-1}, int64[1] one = {1}, int64 axis = {-2}>
    { none = Slice(x, end, end, one, end) two = Concat<axis = 0>(none, none)
      y = CumSum<exclusive = 1>(two, axis) }"""
    with pytest.raises(UnsupportedModelError, match=r"Slice .*its result is empty"):
        open_at(onnx.parser.parse_model(text), tmp_path)


# Kernels are seen one by one, also those that a device would launch as one CUDA graph.

RUN_OR_CAPTURE = "vm.builtin.cuda_graph.run_or_capture"
KIND = TensorType((4,), "float32")
KERNELS = {"added", "doubled"}


def captured_module() -> Any:
    """A module as TVM's pass leaves it for a GPU: its kernels are in a function that is given to
    the runtime, to be captured."""
    builder = relax.BlockBuilder()
    given = relax.Var("given", KIND)
    with builder.function("captured", [given], private=True):
        with builder.dataflow():
            added = builder.emit_te(
                lambda a: te.compute((4,), lambda i: a[i] + 1.0), given, primfunc_name_hint="added"
            )
            doubled = builder.emit_te(
                lambda a: te.compute((4,), lambda i: a[i] * 2.0),
                added,
                primfunc_name_hint="doubled",
            )
            doubled = builder.emit_output(doubled)
        builder.emit_func_output(doubled)
    x = relax.Var("x", KIND)
    with builder.function("main", [x]):
        captured = builder.get().get_global_var("captured")
        arguments = relax.Tuple([captured, relax.Tuple([x]), relax.prim_value(0)])
        call = relax.op.call_builtin_with_ctx(RUN_OR_CAPTURE, arguments, ty_args=[KIND])
        builder.emit_func_output(builder.emit(call))
    return builder.get()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    """A library whose kernels are captured; who captures it is told that he may not look."""

    def refuse(*_: object) -> None:
        message = "CUDA Runtime Error: cudaErrorStreamCaptureImplicit (906)"
        raise RuntimeError(message)

    before = tvm.get_global_func(RUN_OR_CAPTURE, allow_missing=True)
    tvm_ffi.register_global_func(RUN_OR_CAPTURE, refuse, override=True)
    file = tmp_path / "model.so"
    relax.build(captured_module(), target=tvm.target.Target("llvm")).export_library(str(file))
    yield file
    if before is None:
        tvm_ffi.registry.remove_global_func(RUN_OR_CAPTURE)
    else:
        tvm_ffi.register_global_func(RUN_OR_CAPTURE, before, override=True)


def test_kernels_of_a_graph_have_their_times_at_every_inference(library: Path) -> None:
    arguments = [tvm.runtime.tensor(np.ones(4, "float32"))]
    tasks = [{"function": name, "name": f"layer {name}"} for name in KERNELS]
    watched = WatchedKernels(library, tasks, tvm.cpu(), arguments)
    for _ in range(3):
        watched.infer()
    for found in watched.inferences_ms():
        assert found.keys() == {f"layer {name}" for name in KERNELS}
        assert all(milliseconds > 0 for milliseconds in found.values())


def test_schedules_are_tried_in_a_model_that_has_graphs(library: Path, tmp_path: Path) -> None:
    beside = tmp_path / "beside.so"
    beside.write_bytes(library.read_bytes())
    inputs = [ArtifactTensor("x", (4,), "float32")]
    told: list[str] = []
    slower_in_model(
        library, beside, inputs=inputs, kernels=KERNELS, kind="llvm", seed=1, running=told.append
    )
    assert set(told[::2]) == {*KERNELS}
    assert set(told[1::2]) == {""}


def test_who_runs_a_library_without_looking_captures_it_as_before(library: Path) -> None:
    arguments = [tvm.runtime.tensor(np.ones(4, "float32"))]
    WatchedKernels(library, [], tvm.cpu(), arguments).infer()
    with pytest.raises(RuntimeError, match="906"):
        machine_of(library, tvm.cpu())["main"](*arguments)

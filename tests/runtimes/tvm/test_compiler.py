"""A build for a GPU launches its kernels as one, where the device can."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.measured_cells import make_build, make_job, make_model
from tests.support.programs import run_program
from tests.support.small_onnx import chain_model, conv_model, one_node_model, save
from tests.support.tuning_records import make_record
from tests.support.worker_requests import build_request
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.compiler.build.build_model import build_model
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.forms import LIBRARY
from tunegate.compiler.opening import OpenModel, import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.preparation import prepare
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm import compile_requests
from tunegate.runtimes.tvm.compile_requests import CompileChildren, CompileRequests, child_variables
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import RUNTIME
from tunegate.system.machine.cores import default_threads
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.tune.compiler_protocol import BuildModel, Built, CheckArtifact, ListTasks, Tasks
from tunegate.tune.protocol import Failed, Measured, ModelFile

GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_80")
CPU = TargetConfig(name="cpu", threads=1)


def built(directory: Path, *, cuda_graphs: bool) -> tuple[Built, bytes]:
    """Three products in a row: the first and the last touch what the caller owns."""
    directory.mkdir()
    model = save(chain_model(layers=4, width=16), directory / "m.onnx")
    target = tvm_target(GPU)
    prepared = prepare(model, shapes={}, into=directory / "prepared", path="m.onnx")
    module = import_in_layout(prepared, target.target, "m.onnx", ("nchw",))
    request = build_request(
        model, directory, target=GPU, scratch=str(directory), cuda_graphs=cuda_graphs
    )
    found = build_model(request, OpenModel(prepared, module, functions_of(module)), target)
    return found.built, (directory / "build" / LIBRARY).read_bytes()


def test_kernels_between_input_and_output_are_captured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in cuda_variables({"PATH": "/nowhere"}, usual=tmp_path).items():
        monkeypatch.setenv(name, value)
    with_graphs, library = built(tmp_path / "with", cuda_graphs=True)
    without, plain = built(tmp_path / "without", cuda_graphs=False)
    assert b"cuda_graph.run_or_capture" in library
    assert b"cuda_graph.run_or_capture" not in plain
    assert with_graphs.key != without.key


class Device(MetaScheduleCompiler):
    """A compiler whose builds with graphs go wrong, and those without too if it `is_broken`."""

    is_broken = False

    def _build_all(self, jobs: Sequence[tuple[BuildJob, bool]], deaths: int = 0) -> list[Build]:
        without = "broken" if self.is_broken else None
        return [make_build(error="capture failed" if graphs else without) for _, graphs in jobs]


def job(directory: Path, target: TargetConfig) -> BuildJob:
    return make_job(make_model(directory / "m.onnx", target=target), directory)


def test_a_build_that_does_not_run_with_graphs_is_made_without(tmp_path: Path) -> None:
    found = Device(tmp_path, seed=1).build([job(tmp_path, CPU), job(tmp_path, GPU)])
    assert [each.error for each in found] == [None, None]
    assert [each.without_graphs for each in found] == ["", "capture failed"]


def test_a_build_that_runs_in_no_way_says_why_without_graphs(tmp_path: Path) -> None:
    device = Device(tmp_path, seed=1)
    device.is_broken = True
    (found,) = device.build([job(tmp_path, GPU)])
    assert found.error == "broken"


class Unasked(CompileChildren[Any]):
    """Children that nobody asks."""

    def converse(self, *_: object) -> None:
        pass


class Dying(MetaScheduleCompiler):
    """A compiler whose children die of transferred schedules, or of all if it `is_broken`."""

    is_broken = False

    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, seed=1)
        self._children = Unasked("", object, scratch / "log", 1.0)
        self.asked: list[BuildModel] = []

    def _build_conversation(
        self, job: BuildJob, request: BuildModel, memory: MemoryLimit
    ) -> Conversation[Any]:
        self.asked.append(request)
        return super()._build_conversation(job, request, memory)

    def _finish(self, job: BuildJob, talk: Conversation[Any]) -> Build:
        has_died = self.is_broken or "transfer" in job.sources.values()
        return unbuilt("CUDA error 700", crashed=True) if has_died else make_build()


def test_a_build_that_died_of_a_transferred_schedule_keeps_its_graphs(tmp_path: Path) -> None:
    compiler = Dying(tmp_path)
    sources = {make_record().key: "transfer"}
    (found,) = compiler.build([msgspec.structs.replace(job(tmp_path, GPU), sources=sources)])
    assert (found.error, found.without_picks) == (None, "CUDA error 700")
    assert [asked.cuda_graphs for asked in compiler.asked] == [True, True]
    assert [bool(asked.sources) for asked in compiler.asked] == [True, False]


def test_what_died_on_one_side_is_not_built_on_the_other(tmp_path: Path) -> None:
    compiler = Dying(tmp_path)
    compiler.is_broken = True
    model = chain_model(layers=2, width=16)
    places = [save(model, tmp_path / side / "m.onnx").parent for side in ("base", "head")]
    base, head = (job(place, GPU) for place in places)
    assert [compiler.build([each])[0].error for each in (base, head)] == ["CUDA error 700"] * 2
    assert len(compiler.asked) == 1


def test_what_cannot_be_built_untuned_is_not_built_again(tmp_path: Path) -> None:
    device = Device(tmp_path, seed=1)
    assert device.refusals([job(tmp_path, CPU).model]) == [""]
    device.is_broken = True
    assert device.refusals([job(tmp_path, CPU).model]) == ["broken"]
    device.is_broken = False
    (found,) = device.build([job(tmp_path, CPU)])
    assert found.error == "broken"


def test_a_model_that_builds_untuned_is_built_by_the_same_child(tmp_path: Path) -> None:
    model = ModelJob(file=save(conv_model(), tmp_path / "m.onnx"), path="m", shapes={}, target=CPU)
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        assert compiler.refusals([model]) == [""]
        assert len(compiler._children._kept) == 1
        job = BuildJob(model=model, records={}, sources={}, directory=tmp_path / "out")
        for is_followed in (True, False):
            (found,) = compiler.build([msgspec.structs.replace(job, is_followed=is_followed)])
            assert found.error is None
            assert len(compiler._children._kept) == is_followed


def test_a_child_that_refused_its_model_takes_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull request of many broken files would cost a start of the compiler for each."""
    monkeypatch.setattr(compile_requests, "usable_cores", lambda: 1)
    pids = []
    models = (one_node_model("Foo"), one_node_model("Bar"), conv_model())
    jobs = [
        ModelJob(file=save(model, tmp_path / f"{n}.onnx"), path=f"{n}", shapes={}, target=CPU)
        for n, model in enumerate(models)
    ]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        begin = compiler._children.begin

        def counted(job: ModelJob, memory: MemoryLimit) -> Callable[[], Child[Any]]:
            made = begin(job, memory)

            def start() -> Child[Any]:
                child = made()
                pids.append(child.pid)
                return child

            return start

        monkeypatch.setattr(compiler._children, "begin", counted)
        first, second, tasks = compiler.tasks(jobs)
    assert isinstance(first, ModelError)
    assert isinstance(second, ModelError)
    assert not isinstance(tasks, ModelError)
    assert len(tasks) > 0
    assert (len(pids), len(set(pids))) == (3, 1)


@pytest.mark.parametrize("most", [0, 1])
def test_a_child_keeps_its_model_with_memory_for_one(tmp_path: Path, most: int) -> None:
    job = ModelJob(file=save(conv_model(), tmp_path / "m.onnx"), path="m", shapes={}, target=CPU)
    compiler = MetaScheduleCompiler(tmp_path / "compiler", seed=1)
    question = ListTasks(
        model=ModelFile(file="m.onnx", path="m", shapes={}), target=CPU, scratch=str(tmp_path)
    )
    plenty = MemoryLimit(8 * 2**30)
    child: Child[Any] = Child(
        "tests.support.simulated.odd_worker",
        Measured,
        variables={},
        memory=plenty,
        log=tmp_path / "log",
    )
    talk: Conversation[Any] = Conversation(lambda: child, question)
    talk.child, talk.replies = child, [Tasks(())]
    compiler._children._keep(job, talk, most)
    assert child.is_running is (most == 1)
    compiler.close()
    assert not child.is_running


def test_a_build_is_run_on_inputs_of_the_runs_seed(tmp_path: Path) -> None:
    built = Built(key="k", reference="r", functions=(), size_bytes=1, seconds=1.0)
    memory, seeds = MemoryLimit(1 << 30), set[int]()
    for seed in (1, 2):
        compiler, asking = MetaScheduleCompiler(tmp_path, seed=seed), job(tmp_path, CPU)
        request = CompileRequests(tmp_path, seed).build(asking)
        talk = compiler._build_conversation(asking, request, memory)
        asked, check = talk._first, talk._then(built)
        assert isinstance(asked, BuildModel)
        assert isinstance(check, CheckArtifact)
        seeds |= {asked.seed, *check.seeds}
    assert len(seeds) == 6


@pytest.mark.parametrize("cause", ["", "memory", "died"])
def test_a_build_that_a_fault_from_outside_ended_is_no_refusal(tmp_path: Path, cause: str) -> None:
    """The memory that a child may take depends on the number of models in the run, and the process
    that times kernels may die of the device."""
    compiler, asking = MetaScheduleCompiler(tmp_path, seed=1), job(tmp_path, CPU)
    request = CompileRequests(tmp_path, 1).build(asking)
    talk = compiler._build_conversation(asking, request, MemoryLimit(1 << 30))
    why = {cause: True} if cause else {}
    talk.replies.append(Failed("m.onnx: no", model=True, compiler=True, **why))
    build = compiler._finish(asking, talk)
    assert (build.error, build.crashed) == ("m.onnx: no", bool(cause))


@pytest.mark.parametrize("memory", [False, True])
def test_a_model_that_cannot_be_imported_is_not_built_unless_it_lacked_memory(
    tmp_path: Path, memory: bool
) -> None:
    device, asking = Device(tmp_path, seed=1), job(tmp_path, CPU)
    request = CompileRequests(tmp_path, 1).build(asking)
    talk = device._build_conversation(asking, request, MemoryLimit(1 << 30))
    talk.replies.append(Failed("m.onnx: no", model=True, compiler=True, memory=memory))
    device._read_tasks(asking.model, talk)
    (found,) = device.build([asking])
    assert found.error == (None if memory else "m.onnx: no")


ASKS = "import tvm; print(tvm.get_global_func('runtime.NumThreads')())"


@pytest.mark.parametrize("threads", [0, 1])
def test_kernels_get_the_targets_threads(threads: int) -> None:
    """TVM by itself would take half of the cores."""
    variables = child_variables(TargetConfig(name="cpu", threads=threads))
    done = run_program([sys.executable, "-c", ASKS], env={**os.environ, **variables}, check=True)
    assert int(done.stdout) == min(threads or default_threads(), os.cpu_count() or 1)


def test_threads_do_not_wait_awake_while_onnx_runtime_computes() -> None:
    """A tenth of a second is TVM's own."""
    assert child_variables(TargetConfig(name="cpu"))["TVM_THREAD_POOL_SPIN_COUNT"] == "1000"


def test_it_runs_on_all_targets_in_narrow_numbers_too() -> None:
    cpu, gpu = TargetConfig(name="a"), TargetConfig(name="b", kind="cuda", arch="sm_90")
    assert RUNTIME.unsupported(cpu) == RUNTIME.unsupported(gpu) == ""
    expected = {"": {}, "bf16": {"precision": "bfloat16"}, "int8.dynamic": {"precision": "int8"}}
    assert RUNTIME.variants(cpu) == expected
    lower = {"tf32": {"precision": "tfloat32"}, "f16": {"precision": "float16"}}
    assert RUNTIME.variants(gpu).items() >= {"": {}, **lower}.items()
    assert "bf16" not in RUNTIME.variants(gpu)


def test_to_know_of_it_loads_no_compiler() -> None:
    program = (
        "import sys; from tunegate.runtimes.tvm.runtime import RUNTIME;"
        "RUNTIME.versions(); RUNTIME.toolchain(); print(*sys.modules)"
    )
    done = run_program([sys.executable, "-c", program], check=True)
    assert not {"tvm", "tvm_ffi", "onnxruntime", "xgboost"} & set(done.stdout.split())

"""The main job's parts on a real GPU: tuned, built, checked, measured."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import onnx
import pytest

from tests.support.measured_cells import make_job
from tests.support.models.transformer import transformer
from tests.support.small_onnx import chain_model, conv_model, save
from tests.support.tuning_tasks import make_planned, make_shard
from tunegate.artifacts.builds import Build
from tunegate.artifacts.candidates import LAUNCH
from tunegate.artifacts.inputs import InputRule, KnownInputs, ShapedModel, Uniform
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.compiler import worker
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.shared_memory import offered_bytes
from tunegate.compiler.targets import tvm_target
from tunegate.compiler.versions import toolchain
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.models.preparation import prepare
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named, saves
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS, gpu_variables
from tunegate.system.nvidia.gpus import fingerprint_of, visible_gpus
from tunegate.system.nvidia.kernel_clock import kernel_clock
from tunegate.system.nvidia.nvml import state_of
from tunegate.tune.gpu_analysis import SHARED_MEMORY
from tunegate.tune.protocol import Measure, Placement
from tunegate.tune.tuner import EngineTuner
from tunegate_cache.format.records import Provenance, TuningRecord
from tunegate_whole_model.forms import WHOLE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
TARGET = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=60.0)
NAME = "m.onnx"


class Workshop:
    """One model, its tasks and what tuning published of it."""

    def __init__(self, directory: Path, model: onnx.ModelProto) -> None:
        self.directory = directory
        self.file = save(model, directory / NAME)
        self.compiler = MetaScheduleCompiler(directory / "compiler", seed=1)
        self.job = ModelJob(file=self.file, path=NAME, shapes={}, target=TARGET)
        self.published: list[TuningRecord] = []

    def tune(self, budget: Budget) -> list[TaskOutcome]:
        (tasks,) = self.compiler.tasks([self.job])
        assert not isinstance(tasks, ModelError)
        tuner = EngineTuner(
            seed=1,
            config=Config(models=(ModelConfig(path=NAME),), targets=(TARGET,)),
            origin=RecordOrigin(
                device=fingerprint_of(visible_gpus()[0]), toolchain=toolchain(), source=Provenance()
            ),
            clock=time,
            programs=PROGRAMS,
            scratch=self.directory / "tuner",
        )
        shard = make_shard(*map(make_planned, tasks), target="gpu", budget=budget)
        found = tuner.tune(shard, {(NAME, "head"): ShapedModel(self.file, {})}, self._publish)
        return list({outcome.key: outcome for outcome in found}.values())

    def build(self, outcomes: Sequence[TaskOutcome], name: str, *, whole: bool = False) -> Path:
        directory = self.directory / name
        records = {o.key: o.records for o in outcomes if o.records}
        sources, settings = dict.fromkeys(records, "search"), {LAUNCH: WHOLE} if whole else {}
        work = make_job(self.job, directory, records=records, sources=sources, settings=settings)
        (built,) = self.compiler.build([work])
        assert built.error is None
        assert built.check is not None  # it ran on the device, beside ONNX Runtime
        assert built.without_graphs == ""
        return directory

    def _publish(self, records: Sequence[TuningRecord]) -> bool:
        self.published.extend(records)
        return True


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop(tmp_path, chain_model(layers=3, width=512))
    with closing(made.compiler):
        yield made


def test_tuning_beats_the_default_schedule_on_the_device(product: Workshop) -> None:
    outcomes = product.tune(Budget(seconds=120.0, trials=32, min_gain_percent_per_minute=0.0))
    assert sum(outcome.trials for outcome in outcomes) == 32
    for outcome in outcomes:
        assert outcome.best_ms is not None
        assert outcome.before_ms is not None
        assert outcome.best_ms <= outcome.before_ms
    devices = {(record.device.kind, record.device.uuid) for record in product.published}
    assert devices == {("cuda", visible_gpus()[0].uuid)}


def test_a_transformer_built_for_the_device_computes_what_it_should(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, transformer(sequence=64))
    with closing(workshop.compiler):
        workshop.build((), "default")


@pytest.mark.parametrize("batch", [1, 16])
def test_one_persistent_kernel_computes_what_it_should(tmp_path: Path, batch: int) -> None:
    workshop = Workshop(tmp_path, transformer(sequence=64, batch=batch))
    with closing(workshop.compiler):
        whole = workshop.build((), "whole", whole=True)
        plain = workshop.build((), "default")
    assert FreshProcesses(tmp_path / "bench", 1, TARGET).pair(plain, whole).launch(8).head_ms > 0


def test_a_build_against_itself_shows_no_change_and_how_the_clock_was(product: Workshop) -> None:
    built = product.build((), "out")
    launch = FreshProcesses(product.directory / "bench", 1, TARGET).pair(built, built).launch(8)
    assert abs(launch.effect) < 0.1
    assert launch.clocks is not None
    assert (launch.clocks.base_mhz or 0) > 100
    assert not launch.clocks.is_mediated


def test_a_block_may_use_the_shared_memory_that_the_card_offers() -> None:
    usable = gpu_variables().get(SHARED_MEMORY)
    offered = offered_bytes()
    is_recent = float(visible_gpus()[0].compute_capability) >= 8
    assert is_recent == (usable is not None)
    assert usable is None or int(usable) in range(offered - 2048, offered)


def test_the_driver_tells_the_state_of_the_device() -> None:
    (first, *_) = visible_gpus()
    state = state_of(first.uuid)
    assert state is not None
    assert state.sm_mhz
    assert state.used_bytes is not None


@pytest.mark.skipif(kernel_clock() is None, reason="this host keeps CUPTI from us")
def test_kernels_take_as_long_by_their_own_clock_as_by_events(tmp_path: Path) -> None:
    """The kernel runs in a process that has the device to itself, and is so large
    that its launch hardly counts."""
    load_intrinsics("cuda")
    target = tvm_target(TARGET)
    file = save(chain_model(layers=1, width=2048), tmp_path / NAME)
    prepared = prepare(file, shapes={}, into=tmp_path / "prepared", path=NAME)
    function = functions_of(import_in_layout(prepared, target.target, NAME, ("nchw",)))[0]
    (candidate,) = TaskSearch(function.workload, target.target, seed=1).propose(0, ()).candidates
    asked = Measure(
        candidate=candidate,
        target_json=target.export_json(),
        reference=str(tmp_path / "reference.npy"),
        writes_reference=True,
        loser_ms=float("inf"),
        seed=1,
        repeats=5,
    )
    place = Placement(slots=(), limit_seconds=60.0, has_kernel_clock=True)
    by_events = worker.handle_request(asked)
    by_clock = worker.handle_request(msgspec.structs.replace(asked, place=place))
    assert (by_events.status, by_clock.status) == ("ok", "ok")
    ratio = statistics.median(by_clock.nanoseconds) / statistics.median(by_events.nanoseconds)
    assert 0.7 < ratio < 1.1


# Runtimes on a GPU.


NAMES = ("onnxruntime_cuda", "tensorrt")
LOWER = {"tf32": 0.02, "f16": 0.05, "int8": 0.2}
"""The most that a precision may be off, as a share of the largest output."""


def built(root: Path, name: str, variant: str, samples: int = 0) -> tuple[Build, Path]:
    runtime = runtime_named(name)
    assert saves(runtime)
    reason = runtime.unsupported(TARGET)
    if reason:
        pytest.skip(f"{name} {reason}")
    file = save(transformer(sequence=64) if not samples else conv_model(), root / "m.onnx")
    given = {"x": InputRule(Uniform(-1.0, 1.0))} if samples else {}
    job = BuildJob(
        model=ModelJob(
            file=file, path="m.onnx", shapes={}, target=TARGET, inputs=KnownInputs(given=given)
        ),
        records={},
        sources={},
        directory=root / "artifact",
        variant=variant,
        settings=dict(runtime.variants(TARGET)[variant]),
        samples=samples,
    )
    (build,) = SavingBuilder(runtime, root / "scratch", seed=1).build([job])
    assert build.error is None
    return build, job.directory


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_float32_whole_on_the_device_with_graphs(tmp_path: Path, name: str) -> None:
    build, directory = built(tmp_path, name, "")
    assert build.check is not None
    assert build.check.passed
    assert build.notes == ()
    bench = FreshProcesses(tmp_path / "bench", 1, TARGET)
    assert abs(bench.pair(directory, directory).launch(8).effect) < 0.1
    layers = bench.operators_ms(directory)
    assert sum(layers.values()) > 0
    assert any("MatMul" in each or "Gemm" in each for each in layers)


@pytest.mark.parametrize("variant", LOWER)
@pytest.mark.parametrize("name", NAMES)
def test_lower_precisions_err_as_they_should(tmp_path: Path, name: str, variant: str) -> None:
    if variant not in runtime_named(name).variants(TARGET):
        pytest.skip(f"{name} has no {variant}")
    build, _ = built(tmp_path, name, variant, samples=8)
    assert build.sampled is not None
    assert max(build.sampled.relative) < LOWER[variant]

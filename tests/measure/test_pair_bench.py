"""Real processes: two small models in ONNX Runtime, measured against each other."""

import itertools
import shutil
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from onnx import helper

from tests.measure.onnx_artifact import artifact
from tests.support.models.unusual import model
from tests.support.simulated.simulated_gpus import Simulate, gpu
from tests.support.small_onnx import model_of
from tests.system.test_energy import zone
from tunegate.artifacts.inputs import Files, InputRule, Integers, OneOf
from tunegate.measure import bench_process as process
from tunegate.measure import pair_bench
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.bench_messages import OutputSample, Sides, Start
from tunegate.measure.bench_process import Devices, Process, start_of
from tunegate.measure.pair_bench import PairBench, block_size
from tunegate.ports import ProbeThresholds
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

NEVER = ProbeThresholds(by_median=9.0, by_mean=9.0)


@pytest.fixture(autouse=True)
def soon_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_bench, "WARM_UP_SECONDS", 0.1)


def test_four_times_the_work_shows_in_one_launch(tmp_path: Path, small: Path, large: Path) -> None:
    late = process.ALONE._replace(launch_seconds=0.0)  # so that four pairs must do
    launch = FreshProcesses(tmp_path, 1, limits=late).pair(small, large).launch(12)
    assert launch.effect > 0.5
    assert launch.head_ms > launch.base_ms > 0
    assert (launch.pairs, launch.differing) == (4, "")


def classifier(directory: Path, classes: list[int], output: str = "logits") -> Path:
    """Ten scores from four numbers, in this order of the classes."""
    weights = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)[:, classes]
    product = helper.make_node("MatMul", ["x", "w"], [output])
    made = model_of([product], {"x": [1, 4]}, {output: [1, 10]}, {"w": weights})
    place = artifact(directory, made, (1, 4))
    return changed(place, outputs=(ArtifactTensor(output, (1, 10), "float32"),))


def changed(place: Path, **fields: object) -> Path:
    """The artifact there, with these of its file."""
    replace(ArtifactFile.read(place), **fields).write(place)
    return place


@pytest.mark.parametrize(
    ("classes", "output", "said"),
    [
        ([*range(10)], "logits", ""),
        ([*range(9, -1, -1)], "logits", "largest value and has its largest in another place"),
        ([*range(10)], "s" * 99, f"which is not judged: logits is gone, {'s' * 60}… is new"),
    ],
)
def test_the_first_launch_says_whether_both_sides_compute_the_same(
    tmp_path: Path, classes: list[int], output: str, said: str
) -> None:
    base = classifier(tmp_path / "base", [*range(10)])
    head = classifier(tmp_path / "head", classes, output)
    bench = FreshProcesses(tmp_path, 1).pair(base, head, compares_outputs=True)
    differing = bench.launch(2).differing
    assert differing.endswith(said)
    assert bool(differing) == bool(said)


def test_a_head_that_loads_far_longer_is_told() -> None:
    assert "5.3 s of the processor to load, the base 0.7 s" in pair_bench.slower_load(700.0, 5300.0)
    assert pair_bench.slower_load(700.0, 1650.0) + pair_bench.slower_load(9e3, 15e3) == ""


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (OutputSample((3,), (1.0, 2.0, 4.0), is_text=True), "in 1 of 3 texts"),
        (OutputSample((3,), (1.0, 0.0, 0.0), nans=2), "is NaN in 2 of 3 numbers and was in 0"),
    ],
)
def test_texts_and_numbers_that_differ_are_counted(heads: OutputSample, said: str) -> None:
    promised = (ArtifactTensor("label", (3,), "object"),)
    bases = OutputSample((3,), (1.0, 2.0, 3.0), is_text=heads.is_text)
    shown = pair_bench.differing_outputs(Sides(promised, promised), Sides((bases,), (heads,)))
    assert shown == f"outputs differ on equal inputs, which is not judged: label {said}"


@pytest.mark.parametrize(("reasons", "dropped"), [(0x1, 0), (0x20, 4)])
def test_a_launch_on_a_gpu_says_how_its_clock_was(
    simulate: Simulate,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    small: Path,
    reasons: int,
    dropped: int,
) -> None:
    monkeypatch.setenv("TUNEGATE_LOCK_DIR", str(tmp_path))
    simulate(gpu("GPU-a", reasons=reasons))
    on_gpu = changed(shutil.copytree(small, tmp_path / "on-gpu"), device="cuda")
    launch = FreshProcesses(tmp_path, 1).pair(on_gpu, on_gpu).launch(4)
    assert launch.clocks is not None
    assert (launch.clocks.base_mhz, launch.clocks.head_mhz) == (2040, 2040)
    assert (launch.pairs, launch.clocks.dropped) == (4, dropped)


def test_a_launch_says_what_an_inference_of_either_side_used(tmp_path: Path, small: Path) -> None:
    at = zone(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    bench = PairBench(Sides(small, small), tmp_path, 1, Devices(None, tmp_path / "powercap"))
    assert bench.launch(4).base_joules is None  # the counter stands still
    stop = threading.Event()
    turning = threading.Thread(target=count_up, args=(at, stop), daemon=True)
    turning.start()
    # A busy machine may keep the counter from a core for a block, and so for a launch or two.
    launches = (bench.launch(4) for _ in range(5))
    launch = next(each for each in launches if (each.base_joules or 0) * (each.head_joules or 0))
    stop.set()
    turning.join()
    assert launch.energy_source == "rapl"


def count_up(at: Path, stop: threading.Event) -> None:
    """A counter that goes on all the time; a half-written number is never read."""
    for used in itertools.count(1):
        beside = at / "next"
        beside.write_text(str(10_000 * used))
        beside.replace(at / "energy_uj")
        if stop.wait(0.001):
            return


def test_a_wait_that_is_put_in_shows_as_what_it_is(tmp_path: Path, small: Path) -> None:
    bench = FreshProcesses(tmp_path, 1).pair(small, small, slowdown_percent=50.0)
    # ln 1.5 is 0.41; the machine may be busy for a launch or two.
    assert any(0.2 < bench.launch(4).effect < 0.8 for _ in range(5))


def test_a_short_look_costs_less_than_a_launch_and_sees_a_slow_head(
    tmp_path: Path, small: Path, large: Path
) -> None:
    bench = FreshProcesses(tmp_path, 1).pair(small, large)
    launch = bench.launch(12)
    probes = list(bench.probes(3, NEVER))
    assert [probe.pairs for probe in probes if probe.effect > 0.5] == [3, 3, 3]
    assert min(probe.seconds for probe in probes) < launch.seconds


def test_a_seemingly_slow_start_is_watched_longer(tmp_path: Path, small: Path, large: Path) -> None:
    bench = FreshProcesses(tmp_path, 1).pair(small, large)
    bench.launch(4)
    (by_median,) = bench.probes(1, ProbeThresholds(by_median=0.1, by_mean=9.0))
    (by_mean,) = bench.probes(1, ProbeThresholds(by_median=9.0, by_mean=0.1))
    assert (by_median.pairs, by_mean.pairs) == (12, 12)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Start]]:
    """Each process that is started, and with what."""
    found: list[tuple[int, Start]] = []
    original = process.Process.start

    def start(self: process.Process, again: Start | None = None) -> float:
        found.append((self.pid, again or self._start))
        return original(self, again)

    monkeypatch.setattr(process.Process, "start", start)
    return found


def test_both_sides_get_values_that_both_take(
    tmp_path: Path, small: Path, started: list[tuple[int, Start]]
) -> None:
    (tensor,) = ArtifactFile.read(small).inputs
    base, head = (
        changed(
            shutil.copytree(small, tmp_path / str(high)),
            inputs=(replace(tensor, rule=InputRule(Integers(0, high))),),
        )
        for high in (9, 4)
    )
    FreshProcesses(tmp_path, 1).pair(base, head).launch(4)
    (_, one), (_, other) = started
    assert one.inputs == other.inputs
    assert {each.rule for each in one.inputs} == {InputRule(Integers(0, 4))}


def test_launches_say_which_of_the_cases_they_were_run_on(tmp_path: Path, small: Path) -> None:
    (tensor,) = ArtifactFile.read(small).inputs
    files = tuple(str(tmp_path / f"{number}.npy") for number in range(2))
    for file in files:
        np.save(file, np.ones(tensor.shape, tensor.dtype))
    inputs = (replace(tensor, rule=InputRule(Files(files))),)
    given = changed(shutil.copytree(small, tmp_path / "given"), inputs=inputs)
    bench = FreshProcesses(tmp_path, 1).pair(given, given)
    assert {bench.launch(4).case, *(each.case for each in bench.probes(1, NEVER))} == {1, 2}
    assert PairBench(Sides(small, small), tmp_path, 1, Devices(None)).launch(4).case == 0


def test_every_short_look_has_a_head_of_its_own_and_inputs_of_its_own(
    tmp_path: Path, small: Path, started: list[tuple[int, Start]]
) -> None:
    bench = FreshProcesses(tmp_path, 1).pair(small, small)
    bench.launch(4)
    started.clear()
    assert len(list(bench.probes(5, NEVER))) == 5
    heads, bases = started[0::2], started[1::2]
    assert len({pid for pid, _ in heads}) == 5
    assert len({pid for pid, _ in bases}) == 2
    assert [start.seed for _, start in heads] == [start.seed for _, start in bases]
    assert len({start.seed for _, start in heads}) == 5


@pytest.mark.parametrize(
    ("faster_ms", "slower_ms", "inferences"),
    [(0.05, 0.055, 1000), (0.05, 0.5, 1000), (0.05, 5.0, 100), (0.05, 500.0, 3), (10.0, 13.0, 20)],
)
def test_a_block_of_a_side_that_is_much_slower_stays_short(
    faster_ms: float, slower_ms: float, inferences: int
) -> None:
    assert block_size(faster_ms, slower_ms) == inferences


def test_a_block_ends_when_its_time_is_over(small: Path, tmp_path: Path) -> None:
    running = process.Process(process.start_of(small, 1), tmp_path / "bench.log", {})
    try:
        running.start()
        times = running.block_ms(1_000_000, most_seconds=0.2)
    finally:
        running.close()
    assert 1 <= len(times) < 1_000_000


# The inputs of one launch.


def test_a_launch_has_its_inputs_in_turn_so_no_cache_holds_what_they_choose(tmp_path: Path) -> None:
    """The model takes a thousand times as long for one value as for the other."""
    nodes = """
      yes = Constant<value = bool {1}>()
      start = Constant<value = float {1.0}>()
      y = Loop(trips, yes, start)<
        body = step (int64 i, bool before, float a) => (bool after, float b) {
          after = Identity(before)
          b = Sin(a)
        }
      >
    """
    made = artifact(
        tmp_path / "a", model(f"g (int64 trips) => (float y) {{ {nodes} }}"), (), "trips"
    )
    slow_or_fast = ArtifactTensor("trips", (), "int64", InputRule(OneOf((0, 20_000))))
    start = start_of(made, 1, 0.0, 0.1, (slow_or_fast,))
    with closing(Process(start, tmp_path / "log", {})) as process:
        process.start()
        times = process.block_ms(40)
    assert max(times) > 10 * min(times)


@pytest.mark.parametrize(("numbers", "least", "most"), [(1, 1, 1.1), (8_000_000, 30, 70)])
def test_the_memory_that_running_adds_is_that_of_the_first_inference_too(
    tmp_path: Path, numbers: int, least: float, most: float
) -> None:
    nodes = f"""
      size = Constant<value = int64[1] {{{numbers}}}>()
      wide = Expand(x, size)
      y = ReduceSum(wide)
    """
    made = artifact(tmp_path / "a", model(f"g (float[1] x) => (float[1] y) {{ {nodes} }}"), (1,))
    with closing(Process(start_of(made, 1), tmp_path / "log", {})) as process:
        process.start()
    assert least <= process.workspace_bytes / 2**20 <= most

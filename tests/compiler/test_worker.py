"""Faults of the machine, and faults of the candidate."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
import tvm
from msgspec.structs import replace

from tests.support.small_onnx import conv_model, save
from tests.support.worker_requests import measure_request
from tunegate.compiler import loader, worker
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.build.single_kernel import sample_inputs
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import race_in_turns
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.system.machine.device_lock import Claim, held_device
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.tune.protocol import Measure, Placement, Slot
from tunegate_cache.format.records import CONFIRMED_REPEATS

load_intrinsics("llvm")
HANGS = """
import sys, time
import msgspec
from tunegate.compiler import worker
from tunegate.tune.protocol import Measure
worker._build = lambda request: time.sleep(600)
worker.handle_request(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Measure))
"""


@pytest.fixture(scope="module")
def request_of_default(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    place = tmp_path_factory.mktemp("worker")
    target = tvm_target(TargetConfig(name="cpu", threads=1))
    model = save(conv_model(channels=4, out=4, size=6), place / "m.onnx")
    prepared = prepare(model, shapes={}, into=place / "prepared", path="m.onnx")
    function = functions_of(import_in_layout(prepared, target.target, "m.onnx", ("nchw",)))[0]
    candidate = TaskSearch(function.workload, target.target, seed=1).propose(0, ()).candidates[0]
    return measure_request(
        candidate,
        target_json=target.export_json(),
        reference=str(place / "reference.npy"),
        writes_reference=True,
    )


def test_candidates_are_compared_on_inputs_of_the_runs_seed(request_of_default: Measure) -> None:
    """The default schedule's outputs on the inputs of one seed are wrong for another's."""
    assert worker.handle_request(request_of_default).status == "ok"
    again = replace(request_of_default, writes_reference=False)
    assert worker.handle_request(again).status == "ok"
    assert worker.handle_request(replace(again, seed=2)).status == "wrong"


def test_a_candidate_is_timed_on_a_held_device(request_of_default: Measure, tmp_path: Path) -> None:
    claim = Claim(uuid="timing", directory=str(tmp_path), wait_seconds=5)
    measured = worker.handle_request(_at(request_of_default, claim))
    assert (measured.status, measured.unfit) == ("ok", "")
    assert claim.path.exists()


def test_inputs_that_an_earlier_candidate_has_spoiled_are_no_fault_of_the_next(
    request_of_default: Measure,
) -> None:
    assert worker.handle_request(request_of_default).status == "ok"
    arguments = request_of_default.candidate.arguments
    for kept in sample_inputs(tuple(arguments[:-1]), tvm.cpu(), 1):
        kept.copyfrom(np.full(kept.shape, 7.0, "float32"))
    compared = replace(request_of_default, writes_reference=False)
    assert worker.handle_request(compared).status == "ok"


def test_a_wrong_result_stays_wrong(request_of_default: Measure, tmp_path: Path) -> None:
    other = tmp_path / "other.npy"
    assert worker.handle_request(request_of_default).status == "ok"
    np.save(other, np.load(request_of_default.reference) + 1)
    compared = replace(request_of_default, writes_reference=False, reference=str(other))
    assert worker.handle_request(compared).status == "wrong"


def test_what_runs_long_and_is_behind_runs_once(request_of_default: Measure) -> None:
    """The default schedule runs once, too, because its time decides nothing at a part in a
    hundred."""
    candidate = replace(request_of_default, writes_reference=False)
    unrivalled = replace(candidate, loser_ms=float("inf"))
    assert worker._is_hopeless(request_of_default, 50.0)
    assert not worker._is_hopeless(request_of_default, 30.0)
    assert worker._is_hopeless(candidate, 300.0)
    assert not worker._is_hopeless(unrivalled, 300.0)
    confirmed = replace(request_of_default, repeats=CONFIRMED_REPEATS)
    assert not worker._is_hopeless(confirmed, 300.0)
    assert worker._is_hopeless(confirmed, 3000.0)  # it would not be in time
    assert not worker._is_hopeless(candidate, 100.0)


def test_what_is_slow_is_looked_at_once_and_measured_with_care_all_the_same(
    request_of_default: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_SLOW_MS", 0.0)
    look = replace(request_of_default, loser_ms=float("inf"), repeats=3)
    confirmed = replace(look, repeats=CONFIRMED_REPEATS, loser_ms=0.0)
    assert len(worker.handle_request(look).nanoseconds) == 1
    assert len(worker.handle_request(confirmed).nanoseconds) == CONFIRMED_REPEATS


def test_a_device_that_another_one_has_is_no_fault_of_the_candidate(
    request_of_default: Measure, tmp_path: Path
) -> None:
    claim = Claim(uuid="timing", directory=str(tmp_path), wait_seconds=0.1)
    with held_device(claim):
        measured = worker.handle_request(_at(request_of_default, claim))
    assert "has had this device for more than 0.1 s" in measured.unfit


def test_what_is_built_on_one_machine_is_measured_on_another(request_of_default: Measure) -> None:
    library = worker.library_of(request_of_default)
    measured = worker.handle_with_library(library, request_of_default)
    assert (measured.status, measured.detail) == ("ok", "")
    assert measured.nanoseconds


def test_what_does_not_compile_says_so_to_be_measured(request_of_default: Measure) -> None:
    candidate = replace(request_of_default.candidate, module="{")
    broken = replace(request_of_default, candidate=candidate)
    measured = worker.handle_with_library(worker.library_of(broken), broken)
    assert measured.status == "compile"
    assert measured.detail


@pytest.mark.parametrize(
    ("of_its_place", "of_the_candidate"), [(0.5, None), (500, 0.5), (None, 0.5)]
)
def test_a_worker_that_hangs_ends_itself(
    request_of_default: Measure, of_its_place: float | None, of_the_candidate: float | None
) -> None:
    claim = Claim(uuid="timing", directory="/tmp", wait_seconds=5)
    request = replace(request_of_default, patience_seconds=of_the_candidate)
    encoded = msgspec.msgpack.encode(_at(request, claim, measuring_seconds=of_its_place))
    done = subprocess.run(
        [sys.executable, "-c", HANGS], input=encoded, capture_output=True, check=False, timeout=200
    )
    assert done.returncode == 1
    assert b"Timeout" in done.stderr


def _at(request: Measure, claim: Claim, measuring_seconds: float | None = None) -> Measure:
    place = Placement(
        slots=(Slot(claim=claim),), measuring_seconds=measuring_seconds, limit_seconds=60
    )
    return replace(request, place=place)


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
def test_a_lost_clock_of_kernels_is_no_fault_of_a_candidate(request_of_default: Measure) -> None:
    place = Placement(slots=(), limit_seconds=60, has_kernel_clock=True)
    measured = worker.handle_request(replace(request_of_default, place=place))
    assert "CUPTI was permitted when this run began" in measured.unfit


class HandTime:
    """The clocks of a machine with nothing else to do, in seconds."""

    def __init__(self) -> None:
        self.computed = self.waited = 0.0

    def process_time(self) -> float:
        return self.computed

    def perf_counter(self) -> float:
        return self.computed + self.waited

    def way(self, *, computes_ms: float = 0.0, waits_ms: float = 0.0) -> Callable[[], None]:
        def run() -> None:
            self.computed += computes_ms / 1e3
            self.waited += waits_ms / 1e3

        return run


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> HandTime:
    made = HandTime()
    monkeypatch.setattr(loader, "time", made)
    return made


@pytest.mark.parametrize(("spent", "threads"), [("computes_ms", 1), ("waits_ms", 2)])
def test_a_race_tells_the_milliseconds_of_both(hand: HandTime, spent: str, threads: int) -> None:
    ways = hand.way(**{spent: 1.0}), hand.way(**{spent: 1.1})
    assert race_in_turns(*ways, threads) == pytest.approx((1.0, 1.1))


def test_a_way_of_one_thread_gains_nothing_by_waiting_less(hand: HandTime) -> None:
    ways = hand.way(computes_ms=3.0), hand.way(computes_ms=1.0, waits_ms=5.0)
    assert race_in_turns(*ways, 1) == pytest.approx((3.0, 1.0))
    assert race_in_turns(*ways, 2) == pytest.approx((3.0, 6.0))


def test_a_race_ends_after_half_a_second(hand: HandTime) -> None:
    race_in_turns(hand.way(computes_ms=1.0), hand.way(computes_ms=1.0), 1)
    assert 0.5 < hand.computed < 0.6


def test_what_takes_longer_than_that_has_five_rounds(hand: HandTime) -> None:
    calls = [0]

    def long() -> None:
        calls[0] += 1
        hand.computed += 2.0

    race_in_turns(long, hand.way(computes_ms=1.0), 1)
    assert calls[0] == 3 + 5


def test_by_the_clocks_of_this_machine_ten_times_the_work_takes_longer() -> None:
    def counting(steps: int) -> Callable[[], None]:
        def count() -> None:
            for _ in range(steps):
                pass

        return count

    ours, theirs = race_in_turns(counting(5_000), counting(50_000), 1)
    assert 0 < ours < theirs

"""Functions without a schedule run on a GPU, too."""

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from msgspec.structs import replace
from tvm import te, topi

from tests.compiler.importing.fused_module import imported
from tests.compiler.schedules.test_elementary_functions import Made, function, outputs
from tests.compiler.schedules.test_unfolded_image import convolution, product_tiles_module_of
from tests.compiler.search.test_search import added, product, space_of
from tests.support.models import grouped_convolutions
from tests.support.present import present
from tests.support.small_onnx import matmul_model
from tests.support.tuning_records import make_key, make_record
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules import schedule_choice, unscheduled
from tunegate.compiler.schedules.algorithm_variants import with_algorithm
from tunegate.compiler.schedules.default_schedule import with_default_schedule, with_inlined_chains
from tunegate.compiler.schedules.schedule_choice import prior_pick
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.compiler.versions import DEFAULT_SCHEDULES
from tunegate.config import TargetConfig
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Schedule
from tunegate.tune.samples import SampleFeatures, ScheduleSample
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import WorkloadKey

ON_GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_80")
GPU = tvm_target(ON_GPU).target


@pytest.fixture(scope="module")
def module() -> Any:
    return canonical_workload(product(64, 64, 64)).module


def test_on_a_cpu_sums_are_made_together_and_other_loops_stay_as_they_are(module: Any) -> None:
    target = tvm_target(TargetConfig(name="cpu")).target
    assert "vectorized" in str(with_default_schedule(module, target))
    x = te.placeholder((8, 64), "float32", "x")
    other = canonical_workload(te.create_prim_func([x, topi.nn.relu(x)])).module
    assert with_default_schedule(other, target) is other


def test_on_a_gpu_every_loop_nest_is_bound_to_threads(module: Any) -> None:
    scheduled = str(with_default_schedule(module, GPU))
    assert "threadIdx.x" not in str(module)
    assert "threadIdx.x" in scheduled
    assert "blockIdx.x" in scheduled


@pytest.mark.parametrize("rows", [3, 8, 16, 24])
def test_on_a_gpu_no_thread_sums_up_a_row_that_is_not_there(rows: int) -> None:
    """TVM loses the condition of such a sum, and writes it behind the result."""
    x, w = array(1, 64), te.placeholder((rows, 64), "float32", "w")
    k = te.reduce_axis((0, 64), "k")
    sums = te.compute((1, rows), lambda n, row: te.sum(x[n, k] * w[row, k], k), "sums")
    module = tvm.IRModule({"main": te.create_prim_func([x, w, sums])})
    text = str(with_default_schedule(module, GPU))
    written = text.rpartition('T.sblock("sums")')[2].partition("T.init()")
    assert written[1]
    assert "T.where" not in written[0]


def depthwise(size: int, window: int, step: int = 1) -> list[Any]:
    x, w = array(1, 8, size, size + 2), te.placeholder((8, 1, window, window), "float32", "w")
    bias = te.placeholder((1, 8, 1, 1), "float32", "bias")
    made = topi.nn.depthwise_conv2d_nchw(x, w, step, window // 2, 1, "float32")
    return [x, w, bias, topi.multiply(made + bias, topi.clip(made + bias, 0.0, 6.0))]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("size", [14, 15, 24])
@pytest.mark.parametrize(("window", "threads"), [(3, 128), (5, 128), (7, 256)])
def test_on_a_gpu_a_thread_has_each_sum_of_few_terms(
    window: int, threads: int, size: int, step: int
) -> None:
    """One of more terms than a warp has threads has a block, as TVM has it."""
    module = tvm.IRModule({"main": te.create_prim_func(depthwise(size, window, step))})
    text = str(with_default_schedule(module, GPU))
    assert f'T.thread_binding({threads}, thread="threadIdx.x")' in text


def array(*shape: int) -> Any:
    return te.placeholder(shape, "float32", "x")


def blocks(module: Any) -> int:
    schedule = tvm.s_tir.Schedule(module)
    return len(schedule.get_child_blocks(schedule.get_sblock("root")))


def chain() -> Made:
    x = array(8, 64)
    return function(x, topi.nn.relu(topi.tanh(topi.negative(x))))


def test_a_chain_is_one_loop_with_the_same_numbers() -> None:
    module, tensors = chain()
    inlined = with_inlined_chains(module)
    assert (blocks(module), blocks(inlined)) == (3, 1)
    np.testing.assert_allclose(outputs(inlined, tensors), outputs(module, tensors), rtol=1e-6)


def test_what_two_others_read_is_computed_once() -> None:
    x = array(8, 64)
    shared = topi.tanh(x)
    module, _ = function(x, topi.add(topi.nn.relu(shared), topi.negative(shared)))
    assert (blocks(module), blocks(with_inlined_chains(module))) == (4, 2)


def test_what_is_repeated_for_many_or_summed_up_is_computed_once() -> None:
    x, row = array(8, 64), te.placeholder((1, 64), "float32", "row")
    repeated, _ = function(x, row, topi.add(x, topi.tanh(row)))
    summed, _ = function(x, topi.sum(topi.tanh(x), 1))
    for module in (repeated, summed):
        assert with_inlined_chains(module) is module


def test_what_follows_is_computed_where_the_sum_is_written() -> None:
    schedule = tvm.s_tir.Schedule(product_tiles_module_of(convolution(8, 16, 32), constant=False))
    block = schedule.get_sblock("conv2d_nhwc")
    loop = schedule.get_loops(block)[3]
    written = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(written, loop)
    unscheduled.inline_followers(schedule, written)
    left = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = {schedule.get(each).name_hint for each in left}
    assert names == {"pad_temp", "conv2d_nhwc", "conv2d_nhwc_global"}


# The prior's pick: one for each workload, target and prior, or none where the prior knows nothing.

load_intrinsics("llvm")
CPU = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 1})
OF_PRODUCT = canonical_workload(product(128, 128, 128))


def picked(
    workload: Workload, failed: tuple[Schedule, ...] = (), offered: tuple[Schedule, ...] = ()
) -> Schedule | None:
    """The pick of a space that is made anew, as another process would make it."""
    space = DesignSpace(workload, CPU)
    found = prior_pick(workload, CPU, space, prior_of("llvm"), failures=failed, offers=offered)
    return None if found is None else found.schedule


def expected(*schedules: Schedule) -> list[float]:
    space, prior = DesignSpace(OF_PRODUCT, CPU), prior_of("llvm")
    features = SampleFeatures(space.sampling(), space.sketches())
    rows = [features.of(ScheduleSample(each.template, each.decisions)) for each in schedules]
    return [float(ratio) for ratio in present(prior).ratios(rows)]


def test_a_pick_hangs_on_nothing_but_workload_target_and_prior() -> None:
    again = canonical_workload(product(128, 128, 128))
    assert picked(OF_PRODUCT) == picked(again) is not None


def test_a_pick_replays_as_it_is() -> None:
    found = present(picked(OF_PRODUCT))
    assert DesignSpace(OF_PRODUCT, CPU).reproduces(found)


def test_more_is_expected_of_the_pick_than_of_random_schedules() -> None:
    traces = (s.trace for s in DesignSpace(OF_PRODUCT, CPU).sample(16, random.Random(1)))
    space = DesignSpace(OF_PRODUCT, CPU)
    others = [found for trace in traces if (found := space.describe(trace)) is not None]
    found = present(picked(OF_PRODUCT))
    mine, *rest = expected(found, *others)
    assert mine > max(rest)


def test_what_is_offered_takes_part() -> None:
    """A pick that is offered again is in every pool, so that what is picked is as good at least."""
    best = present(picked(OF_PRODUCT))
    again = present(picked(OF_PRODUCT, offered=(best,)))
    mine, offered = expected(again, best)
    assert mine >= offered


def test_what_failed_before_is_not_picked_again() -> None:
    first = present(picked(OF_PRODUCT))
    assert picked(OF_PRODUCT, failed=(first,)) not in {None, first}


def test_the_prior_abstains_where_no_loops_are_tiled() -> None:
    assert picked(canonical_workload(added())) is None


def test_the_prior_abstains_far_from_all_that_was_measured() -> None:
    """Sums of millions of numbers: none of its operators has more than thousands."""
    assert picked(canonical_workload(product(16, 2**26, 16))) is None


def test_without_a_prior_nothing_is_picked() -> None:
    assert prior_pick(OF_PRODUCT, CPU, DesignSpace(OF_PRODUCT, CPU), prior_of("cuda")) is None


def test_grouped_convolutions_are_left_to_their_default_schedule() -> None:
    grouped = grouped_convolutions.workload(grouped_convolutions.Shape())
    assert picked(grouped) is None
    assert picked(canonical_workload(with_algorithm(grouped.module, "direct")["main"])) is None


ONE, TWO, MANY = (tvm.target.Target({"kind": "llvm", "num-cores": n}) for n in (1, 2, 16))


def activation(*shape: int, of: Callable[[Any], Any] = topi.nn.relu) -> Any:
    x = array(*shape)
    module, _ = function(x, of(x))
    return module


def shares(module: Any) -> list[int]:
    """The iterations of its parallel loops."""
    lines = str(module).splitlines()
    return [
        int(each.partition("T.parallel(")[2].partition(")")[0])
        for each in lines
        if "T.parallel(" in each
    ]


def test_a_large_nest_is_shared_out_and_a_small_one_is_not() -> None:
    small = activation(8, 512)
    assert shares(unscheduled.with_parallel_loops(activation(512, 512), TWO)) == [512]
    assert unscheduled.with_parallel_loops(small, TWO) is small


def test_as_many_loops_are_shared_out_as_the_threads_need() -> None:
    module = activation(1, 4, 32, 2048)
    assert shares(unscheduled.with_parallel_loops(module, TWO)) == [128]
    assert shares(unscheduled.with_parallel_loops(module, MANY)) == [128]


@pytest.mark.parametrize("module", [activation(512, 512), activation(64, 1024, of=topi.nn.softmax)])
def test_the_numbers_are_the_same(module: Any) -> None:
    shared = unscheduled.with_parallel_loops(module, TWO)
    assert shares(shared)
    np.testing.assert_array_equal(computed(shared), computed(module))


def computed(module: Any) -> np.ndarray:
    x, y = module["main"].params
    size = [int(n) for n in x.shape]
    given = tvm.runtime.tensor(np.random.default_rng(1).normal(size=size).astype("float32"))
    found = tvm.runtime.tensor(np.zeros([int(n) for n in y.shape], "float32"))
    tvm.compile(module, TWO)(given, found)
    return np.asarray(found.numpy())


def test_a_sum_is_never_taken_apart() -> None:
    module = activation(1_000_000, of=topi.sum)
    assert unscheduled.with_parallel_loops(module, TWO) is module


MADE_BY_REVISION = {"5": "82da3aff897467d7"}
"""A digest of the default schedules of a few functions, by `DEFAULT_SCHEDULES`. If it changes,
raise the revision and replace this line: records of older ones must win again."""


def test_a_change_of_what_default_schedules_make_is_a_new_revision(module: Any) -> None:
    cpu = TargetConfig(name="cpu", cpu="haswell", threads=2)
    image = canonical_workload(te.create_prim_func(convolution(14, 16, 3))).module
    # One that is not worth tiles of Winograd's, and one that is.
    deep = canonical_workload(te.create_prim_func(convolution(28, 32, 64))).module
    chained, _ = chain()
    few = canonical_workload(te.create_prim_func(depthwise(14, 3))).module
    text = "".join(
        str(with_default_schedule(each, tvm_target(target).target))
        for target in (cpu, ON_GPU)
        for each in (module, image, deep, chained, few)
    )
    assert {DEFAULT_SCHEDULES: hashlib.sha256(text.encode()).hexdigest()[:16]} == MADE_BY_REVISION


# The schedule of each kernel of a build.


TARGET = tvm_target(TargetConfig(name="cpu", threads=1))


def schedule_choice_product(directory: Path) -> ModelFunction:
    (function,) = functions_of(imported(matmul_model(), directory, TARGET.target, "nchw"))
    return function


def test_a_record_that_does_not_replay_leaves_the_default_schedule(tmp_path: Path) -> None:
    function = schedule_choice_product(tmp_path)
    of_another = replace(make_record(), status="ok")
    for records in ((), (of_another,)):
        choice = schedule_choice.chosen_schedule(
            function, {function.workload.digest: records}, TARGET
        )
        assert (choice.main, choice.record) == (None, None)


def test_a_schedule_stays_where_an_earlier_build_had_the_same(tmp_path: Path) -> None:
    choice = schedule_choice.chosen_schedule(schedule_choice_product(tmp_path), {}, TARGET, "prior")
    key = WorkloadKey(choice.function.workload.digest, TARGET.key)
    mark = mark_of(schedule_choice.record_id(key, present(choice.picked)))
    assert schedule_choice.as_before([choice], HowBuilt(kept=(mark,)), TARGET.key) == [choice]
    for other in ((), (mark + 1,)):
        (found,) = schedule_choice.as_before([choice], HowBuilt(kept=other), TARGET.key)
        assert (found.main, found.schedule) == (None, None)


def test_a_neighbours_record_that_is_picked_counts_as_transferred(tmp_path: Path) -> None:
    """Each pick is offered as a neighbour's, until nothing better is found beside it."""
    function = schedule_choice_product(tmp_path)
    choice = schedule_choice.chosen_schedule(function, {}, TARGET, "prior")
    for _ in range(20):
        if choice.picked is None:
            break
        near = make_record(
            "another", template=choice.picked.template, decisions=choice.picked.decisions
        )
        records = {function.workload.digest: (near,)}
        choice = schedule_choice.chosen_schedule(function, records, TARGET, "transfer")
    assert present(choice.record).key == make_key("another")


def test_a_pick_that_computed_other_numbers_before_is_not_picked_again(tmp_path: Path) -> None:
    function = schedule_choice_product(tmp_path)
    pick = present(schedule_choice.chosen_schedule(function, {}, TARGET, "prior").picked)
    wrong = make_record(status="wrong", template=pick.template, decisions=pick.decisions)
    records = {function.workload.digest: (wrong,)}
    assert schedule_choice.chosen_schedule(function, records, TARGET, "prior").picked not in {
        None,
        pick,
    }


def test_kernels_without_their_schedule_have_the_default_one(tmp_path: Path) -> None:
    one = schedule_choice_product(tmp_path)
    other = replace(one, name="other")
    chosen = [
        schedule_choice.ScheduleChoice(each, object(), make_record()) for each in (one, other)
    ]
    left = schedule_choice.without_schedules(chosen, {"other"})
    assert left == [chosen[0], schedule_choice.ScheduleChoice(other, None, None)]


# The choice among neighbours' schedules: the likeliest few are tried, in the better of two
# adaptations.


def cubic(size: int) -> DesignSpace:
    return space_of(product(size, size, size))


def offered(space: DesignSpace, count: int) -> list[Schedule]:
    sampled = space.sample(4 * count, random.Random(1))
    found = dict.fromkeys(s for s in map(space.describe, (x.trace for x in sampled)) if s)
    return list(found)[:count]


def described(space: DesignSpace, fitting: Sequence[tvm.s_tir.Schedule]) -> list[Schedule | None]:
    return [space.describe(schedule.trace) for schedule in fitting]


def lanes(schedules: Sequence[Schedule]) -> list[float]:
    """Scores by which a wide innermost loop over columns is all that counts."""
    tiles = [[v for _, v in schedule.decisions if len(v) > 2] for schedule in schedules]
    return [float(columns[-1]) for _, columns, *_ in tiles]


def test_what_is_expected_to_be_fast_comes_before_what_is_near() -> None:
    space = cubic(128)
    slow_first = sorted(offered(space, 16), key=lambda schedule: lanes([schedule]))
    found = schedule_choice.transferred_schedules(slow_first, space, lanes)
    assert len(found.fitting) == schedule_choice.MAX_TRANSFERRED
    tried = lanes([s for s in described(space, found.fitting) if s])
    assert sum(tried) > sum(lanes(slow_first[: schedule_choice.MAX_TRANSFERRED]))


def test_a_schedule_of_another_shape_is_tried_in_two_adaptations() -> None:
    """500 is not a multiple of what 512 is split by: one is TVM's own repair, the
    other has the nearest divisors."""
    space = cubic(500)
    found = schedule_choice.transferred_schedules(offered(cubic(512), 2), space, None)
    assert 2 < len(found.fitting) <= 4
    assert None not in described(space, found.fitting)


def test_what_fits_in_neither_way_is_counted() -> None:
    space = cubic(128)
    good, other = offered(space, 2)
    foreign = Schedule("of another workload", good.decisions)
    hostile = replace(other, decisions=(*other.decisions[:-1], (other.decisions[-1][0], (-5,))))
    found = schedule_choice.transferred_schedules([foreign, good, hostile], space, lanes)
    assert described(space, found.fitting) == [good]
    assert found.misfits == 2

"""Forms of a function, and those of them that are searched first."""

import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper
from tvm import te, topi
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import IterVar

from tests.compiler.schedules.test_unfolded_image import (
    batched,
    convolution,
    product,
    product_tiles_computed,
    product_tiles_module_of,
    turned,
)
from tests.support.models import grouped_convolutions
from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tests.support.models.workload_corpus import primitive, workloads
from tests.support.present import present
from tests.support.small_onnx import model_of, save
from tests.support.tuning_records import make_record
from tests.support.worker_requests import build_request
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.compile import handle_request
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts.packing import MAIN, split_kernel
from tunegate.compiler.loader import TvmArtifact
from tunegate.compiler.schedules import winograd
from tunegate.compiler.schedules.algorithm_variants import (
    ASKED_FOR,
    DIRECT,
    GROUP_VECTORS,
    IM2COL,
    asked_algorithm,
    variants_of,
    with_algorithm,
)
from tunegate.compiler.schedules.convolutions import window_of_three
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.schedules.product_tiles import TwoFactors, two_factors
from tunegate.compiler.schedules.schedule_choice import best_that_replays
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.schedules.winograd import FOUR, TWO, Layer, best_tiling, with_winograd
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import Built
from tunegate.tune.prior import VectorRegisters
from tunegate_cache.format.records import WorkloadKey

load_intrinsics("llvm")


def module_of(name: str) -> Any:
    return canonical_workload(primitive(workloads()[name])).module


def test_a_gpu_has_the_direct_form_only() -> None:
    assert len(variants_of(module_of("conv2d_3x3_float32"), "cuda")) == 1
    assert len(variants_of(workload(Shape()).module, "cuda")) == 1


def test_a_convolution_of_small_groups_is_seldom_fastest_as_it_is_written() -> None:
    direct, vectors = variants_of(workload(Shape()).module, "llvm")
    assert (direct.name, direct.is_seldom_best, direct.lanes) == (DIRECT, True, 1)
    assert (vectors.name, vectors.is_seldom_best, vectors.lanes) == (GROUP_VECTORS, False, 16)


def test_a_depthwise_convolution_may_be_fastest_in_either_form() -> None:
    depthwise = workload(Shape(groups=32, channels_in=1, channels_out=1)).module
    assert not any(each.is_seldom_best for each in variants_of(depthwise, "llvm"))


def test_a_plain_convolution_is_seldom_fastest_as_a_product() -> None:
    direct, product = variants_of(module_of("conv2d_nhwc_float32"), "llvm")
    assert (direct.is_seldom_best, product.name, product.is_seldom_best) == (False, IM2COL, True)


def test_what_has_no_window_and_no_groups_has_one_form() -> None:
    for name in ("matmul_float32", "softmax_float32", "conv2d_depthwise_float32"):
        assert [each.name for each in variants_of(module_of(name), "llvm")] == [DIRECT]


def test_a_form_that_is_asked_for_is_the_only_one_and_is_sampled_as_often_as_any() -> None:
    for name in (DIRECT, IM2COL):
        module = module_of("conv2d_nhwc_float32")
        module.update_func(module.get_global_var("main"), module["main"].with_attr(ASKED_FOR, name))
        (found,) = variants_of(module, "llvm")
        assert (found.name, found.is_seldom_best) == (name, False)


def found_in(tensors: list[Any], *, constant: bool = True) -> TwoFactors | None:
    schedule = tvm.s_tir.Schedule(product_tiles_module_of(tensors, constant=constant))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    (block,) = (each for each in blocks if schedule.get(each).init is not None)
    return two_factors(schedule, block)


@pytest.mark.parametrize(
    ("tensors", "extents", "axes", "last_axis"),
    [
        (convolution(8, 16, 32), [1, 8, 8, 32], [0, 1, 2], 3),
        (product(12, 40, 96), [12, 96], [0], 1),
        (turned(12, 40, 96), [12, 96], [0], 0),
        (batched(3, 10, 24, 32), [3, 10, 32], [1], 2),
    ],
)
def test_it_knows_where_the_weights_are_the_same(
    tensors: list[Any], extents: list[int], axes: list[int], last_axis: int
) -> None:
    found = present(found_in(tensors))
    assert (found.extents, found.axes, found.last_axis) == (extents, axes, last_axis)
    assert (found.second, found.constant) == (1, True)


# A form of convolutions that a target asks for is what is searched, and what is built.

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
PLAIN = canonical_workload(primitive(workloads()["conv2d_nhwc_float32"]))
PRODUCT = canonical_workload(primitive(workloads()["matmul_float32"]))
GROUPED = Shape()


def mark(module: Any, algorithm: str) -> Any:
    return with_algorithm(module, algorithm)["main"]


def test_functions_that_have_the_form_beside_another_one_are_marked() -> None:
    grouped = workload(GROUPED).module
    assert asked_algorithm(mark(PLAIN.module, IM2COL)) == IM2COL
    assert asked_algorithm(mark(PLAIN.module, DIRECT)) == DIRECT
    assert asked_algorithm(mark(grouped, GROUP_VECTORS)) == GROUP_VECTORS
    assert asked_algorithm(mark(PLAIN.module, GROUP_VECTORS)) == ""
    assert asked_algorithm(mark(grouped, IM2COL)) == ""
    for algorithm in (DIRECT, IM2COL, GROUP_VECTORS):
        assert asked_algorithm(mark(PRODUCT.module, algorithm)) == ""


def test_where_the_search_chooses_nothing_is_touched() -> None:
    assert with_algorithm(PLAIN.module, "auto") is PLAIN.module


def test_each_form_has_records_and_templates_of_its_own() -> None:
    marked = (canonical_workload(mark(PLAIN.module, each)) for each in (DIRECT, IM2COL))
    forms = [PLAIN, *marked]
    assert len({each.digest for each in forms}) == 3
    names = [
        {each.variant.name for each in DesignSpace(form, TARGET).templates.values()}
        for form in forms
    ]
    assert names == [{DIRECT, IM2COL}, {DIRECT}, {IM2COL}]


@pytest.mark.parametrize("algorithm", [DIRECT, GROUP_VECTORS])
def test_a_grouped_convolution_without_a_record_is_in_its_form(algorithm: str) -> None:
    module = with_algorithm(workload(GROUPED, has_constants=False).module, algorithm)
    built = with_default_schedule(module, TARGET)
    is_in_vectors = IS_SCHEDULED in built["main"].attrs
    assert is_in_vectors == (algorithm == GROUP_VECTORS)
    given = arguments(GROUPED)
    wanted = convolved(GROUPED, *given)
    assert np.array_equal(output(built, given, wanted.shape), wanted)


def test_an_image_is_unfolded_without_a_record_and_the_sums_are_the_same() -> None:
    asked_for = with_algorithm(PLAIN.module, IM2COL)
    direct = with_default_schedule(with_algorithm(PLAIN.module, DIRECT), TARGET)
    product = with_default_schedule(asked_for, TARGET)
    assert len(sums(product)[0].iter_vars) == 3
    assert len(sums(direct)[0].iter_vars) == 7
    random = np.random.default_rng(3)
    *shapes, result = (
        tuple(int(n) for n in each.shape)
        for each in ms.arg_info.ArgInfo.from_prim_func(PLAIN.module["main"])
    )
    inputs = [random.integers(-4, 5, each).astype("float32") for each in shapes]
    assert np.array_equal(output(product, inputs, result), output(direct, inputs, result))


def output(module: Any, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    result = tvm.runtime.tensor(np.zeros(shape, "float32"))
    tvm.compile(module, TARGET)(*map(tvm.runtime.tensor, inputs), result)
    return np.asarray(result.numpy())


def sums(module: Any) -> list[Any]:
    """The blocks that add up, without where they begin with zero."""
    schedule = tvm.s_tir.Schedule(module)
    found = map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
    return [
        each
        for each in found
        if any(int(v.iter_type) == IterVar.CommReduce for v in each.iter_vars)
    ]


# Winograd's form of a convolution.


AVX2, AVX512 = VectorRegisters(8, 16), VectorRegisters(16, 32)
BLOCK = "winograd_products"
"""A block that only the rewritten convolution has."""


def target(threads: int = 1) -> Any:
    return tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": threads})


def layer(
    height: int, width: int, channels: int, out: int, *, batch: int = 1, pad: int = 1
) -> list[Any]:
    """A convolution with a bias, SiLU and a residual."""
    x = te.placeholder((batch, height, width, channels), "float32", "x")
    w = te.placeholder((3, 3, channels, out), "float32", "w")
    b = te.placeholder((1, 1, 1, out), "float32", "b")
    y = topi.add(topi.nn.conv2d(x, w, 1, pad, 1, data_layout="NHWC", kernel_layout="HWIO"), b)
    before = te.placeholder([int(n) for n in y.shape], "float32", "before")
    return [x, w, b, before, topi.add(topi.multiply(y, topi.sigmoid(y)), before)]


def values(module: Any, tensors: list[Any], threads: int = 1, **how: Any) -> np.ndarray:
    return product_tiles_computed(module, tensors, target(threads), **how)


@pytest.mark.parametrize(
    ("tensors", "threads"),
    [
        (layer(28, 28, 32, 64), 1),  # whole tiles
        (layer(29, 23, 24, 40), 1),  # rows and columns beyond the last whole tile
        (layer(26, 26, 32, 32, batch=3), 2),
        (layer(30, 30, 32, 32, pad=0), 1),  # reads its argument, not a padded copy
        (layer(31, 18, 64, 32, pad=0, batch=2), 2),
        (layer(10, 10, 192, 192), 1),  # F(2x2): few tiles for many weights
    ],
)
def test_numbers_are_those_of_the_direct_form(tensors: list[Any], threads: int) -> None:
    direct = product_tiles_module_of(tensors)
    tiled = with_winograd(direct, target(threads))
    assert BLOCK in str(tiled)
    assert ("T.parallel" in str(tiled)) == (threads > 1)
    expected = values(direct, tensors)
    np.testing.assert_allclose(
        values(tiled, tensors, threads), expected, rtol=0, atol=3e-5 * np.abs(expected).max()
    )


def test_a_pixel_that_is_nan_reaches_its_window_in_the_direct_form_and_else_its_tiles() -> None:
    tensors = layer(28, 28, 32, 64)
    direct = product_tiles_module_of(tensors)
    spoilt = (
        values(each, tensors, pixel=np.nan) for each in (direct, with_winograd(direct, target()))
    )
    assert [int(np.isnan(each).sum()) for each in spoilt] == [3 * 3 * 64, 5 * 5 * 64]


def test_what_follows_is_written_with_the_convolution() -> None:
    tiled = str(with_winograd(product_tiles_module_of(layer(28, 28, 32, 64)), target()))
    assert "T_sigmoid" not in tiled
    assert tiled.count("T.sigmoid") == 1


def test_weights_are_transformed_before_the_kernel_runs() -> None:
    tensors = layer(28, 28, 32, 64)
    kernel = split_kernel(with_winograd(product_tiles_module_of(tensors), target()))
    assert kernel.packs == (1,)
    assert "winograd_weights" not in str(kernel.module[MAIN])


def test_other_convolutions_stay_as_they_are() -> None:
    plain = convolution(28, 32, 64)
    x = te.placeholder((1, 32, 28, 28), "float32", "x")
    w = te.placeholder((64, 32, 3, 3), "float32", "w")
    half = [te.placeholder(each.shape, "float16", each.name) for each in plain[:2]]
    grouped = grouped_convolutions.workload(grouped_convolutions.Shape()).module
    dilated = topi.nn.conv2d(*plain[:2], 1, 2, 2, data_layout="NHWC", kernel_layout="HWIO")
    narrow = topi.nn.conv2d(*half, 1, 1, 1, data_layout="NHWC", kernel_layout="HWIO")
    first = topi.nn.conv2d(x, w, 1, 1, 1)
    strided = convolution(28, 32, 64, stride=2)
    others = (strided, [*plain[:2], dilated], [*half, narrow], [x, w, first])
    modules = [grouped, product_tiles_module_of(plain, constant=False)]
    modules += map(product_tiles_module_of, others)
    assert all(with_winograd(each, target()) is each for each in modules)


def test_a_target_can_ask_for_the_direct_form() -> None:
    module = product_tiles_module_of(convolution(28, 32, 64))
    assert BLOCK in str(with_winograd(module, target()))
    asked = with_algorithm(module, DIRECT)
    assert with_winograd(asked, target()) is asked
    # So large that no unfolded image is in the search: a layer with one variant.
    large = product_tiles_module_of(convolution(400, 64, 64))
    assert with_winograd(marked := with_algorithm(large, DIRECT), target()) is marked


def test_the_faster_of_a_tuned_direct_form_and_the_default_is_taken() -> None:
    workload = canonical_workload(product_tiles_module_of(convolution(28, 32, 64))[MAIN])
    space = DesignSpace(workload, target())
    drawn = map(space.describe, (each.trace for each in space.sample(16, random.Random(1))))
    tuned = next(s for s in drawn if s and space.templates[s.template].variant.name == DIRECT)
    key = WorkloadKey(workload.digest, "")
    records = (
        make_record(template=tuned.template, decisions=tuned.decisions),
        make_record(template=""),
    )
    faster, slower = (msgspec.structs.replace(each, key=key) for each in records)
    function = ModelFunction(
        name=MAIN,
        workload=workload,
        weight=1,
        label="",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        bytes_moved=1.0,
    )
    main, record = best_that_replays(function, (faster, slower), target())
    assert record == faster
    direct = tvm.IRModule({MAIN: main})
    assert with_winograd(direct, target()) is direct
    assert best_that_replays(function, (slower, faster), target()) == (None, slower)


@pytest.mark.parametrize("registers", [AVX2, AVX512])
def test_the_rule_weighs_products_against_weights_and_copies(registers: VectorRegisters) -> None:
    def outputs(*shape: int) -> int:
        found = best_tiling(Layer(*shape), registers, 1)
        return found.transform.outputs if found else 1

    assert outputs(1, 56, 56, 64, 64) == FOUR.outputs
    assert outputs(1, 40, 40, 64, 64) == FOUR.outputs
    assert outputs(1, 160, 160, 32, 3) == 1  # the image in vectors of one number
    assert outputs(1, 28, 28, 12, 64) == 1  # no whole vectors of outputs
    assert outputs(1, 2, 2, 512, 512) == 1  # more weights to read than are saved
    # What whole runs tune in tests: a trial must be able to beat its default schedule.
    assert outputs(1, 14, 14, 32, 16) == 1


def test_few_outputs_of_many_channels_take_the_smaller_transform() -> None:
    assert present(best_tiling(Layer(1, 14, 14, 256, 256), AVX2, 1)).transform is TWO


@pytest.mark.parametrize("transform", [TWO, FOUR])
def test_the_transforms_lose_little_over_many_channels(transform: winograd.Transform) -> None:
    """A model may be off by 1e-3; a layer of 512 channels is off by a fiftieth of that."""
    tensors = convolution(8, 512, 16)
    direct = product_tiles_module_of(tensors)
    found = present(window_of_three(direct[MAIN]))
    tiling = winograd.Tiling(transform, rows=2, columns=4, lanes=16)
    tiled = winograd.schedule_tiled(direct[MAIN], found, tiling, target())
    expected = values(direct, tensors)
    error = np.abs(values(tvm.IRModule({MAIN: tiled}), tensors) - expected).max()
    assert 0 < error < 2e-5 * np.abs(expected).max()


def residual_model(directory: Path) -> Path:
    """Two convolutions around a residual, as a detector has them."""
    random = np.random.default_rng(3)
    weights = {
        "w": random.standard_normal((32, 32, 3, 3)) / 17,
        "b": random.standard_normal(32),
        "v": random.standard_normal((20, 32, 3, 3)) / 17,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[0, 1, 1, 0]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    constants = {name: value.astype("float32") for name, value in weights.items()}
    model = model_of(nodes, {"x": [2, 32, 27, 30]}, {"y": [2, 20, 26, 29]}, constants)
    return save(model, directory / "m.onnx")


@pytest.mark.parametrize(("layout", "threads"), [("nhwc", 1), ("nhwc", 2), ("nchw", 1)])
def test_a_model_computes_what_onnx_runtime_does(tmp_path: Path, layout: Any, threads: int) -> None:
    model = residual_model(tmp_path)
    target = TargetConfig(name="cpu", cpu="haswell", layout=layout, threads=threads)
    assert isinstance(handle_request(build_request(model, tmp_path, target=target)), Built)
    artifact = ArtifactFile.read(tmp_path / "build")
    feed = {"x": np.random.default_rng(1).standard_normal((2, 32, 27, 30)).astype("float32")}
    (found,) = TvmArtifact(tmp_path / "build", artifact).run(feed)
    (expected,) = onnxruntime.InferenceSession(onnx.load(model).SerializeToString()).run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())

"""A function that packs a constant is read as splits and transpositions, or left to TVM."""

import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tvm import relax, te
from tvm.driver import build
from tvm.relax.frontend.onnx import from_onnx
from tvm.runtime import tensor
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import IndexMap

from tests.compiler.importing.fused_module import imported, one_call
from tests.compiler.layouts.test_layout import all_kinds_of_convolutions
from tests.support.small_onnx import conv_model, model_of, typed
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts import packing
from tunegate.compiler.layouts import packing as prepacking
from tunegate.compiler.layouts.layout import channels_last
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

Split = tuple[int, int, int]
"""A dimension of the result: (axis, stride, extent)."""


def copied(extents: tuple[int, ...], value: Callable[[Any], Any] = lambda x: x) -> Any:
    a = te.placeholder(extents, name="a")
    b = te.compute(extents, lambda *axes: value(a(*axes)), name="b")
    return Schedule(te.create_prim_func([a, b]))


def part(axis: Any, whole: int, stride: int, extent: int) -> Any:
    """A part of an index as the compiler writes it."""
    inner = axis if stride * extent == whole else axis % (stride * extent)
    return inner if stride == 1 else inner // stride


def laid_out(extents: tuple[int, ...], splits: list[Split]) -> Any:
    schedule = copied(extents)

    def index(*axes: Any) -> list[Any]:
        return [part(axes[axis], extents[axis], *split) for axis, *split in splits]

    layout = IndexMap.from_func(index, ndim=len(extents), index_dtype="int32")
    schedule.transform_layout("b", ("write", 0), layout)
    return schedule.mod["main"]


def expected(value: np.ndarray, splits: list[Split]) -> np.ndarray:
    """One number after the other."""
    result = np.empty([extent for _, _, extent in splits], value.dtype)
    for place in np.ndindex(value.shape):
        result[tuple(place[axis] // stride % extent for axis, stride, extent in splits)] = value[
            place
        ]
    return result


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Split]]:
    """Every axis in up to three parts, all parts in any order; an axis of one is one part."""
    extents, splits = [], []
    for axis in range(draw(st.integers(1, 3))):
        stride = 1
        for extent in draw(st.lists(st.integers(2, 5), max_size=3)) or [1]:
            splits.append((axis, stride, extent))
            stride *= extent
        extents.append(stride)
    return tuple(extents), draw(st.permutations(splits))


@given(layouts())
@settings(deadline=None)
def test_a_layout_is_what_its_indices_say(layout: tuple[tuple[int, ...], list[Split]]) -> None:
    extents, splits = layout
    moves = packing.moves_of(laid_out(extents, splits))
    assert moves is not None
    (move,) = moves
    value = np.arange(math.prod(extents), dtype="int32").reshape(extents)
    assert move.argument == 0
    assert np.array_equal(move.of(value), expected(value, splits))


def test_it_is_what_the_compiler_makes_of_it() -> None:
    splits = [(1, 4, 8), (0, 1, 3), (1, 1, 2), (1, 2, 2)]
    function = laid_out((3, 32), splits)
    value = np.random.default_rng(1).uniform(size=(3, 32)).astype("float32")
    output = tensor(np.empty([extent for _, _, extent in splits], "float32"))
    build(function, target="llvm")(tensor(value), output)
    (move,) = packing.moves_of(function) or ()
    assert np.array_equal(move.of(value), output.numpy())


def test_what_computes_is_no_packing() -> None:
    assert packing.moves_of(copied((4, 3), lambda x: x + 1.0).mod["main"]) is None


def test_what_leaves_something_out_is_no_packing() -> None:
    a = te.placeholder((4, 8), name="a")
    first = te.create_prim_func([a, te.compute((4,), lambda i: a[i, 0], name="b")])
    twice = te.create_prim_func([a, te.compute((4, 8), lambda i, j: a[i, i], name="b")])
    padded = te.create_prim_func([a, te.compute((4, 4), lambda i, j: a[i, j * 2 % 8], name="b")])
    assert [packing.moves_of(function) for function in (first, twice, padded)] == [None] * 3


# Weights are packed once: not while a candidate is timed, and not while a model runs.

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
OF_EIGHT_LANES = tvm_target(TargetConfig(name="cpu", threads=1, cpu="haswell")).target


CONVOLUTION = conv_model(channels=16, out=32, size=14)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return imported(CONVOLUTION, tmp_path_factory.mktemp("prepacking"), TARGET)


def convolution(module: Any) -> ModelFunction:
    return next(f for f in functions_of(module) if "conv" in f.operator)


def packed_schedule(function: ModelFunction) -> Any:
    """A schedule that lays the weights out in another shape than they have."""
    space = DesignSpace(function.workload, TARGET)
    for schedule in space.sample(12, random.Random(1)):
        kernel = packing.split_kernel(schedule.mod)
        if any(len(kind.shape.values) > 4 for kind in kernel.packed_types):
            return schedule
    raise AssertionError


def test_constants_are_part_of_what_a_task_is(module: Any) -> None:
    function = convolution(module)
    plain = canonical_workload(module[function.name].without_attr(packing.ATTRIBUTE))
    assert plain.digest != function.workload.digest
    templates = DesignSpace(plain, TARGET).templates
    assert set(templates) == set(DesignSpace(function.workload, TARGET).templates)


def test_packing_apart_a_split_kernel_computes_the_same(module: Any) -> None:
    function = convolution(module)
    kernel = packing.split_kernel(packed_schedule(function).mod)
    assert kernel.moves is not None
    library = build(kernel.module, target=TARGET)
    plain = build(function.workload.module, target=TARGET)
    given = arguments(function, np.random.default_rng(1))
    constants = [given[index].numpy() for index in kernel.packs]
    packed = [tvm.runtime.tensor(move.of(constants[move.argument])) for move in kernel.moves]
    plain["main"](*given)
    expected = given[-1].numpy().copy()
    found = {"argument": given, "packed": packed}
    library[packing.MAIN](*(found[source.kind][source.place] for source in kernel.sources))
    np.testing.assert_allclose(given[-1].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_an_unknown_packing_is_compiled(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function = convolution(module)
    schedule = packed_schedule(function)
    understood = packing.split_kernel(schedule.mod)
    monkeypatch.setattr(prepacking, "moves_of", lambda _: None)
    compiled = packing.split_kernel(schedule.mod)
    assert compiled.moves is None
    library = build(compiled.module, target=TARGET)
    given = arguments(function, np.random.default_rng(1))
    constants = [given[index] for index in compiled.packs]
    packed = [
        tvm.runtime.empty([int(n) for n in t.shape.values], "float32")
        for t in compiled.packed_types
    ]
    library[packing.PREPACK](*constants, *packed)
    for move, by_kernel in zip(understood.moves or (), packed, strict=True):
        assert np.array_equal(move.of(constants[move.argument].numpy()), by_kernel.numpy())


def arguments(function: ModelFunction, rng: np.random.Generator) -> list[Any]:
    infos = ms.arg_info.ArgInfo.from_prim_func(function.workload.module["main"])
    return [
        tvm.runtime.tensor(rng.uniform(-1, 1, [int(n) for n in a.shape]).astype(str(a.dtype)))
        for a in infos
    ]


def test_a_kernel_without_constants_is_left_as_it_is(module: Any) -> None:
    workload = canonical_workload(module[convolution(module).name].without_attr(packing.ATTRIBUTE))
    kernel = packing.split_kernel(workload.module)
    assert (kernel.packs, kernel.packed_types) == ((), ())
    assert kernel.module is workload.module
    assert [source.place for source in kernel.sources] == [0, 1, 2, 3]


def test_a_build_packs_nothing_at_run_time(module: Any) -> None:
    function = convolution(module)
    scheduled = packed_schedule(function).mod["main"].without_attr("global_symbol")
    changed = module.clone()
    changed.update_func(changed.get_global_var(function.name), scheduled)
    built = packing.fold_packing(changed)
    names = [variable.name_hint for variable in built.functions]
    assert not any("prepack" in name and "prepacked" not in name for name in names)
    assert any("prepacked" in name for name in names)
    assert len(built["main"].params) == len(module["main"].params)


def test_a_kernel_of_one_block_packs_nothing(tmp_path: Path) -> None:
    """A scatter into a constant: the compiler's split fails on it."""
    built = packing.fold_packing(imported(scatter_model(), tmp_path, TARGET))
    assert not any("prepack" in variable.name_hint for variable in built.functions)


def scatter_model() -> onnx.ModelProto:
    node = helper.make_node("ScatterElements", ["table", "at", "x"], ["y"], axis=0, reduction="add")
    return model_of(
        [node],
        {"at": typed(onnx.TensorProto.INT64, [52, 8]), "x": [52, 8]},
        {"y": [24, 8]},
        {"table": np.zeros((24, 8), "f")},
        opset=18,
    )


def test_an_image_keeps_its_layout_outside(tmp_path: Path) -> None:
    last, first = (imported(CONVOLUTION, tmp_path / way, TARGET, way) for way in ("nhwc", "nchw"))

    def shapes(module: Any) -> list[list[int]]:
        return [[int(n) for n in p.ty.shape.values] for p in module["main"].params]

    assert shapes(last) == shapes(first)
    assert convolution(last).workload.digest != convolution(first).workload.digest


# Constants are moved without a kernel, to what the compiler would have made of them.


def bound_values(module: Any) -> list[Any]:
    return [binding.value for block in module["main"].body.blocks for binding in block.bindings]


def calls(module: Any) -> Counter[str]:
    return Counter(v.op.name for v in bound_values(module) if isinstance(v, relax.Call))


def result(module: Any) -> np.ndarray:
    """The result of a function that returns a constant."""
    (value, *_) = [v for v in bound_values(module) if hasattr(v, "value")]
    return np.asarray(value.value.numpy())


@given(st.permutations(range(4)))
def test_a_transposed_constant_is_a_constant(axes: list[int]) -> None:
    weight = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
    moved = packing.with_moved_constants(one_call(relax.op.permute_dims(relax.const(weight), axes)))
    assert not calls(moved)
    assert np.array_equal(result(moved), weight.transpose(axes))


def test_a_kind_of_number_that_numpy_does_not_have_is_left_to_the_compiler() -> None:
    weight = relax.const(np.ones((2, 3)), "bfloat16")
    moved = packing.with_moved_constants(one_call(relax.op.permute_dims(weight)))
    assert calls(moved) == {"relax.permute_dims": 1}


@pytest.mark.parametrize("last", [True, False])
def test_the_tasks_of_a_model_are_the_same(last: bool) -> None:
    """The convolutions include grouped, strided and transposed ones: the
    compiler folds what is left here."""
    module = from_onnx(all_kinds_of_convolutions())
    module = channels_last(module) if last else module
    assert tasks(packing.with_moved_constants(module)) == tasks(module)


def tasks(module: Any) -> dict[str, int]:
    with TARGET:
        fused = relax.get_pipeline("zero")(module)
    return {f.workload.digest: f.weight for f in functions_of(packing.mark_constants(fused))}


def test_the_weights_of_a_model_are_the_same() -> None:
    module = channels_last(from_onnx(all_kinds_of_convolutions()))
    with TARGET:
        folded, moved = (
            relax.get_pipeline("zero")(m) for m in (module, packing.with_moved_constants(module))
        )
    assert constants(moved) == constants(folded)


def constants(module: Any) -> list[tuple[tuple[int, ...], bytes]]:
    found = [
        argument.value.numpy()
        for value in bound_values(module)
        if isinstance(value, relax.Call) and len(value.args) > 1
        for argument in value.args[1].fields
        if hasattr(argument, "value")
    ]
    return [(value.shape, value.tobytes()) for value in found]


# Weights are padded to whole vectors.


def product(x: Any, weights: Any) -> Any:
    return relax.op.matmul(x, weights)


def convolution_of_pixels(x: Any, weights: Any) -> Any:
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return relax.op.nn.conv2d(x, weights, padding=[1, 1], **layouts)


@pytest.mark.parametrize(
    ("operator", "image", "weights", "cuts"),
    [
        (product, (3, 6), (6, 21), 1),
        (product, (5, 7, 6), (6, 18385), 1),
        (convolution_of_pixels, (1, 5, 7, 4), (3, 3, 4, 150), 1),
        (product, (3, 6), (6, 24), 0),
        (product, (3, 6), (6, 5), 0),
    ],
)
def test_odd_weights_are_padded_and_the_result_is_cut_behind_what_fuses(
    operator: Callable[[Any, Any], Any], image: Any, weights: Any, cuts: int
) -> None:
    random = np.random.default_rng(1)
    numbers, added = (random.standard_normal(s).astype("float32") for s in (weights, weights[-1:]))
    x = relax.Var("x", relax.TensorType(image, "float32"))
    shifted = relax.op.add(operator(x, relax.const(numbers)), relax.const(added))
    before = one_call(relax.op.multiply(relax.op.nn.relu(shifted), shifted), (x,))
    after = packing.with_whole_vectors(before, OF_EIGHT_LANES)
    assert calls(after)["relax.strided_slice"] == cuts
    given = tvm.runtime.tensor(random.standard_normal(image).astype("float32"))
    one, other = (
        relax.VirtualMachine(tvm.compile(each, "llvm"), tvm.cpu())["main"](given).numpy()
        for each in (before, after)
    )
    np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)

"""Weights are packed once: not while a candidate is timed, and not while a model runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm.driver import build
from tvm.s_tir import meta_schedule as ms

from tests.support.small_onnx import conv_model, save
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts import packing as prepacking
from tunegate.compiler.layouts.packing import ATTRIBUTE, MAIN, PREPACK, folded, split_kernel
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("prepacking")
    model = save(conv_model(channels=16, out=32, size=14), directory / "m.onnx")
    prepared = prepare(model, shapes={}, into=directory / "p", path="m.onnx")
    return import_in_layout(prepared, TARGET, "m.onnx", ("nhwc",))


def convolution(module: Any) -> ModelFunction:
    return next(f for f in functions_of(module) if "conv" in f.operator)


def packed_schedule(function: ModelFunction) -> Any:
    """A schedule that lays the weights out in another shape than they have."""
    space = DesignSpace(function.workload, TARGET)
    for schedule in space.sample(12, random.Random(1)):
        kernel = split_kernel(schedule.mod)
        if any(len(kind.shape.values) > 4 for kind in kernel.packed):
            return schedule
    raise AssertionError


def test_a_kernel_knows_which_of_its_arguments_are_constants(module: Any) -> None:
    attributes = convolution(module).workload.module["main"].attrs
    assert [int(index) for index in attributes[ATTRIBUTE]] == [1, 2]
    others = [f for f in functions_of(module) if "conv" not in f.operator]
    assert all(ATTRIBUTE not in f.workload.module["main"].attrs for f in others)


def test_constants_are_part_of_what_a_task_is(module: Any) -> None:
    function = convolution(module)
    plain = canonical_workload(module[function.name].without_attr(ATTRIBUTE))
    assert plain.digest != function.workload.digest
    templates = DesignSpace(plain, TARGET).templates
    assert set(templates) == set(DesignSpace(function.workload, TARGET).templates)


def test_packing_apart_a_split_kernel_computes_the_same(module: Any) -> None:
    function = convolution(module)
    kernel = split_kernel(packed_schedule(function).mod)
    assert kernel.moves is not None
    library = build(kernel.module, target=TARGET)
    plain = build(function.workload.module, target=TARGET)
    given = arguments(function, np.random.default_rng(1))
    constants = [given[index].numpy() for index in kernel.packs]
    packed = [tvm.runtime.tensor(move.of(constants[move.argument])) for move in kernel.moves]
    plain["main"](*given)
    expected = given[-1].numpy().copy()
    found = {"argument": given, "packed": packed}
    library[MAIN](*(found[source.kind][source.place] for source in kernel.sources))
    np.testing.assert_allclose(given[-1].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_packing_that_is_not_understood_is_compiled(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = convolution(module)
    schedule = packed_schedule(function)
    understood = split_kernel(schedule.mod)
    monkeypatch.setattr(prepacking, "moves_of", lambda _: None)
    compiled = split_kernel(schedule.mod)
    assert compiled.moves is None
    library = build(compiled.module, target=TARGET)
    given = arguments(function, np.random.default_rng(1))
    constants = [given[index] for index in compiled.packs]
    packed = [
        tvm.runtime.empty([int(n) for n in t.shape.values], "float32") for t in compiled.packed
    ]
    library[PREPACK](*constants, *packed)
    for move, by_kernel in zip(understood.moves or (), packed, strict=True):
        assert np.array_equal(move.of(constants[move.argument].numpy()), by_kernel.numpy())


def arguments(function: ModelFunction, rng: np.random.Generator) -> list[Any]:
    infos = ms.arg_info.ArgInfo.from_prim_func(function.workload.module["main"])
    return [
        tvm.runtime.tensor(rng.uniform(-1, 1, [int(n) for n in a.shape]).astype(str(a.dtype)))
        for a in infos
    ]


def test_a_kernel_without_constants_is_left_as_it_is(module: Any) -> None:
    workload = canonical_workload(module[convolution(module).name].without_attr(ATTRIBUTE))
    kernel = split_kernel(workload.module)
    assert (kernel.packs, kernel.packed) == ((), ())
    assert kernel.module is workload.module
    assert [source.place for source in kernel.sources] == [0, 1, 2, 3]


def test_a_build_packs_nothing_at_run_time(module: Any) -> None:
    function = convolution(module)
    scheduled = packed_schedule(function).mod["main"].without_attr("global_symbol")
    changed = module.clone()
    changed.update_func(changed.get_global_var(function.name), scheduled)
    built = folded(changed)
    names = [variable.name_hint for variable in built.functions]
    assert not any("prepack" in name and "prepacked" not in name for name in names)
    assert any("prepacked" in name for name in names)
    assert len(built["main"].params) == len(module["main"].params)


def test_a_kernel_of_one_block_packs_nothing(tmp_path: Path) -> None:
    """A scatter into a constant: the compiler's split fails on it."""
    model = save(scatter_model(), tmp_path / "m.onnx")
    prepared = prepare(model, shapes={}, into=tmp_path / "p", path="m.onnx")
    imported = import_in_layout(prepared, TARGET, "m.onnx", ("nhwc",))
    built = folded(imported)
    assert not any("prepack" in variable.name_hint for variable in built.functions)


def scatter_model() -> onnx.ModelProto:
    table = numpy_helper.from_array(np.zeros((24, 8), "f"), "table")
    node = helper.make_node("ScatterElements", ["table", "at", "x"], ["y"], axis=0, reduction="add")
    inputs = [
        helper.make_tensor_value_info("at", onnx.TensorProto.INT64, [52, 8]),
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [52, 8]),
    ]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [24, 8])
    graph = helper.make_graph([node], "scatter", inputs, [output], [table])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_an_image_keeps_its_layout_outside(tmp_path: Path) -> None:
    model = save(conv_model(channels=16, out=32, size=14), tmp_path / "m.onnx")
    prepared = prepare(model, shapes={}, into=tmp_path / "p", path="m.onnx")
    last = import_in_layout(prepared, TARGET, "m.onnx", ("nhwc",))
    first = import_in_layout(prepared, TARGET, "m.onnx", ("nchw",))

    def shapes(module: Any) -> list[list[int]]:
        return [[int(n) for n in p.ty.shape.values] for p in module["main"].params]

    assert shapes(last) == shapes(first)
    assert convolution(last).workload.digest != convolution(first).workload.digest

"""A kernel is compiled once, and a library of such kernels computes what TVM's own does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.support.small_onnx import chain_model, save
from tunegate.compiler.opening import KernelObjects, import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare

TARGET: Any = tvm_target(TargetConfig(name="cpu", threads=1)).target
OTHER: Any = tvm_target(TargetConfig(name="cpu", threads=1, cpu="haswell")).target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("model")
    file = save(chain_model(layers=2, width=16), place / "m.onnx")
    prepared = prepare(file, shapes={}, into=place / "p", path="m.onnx")
    return import_in_layout(prepared, TARGET, "m.onnx", ("nhwc",))


def outputs(executable: Any, files: Any, place: Path) -> Any:
    executable.export_library(str(place), addons=[str(file) for file in files])
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(place)), tvm.cpu())
    given = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
    return machine["main"](tvm.runtime.tensor(given)).numpy()


def test_a_library_of_kernels_computes_what_the_whole_does_and_compiles_each_once(
    module: Any, tmp_path: Path
) -> None:
    with TARGET, tvm.transform.PassContext(opt_level=3):
        whole = relax.build(module, target=TARGET)
    objects = KernelObjects()
    executable, files = objects.executable(module, TARGET, {}, tmp_path / "k")
    expected = outputs(whole, [], tmp_path / "whole.so")
    np.testing.assert_array_equal(outputs(executable, files, tmp_path / "kernels.so"), expected)
    _, again = objects.executable(module, TARGET, {}, tmp_path / "later")
    assert again == files
    assert not (tmp_path / "later").exists()


def test_a_kernel_of_another_target_is_another_and_the_rest_stay(
    module: Any, tmp_path: Path
) -> None:
    objects = KernelObjects()
    _, files = objects.executable(module, TARGET, {}, tmp_path)
    kernel = next(v.name_hint for v in module.functions if v.name_hint != "main")
    _, others = objects.executable(module, TARGET, {kernel: OTHER}, tmp_path)
    assert len({*others} - {*files}) == 1
    assert len({*others} & {*files}) == len(files) - 1

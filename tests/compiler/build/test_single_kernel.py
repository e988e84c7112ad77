"""A function is built by itself and takes the arguments of its workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te

from tests.compiler.build.test_build_model import Workshop, source_of
from tests.support.small_onnx import chain_model, save
from tunegate.compiler.build import build_model
from tunegate.compiler.build import build_model as linked_build
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.loader import is_faster_whole
from tunegate.compiler.opening import KernelObjects, import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.system.output.artifact_file import ArtifactFile


def test_a_kernel_computes_into_its_last_argument() -> None:
    x = te.placeholder((4, 8), name="x")
    main = te.create_prim_func([x, te.compute((4, 8), lambda i, j: x[i, j] + 1.0)])
    target = tvm_target(TargetConfig(name="cpu", threads=1)).target
    kernel = built_kernel(tvm.IRModule({"main": main}), target)
    value = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")
    given = [tvm.runtime.tensor(value), tvm.runtime.tensor(np.zeros_like(value))]
    kernel.function["main"](*kernel.arguments(given))
    np.testing.assert_allclose(given[-1].numpy(), value + 1)


# What is slower kernel by kernel is dropped where the model as a whole is no faster with it.


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("trial"))


def test_a_kernel_that_is_slower_by_itself_stays_where_the_model_is_faster_with_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is remembered, too: a build in another precision does not drop it."""
    monkeypatch.setattr(
        build_model, "slower_in_model", lambda *_, kernels, **__: frozenset(kernels)
    )
    monkeypatch.setattr(build_model, "is_faster_whole", lambda *_, **__: True)
    for name in ("first", "again"):
        built = workshop.build(name, workshop.record(), source="search")
        assert (built.dropped, source_of(built)) == ((), "search")
        assert ArtifactFile.read(workshop.directory / name).key == built.key


def test_of_two_builds_the_faster_one_is_told(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops as they are written take tens of times as long as any schedule."""
    for each in ("with_default_schedule", "with_packing_schedules"):
        monkeypatch.setattr(linked_build, each, lambda module, *_: module)
    workshop.build("plain")
    workshop.build("fast", workshop.record())
    fast, plain = (workshop.directory / name / "model.so" for name in ("fast", "plain"))
    inputs = ArtifactFile.read(plain.parent).inputs

    def is_faster(one: Path, other: Path) -> bool:
        return is_faster_whole(one, other, inputs=inputs, seed=1)

    assert is_faster(fast, plain)
    assert not is_faster(plain, fast)


# A kernel is compiled once, and a library of such kernels computes what TVM's own does.

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

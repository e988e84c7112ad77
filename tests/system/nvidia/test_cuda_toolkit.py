"""A compiler for CUDA is found, and what it makes is code for the GPU that
was asked for: without one."""

import struct
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import te
from tvm.driver import build
from tvm.support.nvcc import compile_cuda

from tests.compiler.search.test_search import product
from tests.support.simulated.cuda_intrinsics import load_cuda_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.system.nvidia.cuda_toolkit import cuda_variables

ARCHITECTURES = (
    "sm_80",
    "sm_90",
    *(pytest.param(each, marks=pytest.mark.proof) for each in ("sm_86", "sm_89")),
)
EM_CUDA = 190


def toolkit(root: Path, version: int) -> Path:
    (root / "include").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "include/cuda.h").write_text(f"#pragma once\n#define CUDA_VERSION {version}\n")
    (root / "include/cuda_runtime.h").touch()
    return root


def find(tmp_path: Path, **variables: str) -> dict[str, str]:
    usual = tmp_path / "usual"
    return cuda_variables({"PATH": "/nowhere", **variables}, usual=usual, packages=())


def test_the_toolkit_that_the_machine_names_comes_first(tmp_path: Path) -> None:
    toolkit(tmp_path / "usual", 13010)
    named = toolkit(tmp_path / "named", 13020)
    assert find(tmp_path, CUDA_HOME=str(named))["CUDA_PATH"] == str(named)
    assert find(tmp_path)["CUDA_PATH"] == str(tmp_path / "usual")


def test_a_checkouts_toolkit_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit(tmp_path / "cuda", 13010)
    monkeypatch.chdir(tmp_path)
    assert find(tmp_path, CUDA_HOME="cuda", CUDA_PATH="./cuda") == {}


def test_a_compiler_on_the_path_shows_where_its_toolkit_is(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "opt", 13010)
    (root / "bin/nvcc").touch(mode=0o755)
    assert find(tmp_path, PATH=str(root / "bin"))["CUDA_PATH"] == str(root)


def test_a_toolkit_of_a_major_version_unlike_the_bindings_uses_nvcc(tmp_path: Path) -> None:
    old = toolkit(tmp_path / "old", 12040)
    variables = find(tmp_path, CUDA_PATH=str(old), PATH="/bin")
    assert variables["TVM_CUDA_COMPILE_MODE"] == "nvcc"
    assert variables["PATH"] == f"{old}/bin:/bin"
    new = toolkit(tmp_path / "new", 13050)
    assert find(tmp_path, CUDA_PATH=str(new))["TVM_CUDA_COMPILE_MODE"] == "nvrtc"


def test_half_a_toolkit_is_none(tmp_path: Path) -> None:
    half = toolkit(tmp_path / "half", 13010)
    (half / "include/cuda_runtime.h").unlink()
    assert find(tmp_path, CUDA_PATH=str(half)) == {}


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler that pip has installed here, for this process."""
    variables = cuda_variables({"PATH": "/nowhere"}, usual=tmp_path)
    assert variables["TVM_CUDA_COMPILE_MODE"] == "nvrtc"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    load_cuda_intrinsics()


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_of_halves_become_code_of_tensor_cores(arch: str) -> None:
    _, candidate = proposed(half_product(256), arch, count=1)
    assert candidate.origin == "search"
    source = kernels(tvm.ir.load_json(candidate.module), arch)
    assert "mma_sync" in source
    assert architecture(compile_cuda(source, target_format="cubin", arch=arch)) == arch


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("packages")
def test_what_has_no_schedule_becomes_code_for_the_device_too() -> None:
    for candidate, origin in zip(
        proposed(product(64, 64, 64), "sm_90", count=1), ("default", "search"), strict=True
    ):
        assert candidate.origin == origin
        source = kernels(tvm.ir.load_json(candidate.module), "sm_90")
        assert architecture(compile_cuda(source, target_format="cubin", arch="sm_90")) == "sm_90"


def proposed(function: Any, arch: str, *, count: int) -> list[Any]:
    target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch=arch)).target
    search = TaskSearch(canonical_workload(function), target, seed=1)
    return list(search.propose(count, ()).candidates)


def half_product(size: int) -> Any:
    a = te.placeholder((size, size), "float16", name="a")
    b = te.placeholder((size, size), "float16", name="b")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return te.create_prim_func([a, b, c])


def kernels(module: Any, arch: str) -> str:
    """The source of what runs on the device; building it compiles it."""
    target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch=arch)).target
    (device_code,) = build(module, target=target).imports
    assert device_code.kind == "cuda"
    return str(device_code.inspect_source("cuda"))


def architecture(cubin: bytes) -> str:
    """The architecture by the ELF header, which has it in the second byte of its flags."""
    assert bytes(cubin[:4]) == b"\x7fELF"
    (machine,) = struct.unpack_from("<H", cubin, 18)
    assert machine == EM_CUDA
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return f"sm_{flags >> 8 & 0xFF}"

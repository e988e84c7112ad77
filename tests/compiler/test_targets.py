import json
import operator
import os
import struct
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import dlight
from tvm.support import nvcc

from tests.compiler.conftest import CALLBACK
from tests.support.present import present
from tunegate.compiler import cuda_text, versions
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.system.machine import packages


def test_a_cpu_is_named_with_the_threads_that_it_was_tuned_for() -> None:
    found = tvm_target(TargetConfig(name="cpu", cpu="haswell", threads=3))
    assert found.attributes == {"kind": "llvm", "mcpu": "haswell", "num-cores": 3}
    assert json.loads(found.export_json()) == found.attributes


def test_the_native_cpu_is_written_by_its_name() -> None:
    assert tvm_target(TargetConfig(name="cpu", threads=1)).attributes["mcpu"] not in {"", "native"}


def test_a_gpu_has_the_limits_that_every_gpu_of_its_kind_has() -> None:
    found = tvm_target(TargetConfig(name="gpu", kind="cuda", arch="sm_90"))
    assert (found.attributes["kind"], found.attributes["arch"]) == ("cuda", "sm_90")
    assert found.attributes["max_threads_per_block"] == 1024


def test_targets_that_make_other_code_have_other_keys_and_the_name_does_not_count() -> None:
    keys = {
        tvm_target(TargetConfig(name="a", cpu=cpu, threads=threads)).key
        for cpu, threads in (("haswell", 1), ("skylake-avx512", 1))
    }
    assert len(keys) == 2
    same = (TargetConfig(name=name, cpu="haswell", threads=1) for name in ("a", "b"))
    assert len({tvm_target(config).key for config in same}) == 1


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (TargetConfig(name="cpu", cpu="z80"), 'cpu "z80" is not one LLVM knows'),
        (TargetConfig(name="gpu", kind="cuda", arch="hopper"), 'arch "hopper" is not a compute'),
    ],
)
def test_what_the_compiler_cannot_know_is_refused_by_name(config: TargetConfig, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        tvm_target(config)
    assert str(raised.value).startswith(f"target {config.name}: {said}")


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_tvm(distribution: str) -> str:
        if distribution != "apache-tvm":
            raise PackageNotFoundError(distribution)
        return "0.27"

    monkeypatch.setattr(packages, "version", only_tvm)
    found = versions.toolchain()
    assert (found.tvm, found.ffi, found.cuda) == ("0.27", "", "")


# NVRTC itself compiles here: it needs no device.

TARGET = tvm_target(TargetConfig(name="gpu", kind="cuda", arch="sm_80")).target


def text_of(dtype: str, of: Callable[[Any, Any], Any] = operator.add) -> str:
    """The text of a kernel, as TVM writes it for NVRTC."""
    x = te.placeholder((64, 64), name="x", dtype=dtype)
    y = te.compute((64, 64), lambda i, j: of(x[i, j] * x[j, i], x[i, j]), name="y")
    function = te.create_prim_func([x, y]).with_attr("global_symbol", "main")
    with TARGET:
        module = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(
            tvm.IRModule({"main": function})
        )
    return str(tvm.compile(module, target=TARGET).mod.imports[0].inspect_source())


def code_of(cubin: bytes) -> dict[str, bytes]:
    """The machine code of each kernel, by the name of its section."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + 64 * n) for n in range(count)]
    strings = cubin[headers[names][4] :]
    named = {strings[h[0] : strings.index(b"\0", h[0])].decode(): h for h in headers}
    return {
        name: cubin[header[4] : header[4] + header[5]]
        for name, header in named.items()
        if name.startswith(".text")
    }


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int64"])
def test_the_machine_code_is_the_same_without_the_headers(dtype: str) -> None:
    text = text_of(dtype)
    brief = present(cuda_text.without_library_headers(text))
    assert "cuda/std" not in brief
    with TARGET:
        found = cuda_text.machine_code(brief)
        expected = code_of(bytes(nvcc.compile_cuda(text, target_format="cubin", compiler="nvrtc")))
    assert code_of(bytes(present(found))) == expected


@pytest.mark.usefixtures("nvrtc")
def test_a_maximum_that_keeps_nan_is_no_instruction_more() -> None:
    text = cuda_text.without_library_headers(text_of("float32", tirx.max))
    assert text is not None
    with TARGET:
        ours, cudas = (
            code_of(bytes(cuda_text.machine_code(each) or b""))
            for each in (text, text.replace("#define max ", "#define "))
        )
    assert ours != cudas
    assert [len(code) for code in ours.values()] == [len(code) for code in cudas.values()]


@pytest.mark.parametrize(
    "needs",
    ["using std::is_same;", "cuda::std::uint8_t x;", "#include <cuda/barrier>", "CUtensorMap map;"],
)
def test_a_text_that_needs_more_of_the_library_keeps_its_headers(needs: str) -> None:
    beginning = "\n#ifdef __CUDACC_RTC__\n  #include <cuda/std/cstdint>\n#endif\n"
    assert cuda_text.without_library_headers(beginning + "__global__ void k() {}") is not None
    assert (
        cuda_text.without_library_headers(f"{beginning}{needs}\n__global__ void k() {{}}") is None
    )


def test_a_text_that_begins_in_another_way_is_left_alone() -> None:
    assert cuda_text.without_library_headers("#include <cuda.h>\n__global__ void k() {}") is None


@pytest.mark.usefixtures("nvrtc")
def test_what_does_not_compile_so_is_compiled_as_tvm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_text, "_NAMES", "this is no C\n")
    with TARGET:
        assert code_of(bytes(tvm.get_global_func(CALLBACK)(text_of("int64"))))


def test_where_nvcc_compiles_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TVM_CUDA_COMPILE_MODE", "nvcc")
    cuda_text.change_texts.cache_clear()
    before = tvm.get_global_func(CALLBACK)
    cuda_text.change_texts()
    assert tvm.get_global_func(CALLBACK).same_as(before)
    cuda_text.change_texts.cache_clear()

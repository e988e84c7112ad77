from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError

import pytest
import tvm

from tunegate.compiler import versions
from tunegate.compiler.runtime import use_threads
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.system.machine import packages as installed_version


def test_a_cpu_is_named_with_the_threads_that_it_was_tuned_for() -> None:
    found = tvm_target(TargetConfig(name="cpu", cpu="haswell", threads=3))
    assert found.attributes == {"kind": "llvm", "mcpu": "haswell", "num-cores": 3}
    assert json.loads(found.export_json()) == found.attributes


def test_the_native_cpu_is_written_by_its_name() -> None:
    found = tvm_target(TargetConfig(name="cpu", threads=1))
    assert found.attributes["mcpu"] not in {"", "native"}


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
def test_what_the_compiler_does_not_know_is_refused_by_name(
    config: TargetConfig, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        tvm_target(config)
    assert str(raised.value).startswith(f"target {config.name}: {said}")


# The threads of kernels in this process.


def test_threads_may_run_wherever_the_process_may() -> None:
    allowed, before = os.sched_getaffinity(0), tvm.get_global_func("runtime.NumThreads")()
    os.sched_setaffinity(0, {max(allowed)})
    try:
        use_threads(1)
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        use_threads(before)
        os.sched_setaffinity(0, allowed)


def test_kernels_get_the_threads_that_they_are_given_and_who_runs_them_keeps_its_cores() -> None:
    threads = tvm.get_global_func("runtime.NumThreads")
    cores, before = os.sched_getaffinity(0), threads()
    use_threads(1)
    assert threads() == 1
    use_threads(before)
    assert os.sched_getaffinity(0) == cores


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_tvm(distribution: str) -> str:
        if distribution != "apache-tvm":
            raise PackageNotFoundError(distribution)
        return "0.27"

    monkeypatch.setattr(installed_version, "version", only_tvm)
    found = versions.toolchain()
    assert (found.tvm, found.ffi, found.cuda) == ("0.27", "", "")

"""A configured target as TVM's target, with the key that records carry."""

import json
from typing import Any

import msgspec
import tvm
from tvm.target import codegen

from tunegate.config import TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.system.machine.cores import default_threads
from tunegate.tune.prior import VectorRegisters
from tunegate_cache.format.target_key import target_key

_CUDA_LIMITS = {"max_shared_memory_per_block": 49152, "max_threads_per_block": 1024}


class ResolvedTarget(msgspec.Struct, frozen=True):
    """`attributes` is what TVM was given: complete, and the same on every machine of its kind."""

    target: Any
    attributes: dict[str, Any]
    key: str

    def export_json(self) -> str:
        return json.dumps(self.attributes)


def tvm_target(config: TargetConfig) -> ResolvedTarget:
    """Returns TVM's target. Raises ConfigError if TVM does not know the CPU or architecture."""
    attributes = _llvm(config) if config.kind == "llvm" else _cuda(config)
    target = tvm.target.Target(attributes)
    return ResolvedTarget(target, attributes, target_key(attributes).digest)


def multiprocessors(arch: str) -> int:
    """Returns those of the first device, 0 where there is none of this architecture."""
    device = tvm.cuda()
    if not device.exist or arch != "sm_" + str(device.compute_version).replace(".", ""):
        return 0
    return int(device.multi_processor_count)


def threads_of(target: Any) -> int:
    """Returns the threads of code for TVM's target."""
    return int(target.attrs.get("num-cores", 1))


def _llvm(config: TargetConfig) -> dict[str, Any]:
    cpu = str(codegen.llvm_get_system_cpu()) if config.cpu == "native" else config.cpu
    if not codegen.llvm_is_valid_cpu(cpu, codegen.llvm_get_system_triple()):
        names = ", ".join(
            sorted(str(c) for c in codegen.llvm_get_cpu_archlist(tvm.target.Target("llvm")))[:8]
        )
        message = (
            f'target {config.name}: cpu "{config.cpu}" is not one LLVM knows (it knows {names}, '
            f'...). Write cpu: native, or the name that "llc -mcpu=help" lists.'
        )
        raise ConfigError(message)
    return {"kind": "llvm", "mcpu": cpu, "num-cores": config.threads or default_threads()}


def _cuda(config: TargetConfig) -> dict[str, Any]:
    arch = config.arch if config.arch != "native" else _native_arch(config)
    if not arch.startswith("sm_"):
        message = f'target {config.name}: arch "{arch}" is not a compute capability such as sm_90.'
        raise ConfigError(message)
    return {"kind": "cuda", "arch": arch, **_CUDA_LIMITS, "host": {"kind": "llvm"}}


def _native_arch(config: TargetConfig) -> str:
    device = tvm.cuda()
    if not device.exist:
        message = (
            f"target {config.name}: arch native, but no CUDA device is visible here. "
            f"Run on the GPU runner, or write its arch, such as sm_90."
        )
        raise EnvironmentUnfitError(message)
    return "sm_" + str(device.compute_version).replace(".", "")


# The vector registers of a CPU that code is generated for.

_X86 = ("x86_64", "i686", "i386")
_WIDENING = (("avx512f", VectorRegisters(16, 32)), ("avx", VectorRegisters(8, 16)))
"""Register files by the feature that adds them, the widest first."""
_SSE = VectorRegisters(4, 16)
_NEON = VectorRegisters(4, 32)
"""The registers of NEON; those of scalable vectors are at least as wide."""


def vector_registers(target: Any) -> VectorRegisters:
    """Returns the vector registers of the target, the default for a GPU, which has none."""
    if str(target.kind.name) != "llvm":
        return VectorRegisters()
    triple = str(target.attrs.get("mtriple", "") or codegen.llvm_get_system_triple())
    if not triple.startswith(_X86):
        return _NEON
    having = (r for feature, r in _WIDENING if codegen.target_has_features([feature], target))
    return next(having, _SSE)

"""Loop nests for a GPU as CUDA C, written by TVM but not compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tvm
from tvm.tirx import Evaluate, IntImm, SeqStmt
from tvm.tirx.build import split_host_device_mods

from tunegate.compiler.cuda_text import change_texts
from tunegate.errors import UnsupportedModelError

_AXES = "xyz"
_GRID, _BLOCK = (tuple(f"{kind}.{axis}" for axis in _AXES) for kind in ("blockIdx", "threadIdx"))
_KERNEL = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__\([\d, ]+\) )?'
    r"(?P<name>\w+)\((?P<parameters>[^)]*)\) \{\n(?P<body>.*?)\n\}\n",
    re.DOTALL,
)
_FORWARD = re.compile(r'^extern "C" __global__ [^{;]*;\n', re.MULTILINE)
_TOGETHER = ("__shared__", "__sync", "__shfl", "__activemask", "asm", "wmma", "mma")
"""Operations between the threads of one block."""
LaunchSize = tuple[int, int, int]
_WARP = 32
_MOST_THREADS = 2**31
"""Threads are counted in 32 bits."""
SHARED_ARRAY = re.compile(
    r"^( *)__shared__ ((?:alignas\(\d+\) )?)([\w ]+?) (\w+)\[(\d+)\];$", re.MULTILINE
)


class DeviceKernel(NamedTuple):
    """A kernel's text between its braces, and its launch. `parameters` are C declarations; `order`
    has the index of the nest's argument for each."""

    name: str
    parameters: tuple[str, ...]
    order: tuple[int, ...]
    body: str
    blocks: LaunchSize
    threads: LaunchSize

    @property
    def block_count(self) -> int:
        return math.prod(self.blocks)

    @property
    def thread_count(self) -> int:
        return math.prod(self.threads)

    @property
    def is_together(self) -> bool:
        """True if the threads of a block cooperate."""
        return any(word in self.body for word in _TOGETHER)


class DeviceCode(NamedTuple):
    """The text before all kernels, and the kernels by the names of their nests."""

    head: str
    kernels: Mapping[str, DeviceKernel]


def device_code(nests: Mapping[str, Any], target: Any) -> DeviceCode:
    """Returns each function as one kernel. Raises UnsupportedModelError for one that is several, or
    whose launch is not of fixed size."""
    named = {name: f.with_attr("global_symbol", name) for name, f in nests.items()}
    host, text = _split_and_write(tvm.IRModule(named), target)
    found = {match["name"]: match for match in _KERNEL.finditer(text)}
    kernels = {name: _kernel(name, f, host[name], found) for name, f in nests.items()}
    begin = min((match.start() for match in found.values()), default=0)
    return DeviceCode(_FORWARD.sub("", text[:begin]), kernels)


def fits(code: DeviceKernel, threads: int) -> bool:
    """Returns whether blocks of so many threads can do the work of the kernel's blocks."""
    if code.block_count * code.thread_count >= _MOST_THREADS:
        return False
    if not code.is_together:
        return True
    has_warps = code.thread_count <= _WARP or code.thread_count % _WARP == 0
    return (
        has_warps
        and code.thread_count <= threads
        and "__shared__" not in SHARED_ARRAY.sub("", code.body)
    )


def _kernel(name: str, nest: Any, host: Any, matches: Mapping[str, re.Match[str]]) -> DeviceKernel:
    calls = list(_launches(host.body))
    if len(calls) != 1:
        raise UnsupportedModelError(f"{name} is {len(calls)} kernels on the device, not one")
    symbol, *given = calls[0].args
    match = matches[str(symbol.value)]
    parameters = tuple(match["parameters"].split(", "))
    blocks, threads = _extents(name, calls[0].attrs.launch_params, given[len(parameters) :])
    arguments = [str(each.name) for each in nest.params]
    if len(set(arguments)) < len(arguments):
        raise UnsupportedModelError(f"{name} has two buffers of one name")
    order = tuple(arguments.index(str(each.args[0].name)) for each in given[: len(parameters)])
    return DeviceKernel(name, parameters, order, match["body"], blocks, threads)


def _extents(name: str, tags: Any, extents: Any) -> tuple[LaunchSize, LaunchSize]:
    known = dict(zip(map(str, tags), extents, strict=False))
    if not set(known) <= {*_GRID, *_BLOCK} or len(extents) != len(known):
        raise UnsupportedModelError(f"{name} is launched with {', '.join(sorted(known))}")
    if not all(isinstance(each, IntImm) for each in extents):
        raise UnsupportedModelError(f"{name} has a launch whose size changes")
    x, y = (
        tuple(int(known[axis]) if axis in known else 1 for axis in axes) for axes in (_GRID, _BLOCK)
    )
    return x, y  # type: ignore[return-value]


def _split_and_write(module: Any, target: Any) -> tuple[Any, str]:
    """Returns the functions that launch, and the text of what they launch."""
    change_texts()
    module = tvm.tirx.transform.BindTarget(target.with_host(tvm.target.Target("llvm")))(module)
    lower, _, finalize = tvm.tirx.get_tir_pipeline("default")
    host, devices = split_host_device_mods(lower(module))
    build = tvm.get_global_func("target.build.cuda")
    made = (build(finalize()(device), of) for of, device in devices.items())
    return host, "".join(str(each.inspect_source("cuda")) for each in made)


def _launches(statement: Any) -> Iterator[Any]:
    match statement:
        case SeqStmt():
            for each in statement.seq:
                yield from _launches(each)
        case Evaluate():
            call = statement.value
            if getattr(getattr(call, "op", None), "name", "") == "tirx.call_ffi_kernel":
                yield call
        case _ if hasattr(statement, "body"):
            yield from _launches(statement.body)

"""More shared memory for a block than the usual 48 KB.

A card from Ampere on has up to 227 KB, for arrays of dynamic size alone. So a schedule whose arrays
do not fit into 48 KB gets dynamic ones; all others stay as they are, byte for byte. Templates and
their digests do not depend on the limit: a record of a small card serves a large one, and on a
small card a schedule that is too large for it is refused when it is replayed.

Run as a child (`python -m`) on a device, it builds a kernel with all that the card offers, launches
it and checks what it computes. It prints the bytes that a block may use. If that fails, a kernel
with the usual 48 KB is tried, and the child's last line is the error of that one.
"""

import ctypes
import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import SBlock, Schedule
from tvm_ffi import structural_walk

from tunegate.compiler.cuda_text import change_texts
from tunegate.tune.gpu_analysis import SHARED_MEMORY, USUAL_SHARED_MEMORY

_SPARE_BYTES = 1024
"""Bytes left free: TVM aligns arrays, and its sums over threads have small static ones."""
_LIMIT = "max_shared_memory_per_block"
_SHARED, _DYNAMIC = "shared", "shared.dyn"
_THREADS = 256


def shared_bytes(target: Any) -> int:
    """Returns what a block may use on this target."""
    return int(target.attrs.get(_LIMIT, USUAL_SHARED_MEMORY))


def with_more_memory(target: Any) -> Any | None:
    """Returns the target with what a block may use here, where that is more than it says."""
    usable = int(os.environ.get(SHARED_MEMORY, "0"))
    if str(target.kind.name) != "cuda" or usable <= shared_bytes(target):
        return None
    return tvm.target.Target({**dict(target.export()), _LIMIT: usable})


def use_dynamic_arrays(schedule: Any) -> None:
    """Gives the schedule's arrays in shared memory a dynamic size."""
    blocks: list[Any] = []
    structural_walk(schedule.mod["main"].body, [(SBlock, blocks.append)])
    for block in blocks:
        for number, region in enumerate(block.writes):
            if region.source.scope() == _SHARED:
                schedule.set_scope(schedule.get_sblock(block.name_hint), number, _DYNAMIC)


# The trial on a device.

_OPT_IN_ATTRIBUTE = 97


def offered_bytes() -> int:
    """Returns what the driver says that a block of the first device may opt in to; 0 where it does
    not say."""
    answer = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        error = driver.cuInit(0) or driver.cuDeviceGetAttribute(
            ctypes.byref(answer), _OPT_IN_ATTRIBUTE, 0
        )
    except (OSError, AttributeError):
        return 0
    return 0 if error else answer.value


def require_kernel(count: int) -> None:
    """Builds and runs a kernel that reverses so many floats in shared memory. Raises what the
    compiler and the device raise, and ValueError for wrong numbers."""
    x = te.placeholder((count,), name="x")
    y = te.compute((count,), lambda i: x[count - 1 - i] + 1.0, name="y")
    schedule = Schedule(te.create_prim_func([x, y]).with_attr("global_symbol", "main"))
    block = schedule.get_sblock("y")
    shared_block = schedule.cache_read(block, 0, _DYNAMIC)
    grid, _, thread = schedule.split(schedule.get_loops(block)[0], [1, None, _THREADS])
    schedule.bind(grid, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    schedule.compute_at(shared_block, grid)
    _, thread = schedule.split(schedule.get_loops(shared_block)[-1], [None, _THREADS])
    schedule.bind(thread, "threadIdx.x")
    change_texts()
    device = tvm.cuda()
    architecture = "sm_" + str(device.compute_version).replace(".", "")
    target = tvm.target.Target({"kind": "cuda", "arch": architecture, "host": {"kind": "llvm"}})
    library = tvm.compile(schedule.mod, target=target)
    numbers = np.arange(count, dtype="float32")
    output = tvm.runtime.tensor(np.zeros_like(numbers), device)
    library["main"](tvm.runtime.tensor(numbers, device), output)
    if not (output.numpy() == numbers[::-1] + 1).all():
        raise ValueError("a kernel computes wrong numbers")


def usable_bytes() -> int:
    """Returns the bytes that a block may use. Raises as `require_kernel` does."""
    limit = offered_bytes()
    if limit - _SPARE_BYTES > USUAL_SHARED_MEMORY:
        with suppress(Exception):  # a device that failed fails again
            require_kernel(limit // 4 // _THREADS * _THREADS)
            return limit - _SPARE_BYTES
    require_kernel(USUAL_SHARED_MEMORY // 4)
    return USUAL_SHARED_MEMORY


def main() -> int:
    try:
        sys.stdout.write(f"{usable_bytes()}\n")
    except Exception as error:
        sys.stderr.write(f"\n{(str(error).strip().splitlines() or [type(error).__name__])[-1]}\n")
        sys.stderr.flush()
        os._exit(1)  # on a failed device destructors abort
    return 0


if __name__ == "__main__":
    sys.exit(main())

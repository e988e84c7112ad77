"""A whole model as one persistent kernel in CUDA C.

Each block does its share of every part of a stage, then waits for all others (Zhuang et al.,
"MonoNN", OSDI 2024). All must be resident: see `stages/residency.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.persistent.device_code import (
    SHARED_ARRAY,
    DeviceKernel,
    LaunchSize,
    fits,
)
from tunegate_whole_model.persistent.stage_program import (
    PlacedNest,
    StageProgram,
    launch_blocks,
)
from tunegate_whole_model.stages.contexts import Context


def kernel_text(
    head: str, entries: Mapping[str, StageProgram], inputs: int, outputs: int, context: Context
) -> str:
    """Returns the text of a kernel for each program, by name: all take the inputs, the arena, the
    weights and the outputs. Raises UnsupportedModelError for a nest that does not fit."""
    nests = [nest.code for each in entries.values() for nest in each.nests]
    codes = {code.name: code for code in nests}
    times = Counter(code.name for code in nests)
    pools = [f"  {name}_shared {name};" for name in codes]
    return "\n".join(
        (
            head,
            files("tunegate_whole_model.persistent").joinpath("barrier.cu").read_text(),
            *(_function(each, context.threads, times[each.name]) for each in codes.values()),
            "union tunegate_pool {",
            *pools,
            "};",
            *(
                line
                for name, program in entries.items()
                for line in _entry(name, program, inputs, outputs, context)
            ),
        )
    )


def _function(code: DeviceKernel, threads: int, times: int) -> str:
    """Returns a kernel as a function, so that one called several times is compiled once. The
    parameters `blockIdx` and `threadIdx` hide CUDA's own. Reads and writes of two blocks are no
    longer apart in time, so nothing may be read through an incoherent cache: pointers are not
    `__restrict__`."""
    if not fits(code, threads):
        raise UnsupportedModelError(f"{code.name} does not fit into blocks of {threads} threads")
    once = "__noinline__ " if times > 1 else ""
    arrays = SHARED_ARRAY.findall(code.body)
    body = SHARED_ARRAY.sub(_shared_array, code.body)
    if code.thread_count != threads:
        body = body.replace("__syncthreads()", f"tunegate_wait({code.thread_count})")
    own = f"const dim3 blockIdx, const dim3 threadIdx, {code.name}_shared& shared"
    parameters = ", ".join((*(each.replace("__restrict__ ", "") for each in code.parameters), own))
    return "\n".join(
        (
            f"struct {code.name}_shared {{",
            *(f"  {aligned}{kind} {name}[{count}];" for _, aligned, kind, name, count in arrays),
            "};",
            f"static __device__ {once}void {code.name}({parameters}) {{\n{body}\n}}",
        )
    )


def _shared_array(match: re.Match[str]) -> str:
    indent, _, kind, name, count = match.groups()
    return f"{indent}{kind} (&{name})[{count}] = shared.{name};"


def _entry(
    name: str, program: StageProgram, inputs: int, outputs: int, context: Context
) -> Iterator[str]:
    parameters = (
        *(f"char* input_{n}" for n in range(inputs)),
        "char* arena",
        "char* weights",
        *(f"char* output_{n}" for n in range(outputs)),
    )
    bounds = f"{context.threads}, {context.blocks_each}"
    yield f'extern "C" __global__ void __launch_bounds__({bounds})'
    yield f"{name}({', '.join(parameters)}) {{"
    yield "  __shared__ tunegate_pool pool;"
    for stage in range(program.barriers + 1):
        if stage:
            yield "  tunegate_barrier();"
        begin = 0
        for nest, of in zip(program.nests, program.stages, strict=True):
            if of == stage:
                yield from _part(nest, begin, context.threads)
                begin += launch_blocks(nest.code, context.threads)
    yield "}"


def _part(nest: PlacedNest, begin: int, threads: int) -> Iterator[str]:
    """Yields a nest's loop: a block has every n-th share, as `strided_steps` of `block_steps.py`.
    It waits for its threads after a cooperative share: the next one has the same shared memory."""
    code = nest.code
    given = ", ".join(
        f"({parameter.replace('__restrict__ ', '').rsplit(' ', 1)[0]})({argument})"
        for parameter, argument in zip(code.parameters, nest.arguments, strict=True)
    )
    first = f"tunegate_first({begin})"
    yield f"  for (unsigned b = {first}; b < {launch_blocks(code, threads)}u; b += gridDim.x) {{"
    if code.is_together:
        at = f"{_place('b', code.blocks)}, {_place('threadIdx.x', code.threads)}"
        call = f"{code.name}({given}, {at}, pool.{code.name});"
        yield f"    if (threadIdx.x < {code.thread_count}u) {call}"
        yield "    __syncthreads();"
    else:
        count = code.thread_count
        at = f"{_place(f'(t / {count}u)', code.blocks)}, {_place(f'(t % {count}u)', code.threads)}"
        yield f"    const unsigned t = b * {threads}u + threadIdx.x;"
        call = f"{code.name}({given}, {at}, pool.{code.name});"
        yield f"    if (t < {code.block_count * count}u) {call}"
    yield "  }"


def _place(number: str, extents: LaunchSize) -> str:
    x, y, _ = extents
    return f"dim3({number} % {x}u, {number} / {x}u % {y}u, {number} / {x * y}u)"

"""Exports a model's scheduled module as one shared object with a C header, including its
weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline
from tvm.support import cc

from tunegate.compiler.build.build_model import Finished, with_defaults
from tunegate.compiler.targets import threads_of
from tunegate.errors import EnvironmentUnfitError, UnsupportedModelError
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.tune.compiler_protocol import BuildModel
from tunegate_whole_model.native.c_compiler import NO_C_COMPILER, c_compiler
from tunegate_whole_model.native.c_text import c_text, header
from tunegate_whole_model.native.native_object import HEADER, NATIVE_OBJECT
from tunegate_whole_model.native.one_launch import in_one_launch
from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.native.straight_code import SYMBOL, StraightCode

_LINKED = ("-O2", "-pthread", "-s", "-Wl,-Bsymbolic,-z,nodelete,-z,defs")
_WEIGHTS = """.section .rodata
.balign 64
.globl weight_bytes
.hidden weight_bytes
weight_bytes:
.incbin "{file}"
.section .note.GNU-stack,"",@progbits
"""


def link_native(finished: Finished, request: BuildModel, *, is_whole: bool) -> int:
    """Writes the object and its header into the request's directory, and returns the object's size
    in bytes. Raises UnsupportedModelError, and EnvironmentUnfitError without a C compiler."""
    directory = Path(request.directory)
    if (compiler := c_compiler()) is None:
        raise EnvironmentUnfitError(NO_C_COMPILER)
    module = with_defaults(finished.module, finished.lower, request)
    target = finished.lower.tiles or finished.lower.target
    try:
        export_native(module, target, finished.names, directory, compiler, is_whole=is_whole)
    except UnsupportedModelError as error:
        message = f"{request.model.path}: {error}. Write artifact: runtime."
        raise UnsupportedModelError(message) from error
    return (directory / NATIVE_OBJECT).stat().st_size


def export_native(
    module: Any,
    target: Any,
    names: tuple[Sequence[str], Sequence[str]],
    at: Path,
    compiler: str,
    *,
    is_whole: bool = False,
) -> NativeProgram:
    """Writes the object and its header; `names` are those of inputs and outputs. A `is_whole` one
    starts its threads once per inference, not in each kernel. Raises UnsupportedModelError for what
    is not straight-line code."""
    lowered = _lower(module, target, shares_memory=not is_whole)
    kernels = {v: f for v, f in lowered.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    threads = threads_of(target)
    program = StraightCode(lowered["main"], names, threads, set(kernels)).program()
    functions = {SYMBOL.format(v.name_hint): f for v, f in kernels.items()}
    if is_whole:
        program, functions = in_one_launch(program, functions)
    library = tvm.tirx.build(_name_functions(functions), target=target, pipeline="default")
    at.mkdir(parents=True, exist_ok=True)
    (at / HEADER).write_text(header())
    with TemporaryFolder() as sources:
        _link(library, program, Path(sources), at / NATIVE_OBJECT, compiler)
    return program


def _name_functions(functions: Mapping[str, Any]) -> Any:
    """Returns a module of functions by their symbols, without TVM's prefix."""
    plain = {symbol.removeprefix(SYMBOL.format("")): f for symbol, f in functions.items()}
    return tvm.IRModule({name: f.with_attr("global_symbol", name) for name, f in plain.items()})


def _link(library: Any, program: NativeProgram, sources: Path, at: Path, compiler: str) -> None:
    """Links the object and leaves nothing else behind. It exports only the functions of `model.h`,
    so that two models can live in one process, and stays loaded, as its threads run its code."""
    library.write_to_file(str(sources / "kernels.o"), "o")
    (sources / HEADER).write_text(header())
    (sources / "model.c").write_text(c_text(program))
    (sources / "weights.bin").write_bytes(program.weights or b"\0")
    (sources / "weights.s").write_text(_WEIGHTS.format(file=sources.resolve() / "weights.bin"))
    (sources / "exports.map").write_text("{ global: model_*; local: *; };\n")
    cc.create_shared(
        str(at),
        # A library before what needs it is left out.
        [*(str(sources / each) for each in ("model.c", "weights.s", "kernels.o")), "-lm"],
        [f"-Wl,--version-script={sources / 'exports.map'}", *_LINKED],
        cc=compiler,
    )


def _lower(module: Any, target: Any, *, shares_memory: bool) -> Any:
    memory = [relax.transform.StaticPlanBlockMemory()] if shares_memory else []
    with target, tvm.transform.PassContext(opt_level=3):
        for passes in (
            pipeline.library_dispatch_passes(target),
            pipeline.legalize_passes(target),
            pipeline.dataflow_lower_passes(target),
            [*memory, relax.transform.AttachGlobalSymbol()],
        ):
            module = tvm.transform.Sequential(passes)(module)
    return module

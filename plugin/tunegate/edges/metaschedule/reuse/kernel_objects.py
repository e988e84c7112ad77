"""Kernels as object files, each compiled once for an open model: nearly all of a build stands in
that of another precision too, and in those that a schedule is tried in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.tirx import Evaluate, PrimFunc
from tvm_ffi import StructuralKey

_NOTHING = "tunegate_nothing"
"""The function of the one library that is linked as TVM links: kernels are found beside it."""


class KernelObjects:
    """The files stay in the directory that each was first asked for in."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str, Any], Path] = {}

    def executable(
        self, module: Any, target: Any, others: Mapping[str, Any], into: Path
    ) -> tuple[Any, Sequence[Path]]:
        """Returns a scheduled Relax module as TVM's executable, and the files of its kernels to
        link it with. `others` are the targets of kernels that are not compiled for `target`."""
        with target, tvm.transform.PassContext(opt_level=3):
            lowered = relax.get_pipeline("default")(module)
            kernels = {v: f for v, f in lowered.functions.items() if isinstance(f, PrimFunc)}
            files = [
                self._file(variable, kernel, others.get(variable.name_hint, target), into)
                for variable, kernel in kernels.items()
            ]
            rest = {v: f for v, f in lowered.functions.items() if v not in kernels}
            rest[tvm.ir.GlobalVar(_NOTHING)] = _nothing()
            without = tvm.IRModule(rest, attrs=lowered.attrs)
            return relax.build(without, target=target, relax_pipeline=None), files

    def _file(self, variable: Any, kernel: Any, target: Any, into: Path) -> Path:
        key = variable.name_hint, str(target), StructuralKey(kernel)  # type: ignore[call-arg]  # its stub is wrong
        if key not in self._files:
            into.mkdir(parents=True, exist_ok=True)
            file = into / f"kernel-{len(self._files)}.o"
            module = tvm.IRModule({variable: kernel})
            compiled = tvm.tirx.build(module, target=target, pipeline="default")
            compiled.write_to_file(str(file), "o")
            self._files[key] = file
        return self._files[key]


def _nothing() -> Any:
    return PrimFunc([], Evaluate(0)).with_attr("global_symbol", _NOTHING)

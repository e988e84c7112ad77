"""A prepared model, opened for the compiler: its module and the kernels in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import tvm
from tvm import relax
from tvm.tirx import Evaluate, PrimFunc
from tvm_ffi import StructuralKey

from tunegate.compiler.build.functions import ModelFunction
from tunegate.models.prepared import PreparedModel

# Kernels as object files, each compiled once for an open model: nearly all of a build stands in
# that of another precision too, and in those that a schedule is tried in.

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


# Known schedules of an open model: those that its records give, and those that are slower inside
# it. That hangs on no precision, so each is asked once.

_Choice = TypeVar("_Choice")


class KnownSchedules(Generic[_Choice]):
    """Kernels are those of one model, by their names. Schedules are told apart by their
    decisions."""

    def __init__(self) -> None:
        self._chosen: dict[str, tuple[object, _Choice]] = {}
        self._slower: dict[tuple[str, Hashable], bool] = {}

    def chosen(self, name: str, given: object, choose: Callable[[], _Choice]) -> _Choice:
        """Returns the choice out of what is given, its records and their source, or what was chosen
        when the same was given last."""
        known = self._chosen.get(name)
        if known is None or known[0] != given:
            known = self._chosen[name] = given, choose()
        return known[1]

    def tried(self, name: str, schedule: Hashable, *, slower: bool) -> None:
        """Remembers that this schedule was tried in the model."""
        self._slower[name, schedule] = slower

    def forgive(self, names: Collection[str]) -> None:
        """Takes back that schedules of these kernels are slower: the model is faster with them."""
        for name, schedule in self._slower:
            if name in names:
                self._slower[name, schedule] = False

    def is_slower(self, name: str, schedule: Hashable) -> bool | None:
        """Says whether the schedule is slower inside the model; None where it was not tried."""
        return self._slower.get((name, schedule))


@dataclass(frozen=True)
class OpenModel:
    """The shared state of listing the tasks and building. `objects` and `known` grow with each
    build."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]
    objects: KernelObjects = field(default_factory=KernelObjects)
    known: KnownSchedules[Any] = field(default_factory=KnownSchedules)

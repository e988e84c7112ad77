"""A model's file, opened for the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import tvm
from tvm import relax
from tvm.tirx import Evaluate, IntImm, PrimFunc
from tvm_ffi import StructuralKey

from tunegate.compiler.build.functions import ModelFunction, functions_of, layer_names
from tunegate.compiler.importing.import_onnx import ImportedModel, fused, import_operators
from tunegate.compiler.layouts.layout import Layout, layouts
from tunegate.compiler.schedules.algorithm_variants import with_algorithm
from tunegate.compiler.targets import tvm_target
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.system.processes.memory_limit import memory_problem
from tunegate.tune.protocol import ModelFile

# A prepared model, opened for the compiler: its module and the kernels in it.

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


OpenPrepared = Callable[[PreparedModel], OpenModel]
"""Opens a model for one target. Raises UnsupportedModelError where the compiler does not take
it."""


def opened_model(model: ModelFile, target: TargetConfig, into: Path) -> OpenModel:
    """Raises ModelError for a file that is no model, and UnsupportedModelError where it cannot be
    compiled."""
    prepared = prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    return opening(model, target)(prepared)


def opening(model: ModelFile, target: TargetConfig) -> OpenPrepared:
    """Returns what opens this model, or a part of it, for the target."""
    return partial(
        open_model,
        target=tvm_target(target).target,
        path=model.path,
        layouts=layouts(target),
        algorithm=target.algorithm,
    )


def open_model(
    prepared: PreparedModel,
    target: Any,
    path: str,
    *,
    layouts: Sequence[Layout],
    algorithm: str = AUTO,
) -> OpenModel:
    """Raises UnsupportedModelError where the compiler cannot take it."""
    module = with_algorithm(import_in_layout(prepared, target, path, layouts), algorithm)
    try:
        return OpenModel(prepared, module, functions_of(module, layer_names(prepared.optimized)))
    except Exception as error:
        # A shape that is known only when the model runs is no number: TVM's own errors say so.
        problem = memory_problem(error) or "the compiler needs shapes that do not depend on data"
        raise UnsupportedModelError(f"{path}: {problem}.") from error


# A prepared model as a module that the compiler can build, in the first layout where it can. Every
# process that opens a model decides alike: by the model alone.


def import_in_layout(
    prepared: PreparedModel, target: Any, path: str, layouts: Sequence[Layout]
) -> Any:
    """Returns the fused module. Raises UnsupportedModelError with what the first layout lacks, and
    at once where memory is what is missing: the other side might have had it."""
    model = import_operators(prepared, path)
    problems: list[UnsupportedModelError] = []
    for layout in layouts:
        try:
            return _fused(model, target, layout)
        except UnsupportedModelError as error:
            if error.__cause__ is not None and memory_problem(error.__cause__):
                raise
            problems.append(error)
    raise problems[0]


def _fused(model: ImportedModel, target: Any, layout: Layout) -> Any:
    module = fused(model, target, channels_last=layout == "nhwc")
    problem = unbuildable(module, target)
    if problem:
        raise UnsupportedModelError(f"{model.path}: {problem}.")
    return module


# Problems of an imported model that the compiler cannot build, found without compiling a kernel.

_CALL_TIR = "relax.call_tir"
_OPERATOR = re.compile(r"^R\.(?:nn\.)?([\w.]+)\(", re.MULTILINE)
_MAX_TEXT = 120


def unbuildable(module: Any, target: Any) -> str:
    """Says why a fused Relax module cannot be built; '' where nothing is known against it."""
    return _dynamic(module) or _unlowered(module, target)


def _dynamic(module: Any) -> str:
    """Names the first kernel or output whose extents are not numbers."""
    for variable, function in module.functions.items():
        if isinstance(function, PrimFunc) and not all(_is_static(p.ty) for p in function.params):
            kernel = str(variable.name_hint).removeprefix("fused_")
            return f"shapes that depend on data (kernel {kernel}) are not supported"
    kind = module["main"].ret_ty
    if not all(_is_static(each) for each in getattr(kind, "fields", [kind])):
        return "outputs whose shape depends on data are not supported"
    return ""


def _is_static(kind: Any) -> bool:
    shape = getattr(kind, "shape", None)
    if isinstance(kind, relax.TensorType):
        if not isinstance(shape, relax.ShapeExpr):
            return False
        shape = shape.values
    return shape is None or all(isinstance(extent, IntImm) for extent in shape)


def _unlowered(module: Any, target: Any) -> str:
    """Says which operator has no code in the layout it was given. The virtual machine's code is
    generated only where operators are left, and no kernel is compiled for it."""
    if not any(_is_left(binding.value) for binding in _bindings(module["main"])):
        return ""
    try:
        with target:
            lowered = relax.get_default_pipeline(target)(module)
        relax.vm_build._vmcodegen(relax.ExecBuilder(), lowered)
    except Exception as error:
        return f"the compiler has no code for {_offending(str(error))}"
    return ""


def _bindings(main: Any) -> list[Any]:
    return [binding for block in main.body.blocks for binding in block.bindings]


def _is_left(value: Any) -> bool:
    return isinstance(value, relax.Call) and getattr(value.op, "name", _CALL_TIR) != _CALL_TIR


def _offending(text: str) -> str:
    """Names the operator that an error is about, else gives its last line."""
    operator = _OPERATOR.search(text)
    lines = text.strip().splitlines() or ["an operator"]
    return operator.group(1) if operator else lines[-1].strip()[:_MAX_TEXT]

"""Opens a model's file for the compiler."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import onnx
import tvm
from tvm import relax
from tvm.tirx import Evaluate, IntImm, PrimFunc
from tvm_ffi import StructuralKey

from tunegate.compiler.build.functions import ModelFunction, functions_of, is_choice, layer_names
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.import_onnx import (
    ImportedModel,
    import_operators,
    legalize_and_fuse,
)
from tunegate.compiler.importing.node_errors import fault_of_shapes
from tunegate.compiler.layouts.layout import Layout, layouts
from tunegate.compiler.loader import BRANCH
from tunegate.compiler.schedules.algorithm_variants import with_algorithm
from tunegate.compiler.targets import tvm_target
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.system.processes.memory_limit import memory_problem
from tunegate.tune.protocol import ModelFile

# A prepared model, opened for the compiler: its module and the kernels in it.

# Kernels as object files, each compiled once per open model: builds in other precisions and trial
# builds share nearly all of them.

_NOTHING = "tunegate_nothing"
"""The function of the one library that TVM itself links: kernels are linked beside it."""


class KernelObjects:
    """Compiled kernels. A file stays in the directory that it was first requested for."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str, Any], Path] = {}

    def executable(
        self, module: Any, target: Any, other_targets: Mapping[str, Any], into: Path
    ) -> tuple[Any, Sequence[Path]]:
        """Returns a scheduled Relax module as TVM's executable, and the files of its kernels to
        link with it. `other_targets` are the targets of kernels that are not compiled for
        `target`."""
        with target, tvm.transform.PassContext(opt_level=3):
            kernel_module = relax.get_pipeline("default")(with_branches(module))
            kernels = {v: f for v, f in kernel_module.functions.items() if isinstance(f, PrimFunc)}
            files = [
                self._file(variable, kernel, other_targets.get(variable.name_hint, target), into)
                for variable, kernel in kernels.items()
            ]
            rest = {v: f for v, f in kernel_module.functions.items() if v not in kernels}
            empty = PrimFunc([], Evaluate(0)).with_attr("global_symbol", _NOTHING)
            rest[tvm.ir.GlobalVar(_NOTHING)] = empty
            without = tvm.IRModule(rest, attrs=kernel_module.attrs)
            return relax.build(without, target=target, relax_pipeline=None), files

    def _file(self, variable: Any, kernel: Any, target: Any, into: Path) -> Path:
        key = variable.name_hint, str(target), StructuralKey(kernel)  # type: ignore[call-arg]  # its stub is wrong
        if key not in self._files:
            into.mkdir(parents=True, exist_ok=True)
            file = into / f"kernel-{len(self._files)}.o"
            module = tvm.IRModule({variable: kernel})
            code = tvm.tirx.build(module, target=target, pipeline="default")
            code.write_to_file(str(file), "o")
            self._files[key] = file
        return self._files[key]


# The branches of an If. What only one of them reads is computed only there. A branch is a function:
# TVM plans the memory of a function as if all of it ran, and gave one branch the memory of the
# other.

_MOST_CHOICES = 64
"""Of a module with more, both ways are computed: each choice takes a walk over the module."""


def with_branches(module: Any) -> Any:
    """Returns a module of kernel calls with a branch for each choice; the module itself if it has
    none, or too many."""
    kernels = {variable for variable, each in module.functions.items() if is_choice(each)}
    if not kernels:
        return module
    plain = relax.transform.ToNonDataflow()(module)
    main = plain["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    branching = _Branching(plain, kernels)
    if sum(map(branching.is_choice, bindings)) > _MOST_CHOICES:
        return module
    body = _sequence(branching.of(bindings, [main.body.body]), main.body.body)
    new_main = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)
    branching.builder.update_func(plain.get_global_var("main"), new_main)
    return relax.transform.DeadCodeElimination()(branching.builder.get())


class _Branching:
    """Makes branches of the choices in a module; `kernels` are those of choices."""

    def __init__(self, module: Any, kernels: Collection[Any]) -> None:
        self.builder = relax.BlockBuilder(module)
        self._kernels = kernels

    def of(self, bindings: Sequence[Any], results: Iterable[Any]) -> list[Any]:
        """Returns the bindings, with branches for their choices; values in `results` are read
        afterwards."""
        group = self._last_choices(bindings)
        if not group:
            return list(bindings)
        group_variables = {binding.var for binding in group}
        condition, *_ = _operands(group[0])
        behind = _dependents(bindings, group_variables)
        alike = {binding.var for binding in bindings if self._depends_on(binding, condition)}
        around = {condition, *(v for each in results for v in _variables(each)), *alike}
        ways = [[_operands(binding)[place] for binding in group] for place in (1, 2)]
        then, otherwise = (
            self._only_in(bindings, group_variables, way, around.union(*map(_variables, other)))
            for way, other in (ways, ways[::-1])
        )
        inside = {binding.var for binding in (*then, *otherwise)} | group_variables
        rest = [binding for binding in bindings if binding.var not in inside]
        first = [binding for binding in rest if binding.var not in behind]
        last = [binding for binding in rest if binding.var in behind]
        operands = [variable for each in (*then, *otherwise, *last) for variable in _reads(each)]
        return [
            *self.of(first, [*results, condition, *ways[0], *ways[1], *operands]),
            *self._branch(group, condition, (then, ways[0]), (otherwise, ways[1])),
            *self.of(last, results),
        ]

    def _branch(
        self, group: Sequence[Any], condition: Any, *ways: tuple[Sequence[Any], Sequence[Any]]
    ) -> list[Any]:
        kind = relax.TupleType([binding.var.ty for binding in group])
        branches = [
            self._call(self.of(bindings, values), values, kind) for bindings, values in ways
        ]
        outputs = relax.Var("chosen", kind)
        parts = [
            relax.VarBinding(binding.var, relax.TupleGetItem(outputs, place))
            for place, binding in enumerate(group)
        ]
        return [relax.VarBinding(outputs, relax.If(condition, *branches)), *parts]

    def _call(self, bindings: Sequence[Any], values: Sequence[Any], kind: Any) -> Any:
        """Returns the call of a new function that computes these values."""
        branch, result = (relax.Var("branch", kind) for _ in range(2))
        body = _sequence([*bindings, relax.VarBinding(branch, relax.Tuple(values))], branch)
        variables = _variables(body)
        function = relax.utils.copy_with_new_vars(relax.Function(variables, body, kind))
        call = relax.Call(self.builder.add_func(function, BRANCH), variables)
        return _sequence([relax.VarBinding(result, call)], result)

    def _last_choices(self, bindings: Sequence[Any]) -> list[Any]:
        """Returns the choices by the condition of the last one that none of them depends on."""
        choices = [binding for binding in bindings if self.is_choice(binding)]
        if not choices:
            return []
        group = [
            choice for choice in choices if self._depends_on(choice, _operands(choices[-1])[0])
        ]
        rounds: dict[Any, int] = {}
        for binding in bindings:
            before = max((rounds.get(variable, 0) for variable in _reads(binding)), default=0)
            rounds[binding.var] = before + (binding in group)
        return [each for each in group if rounds[each.var] == max(rounds.values())]

    def _depends_on(self, binding: Any, condition: Any) -> bool:
        return self.is_choice(binding) and bool(_operands(binding)[0].same_as(condition))

    def is_choice(self, binding: Any) -> bool:
        value = binding.value
        return isinstance(value, relax.Call) and any(
            argument in self._kernels for argument in value.args[:1]
        )

    def _only_in(
        self,
        bindings: Sequence[Any],
        group_variables: Collection[Any],
        way: Sequence[Any],
        other_targets: set[Any],
    ) -> list[Any]:
        """Returns the bindings that only this way of the choices reads."""
        operands, elsewhere = {v for each in way for v in _variables(each)}, set(other_targets)
        only_here: list[Any] = []
        for binding in reversed(bindings):
            if binding.var in group_variables:
                continue
            if binding.var in operands and binding.var not in elsewhere:
                only_here.append(binding)
                operands.update(_reads(binding))
            else:
                elsewhere.update(_reads(binding))
        return only_here[::-1]


def _sequence(bindings: Sequence[Any], result: Any) -> Any:
    return relax.SeqExpr([relax.BindingBlock(bindings)], result)


def _operands(choice: Any) -> Sequence[Any]:
    """Returns the condition and both values."""
    return list(choice.value.args[1].fields)


def _dependents(bindings: Sequence[Any], variables: Collection[Any]) -> set[Any]:
    dependents: set[Any] = set(variables)
    for binding in bindings:
        if not dependents.isdisjoint(_reads(binding)):
            dependents.add(binding.var)
    return dependents


def _reads(binding: Any) -> Collection[Any]:
    return _variables(binding.value)


def _variables(value: Any) -> Collection[Any]:
    return list(relax.analysis.free_vars(value))


# Known schedules of an open model: those from its records, and those that are slower inside it.
# Neither depends on the precision, so each is determined once.

_Choice = TypeVar("_Choice")


class KnownSchedules(Generic[_Choice]):
    """The schedules of one model's kernels, by kernel name. Schedules differ by their decisions."""

    def __init__(self) -> None:
        self._chosen: dict[str, tuple[object, _Choice]] = {}
        self._slower: dict[tuple[str, Hashable], bool] = {}

    def choose_once(self, name: str, inputs: object, choose: Callable[[], _Choice]) -> _Choice:
        """Returns the choice for `inputs` (records and their source): the earlier one if the same
        was given last."""
        earlier = self._chosen.get(name)
        if earlier is None or earlier[0] != inputs:
            earlier = self._chosen[name] = inputs, choose()
        return earlier[1]

    def remember_speed(self, name: str, schedule: Hashable, *, slower: bool) -> None:
        """Remembers how this schedule did in the model."""
        self._slower[name, schedule] = slower

    def forgive(self, names: Collection[str]) -> None:
        """Forgets that schedules of these kernels are slower: the model is faster with all of
        them."""
        for name, schedule in self._slower:
            if name in names:
                self._slower[name, schedule] = False

    def is_slower(self, name: str, schedule: Hashable) -> bool | None:
        """Returns whether the schedule is slower inside the model, None if it was not tried."""
        return self._slower.get((name, schedule))


@dataclass(frozen=True)
class OpenModel:
    """The state that task listing and builds share. `objects` and `known` grow with each build."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]
    objects: KernelObjects = field(default_factory=KernelObjects)
    known: KnownSchedules[Any] = field(default_factory=KnownSchedules)


OpenPrepared = Callable[[PreparedModel], OpenModel]
"""Opens a model for one target. Raises UnsupportedModelError if the compiler cannot take it."""


def opened_model(model: ModelFile, target: TargetConfig, into: Path) -> OpenModel:
    """Returns the opened model. Raises ModelError if the file is no model, and
    UnsupportedModelError if it cannot be compiled."""
    prepared_model = prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    return opening(model, target)(prepared_model)


def opening(model: ModelFile, target: TargetConfig) -> OpenPrepared:
    """Returns a function that opens this model, or a part of it, for the target."""
    return partial(
        open_model,
        target=tvm_target(target).target,
        path=model.path,
        layouts=layouts(target),
        algorithm=target.algorithm,
    )


def open_model(
    model: PreparedModel,
    target: Any,
    path: str,
    *,
    layouts: Sequence[Layout],
    algorithm: str = AUTO,
) -> OpenModel:
    """Opens a prepared model. Raises UnsupportedModelError if the compiler cannot take it."""
    module = with_algorithm(import_in_layout(model, target, path, layouts), algorithm)
    try:
        return OpenModel(model, module, functions_of(module, layer_names(model.optimized)))
    except Exception as error:
        # TVM's own errors call a data-dependent shape "no number".
        proto = onnx.load(model.optimized, load_external_data=False)
        problem = memory_problem(error) or fault_of_shapes(proto.graph, GraphView(proto))
        problem = problem or "the compiler needs shapes that do not depend on data"
        raise UnsupportedModelError(f"{path}: {problem}.") from error


# Imports a prepared model in the first layout that the compiler can build. The choice depends on
# the model alone, so every process that opens it decides alike.


def import_in_layout(
    prepared_model: PreparedModel, target: Any, path: str, layouts: Sequence[Layout]
) -> Any:
    """Returns the fused module. Raises UnsupportedModelError with the first layout's problem, and
    at once if memory ran out: the other side might have had it."""
    model = import_operators(prepared_model, path)
    problems: list[UnsupportedModelError] = []
    for layout in layouts:
        try:
            return _fuse(model, target, layout)
        except UnsupportedModelError as error:
            if error.__cause__ is not None and memory_problem(error.__cause__):
                raise
            problems.append(error)
    raise problems[0]


def _fuse(model: ImportedModel, target: Any, layout: Layout) -> Any:
    module = legalize_and_fuse(model, target, channels_last=layout == "nhwc")
    problem = unbuildable(module, target)
    if problem:
        if _dynamic(module) or "Check failed" in problem:  # as a division by no elements
            problem = fault_of_shapes(model.proto.graph, GraphView(model.proto)) or problem
        raise UnsupportedModelError(f"{model.path}: {problem}.")
    return module


# Problems of an imported model that prevent its build, found without compiling a kernel.

_CALL_TIR = "relax.call_tir"
_OPERATOR = re.compile(r"^R\.(?:nn\.)?([\w.]+)\(", re.MULTILINE)
_MAX_TEXT = 120


def unbuildable(module: Any, target: Any) -> str:
    """Returns why a fused Relax module cannot be built, '' if no reason is known."""
    return _dynamic(module) or _operator_without_code(module, target)


def _dynamic(module: Any) -> str:
    """Returns the first kernel or output whose extents are not numbers."""
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


def _operator_without_code(module: Any, target: Any) -> str:
    """Returns the operator that has no code in its layout. The virtual machine's code is generated
    only if operators are left, and no kernel is compiled for it."""
    if not any(_is_left(binding.value) for binding in _bindings(module["main"])):
        return ""
    try:
        with target:
            code = relax.get_default_pipeline(target)(module)
        relax.vm_build._vmcodegen(relax.ExecBuilder(), code)
    except Exception as error:
        return f"the compiler has no code for {_offending(str(error))}"
    return ""


def _bindings(main: Any) -> list[Any]:
    return [binding for block in main.body.blocks for binding in block.bindings]


def _is_left(value: Any) -> bool:
    return isinstance(value, relax.Call) and getattr(value.op, "name", _CALL_TIR) != _CALL_TIR


def _offending(text: str) -> str:
    """Returns the operator that an error names, else the error's last line."""
    operator = _OPERATOR.search(text)
    lines = text.strip().splitlines() or ["an operator"]
    return operator.group(1) if operator else lines[-1].strip()[:_MAX_TEXT]

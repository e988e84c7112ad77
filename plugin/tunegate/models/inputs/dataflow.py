"""A model as one flat list of steps, including the graphs inside `If`, `Loop` and `Scan`, with the
shapes and constants that are known without running it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
import onnx.inliner

from tunegate.models.graph import operator_of
from tunegate.models.inputs.constants import evaluate_node, tensor_values
from tunegate.models.kernel_digest import without_weights
from tunegate.models.model_inputs import stated_size
from tunegate.models.seeded_inputs import TensorLike
from tunegate.system.onnx_scan import bodies_of

Dimensions = tuple[int | None, ...]
"""Dimensions; None is unknown."""
INTEGER_TYPES: dict[int, int] = {
    onnx.TensorProto.INT8: 7,
    onnx.TensorProto.UINT8: 8,
    onnx.TensorProto.INT16: 15,
    onnx.TensorProto.UINT16: 16,
    onnx.TensorProto.INT32: 31,
    onnx.TensorProto.UINT32: 32,
    onnx.TensorProto.INT64: 63,
    onnx.TensorProto.UINT64: 64,
}
"""The bits of the largest number of each integer type."""
_LONGEST_LIST = 2**22
_BIG = 4096
"""The largest tensor, in numbers, whose values are computed."""
_DEEPEST = 60
"""The longest operator chain that a constant is computed through."""


class Operation(NamedTuple):
    """A node. `op` has its domain in front unless that is ONNX's own; value names are unique in the
    whole model."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: onnx.NodeProto


class Use(NamedTuple):
    """A step that reads a value, and the position among its inputs."""

    step: Operation
    position: int


class Dataflow:
    """The steps that a model's outputs depend on. Input dimensions come from `tensors`. So many
    values were `followed` from inputs."""

    def __init__(self, model: onnx.ModelProto, tensors: Iterable[TensorLike]) -> None:
        tensors = tuple(tensors)
        self.followed = 0
        self._declared = _declared_shapes(model, tensors)
        with_shapes = _infer_shapes(model, tensors)
        self._shapes: dict[str, Dimensions] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._makers: dict[str, Operation] = {}
        self._constants: dict[str, Any] = {}
        self._types: dict[str, int] = {}
        self._offsets: dict[tuple[str, ...], list[int | None]] = {}
        steps, _ = self._steps_of(with_shapes.graph, {}, "")
        self._uses: dict[str, list[Use]] = {}
        for step in _required_steps(steps, [value.name for value in with_shapes.graph.output]):
            for position, name in enumerate(step.inputs):
                self._uses.setdefault(name, []).append(Use(step, position))

    def uses(self, name: str) -> Sequence[Use]:
        """Returns the steps that read the value and lead to an output."""
        return self._uses.get(name, ())

    def shape(self, name: str) -> Dimensions | None:
        return self._shapes.get(name)

    def declared_shape(self, name: str) -> Dimensions | None:
        """Returns the shape that the file states for a computed value, with the input's size for a
        symbol that an input has too."""
        return self._declared.get(name)

    def is_whole(self, name: str) -> bool:
        """Returns whether a value is known to have integers."""
        return self.bits(name) > 0

    def bits(self, name: str) -> int:
        """Returns the bits of the largest integer that a value may have, 0 if it has others."""
        return INTEGER_TYPES.get(self._types.get(name, 0), 0)

    def is_weight(self, name: str) -> bool:
        return name in self._tensors

    def dimension(self, name: str, axis: int) -> int | None:
        """Returns the size of an axis, which may be counted from the end."""
        shape = self._shapes.get(name)
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        return shape[axis]

    def offsets(self, step: Operation) -> Sequence[int | None]:
        """Returns where each input of a concatenation along the last axis begins."""
        if step.outputs not in self._offsets:
            begins = self._offsets[step.outputs] = []
            begin: int | None = 0
            for name in step.inputs:
                begins.append(begin)
                size = self.dimension(name, -1)
                begin = None if begin is None or size is None else begin + size
        return self._offsets[step.outputs]

    def constant(self, name: str, depth: int = 0) -> Any:
        """Returns the array that a value always has, None if it is unknown or large."""
        if name not in self._constants and depth < _DEEPEST:
            self._constants[name] = None  # in a cycle the value is unknown
            self._constants[name] = self._compute(name, depth)
        return self._constants.get(name)

    def _compute(self, name: str, depth: int) -> Any:
        if name in self._tensors:
            return tensor_values(self._tensors[name], _BIG)
        step = self._makers.get(name)
        if step is None or len(step.outputs) != 1:
            return None
        if step.op in {"Shape", "Size"}:
            return evaluate_node(step.node, [self._shapes.get(step.inputs[0])], _BIG)
        arrays = [self.constant(each, depth + 1) if each else None for each in step.inputs]
        missing = [a is None for a, each in zip(arrays, step.inputs, strict=True) if each]
        return None if any(missing) else evaluate_node(step.node, arrays, _BIG)

    def _steps_of(
        self, graph: onnx.GraphProto, outer: Mapping[str, str], place: str
    ) -> tuple[list[Operation], dict[str, str]]:
        """Returns the steps of a graph and of those inside it, and the model-wide name of each of
        its names."""
        names = dict(outer)
        steps: list[Operation] = []

        def unique(name: str) -> str:
            names[name] = f"{place}{name}"
            return names[name]

        for tensor in graph.initializer:
            self._tensors[unique(tensor.name)] = tensor
            self._shapes[names[tensor.name]] = tuple(tensor.dims)
        for value in graph.input:
            unique(value.name)
        for node in graph.node:
            inputs = tuple(names.get(name, name) for name in node.input)
            node_name = node.name or next(iter(node.output), "")
            bodies = self._bodies(node, names, f"{place}{node_name}/", steps)
            step = Operation(operator_of(node), inputs, tuple(map(unique, node.output)), node)
            steps += [step, *_bindings(step, bodies)]
            self._makers.update(dict.fromkeys(step.outputs, step))
        for value in (*graph.input, *graph.output, *graph.value_info):
            self._add_shape(names.get(value.name, ""), value)
        return steps, names

    def _bodies(
        self, node: onnx.NodeProto, names: Mapping[str, str], place: str, steps: list[Operation]
    ) -> list[tuple[list[str], list[str]]]:
        """Returns the names of the inputs and outputs of each graph inside the node."""
        bodies = []
        for number, body in enumerate(bodies_of(node)):
            inside = f"{place}{number}/"
            own_steps, own_names = self._steps_of(body, names, inside)
            steps += own_steps
            ends = [own_names[value.name] for value in body.output if value.name in own_names]
            bodies.append(([f"{inside}{value.name}" for value in body.input], ends))
        return bodies

    def _add_shape(self, name: str, value: onnx.ValueInfoProto) -> None:
        tensor = value.type.tensor_type
        self._types[name] = tensor.elem_type
        if name and value.type.HasField("tensor_type") and tensor.HasField("shape"):
            self._shapes.setdefault(name, tuple(map(stated_size, tensor.shape.dim)))


def _bindings(step: Operation, bodies: list[tuple[list[str], list[str]]]) -> list[Operation]:
    """Returns steps that only rename: into the graphs inside a node, and out of them."""
    first_in = {"Loop": 2, "Scan": 0}.get(step.op)
    first_out = 1 if step.op == "Loop" else 0
    pairs: list[tuple[str, str]] = []
    for inside, ends in bodies:
        if first_in is not None:
            pairs += zip(step.inputs[first_in:], inside[first_in:], strict=False)
            pairs += zip(ends[first_out:], inside[first_in:], strict=False)
        pairs += zip(ends[first_out:], step.outputs, strict=False)
    binding = onnx.helper.make_node("Identity", ["x"], ["y"])
    return [Operation("Identity", (one,), (other,), binding) for one, other in pairs]


def _required_steps(steps: Sequence[Operation], outputs: Sequence[str]) -> list[Operation]:
    """Returns the steps that the outputs depend on."""
    makers: dict[str, list[Operation]] = {}
    for step in steps:
        for name in step.outputs:
            makers.setdefault(name, []).append(step)
    waiting = list(outputs)
    steps_by_id: dict[int, Operation] = {}
    while waiting:
        for step in makers.get(waiting.pop(), ()):
            if id(step) not in steps_by_id:
                steps_by_id[id(step)] = step
                waiting += step.inputs
    return list(steps_by_id.values())


def _declared_shapes(
    model: onnx.ModelProto, tensors: Sequence[TensorLike]
) -> dict[str, Dimensions]:
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    symbols = {
        dim.dim_param: size
        for value in model.graph.input
        for dim, size in zip(
            value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False
        )
        if dim.dim_param
    }
    return {
        value.name: tuple(
            symbols.get(dim.dim_param) if stated_size(dim) is None else stated_size(dim)
            for dim in value.type.tensor_type.shape.dim
        )
        for value in (*model.graph.value_info, *model.graph.output)
        if value.type.tensor_type.HasField("shape")
    }


def _infer_shapes(model: onnx.ModelProto, tensors: Iterable[TensorLike]) -> onnx.ModelProto:
    """Returns the model without its large weights, with the shapes of its values as far as ONNX
    infers them."""
    light = _inline_functions(without_weights(model, _BIG))
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    for value in light.graph.input:
        if value.name in shapes and value.type.HasField("tensor_type"):
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in shapes[value.name]:
                shape.dim.add().dim_value = size
    for value in light.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del light.graph.value_info[:]
    # ONNX keeps a record for each number of a list, which is no shape if it is that long.
    is_short = all(len(shape) != 1 or shape[0] <= _LONGEST_LIST for shape in shapes.values())
    try:
        return onnx.shape_inference.infer_shapes(light, data_prop=is_short)
    except Exception:  # noqa: BLE001 -- onnx raises many kinds; without it less is known
        return light


def _inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    if not model.functions:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception:  # noqa: BLE001 -- onnx raises many kinds; without it less is known
        return model

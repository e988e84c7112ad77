"""An ONNX file made ready for a compiler: checked, its shapes fixed, optimized offline.

ONNX Runtime's basic optimizations fold constants and merge batch norms into convolutions; without
them TVM would tune a batch norm as a task of its own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx

from tunegate.edges.models.prepared import PreparedModel, Tensor
from tunegate.edges.models.tensor_data import with_data
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.edges.reference.session import write_optimized
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.ports import Shapes

_OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS = 4
_PROTOBUF_LIMIT_BYTES = 2**31


def prepare(
    model: Path, *, shapes: Shapes, into: Path, path: str, is_checked: bool = False
) -> PreparedModel:
    """Prepare the model in the file `model`, called `path` in messages. `is_checked` saves the time
    of onnx's own checker where this very file has passed it before.

    Raises ModelError: unreadable, invalid, an input shape left open, or refused by ONNX Runtime.
    """
    proto, is_other = _load(model, path, is_checked=is_checked)
    _fix_shapes(proto, shapes, path)
    is_changed = is_other or bool(shapes)
    into.mkdir(parents=True, exist_ok=True)
    fixed, optimized = into / "fixed.onnx" if is_changed else model, into / "optimized.onnx"
    if is_changed:
        save(proto, fixed)
    inputs = tuple(_tensor(value) for value in _real_inputs(proto))
    _optimize(fixed, optimized, path)
    _simplify(optimized, inputs={tensor.name for tensor in inputs})
    return PreparedModel(fixed, optimized, inputs, tuple(o.name for o in proto.graph.output))


def _load(model: Path, path: str, *, is_checked: bool) -> tuple[onnx.ModelProto, bool]:
    """The model with all its data, and whether it is another than the file: its version had to be
    raised, or its data lie beside it, where the optimizer's output would not find them."""
    try:
        proto, has_files = with_data(model.read_bytes(), model.parent)
        # Before version 4 every initializer had to be an input too; exporters ignored that.
        is_raised = proto.ir_version < _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
        if is_raised:
            proto.ir_version = _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
        if not is_checked and proto.ByteSize() < _PROTOBUF_LIMIT_BYTES:
            onnx.checker.check_model(proto)
        return proto, is_raised or has_files
    except FileNotFoundError as error:
        message = f"{path}: its file {model.name} is missing. Commit it, or pull it with Git LFS."
        raise ModelError(message) from error
    except Exception as error:
        _require_memory(error, path)
        # onnx raises DecodeError, ValidationError, ValueError and more, by version
        message = f"{path}: not a valid ONNX model ({_first_line(error)}). Export it again."
        raise ModelError(message) from error


def save(proto: onnx.ModelProto, file: Path) -> None:
    """Saves a model in one file; what is too large for that gets one more for its weights."""
    if proto.ByteSize() < _PROTOBUF_LIMIT_BYTES:
        onnx.save(proto, file)
    else:
        onnx.save(proto, file, save_as_external_data=True, location=_data_of(file).name)


def file_digests(file: Path) -> dict[str, str]:
    """The sha-256 of a saved model and, where it has one, of the file with its weights."""
    digests = {}
    for saved in (file, _data_of(file)):
        if saved.exists():
            with saved.open("rb") as stream:
                digests[saved.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _data_of(file: Path) -> Path:
    return file.with_suffix(".data")


def _fix_shapes(proto: onnx.ModelProto, shapes: Shapes, path: str) -> None:
    known = {value.name for value in _real_inputs(proto)}
    for name in shapes:
        if name not in known:
            inputs = ", ".join(sorted(known))
            message = f"{path}: inputs.{name}: the model has no such input; it has {inputs}."
            raise ModelError(message)
    for value in _real_inputs(proto):
        dims = value.type.tensor_type.shape.dim
        wanted = shapes.get(value.name)
        if wanted is not None and len(wanted) != len(dims):
            message = (
                f"{path}: inputs.{value.name} has {len(wanted)} numbers, the "
                f"model's has {len(dims)} dimensions."
            )
            raise ModelError(message)
        for axis, dim in enumerate(dims):
            _fix_dimension(value.name, axis, dim, wanted, path)


def _fix_dimension(
    name: str,
    axis: int,
    dim: onnx.TensorShapeProto.Dimension,
    wanted: tuple[int, ...] | None,
    path: str,
) -> None:
    static = dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
    if wanted is None and static is None:
        called = f'"{dim.dim_param}"' if dim.dim_param else f"number {axis}"
        message = (
            f"{path}: dimension {called} (axis {axis}) of input {name} is dynamic. "
            f"Give the whole shape under inputs: {name}: [...] in tunegate.yaml."
        )
        raise ModelError(message)
    if wanted is None:
        return
    if static is not None and wanted[axis] != static:
        message = (
            f"{path}: inputs.{name}: axis {axis} is {static} in the model, not {wanted[axis]}."
        )
        raise ModelError(message)
    dim.dim_value = wanted[axis]


def _optimize(fixed: Path, optimized: Path, path: str) -> None:
    try:
        write_optimized(fixed, optimized)
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class
        _require_memory(error, path)
        raise ModelError(_refused(fixed, path, error)) from error


def _require_memory(error: Exception, path: str) -> None:
    problem = memory_problem(error)
    if problem:
        raise UnsupportedModelError(f"{path}: {problem}.") from error


def _refused(fixed: Path, path: str, error: Exception) -> str:
    proto = onnx.load(fixed, load_external_data=False)
    for node in proto.graph.node:
        if node.domain in {"", "ai.onnx"} and not onnx.defs.has(node.op_type):
            return unsupported_operators(path, node)
    return f"{path}: ONNX Runtime refuses the model ({_first_line(error)}). Fix the export."


def unsupported_operators(path: str, node: onnx.NodeProto) -> str:
    """The message for an operator that cannot be compiled."""
    where = f'node "{node.name}"' if node.name else f"the node that makes {node.output[0]}"
    return (
        f"{path}: operator {node.op_type} ({where}) is not supported by the compiler. "
        f"Export the model without it, or take it out of models: in tunegate.yaml."
    )


def _simplify(optimized: Path, *, inputs: set[str]) -> None:
    """What the optimizer leaves that compilers take badly, rewritten in the file."""
    proto = onnx.load(optimized)
    unused = [value for value in proto.graph.input if value.name not in inputs]
    for value in unused:  # initializers that it lists as inputs; main would want them all
        proto.graph.input.remove(value)
    sums = [node for node in proto.graph.node if node.op_type == "Sum"]
    if sums:
        nodes = [new for node in proto.graph.node for new in _additions(node)]
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
    if unused or sums:
        save(proto, optimized)


def _additions(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """TVM makes of a Sum a stack and a reduction over it, which no layout change survives; a chain
    of Adds is the same number for number."""
    if node.op_type != "Sum" or node.domain not in {"", "ai.onnx"}:
        return [node]
    first, *others = node.input
    if not others:
        return [onnx.helper.make_node("Identity", [first], node.output, name=node.name)]
    partial = [f"{node.output[0]}/{i}" for i in range(1, len(others))] + [node.output[0]]
    return [
        onnx.helper.make_node("Add", [left, right], [out], name=f"{node.name}/{i}")
        for i, (left, right, out) in enumerate(
            zip([first, *partial], others, partial, strict=False), 1
        )
    ]


def _real_inputs(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    initialized = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in initialized]


def _tensor(value: onnx.ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return Tensor(value.name, tuple(int(d.dim_value) for d in kind.shape.dim), str(dtype))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__

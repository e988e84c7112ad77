"""Imports a prepared ONNX file as a fused Relax module."""

import contextlib
import io
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import onnx
import tvm
import tvm_ffi
from tvm import relax, te, tirx, topi
from tvm.relax.frontend.onnx.onnx_frontend import (
    AveragePool,
    BatchNormalization,
    Elu,
    LocalResponseNormalization,
    LpPool,
    MaxPool,
    ONNXGraphImporter,
    Selu,
    get_type,
)

from tunegate.compiler.build.functions import (
    CHOICE,
    nodes_of_calls,
    with_kernel_nodes,
    with_node_names,
)
from tunegate.compiler.importing import own_kernels
from tunegate.compiler.importing.chain_cuts import OPAQUE, PATTERN, with_cut_chains
from tunegate.compiler.importing.control_flow import BRANCHED
from tunegate.compiler.importing.graph_view import GraphView, copy_of, sort_nodes
from tunegate.compiler.importing.node_errors import NodeError, fault_of_shapes, shorten
from tunegate.compiler.importing.pooling import WindowAxis, pooling_converter
from tunegate.compiler.importing.rewriting import importable
from tunegate.compiler.layouts import layout
from tunegate.compiler.layouts.packing import (
    mark_constants,
    with_moved_constants,
    with_whole_vectors,
)
from tunegate.errors import UnsupportedModelError
from tunegate.models.compilable import unsupported_operators
from tunegate.models.prepared import PreparedModel
from tunegate.system.onnx_scan import nodes_of
from tunegate.system.processes.memory_limit import memory_problem

_LEGALIZED = tvm.transform.Sequential(
    [
        relax.transform.LegalizeOps(own_kernels.LEGALIZERS),
        tvm.transform.module_pass(
            lambda module, _: own_kernels.with_nan_and_infinity(module), opt_level=0
        ),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
    ]
)
"""TVM's pipeline "zero" up to its fusion."""
_logger = logging.getLogger(__name__)


class ImportedModel(NamedTuple):
    """A model in Relax operators, not yet kernels. `names` has the model's name of each imported
    node; '' for a node that stands for several."""

    proto: onnx.ModelProto
    module: Any
    path: str
    names: Sequence[str]


def import_operators(prepared: PreparedModel, path: str) -> ImportedModel:
    """Returns the imported model. Raises UnsupportedModelError, which names the operator and its
    node where an operator is the reason."""
    proto = onnx.load(prepared.optimized)
    with _naming_model(proto, path):
        sort_nodes(proto.graph)
        rewritten = importable(proto)
        return ImportedModel(proto, import_model(rewritten), path, _names_of(rewritten, proto))


def legalize_and_fuse(model: ImportedModel, target: Any, *, channels_last: bool) -> Any:
    """Returns the module after legalization and fusion: one PrimFunc per kernel, weights bound. On
    a CPU the kernels know which arguments are constants. Raises as `import_operators` does."""
    with _naming_model(model.proto, model.path):
        module = layout.channels_last(model.module) if channels_last else model.module
        module = with_moved_constants(module)
        if str(target.kind.name) == "llvm":
            module = with_whole_vectors(module, target)
        else:
            module = own_kernels.with_running_sums_in_steps(module)
        with target:
            kernels = with_cut_chains(_LEGALIZED(module))
            groups = relax.transform.FuseOps()(kernels)
            module = relax.transform.FuseTIR()(groups)
        if str(target.kind.name) == "llvm":
            module = mark_constants(module)
        else:
            module = own_kernels.without_empty_tensors(module)
        nodes = [
            [name for place in places if (name := model.names[place])]
            for places in nodes_of_calls(kernels, groups)
        ]
        return with_kernel_nodes(module, nodes)


def _names_of(rewritten: onnx.ModelProto, proto: onnx.ModelProto) -> Sequence[str]:
    """Returns the names of nodes after rewriting: a node takes the name of the original node with
    its output, and a node of a branch keeps its own. A node without a name is named by its operator
    and output."""
    name_of = {
        output: node.name or f"{node.op_type} {node.output[0]}"
        for node in proto.graph.node
        for output in node.output
    }
    inner = {node.name for node in nodes_of(proto)}
    return [
        next((name_of[output] for output in node.output if output in name_of), "")
        or (node.name if node.name in inner else "")
        for node in rewritten.graph.node
    ]


@contextlib.contextmanager
def _naming_model(proto: onnx.ModelProto, path: str) -> Iterator[None]:
    """Silences the importer, and turns each error into one that names the model."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        # The importer raises whatever its converters raise; the C++ passes raise tvm errors.
        _logger.debug("import of %s failed", path, exc_info=True)
        problem = memory_problem(error)
        reason = f"{path}: {problem}." if problem else _reason(proto, path, error)
        raise UnsupportedModelError(reason) from error


def _reason(proto: onnx.ModelProto, path: str, error: Exception) -> str:
    if isinstance(error, NodeError) and error.has_reason:
        return f"{path}: {error}."
    text = str(error)
    for node in proto.graph.node:
        is_plain = not isinstance(error, NodeError) and "not supported" in text.lower()
        if is_plain and node.op_type in re.split(r"[\s,'\[\]]+", text):
            return unsupported_operators(path, node)
    if fault := fault_of_shapes(proto.graph, GraphView(proto)):
        return f"{path}: {fault}."
    if isinstance(error, NodeError):
        return f"{path}: {error}."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = shorten(lines[-1]).rstrip(".") if lines else type(error).__name__
    return f"{path}: the compiler cannot import the model ({message})."


# TVM's ONNX importer, extended by our operators.


def import_model(model: onnx.ModelProto) -> Any:
    """Returns the Relax module of a model. Raises what TVM's converters raise."""
    importer = _Importer({}, "float32")
    try:
        module = importer.from_onnx(model.graph, GraphView.opset_of(model))
    except Exception as error:
        if importer.node is None or isinstance(error, (NodeError, MemoryError)):
            raise
        raise NodeError(importer.node, error) from error
    return with_node_names(module, importer.values_of(model.graph))


class _Importer(ONNXGraphImporter):  # type: ignore[misc]
    node: onnx.NodeProto | None = None
    """The node being converted."""

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        super()._construct_nodes(SimpleNamespace(node=self._visit_nodes(graph)))

    def _convert_subgraph(self, builder: Any, graph: onnx.GraphProto) -> Any:
        branch = SimpleNamespace(
            initializer=graph.initializer, node=self._visit_nodes(graph), output=graph.output
        )
        return super()._convert_subgraph(builder, branch)

    def _visit_nodes(self, graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
        outer = self.node
        for node in graph.node:
            self.node = node
            yield _without_last_unnamed(node)
        self.node = outer

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        others = [node for node in graph.node if node.op_type not in OPERATORS]
        super()._check_for_unsupported_ops(SimpleNamespace(node=others))

    def values_of(self, graph: onnx.GraphProto) -> dict[Any, int]:
        """Returns the node index of each computed value, by its expression."""
        return {
            self._nodes[name]: place
            for place, node in enumerate(graph.node)
            for name in node.output
            if isinstance(self._nodes.get(name), relax.Expr)
        }

    def _sanitize_name(self, name: str) -> str:
        """Returns a name that CUDA C accepts. Kernel parameters are named after the model's inputs,
        for example `gpu_0/data_0`."""
        c_name: str = super()._sanitize_name(re.sub(r"\W", "_", name, flags=re.ASCII))
        return c_name

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
        node = self.node
        try:
            ours = OPERATORS[op_name](self.bb, inputs, attrs) if op_name in OPERATORS else None
            if ours is None:
                return super()._convert_operator(op_name, inputs, attrs, opset)
            return self.bb.normalize(ours)
        except Exception as error:
            if node is None or isinstance(error, MemoryError):
                raise
            operands = zip(node.input, inputs, strict=False)
            constants = {name for name, value in operands if isinstance(value, tvm.ir.GenericConst)}
            raise NodeError(node, error, constants) from error


def _without_last_unnamed(node: onnx.NodeProto) -> onnx.NodeProto:
    """Returns the node without unnamed outputs at its end, which nobody asks for. A Split has as
    many parts as outputs."""
    count = max((n for n, name in enumerate(node.output, 1) if name), default=0)
    if count == len(node.output) or node.op_type == "Split":
        return node
    shorter = copy_of(node)
    del shorter.output[count:]
    return shorter


# Operators without an equivalent in other ONNX operators, written in TVM's.

Operands = Sequence[Any]
Attributes = Mapping[str, Any]
Operator = Callable[[Any, Operands, Attributes], Any]
"""Returns the expression, or None to use TVM's own converter."""
_LAYOUTS = {3: ("NCW", "OIW"), 4: ("NCHW", "OIHW"), 5: ("NCDHW", "OIDHW")}
_CONVOLUTIONS = {3: relax.op.nn.conv1d, 4: relax.op.nn.conv2d, 5: relax.op.nn.conv3d}
_CONVERTERS_OPSET = 15
_FEW_BITS, _BFLOAT16 = ("float8_", "float6_", "float4_"), "bfloat16"


def integer_convolution(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts ConvInteger in int32. Zero points are subtracted first, so that padding is zero."""
    x, weights, x_zero, weights_zero = [*operands, None, None][:4]
    rank = len(x.ty.shape)
    x, weights = (
        _subtract_zero(builder, x, x_zero, rank),
        _subtract_zero(builder, weights, weights_zero, rank),
    )
    data_layout, kernel_layout = _LAYOUTS[rank]
    return _CONVOLUTIONS[rank](
        x,
        weights,
        strides=list(attributes.get("strides", [1] * (rank - 2))),
        padding=list(_pads(x, weights, attributes, rank)),
        dilation=list(attributes.get("dilations", [1] * (rank - 2))),
        groups=attributes.get("group", 1),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_dtype="int32",
    )


def product_so_far(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts CumProd along a constant axis."""
    x, axis = operands
    if not isinstance(axis, tvm.ir.GenericConst):
        raise tvm.error.OpNotImplemented("CumProd is not supported along an axis that is an input")
    place = int(axis.value.numpy().item()) % len(x.ty.shape)
    if attributes.get("reverse", 0):
        x = relax.op.flip(x, place)
    result = relax.op.cumprod(x, place, exclusive=bool(attributes.get("exclusive", 0)))
    return relax.op.flip(result, place) if attributes.get("reverse", 0) else result


def sequence_length(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts SequenceLength, also of what SplitToSequence makes, which is no tuple yet."""
    return relax.const(len(builder.normalize(operands[0]).ty.fields), "int64")


def same_bits(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts BitCast between types of one size."""
    (x,) = operands
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))
    if tvm.DataType(dtype).bits != tvm.DataType(str(x.ty.dtype)).bits:
        raise tvm.error.OpNotImplemented("BitCast is not supported between types of two sizes")
    return builder.emit_te(topi.reinterpret, x, dtype)


def convert_cast(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Cast and CastLike to bfloat16 as a kernel of its own: inside of another, TVM leaves
    the rounding out. Refuses computed numbers of 8 bits and less, of which TVM reads zero,
    infinity and NaN as other numbers, and writes them so."""
    like = operands[1].ty.dtype.dtype if len(operands) > 1 else get_type(attributes["to"])
    before, after = (str(each) for each in (getattr(operands[0].ty, "dtype", ""), like))
    if isinstance(operands[0], tvm.ir.GenericConst) or before == after:
        return None
    for dtype in (before, after):
        if dtype.startswith(_FEW_BITS):
            raise UnsupportedModelError(f"it casts numbers of {dtype}")
    if after != _BFLOAT16:
        return None
    x = operands[0]
    if not before.startswith("float"):
        x = builder.normalize(relax.op.astype(x, "float32"))
    return builder.emit_te(topi.cast, x, after, primfunc_attrs={PATTERN: OPAQUE})


def branch_of_if(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts a Where that stands for an If as a kernel of its own, which fuses with nothing."""
    if not attributes["tvm_custom"]["name"].endswith(BRANCHED):
        return None
    condition, *branches = operands
    first, second = (builder.normalize(branch).ty for branch in branches)
    if not tvm_ffi.structural_equal(first, second):
        shapes = " and ".join(map(_shape_words, (first, second)))
        raise UnsupportedModelError(f"its branches must give one shape, not {shapes}")
    if isinstance(condition, tvm.ir.GenericConst):
        return branches[0 if condition.value.numpy() else 1]
    attrs = {PATTERN: OPAQUE, CHOICE: 1}
    return builder.emit_te(topi.where, condition, *branches, primfunc_attrs=attrs)


def _shape_words(kind: Any) -> str:
    sizes = (
        int(each) if isinstance(each, tirx.IntImm) else "?" for each in getattr(kind, "shape", ())
    )
    return f"[{', '.join(map(str, sizes))}]"


def convert_concat(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts a Concat with constants of no numbers, which a build would save and never load."""
    parts = [
        operand
        for operand in operands
        if not isinstance(operand, tvm.ir.GenericConst) or 0 not in operand.value.shape
    ]
    is_plain = all(isinstance(each.ty, relax.TensorType) for each in parts)
    if not parts or len(parts) == len(operands) or not is_plain:
        return None
    return relax.op.concat(parts, axis=attributes["axis"])


def pairwise(take: Callable[[Any, Any], Any]) -> Operator:
    """Makes an operator on any number of tensors work on two at a time. TVM stacks them, which
    copies each tensor and keeps every convolution of the model in its layout."""

    def fold(builder: Any, operands: Operands, attributes: Attributes) -> Any:
        first, *others = operands
        if all(isinstance(operand, tvm.ir.GenericConst) for operand in operands):
            return None
        for other in others:
            first = builder.normalize(take(first, other))
        return first

    return fold


def mean(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Mean of any number of tensors."""
    total = pairwise(relax.op.add)(builder, operands, attributes)
    if total is None:
        return None
    return relax.op.divide(total, relax.const(len(operands), str(total.ty.dtype)))


def convert_clip(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Clip into two operators that the compiler's passes know; TVM makes kernels of it. A
    bound that is not given is the last finite number, and a bound that is NaN bounds nothing."""
    x, low, high = [*operands, None, None][:3]
    dtype = str(x.ty.dtype)
    if not dtype.startswith(("float", "int", "uint")):
        return None
    limits: Any = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    pairs = (low, attributes.get("min", limits.min)), (high, attributes.get("max", limits.max))
    least, most = (
        relax.const(number, dtype) if bound is None else _clip_bound(bound, dtype, number < 0)
        for bound, number in pairs
    )
    above = builder.normalize(relax.op.maximum(x, least))
    return relax.op.minimum(above, most)


def convert_batch_norm(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts BatchNormalization in training mode. In ONNX, momentum is the weight of the given
    statistics; in TVM, that of the batch's."""
    if not attributes.get("training_mode", 0):
        return None
    given_share = attributes.get("momentum", 0.9)
    options = {**attributes, "momentum": 1 - given_share}
    return BatchNormalization.get_converter(_CONVERTERS_OPSET)(builder, operands, options, [])


def convert_instance_norm(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts InstanceNormalization of rows, as GroupNormalization becomes, into one kernel. In
    TVM's operators, which can change the layout of an image, the numbers are written three
    times."""
    x = operands[0]
    if len(x.ty.shape) != 3:  # noqa: PLR2004
        return None
    epsilon = float(attributes.get("epsilon", 1e-5))
    return builder.emit_te(_norm_of_rows, *operands, epsilon, primfunc_name_hint="instance_norm")


def _norm_of_rows(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    count, least = (tirx.const(number, x.dtype) for number in (int(x.shape[2]), epsilon))
    k, again = (te.reduce_axis((0, x.shape[2]), name) for name in ("k", "again"))
    rows = x.shape[:2]
    total = te.compute(rows, lambda n, c: te.sum(x[n, c, k], k), name="total")
    mean = te.compute(rows, lambda n, c: total[n, c] / count, name="mean")

    def distance(n: Any, c: Any, at: Any) -> Any:
        return x[n, c, at] - mean[n, c]

    def square(n: Any, c: Any) -> Any:
        return te.sum(distance(n, c, again) * distance(n, c, again), again)

    def element(n: Any, c: Any, at: Any) -> Any:
        return distance(n, c, at) * factor[n, c] + shift[c]

    squares = te.compute(rows, square, name="squares")
    factor = te.compute(
        rows, lambda n, c: scale[c] * tirx.rsqrt(squares[n, c] / count + least), name="factor"
    )
    return te.compute(x.shape, element, name="norm")


def above_threshold(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts ThresholdedRelu. TVM multiplies by 0, which turns infinity into NaN."""
    (x,) = operands
    dtype = str(x.ty.dtype)
    limit, zero = (relax.const(each, dtype) for each in (attributes.get("alpha", 1.0), 0.0))
    return relax.op.where(relax.op.greater(x, limit), x, zero)


def in_float32(converter: Any) -> Operator:
    """Makes an operator of TVM's converter that computes float16 in float32, as ONNX Runtime does:
    TVM writes constants of float32 beside it."""

    def convert(builder: Any, operands: Operands, attributes: Attributes) -> Any:
        if str(operands[0].ty.dtype) != "float16":
            return None
        wide = builder.normalize(relax.op.astype(operands[0], "float32"))
        result = converter.get_converter(_CONVERTERS_OPSET)(builder, [wide], attributes, [])
        return relax.op.astype(builder.normalize(result), "float16")

    return convert


_SERIES_TERMS = {"float16": 4, "float32": 8, "float64": 17}
"""The terms after which a series of powers of 1/9 has each digit of the type."""


def convert_softplus(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Softplus, max(x, 0) + ln(1 + t) with t = exp(-|x|). TVM adds 1 to t, of which the
    last digits are lost. Here ln(1 + t) is 2 artanh(t / (2 + t)), as its series."""
    (x,) = operands
    dtype = str(x.ty.dtype)
    if (terms := _SERIES_TERMS.get(dtype)) is None:
        return None

    def number(value: float) -> Any:
        return relax.const(value, dtype)

    t = builder.normalize(relax.op.exp(relax.op.negative(relax.op.abs(x))))
    s = builder.normalize(relax.op.divide(t, relax.op.add(t, number(2))))
    z = builder.normalize(relax.op.multiply(s, s))
    series = number(2 / (2 * terms - 1))
    for term in range(terms - 2, -1, -1):
        series = relax.op.add(relax.op.multiply(series, z), number(2 / (2 * term + 1)))
        series = builder.normalize(series)
    return relax.op.add(relax.op.maximum(x, number(0)), relax.op.multiply(s, series))


def convert_mish(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Mish, x tanh(ln(1 + n)) with n = exp(x), as x w / (w + 2) with w = n (n + 2), which
    loses no digits. From 20 on it is x."""
    (x,) = operands
    dtype = str(x.ty.dtype)
    most = relax.const(5.0 if dtype == "float16" else 20.0, dtype)
    two = relax.const(2, dtype)
    n = builder.normalize(relax.op.exp(relax.op.minimum(x, most)))
    w = builder.normalize(relax.op.multiply(n, relax.op.add(n, two)))
    return relax.op.multiply(x, relax.op.divide(w, relax.op.add(w, two)))


def convert_equal(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Equal of booleans, which LLVM cannot compare as numbers, and of a float with itself:
    TVM takes for granted that it is, and NaN is not."""
    one, other = operands
    if one.same_as(other) and str(getattr(one.ty, "dtype", "")).startswith("float"):
        return relax.op.logical_not(relax.op.isnan(one))
    is_logical = all(str(getattr(operand.ty, "dtype", "")) == "bool" for operand in operands)
    return relax.op.logical_not(relax.op.logical_xor(one, other)) if is_logical else None


def convert_scatter(builder: Any, operands: Operands, attributes: Attributes) -> Any:
    """Converts Scatter and ScatterElements. One with fewer indices than data along another axis
    becomes a ScatterND: TVM assumes as many. Negative indices count from the end."""
    data, indices, updates = operands
    shape, of_data = ([int(each) for each in value.ty.shape] for value in (indices, data))
    axis = attributes.get("axis", 0) % len(shape)
    dtype = str(indices.ty.dtype)
    zero, extent = (relax.const(each, dtype) for each in (0, of_data[axis]))
    from_end = relax.op.less(indices, zero)
    indices = builder.normalize(relax.op.where(from_end, relax.op.add(indices, extent), indices))
    reduction = attributes.get("reduction", b"none").decode()
    reduction_name = "update" if reduction == "none" else reduction
    if all(n == m for at, (n, m) in enumerate(zip(shape, of_data, strict=True)) if at != axis):
        return relax.op.scatter_elements(
            data, indices, updates, axis=axis, reduction=reduction_name
        )
    count = math.prod(shape)
    places = np.moveaxis(np.indices(shape), 0, -1).reshape(count, len(shape)).astype(dtype)
    parts = [relax.const(places[:, :axis], dtype), relax.op.reshape(indices, (count, 1))]
    parts.append(relax.const(places[:, axis + 1 :], dtype))
    parts_with_numbers = [
        part for place, part in enumerate(parts) if place == 1 or part.value.shape[1]
    ]
    target = builder.normalize(relax.op.concat(parts_with_numbers, axis=1))
    return relax.op.scatter_nd(data, target, relax.op.reshape(updates, (count,)), reduction_name)


def _clip_bound(bound: Any, dtype: str, is_least: bool) -> Any:
    """Returns a bound of Clip as a scalar, infinite where it is NaN."""
    if not dtype.startswith("float"):
        return bound
    infinite = relax.const(-np.inf if is_least else np.inf, dtype)
    if isinstance(bound, tvm.ir.GenericConst):
        number = bound.value.numpy().reshape(())
        return infinite if np.isnan(number) else relax.const(number, dtype)
    return relax.op.where(relax.op.isnan(bound), infinite, bound)


def _subtract_zero(builder: Any, value: Any, zero: Any, rank: int) -> Any:
    wide = builder.normalize(relax.op.astype(value, "int32"))
    if zero is None:
        return wide
    zero = builder.normalize(relax.op.astype(zero, "int32"))
    if len(zero.ty.shape):  # of each channel of the result
        zero = relax.op.reshape(zero, [-1] + [1] * (rank - 1))
    return builder.normalize(relax.op.subtract(wide, zero))


def _pads(x: Any, weights: Any, attributes: Attributes, rank: int) -> Sequence[int]:
    auto_pad = attributes.get("auto_pad", b"NOTSET").decode()
    if auto_pad == "NOTSET":
        return list(attributes.get("pads", [0] * 2 * (rank - 2)))
    if auto_pad == "VALID":
        return [0] * 2 * (rank - 2)
    ones = [1] * (rank - 2)
    if any(dilation != 1 for dilation in attributes.get("dilations", ones)):
        raise UnsupportedModelError(f"it has dilations beside auto_pad {auto_pad}")
    extents = ([*value.ty.shape][2:] for value in (x, weights))
    extents_and_steps = zip(*extents, attributes.get("strides", ones), strict=True)
    axes = [WindowAxis(*map(int, each)) for each in extents_and_steps]
    pads = [axis.same(is_upper=auto_pad == "SAME_UPPER") for axis in axes]
    return [ends[side] for side in (0, 1) for ends in pads]


OPERATORS: Mapping[str, Operator] = {
    "ConvInteger": integer_convolution,
    "CumProd": product_so_far,
    **dict.fromkeys(("Cast", "CastLike"), convert_cast),
    "BitCast": same_bits,
    "Clip": convert_clip,
    **{each.__name__: pooling_converter(each) for each in (MaxPool, AveragePool, LpPool)},
    "BatchNormalization": convert_batch_norm,
    "InstanceNormalization": convert_instance_norm,
    "Equal": convert_equal,
    "ThresholdedRelu": above_threshold,
    "Elu": in_float32(Elu),
    "Selu": in_float32(Selu),
    "LRN": in_float32(LocalResponseNormalization),
    "Softplus": convert_softplus,
    "Mish": convert_mish,
    **dict.fromkeys(("Scatter", "ScatterElements"), convert_scatter),
    "SequenceLength": sequence_length,
    "Where": branch_of_if,
    "Concat": convert_concat,
    "Min": pairwise(relax.op.minimum),
    "Max": pairwise(relax.op.maximum),
    "Sum": pairwise(relax.op.add),
    "Mean": mean,
}

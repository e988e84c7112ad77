"""Makes a model with fixed shapes ready for a compiler: optimized offline.

ONNX Runtime's basic optimizations fold constants and merge batch norms into convolutions; without
them TVM would tune a batch norm as a task of its own.
"""

from contextlib import suppress
from pathlib import Path

import onnx
import onnx.parser

from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import SHOWN_OPERATORS, STANDARD_DOMAINS, custom_operators, operator_of
from tunegate.models.prepared import NOT_LOADED, Compilable
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.reference.session import NO_OPTIMIZATION, write_optimized
from tunegate.models.saved_model import save
from tunegate.system.onnx_scan import nodes_within
from tunegate.system.processes.memory_limit import memory_problem

_FLOAT32 = onnx.TensorProto.FLOAT
_ML = "ai.onnx.ml"
_ML_OPERATORS = frozenset({"ArrayFeatureExtractor"})
"""The operators of that domain that compilers take."""


def compilable(
    proto: onnx.ModelProto,
    file: Path | None,
    into: Path,
    path: str,
    *,
    inputs: set[str],
    was_open: bool = True,
) -> Compilable:
    """Optimizes a model of static shapes, called `path` in messages, and returns its files. `file`
    holds the model as it is (None: not saved yet). It `was_open` if its sizes were fixed here.

    Raises UnsupportedModelError for operators of a library, and for what ONNX Runtime rejects at
    static shapes.
    """
    of_libraries = custom_operators(proto)
    if of_libraries:
        operators = ", ".join(of_libraries[:SHOWN_OPERATORS])
        message = f"{path}: {operators} comes from a library, which only ONNX Runtime loads."
        raise UnsupportedModelError(message)
    for node in proto.graph.node:
        # Before a forest of half a million nodes is optimized and read again.
        if node.domain == _ML and node.op_type not in _ML_OPERATORS:
            raise UnsupportedModelError(unsupported_operators(path, node))
    fixed, optimized = file or into / "fixed.onnx", into / "optimized.onnx"
    try:
        into.mkdir(parents=True, exist_ok=True)
        if file is None:
            save(proto, fixed)
        written = fixed
        if _define_group_norms(proto):
            written = into / "defined.onnx"
            save(proto, written)
        _write_optimized(written, optimized)
        _simplify(optimized, inputs=inputs)
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class
        raise UnsupportedModelError(_refusal(proto, path, error, was_open=was_open)) from error
    return Compilable(fixed, optimized)


_DEFINED, _PER_CHANNEL_OPSET = "tunegate.defined", 21
_GROUP_NORM = """<domain: "{domain}", opset_import: ["" : {opset}]>
GroupNormalization <num_groups, epsilon: float = 1e-5> (x, scale, bias) => (y) {{
  first = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
  rest = Constant <value_ints = [-1]> () column = Constant <value_ints = [-1, 1]> ()
  number = Constant <value_int: int = @num_groups> () groups = Reshape (number, one)
  grouped = Concat <axis = 0> (first, groups, rest)
  ones = ConstantOfShape <value = float[1] {{1}}> (groups) zeros = ConstantOfShape (groups)
  wide = Cast <to = 1> (x) rows = Reshape (wide, grouped)
  even = InstanceNormalization <epsilon: float = @epsilon> (rows, ones, zeros)
  narrow = CastLike (even, x) sizes = Shape (x) two = Shape <end = 2> (x)
  by_channel = Concat <axis = 0> (two, rest) parts = Reshape (narrow, {parts})
  scales = Reshape (scale, column) shifts = Reshape (bias, column)
  scaled = Mul (parts, scales) shifted = Add (scaled, shifts) y = Reshape (shifted, sizes)
}}"""
"""The variance is a mean of squared distances. Before operator set 21 each group has a scale."""


def _define_group_norms(proto: onnx.ModelProto) -> bool:
    """Gives each GroupNormalization our definition, and returns whether there was one. ONNX Runtime
    has no kernel for it, and puts ONNX's definition in its place: a difference of two means, which
    cancels for values far from zero."""
    bodies = [(proto.opset_import, proto.graph.node)]
    bodies += [(each.opset_import, each.node) for each in proto.functions]
    opsets: set[int] = set()
    for imports, nodes in bodies:
        versions = (each.version for each in imports if each.domain in STANDARD_DOMAINS)
        opset = max(versions, default=0)
        norms = [node for node in nodes_within(nodes) if _is_group_norm(node)]
        for node in norms:
            node.domain = f"{_DEFINED}{opset}"
        if norms:
            imports.append(onnx.helper.make_opsetid(f"{_DEFINED}{opset}", 1))
            opsets.add(opset)
    for opset in sorted(opsets):
        domain = f"{_DEFINED}{opset}"
        parts = "by_channel" if opset >= _PER_CHANNEL_OPSET else "grouped"
        text = _GROUP_NORM.format(domain=domain, opset=opset, parts=parts)
        proto.functions.append(onnx.parser.parse_function(text))
        if all(each.domain != domain for each in proto.opset_import):
            proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    return bool(opsets)


def _is_group_norm(node: onnx.NodeProto) -> bool:
    is_wide = any(each.name == "stash_type" and each.i != _FLOAT32 for each in node.attribute)
    return operator_of(node) == "GroupNormalization" and not is_wide


def _write_optimized(fixed: Path, optimized: Path) -> None:
    """Writes the optimized model. Raises ONNX Runtime's error if it also rejects the model
    unoptimized."""
    try:
        write_optimized(fixed, optimized)
    except Exception:
        optimized.unlink(missing_ok=True)
        with suppress(Exception):  # the first error is the one to report
            write_optimized(fixed, optimized, level=NO_OPTIMIZATION)
            return
        raise


def unsupported_operators(path: str, node: onnx.NodeProto) -> str:
    """Returns the message for an operator that cannot be compiled."""
    where = f'node "{node.name}"' if node.name else f"the node that makes {node.output[0]}"
    return f"{path}: operator {node.op_type} ({where}) is not supported by the compiler."


def _refusal(proto: onnx.ModelProto, path: str, error: Exception, *, was_open: bool) -> str:
    problem = memory_problem(error)
    if problem:
        return f"{path}: {problem}."
    for node in proto.graph.node:
        if node.domain in STANDARD_DOMAINS and not onnx.defs.has(node.op_type):
            return unsupported_operators(path, node)
    if not was_open:
        return f"{path}: {NOT_LOADED} ({error_line(error)})."
    return (
        f"{path}: it cannot be given static shapes, which compilers need: ONNX Runtime refuses it "
        f"with them ({error_line(error)})."
    )


def _simplify(optimized: Path, *, inputs: set[str]) -> None:
    """Rewrites in the file what the optimizer leaves and compilers handle badly."""
    proto = onnx.load(optimized)
    unused = [value for value in proto.graph.input if value.name not in inputs]
    for value in unused:  # initializers listed as inputs; `main` would require them all
        proto.graph.input.remove(value)
    sums = [node for node in proto.graph.node if node.op_type == "Sum"]
    if sums:
        nodes = [new for node in proto.graph.node for new in _additions(node)]
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
    if unused or sums:
        save(proto, optimized)


def _additions(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Replaces a Sum by an equal chain of Adds. TVM makes it a stack and a reduction, which no
    layout change survives."""
    if node.op_type != "Sum" or node.domain not in STANDARD_DOMAINS:
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

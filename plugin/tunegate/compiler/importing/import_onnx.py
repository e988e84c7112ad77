"""A prepared ONNX file to a fused Relax module."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import onnx
import tvm
from tvm import relax

from tunegate.compiler.build.kernel_nodes import nodes_of_calls, with_kernel_nodes
from tunegate.compiler.importing.chain_cuts import with_cut_chains
from tunegate.compiler.importing.node_errors import NodeError, shortened
from tunegate.compiler.importing.onnx_importer import imported
from tunegate.compiler.importing.rewriting import importable
from tunegate.compiler.layouts import layout
from tunegate.compiler.layouts.packing import marked, with_moved_constants
from tunegate.errors import UnsupportedModelError
from tunegate.models.compilable import unsupported_operators
from tunegate.models.prepared import PreparedModel
from tunegate.system.processes.memory_limit import memory_problem

_LEGALIZED = tvm.transform.Sequential(
    [
        relax.transform.LegalizeOps(enable_warning=False),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
    ]
)
"""TVM's pipeline "zero" up to its fusion."""
_logger = logging.getLogger(__name__)


class ImportedModel(NamedTuple):
    """A model in the operators of Relax, which are no kernels yet. `names` has that of each node
    that was imported, as the model has it; '' for one that stands for others."""

    proto: onnx.ModelProto
    module: Any
    path: str
    names: Sequence[str]


def import_operators(prepared: PreparedModel, path: str) -> ImportedModel:
    """Raises UnsupportedModelError, naming the operator and its node where an operator is the
    reason."""
    proto = onnx.load(prepared.optimized)
    with _told(proto, path):
        rewritten = importable(proto)
        return ImportedModel(proto, imported(rewritten), path, _names_of(rewritten, proto))


def fused(model: ImportedModel, target: Any, *, channels_last: bool) -> Any:
    """The module after legalization and fusion: one PrimFunc per kernel, weights bound. On a CPU
    the kernels know which of their arguments are constants. Raises as `import_operators` does."""
    with _told(model.proto, model.path):
        module = layout.channels_last(model.module) if channels_last else model.module
        module = with_moved_constants(module)
        with target:
            legalized = with_cut_chains(_LEGALIZED(module))
            grouped = relax.transform.FuseOps()(legalized)
            module = relax.transform.FuseTIR()(grouped)
        module = marked(module) if str(target.kind.name) == "llvm" else module
        nodes = [
            [name for place in places if (name := model.names[place])]
            for places in nodes_of_calls(legalized, grouped)
        ]
        return with_kernel_nodes(module, nodes)


def _names_of(rewritten: onnx.ModelProto, proto: onnx.ModelProto) -> Sequence[str]:
    """Returns the names of nodes after rewriting: a node keeps the name of the original one with
    its output. One without a name is called by its operator and what it gives."""
    known = {
        output: node.name or f"{node.op_type} {node.output[0]}"
        for node in proto.graph.node
        for output in node.output
    }
    return [
        next((known[output] for output in node.output if output in known), "")
        for node in rewritten.graph.node
    ]


@contextlib.contextmanager
def _told(proto: onnx.ModelProto, path: str) -> Iterator[None]:
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
    if isinstance(error, NodeError):
        return f"{path}: {error}."
    text = str(error)
    for node in proto.graph.node:
        if _names(text, node.op_type) and "not supported" in text.lower():
            return unsupported_operators(path, node)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = shortened(lines[-1]).rstrip(".") if lines else type(error).__name__
    return f"{path}: the compiler cannot import the model ({said})."


def _names(text: str, op_type: str) -> bool:
    words = text.replace(",", " ").replace("'", " ").replace("[", " ").replace("]", " ").split()
    return op_type in words

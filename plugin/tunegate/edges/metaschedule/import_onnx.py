"""A prepared ONNX file to a fused Relax module."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from typing import Any

import onnx
from tvm import relax

from tunegate.edges.metaschedule.importers.onnx_importer import imported
from tunegate.edges.metaschedule.importers.rewriting import importable
from tunegate.edges.metaschedule.passes import layout
from tunegate.edges.metaschedule.passes.prepacking import marked
from tunegate.edges.metaschedule.passes.weight_layout import with_moved_constants
from tunegate.edges.models.compilable import unsupported_operators
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.errors import UnsupportedModelError

_logger = logging.getLogger(__name__)


def import_model(
    prepared: PreparedModel, target: Any, path: str, *, channels_last: bool = False
) -> Any:
    """The module after legalization and fusion: one PrimFunc per kernel, weights bound. On a CPU
    the kernels know which of their arguments are constants.

    Raises UnsupportedModelError, naming the operator and its node where an operator is the reason.
    """
    proto = onnx.load(prepared.optimized)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            module = imported(importable(proto))
            if channels_last:
                module = layout.channels_last(module)
            module = with_moved_constants(module)
            with target:
                module = relax.get_pipeline("zero")(module)
            return marked(module) if str(target.kind.name) == "llvm" else module
    except Exception as error:
        # The importer raises whatever its converters raise; the C++ passes raise tvm errors.
        _logger.debug("import of %s failed", path, exc_info=True)
        problem = memory_problem(error)
        reason = f"{path}: {problem}." if problem else _reason(proto, path, error)
        raise UnsupportedModelError(reason) from error


def _reason(proto: onnx.ModelProto, path: str, error: Exception) -> str:
    text = str(error)
    for node in proto.graph.node:
        if _names(text, node.op_type) and "not supported" in text.lower():
            return unsupported_operators(path, node)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = lines[-1][:300] if lines else type(error).__name__
    return f"{path}: the compiler cannot import the model ({said})."


def _names(text: str, op_type: str) -> bool:
    words = text.replace(",", " ").replace("'", " ").replace("[", " ").replace("]", " ").split()
    return op_type in words

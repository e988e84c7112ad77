"""Turns an importer error into a sentence: the operator, its node, and what is missing."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import onnx

from tunegate.compiler.importing.control_flow import BRANCHED
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.errors import UnsupportedModelError
from tunegate.system.onnx_scan import nodes_within

_MAX_CHARACTERS = 300
_OBJECT = re.compile(r"\bir\.Op\(span=None, name=\"?([\w.]+)[^)]*\)|\bOp\(([\w.]+)\)")
"""A TVM operator as its errors print it."""


_FOR_CONSTANTS = re.compile(
    r"\b(dynamic|constant|symbolic|is currently unsupported)\b", re.IGNORECASE
)
"""Words of the importer's errors about an input that it needs as a constant."""
_NO_SENTENCE = re.compile(r"[<>=_]|\bR\.|\bT\.|Check failed|Expr\b|object")
"""Marks of an error that was written for the authors of the compiler."""
_BY_DATA = frozenset({"Compress", "NonZero", "Unique"})
"""Operators whose result is as long as their data say, whatever the model declares."""


class NodeError(UnsupportedModelError):
    """A node that cannot be imported. The message is the end of a sentence that begins with the
    model. It `has_reason` unless the importer failed by accident, as at an extent that it took for
    a number."""

    def __init__(
        self, node: onnx.NodeProto, error: Exception, constants: Collection[str] | None = None
    ) -> None:
        reason = _missing_constants(node, error, constants) or _reason(node, error)
        self.has_reason = bool(reason)
        super().__init__(f"{_subject(node)} {reason or _without_reason(node)}")


@contextmanager
def importing(node: onnx.NodeProto) -> Iterator[None]:
    """Turns whatever a rule or a converter raises into an error of this node, except a lack of
    memory."""
    try:
        yield
    except (NodeError, MemoryError):
        raise
    except Exception as error:
        raise NodeError(node, error) from error


def fault_of_shapes(graph: onnx.GraphProto, view: GraphView) -> str:
    """Returns which operator has a result that is empty, or whose shape is not known before it
    runs; '' if there is none. It is the end of a sentence that begins with the model."""
    for node in graph.node:
        for kind in (view.type_of(name) for name in node.output if name):
            if kind is None:
                why = "the shape of its result depends on data"
            elif 0 in kind.shape:
                why = "its result is empty"
            else:
                continue
            return f"{_subject(node)} is not supported by the compiler: {why}"
    by_data = next((each for each in nodes_within(graph.node) if each.op_type in _BY_DATA), None)
    why = "is not supported by the compiler: the shape of its result depends on data"
    return f"{_subject(by_data)} {why}" if by_data else ""


def _subject(node: onnx.NodeProto) -> str:
    op_type = "If" if node.name.endswith(BRANCHED) else node.op_type
    return f"operator {op_type} ({node_label(node)})"


def node_label(node: onnx.NodeProto) -> str:
    """Returns the node's name, or its output's."""
    if node.name.endswith(BRANCHED):
        return f'node "{node.name.removesuffix(BRANCHED).rpartition("/")[0]}"'
    if node.name:
        return f'node "{node.name}"'
    return f"the node that makes {next(iter(node.output), 'nothing')}"


def shorten(text: str) -> str:
    """Returns the text in one line, cut between two words if it is long."""
    line = " ".join(_OBJECT.sub(lambda match: match[1] or match[2], text).split())
    if len(line) <= _MAX_CHARACTERS:
        return line
    return f"{line[:_MAX_CHARACTERS].rpartition(' ')[0]} …"


def _missing_constants(
    node: onnx.NodeProto, error: Exception, constants: Collection[str] | None
) -> str:
    """Returns which inputs the importer took for constants; `constants` are the names of those."""
    asks = isinstance(error, AttributeError) or _FOR_CONSTANTS.search(str(error))
    if constants is None or not asks:
        return ""
    inputs = ", ".join(name for name in node.input[1:] if name and name not in constants)
    few = f"it needs {inputs} as a constant of the model"
    return f"is not supported by the compiler: {few}" if inputs else ""


def _reason(node: onnx.NodeProto, error: Exception) -> str:
    """Returns what the error says of the node, '' if it tells a user nothing."""
    text = str(error).strip()
    if isinstance(error, KeyError):
        key = str(error.args[0]) if error.args else "?"
        if key in node.input:
            return f"reads {key}, which the compiler's importer does not know there"
        return f"has no {key}, which the compiler's importer asks for"
    if isinstance(error, UnsupportedModelError):
        return f"is not supported by the compiler{': ' if text else ''}{shorten(text)}"
    detail = shorten(_last_line(text)).rstrip(".")
    is_accident = isinstance(error, (AssertionError, AttributeError, IndexError, TypeError))
    if not detail or is_accident or _NO_SENTENCE.search(detail):
        return ""
    return f"is not supported by the compiler ({detail})"


def _without_reason(node: onnx.NodeProto) -> str:
    names = ", ".join([*filter(None, node.input), *(each.name for each in node.attribute)])
    return f"is not supported by the compiler with these inputs and attributes: {names or 'none'}"


def _last_line(text: str) -> str:
    """Returns the last line with a word in it, or all lines if the first ends with a colon."""
    lines = [line.strip() for line in text.splitlines() if re.search("[A-Za-z]", line)]
    return " ".join(lines) if lines and lines[0].endswith(":") else next(reversed(lines), "")

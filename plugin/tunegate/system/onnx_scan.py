"""Scans an ONNX file before it is parsed: its size must be moderate in every respect, and its data
files are collected, wherever in it a tensor is.

A few bytes become a large object each when parsed, and the parser itself has no limits.
"""

import hashlib
import posixpath
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from tunegate.errors import ModelError, NoOnnxError, UnreadModelError

MAX_MODEL_BYTES = 2**31 - 1
"""The largest protobuf file in bytes. Larger tensors are in data files."""
_MIN_PARSED_BYTES = 256 * 2**20
_MAX_GROWTH = 8
"""The most memory that a file may take, in multiples of its size, above the minimum for any file. A
forest of 25 MB takes five times, a language model of 30,000 nodes far less."""
_MAX_PARSED_BYTES = 2**31
_MESSAGE_BYTES, _TEXT_BYTES, _NUMBER_BYTES = 200, 32, 16
"""The bytes of protobuf for a message, for a text beside its length, and for a number in a list."""
_DEEPEST = 100
"""The deepest nesting that protobuf reads; a branch inside a branch is three levels deeper."""
_MAX_NAME_BYTES = 64 * 1024
_MAX_PATH = 4096
_MAX_INLINING_STEPS = 1_000_000
_MAX_STEPS_OF_NODE = 50
"""The most that ONNX Runtime may do to inline functions, per node of the file above the minimum for
any file. A language model of 32 layers takes 650,000, all layers in one function."""
_STEPS_OF_NODE, _NAMES_PER_STEP, _CONSTANTS_PER_STEP = 5, 1000, 400
_COUNTED = 10**12
"""Counts end here: each function may double them."""
_MAX_VALUES_OF_NODE = 20_000
_MAX_NODES_IN_SIGHT = 500_000_000
"""The most nodes that all branches and bodies together may see. ONNX's inference of shapes takes
five seconds for so many."""
_MAX_DATA_FILES = 20_000
_Callee = tuple[str, str, str]
"""The domain, name and overload of an operator or function."""
_COUNTS = ("nodes", "bodies", "constants", "calls", "levels", "names", "bytes")
_Counts = Counter[str | tuple[str]]
"""The `_COUNTS` of nodes once calls are replaced, and the uses of each attribute of the function
that they are in, by a tuple of its name."""
_FREE_TEXT = {"doc_string", "value", "denotation"}

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MORE = 0x80
_MAX_VARINT_BITS = 70

_KINDS = FieldDescriptor
_AS_LARGE_AS_WRITTEN = {
    _KINDS.TYPE_STRING,
    _KINDS.TYPE_BYTES,
    _KINDS.TYPE_FLOAT,
    _KINDS.TYPE_DOUBLE,
    _KINDS.TYPE_FIXED32,
    _KINDS.TYPE_FIXED64,
}
"""A packed list of other numbers takes at least eight bytes per byte of the file."""
_Fields = dict[int, Any]
"""The fields of a message to read, by number: the fields of the nested message, or what else is
read. All others are skipped."""
_NO_ONNX = "not an ONNX file, or cut short"
_NAME = "name"
_DATA = "data"
_NUMBERS = "numbers"
_TENSOR = onnx.TensorProto.DESCRIPTOR.full_name
_NUMBER = re.compile(r"[0-9]{1,18}")
_KEY = re.compile(r"location|offset|length|checksum|prepacked.*", re.DOTALL)
"""The keys of external data that ONNX Runtime takes; it does not load a model with another."""
_OWN_NUMBERS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "string_data",
)
_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"
"""The location with which ONNX Runtime reads the offset as an address in its own memory."""

_ORT_FORMAT = slice(4, 8), b"ORTM"
"""The place and mark of a file in ONNX Runtime's own format. ONNX Runtime goes by this mark if it
gets the bytes, and by the suffix if it gets the path: one file could be two models."""


def data_files(model: bytes) -> tuple[str, ...]:
    """Returns the data files the model refers to, relative to it, each once and in order.

    Raises ModelError for a file that is inconsistent, too large, much larger in memory, nested too
    deeply, or has names that are none; for a tensor that gives two locations for its numbers; for a
    data file outside the model's directory, and for too many.
    """
    if len(model) > MAX_MODEL_BYTES:
        raise UnreadModelError(too_large(len(model)))
    if not model:
        message = "an ONNX file without a graph"
        raise ModelError(message)
    place, mark = _ORT_FORMAT
    if model[place] == mark:
        message = "in ONNX Runtime's own format for who loads its bytes"
        raise ModelError(message)
    if not _has_data_file(model):
        return ()
    names = list(dict.fromkeys(map(_data_file, filter(is_external, tensors_in(_parse(model))))))
    if len(names) > _MAX_DATA_FILES:
        message = (
            f"it names {len(names):,} data files, more than {_MAX_DATA_FILES:,}: "
            "keep several tensors in one"
        )
        raise UnreadModelError(message)
    for name in names:
        path = PurePosixPath(name)
        is_file = name.rpartition("/")[2] not in {"", "."}  # ONNX Runtime opens no w.bin/
        is_inside = is_file and not path.is_absolute() and ".." not in path.parts
        if not is_inside or "\0" in name or len(name) > _MAX_PATH:
            wrong = "lies outside the model's directory"
            if ".." in path.parts and not posixpath.normpath(name).startswith(".."):
                # behind a link it may lead anywhere
                wrong = "is named by a path with '..' in it"
            raise ModelError(f"its external data file {name[:200]!r} {wrong}")
    return tuple(names)


def parsed_model(model: bytes) -> onnx.ModelProto:
    """Returns the parsed model. Raises ModelError as `scanned_model` does."""
    return scanned_model(model)[0]


def scanned_model(model: bytes) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Returns the parsed model and its data files. Raises ModelError for what `data_files` rejects,
    for what is no ONNX file, for operators of two versions, for a node with too many inputs or
    outputs, for too many branches, and for functions that become too many nodes or bytes."""
    names = data_files(model)
    proto = _parse(model)
    _require_one_version(proto)
    nodes = [*nodes_of(proto)]
    for node in nodes:
        _require_few_values(node)
    _require_few_bodies(sum(len(bodies_of(node)) for node in nodes), len(nodes))
    if proto.functions:
        _require_little_inlined(proto, len(model))
    return proto, names


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of the graph, of all graphs inside it, and of the functions."""
    return nodes_within(model.graph.node, *(function.node for function in model.functions))


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Returns the graphs inside a node."""
    return [body for attribute in node.attribute for body in _bodies(attribute)]


def _bodies(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs]


def nodes_within(*nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields the nodes, and those of the graphs inside them."""
    waiting = list(nodes)
    while waiting:
        for node in waiting.pop():
            yield node
            waiting += [body.node for body in bodies_of(node)]


def _require_few_values(node: onnx.NodeProto) -> None:
    """Raises ModelError for a node that takes ONNX Runtime minutes: it takes the square of a node's
    inputs and outputs."""
    values = max(len(node.input), len(node.output))
    if values > _MAX_VALUES_OF_NODE:
        message = (
            f"a node {node.op_type[:100]} has {values:,} inputs or outputs, more than "
            f"{_MAX_VALUES_OF_NODE:,}: split it into several nodes"
        )
        raise UnreadModelError(message)


def _require_few_bodies(bodies: int, nodes: int) -> None:
    if bodies * nodes > _MAX_NODES_IN_SIGHT:
        message = (
            f"it has {bodies:,} branches and bodies among {nodes:,} nodes, and ONNX copies all "
            "names for each: repeat one by a Loop, or use Where"
        )
        raise UnreadModelError(message)


def _require_little_inlined(model: onnx.ModelProto, size_bytes: int) -> None:
    """Raises ModelError for functions that become too much once each call is replaced by its
    function, as ONNX Runtime does it: twenty that call each other twice are a million nodes. Only
    counts."""
    functions: dict[_Callee, list[onnx.FunctionProto]] = {}
    for function in model.functions:  # of two with one name, either may be what is called
        key = _called_function(function.domain, function.name, function.overload)
        functions.setdefault(key, []).append(function)
    known: dict[_Callee, _Counts] = {}
    inside: set[_Callee] = set()
    waiting = list(functions)
    while waiting:
        which = waiting[-1]
        if which in known:
            waiting.pop()
            continue
        calls = dict.fromkeys(map(_callee, nodes_within(*_nodes_of_functions(functions[which]))))
        missing = [each for each in calls if each in functions and each not in known]
        if missing and which in inside:
            message = f"its function {which[1][:100]!r} calls itself"
            raise ModelError(message)
        inside.add(which)
        waiting += missing
        if not missing:
            known[which] = _called(functions[which], known)
    whole = _inlined(model.graph.node, known)
    nodes_of_file = sum(1 for _ in nodes_of(model))
    if _steps(whole) > max(_MAX_INLINING_STEPS, _MAX_STEPS_OF_NODE * nodes_of_file):
        message = (
            f"its functions become {whole['nodes']:,} nodes ({whole['calls']:,} calls, levels: "
            f"{whole['levels']:,}), which takes ONNX Runtime too long: commit it with its "
            "functions inlined (onnx.inliner), repeat them by a Loop, or call fewer"
        )
        raise UnreadModelError(message)
    _require_few_bodies(whole["bodies"], whole["nodes"])
    most = _most_bytes(size_bytes)
    if whole["bytes"] > size_bytes + most:
        message = (
            f"its functions take more than {most / 2**20:,.0f} MiB of memory where each call is "
            "replaced by its function: make their constants inputs, and their names short"
        )
        raise UnreadModelError(message)


def _nodes_of_functions(
    functions: Iterable[onnx.FunctionProto],
) -> Iterator[Iterable[onnx.NodeProto]]:
    for function in functions:
        yield function.node
        for default in function.attribute_proto:
            yield from (body.node for body in _bodies(default))


def _inlined(nodes: Iterable[onnx.NodeProto], known: Mapping[_Callee, _Counts]) -> _Counts:
    """Counts what the nodes become once each call among them is replaced by its function."""
    total: _Counts = Counter()
    for node in nodes:
        plain: _Counts = Counter({"nodes": 1, "constants": int(node.op_type == "Constant")})
        called = known.get(_callee(node), plain)
        _add(total, {key: called[key] for key in _COUNTS})
        names = len(node.input) + len(node.output) + 1
        _add(total, {"names": names, "bytes": node.ByteSize()})
        _add_attributes(total, node.attribute, called, known)
    return total


def _called(functions: Sequence[onnx.FunctionProto], known: Mapping[_Callee, _Counts]) -> _Counts:
    """Counts what a call of these functions of one name becomes."""
    total: _Counts = Counter()
    for function in functions:
        body = _inlined(function.node, known)
        _add_attributes(body, function.attribute_proto, body.copy(), known)
        _add(total, body)
    # Each name is longer by the name of each function that it was in.
    _add(total, {"calls": 1, "bytes": total["names"] * len(functions[0].name)})
    total["levels"] += 1
    return total


def _add_attributes(
    total: _Counts,
    attributes: Iterable[onnx.AttributeProto],
    called: _Counts,
    known: Mapping[_Callee, _Counts],
) -> None:
    """Adds the graphs and references in attributes as often as the function that is called has
    them, and the further copies of others."""
    for attribute in attributes:
        times = max(called[attribute.name,], 1)
        if attribute.ref_attr_name:
            _add(total, {(attribute.ref_attr_name,): times})
            continue
        _add(total, {"bytes": attribute.ByteSize() * (times - 1)})
        for body in _bodies(attribute):
            inner = _inlined(body.node, known)
            inner["levels"] += called["levels"]
            inner["bodies"] += 1
            _add(total, inner, times)


def _add(total: _Counts, other: Mapping[str | tuple[str], int], times: int = 1) -> None:
    for key, count in other.items():
        is_depth = key == "levels"
        more = max(total[key], count) if is_depth else total[key] + count * times
        total[key] = min(more, _COUNTED)


def _steps(counts: _Counts) -> int:
    """Returns the steps of ONNX Runtime, about 6 microseconds each. It goes through the graph once
    per level, through all nodes for each call, and through all constants for each of them."""
    nodes, calls = counts["nodes"] + counts["calls"], counts["calls"]
    per_node = _STEPS_OF_NODE + counts["levels"] + calls // _NAMES_PER_STEP
    return nodes * per_node + counts["constants"] ** 2 // _CONSTANTS_PER_STEP


def _callee(node: onnx.NodeProto) -> _Callee:
    return _called_function(node.domain, node.op_type, node.overload)


def _called_function(domain: str, name: str, overload: str) -> _Callee:
    return "" if domain == "ai.onnx" else domain, name, overload


def tensors_in(message: Any) -> Iterator[onnx.TensorProto]:
    """Yields all tensors of a message in order, by protobuf's reflection: a list of places would
    miss one."""
    waiting = [message]
    while waiting:
        inside = waiting.pop()
        if inside.DESCRIPTOR.full_name == _TENSOR:
            yield inside
            continue
        parts: list[Any] = []
        for field, value in inside.ListFields():
            if field.message_type is not None:
                parts += [value] if hasattr(value, "ListFields") else value
        waiting += reversed(parts)


def is_external(tensor: onnx.TensorProto) -> bool:
    """Returns whether the tensor's numbers are in a data file. ONNX Runtime goes by the location
    alone, so `data_files` rejects a tensor that has both."""
    return bool(tensor.external_data) or tensor.data_location == onnx.TensorProto.EXTERNAL


def _data_file(tensor: onnx.TensorProto) -> str:
    """Returns the data file of an external tensor. Raises ModelError for one that two readers could
    understand differently."""
    entries: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    problem = ""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        problem = "names a data file, and its data location is the model itself"
    elif any(len(getattr(tensor, name)) for name in _OWN_NUMBERS):
        problem = "has numbers both in the model and in a data file"
    elif len(entries) != len(tensor.external_data):
        problem = "names its data file, or the place in it, twice"
    elif "location" not in entries:
        problem = "has its numbers in a data file, and names none"
    elif entries["location"] == _IN_MEMORY:
        problem = "names an address in memory for its data"
    elif any(not _NUMBER.fullmatch(entries.get(key, "0")) for key in ("offset", "length")):
        problem = "has an offset or a length in its data file that is not a number"
    elif unknown_key := next((key for key in entries if not _KEY.fullmatch(key)), None):
        problem = f"has {unknown_key[:100]!r} for its data file, which ONNX Runtime does not take"
    if problem:
        message = f"its tensor {tensor.name[:100]!r} {problem}"
        raise ModelError(message)
    return entries["location"]


def _parse(model: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise NoOnnxError(_NO_ONNX) from error
    return proto


def _require_one_version(model: onnx.ModelProto) -> None:
    """Raises ModelError for operators of two versions: ONNX Runtime takes the last, others the
    first."""
    versions: dict[str, int] = {}
    for each in model.opset_import:
        domain = "ONNX" if each.domain in {"", "ai.onnx"} else each.domain
        before = versions.setdefault(domain, each.version)
        if before != each.version:
            message = (
                f"it imports versions {before} and {each.version} of {domain[:100]}'s operators"
            )
            raise ModelError(message)


def too_large(size_bytes: int) -> str:
    return (
        f"it has {size_bytes / 2**30:.1f} GiB, and an ONNX file ends at 2: "
        "its tensors belong in data files"
    )


_SLOW_SECONDS = 0.1
_slow: dict[tuple[int, bytes], bool] = {}
"""The answers for contents that took longer, by their size and digest. A run asks for each model
about eight times, and only a hostile one has millions of parts."""


def _has_data_file(data: bytes) -> bool:
    """Returns what `_has_external_data` does, which reads a content of very many parts once."""
    if any(size == len(data) for size, _ in _slow) and (key := _key(data)) in _slow:
        return _slow[key]
    began = time.thread_time()
    has_file = _has_external_data(data)
    if time.thread_time() - began > _SLOW_SECONDS:
        _slow[_key(data)] = has_file
    return has_file


def _key(data: bytes) -> tuple[int, bytes]:
    return len(data), hashlib.sha256(data).digest()


def _has_external_data(data: bytes) -> bool:
    """Returns whether any tensor names a data file or says it has one. Reads every part of the
    file, and adds up its memory before protobuf parses it."""
    # `inside` is the stack of messages that the position is in: the end of each, and what its
    # fields are. A field is a number, which has no length, or text, numbers or a message, which
    # have one.
    position, memory_bytes = 0, 0
    most = _most_bytes(len(data))
    inside = [(len(data), _MODEL)]
    has_data = False
    while inside:
        end, fields = inside[-1]
        if memory_bytes > most:
            raise UnreadModelError(_too_much(most, len(data)))
        if position >= end:
            _require(position == end)
            inside.pop()
            continue
        begin = position
        tag, position = _varint(data, position)
        below = fields.get(tag >> 3)
        if tag & 7 != _LENGTH:
            has_data = has_data or below == _DATA
            position = _behind_number(data, position, tag & 7)
            # A list that is not packed has its tag before each number: a forest has millions.
            run = _run_of(tag).match(data, position, end) if tag < _MORE else None
            position = run.end() if run else position
            memory_bytes += _NUMBER_BYTES * (1 + (position - begin) // _BYTES_WITH_TAG[tag & 7])
            continue
        length, position = _varint(data, position)
        _require(position + length <= end)
        if isinstance(below, dict):
            memory_bytes += _MESSAGE_BYTES
            inside.append((position + length, below))
            _require_shallow(len(inside))
            continue
        memory_bytes += length * _NUMBER_BYTES if below == _NUMBERS else _TEXT_BYTES
        if below == _NAME:
            _require_short(length)
            _require_text(data[position : position + length])
        elif below == _DATA:
            has_data = True
        position += length
    return has_data


_BYTES_WITH_TAG = {_VARINT: 2, _EIGHT_BYTES: 9, _FOUR_BYTES: 5}
"""The fewest bytes of a number and its tag. Other kinds are rejected where they are skipped."""
_VALUES = {_VARINT: rb"[\x80-\xff]{0,9}[\x00-\x7f]", _EIGHT_BYTES: rb".{8}", _FOUR_BYTES: rb".{4}"}


@cache
def _run_of(tag: int) -> re.Pattern[bytes]:
    """Returns a pattern for the next numbers behind the same tag."""
    pattern = b"(?:%s%s){1,1000}" % (re.escape(bytes([tag])), _VALUES[tag & 7])
    return re.compile(pattern, re.DOTALL)


def _behind_number(data: bytes, position: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, position)[1]
    _require(kind in {_EIGHT_BYTES, _FOUR_BYTES})
    return position + (8 if kind == _EIGHT_BYTES else 4)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift >= _MAX_VARINT_BITS:
            raise NoOnnxError(_NO_ONNX)
        byte = data[position]
        position += 1
        if byte < _MORE:
            return value | byte << shift, position
        value |= (byte - _MORE) << shift
        shift += 7


def _require(is_so: bool) -> None:
    if not is_so:
        raise NoOnnxError(_NO_ONNX)


def _require_short(length: int) -> None:
    if length > _MAX_NAME_BYTES:
        message = f"it has a name of {length:,} bytes; the longest may have {_MAX_NAME_BYTES:,}"
        raise UnreadModelError(message)


def _require_text(name: bytes) -> None:
    """Raises ModelError for a name that is not UTF-8: protobuf gives it as bytes, and no report can
    have it."""
    try:
        name.decode()
    except UnicodeDecodeError as error:
        message = f"it has a name that is not UTF-8: {name[:40]!r}"
        raise ModelError(message) from error


def _most_bytes(size_bytes: int) -> int:
    return max(_MIN_PARSED_BYTES, min(_MAX_GROWTH * size_bytes, _MAX_PARSED_BYTES))


def _too_much(most: int, size_bytes: int) -> str:
    return (
        f"it has {size_bytes / 1e6:,.1f} MB and takes more than {most / 2**20:,.0f} MiB of memory "
        "to be read: it has very many small parts, or packed numbers that belong in raw_data"
    )


def _require_shallow(levels: int) -> None:
    if levels > _DEEPEST:
        message = f"it is nested more than {_DEEPEST} levels deep"
        raise ModelError(message)


def _fields_of(message: Any, known_fields: dict[str, _Fields]) -> _Fields:
    """Returns the fields of a message type. Messages contain each other, so known ones are not read
    again."""
    if message.full_name in known_fields:
        return known_fields[message.full_name]
    fields = known_fields[message.full_name] = {}
    for field in message.fields:
        if field.name in {"external_data", "data_location"}:
            fields[field.number] = _DATA
        elif field.message_type is not None:
            fields[field.number] = _fields_of(field.message_type, known_fields)
        elif field.type == field.TYPE_STRING and field.name not in _FREE_TEXT:
            fields[field.number] = _NAME
        elif field.type not in _AS_LARGE_AS_WRITTEN:
            fields[field.number] = _NUMBERS
    return fields


_MODEL = _fields_of(onnx.ModelProto.DESCRIPTOR, {})

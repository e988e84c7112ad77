"""YAML without its surprises: what YAML 1.1 turns into booleans or clock times is text here, and
what it lets pass, such as a duplicate key, is rejected with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

MAX_YAML_CHARACTERS = 256 * 1024
_MAX_VALUES = 50_000
"""The most values in a file, counting repeats by aliases: a few lines of aliases can stand for
billions of values."""
_DEEPEST = 50
_MAX_INTEGER = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, which an escape can name and no file can store."""


class YamlProblemError(yaml.YAMLError):
    """A text that is no YAML of ours; `line` is 0 if the problem is on no line."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


def read_yaml(text: str) -> Any:
    """Parses the text. Raises YamlProblemError, whose text is one line for the file's author."""
    if len(text) > MAX_YAML_CHARACTERS:
        message = f"larger than {MAX_YAML_CHARACTERS // 1024} KiB. Shorten it."
        raise YamlProblemError(message)
    try:
        return _construct(_Loader(text))
    except yaml.YAMLError as error:
        raise _problem(error) from error
    except RecursionError as error:
        message = "nested too deeply. Simplify it."
        raise YamlProblemError(message) from error
    except ValueError as error:
        message = f"{error}. Correct the value."
        raise YamlProblemError(message) from error


def _construct(loader: _Loader) -> Any:
    """Returns the document; its values are counted before any is made."""
    document = loader.get_single_node()
    if document is None:
        return None
    _Extent().values(document, depth=1)
    return loader.construct_document(document)


class _Extent:
    """Counts the values of a document, an aliased one once per alias."""

    def __init__(self) -> None:
        self._known: dict[int, int | None] = {}

    def values(self, node: yaml.Node, depth: int) -> int:
        if id(node) not in self._known:
            if depth > _DEEPEST:
                raise _mark_problem("nested too deeply", node)
            if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
                raise _mark_problem("an escape from \\ud800 to \\udfff is no character", node)
            self._known[id(node)] = None
            inside = (self.values(part, depth + 1) for part in _parts(node))
            self._known[id(node)] = 1 + sum(inside)
        count = self._known[id(node)]
        if count is None:
            raise _mark_problem("an alias of what it is part of", node)
        if count > _MAX_VALUES:
            raise _mark_problem(f"more than {_MAX_VALUES} values, with what aliases repeat", node)
        return count


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Builds a mapping; rejects a duplicate key, whose second value would silently win."""
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _mark_problem("a key must be a text", key)
            if key.value in keys:
                raise _mark_problem(f"key {key.value} is given twice", key)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def _text(_: _Loader, node: yaml.ScalarNode) -> str:
    """Returns dates as text: no setting is a date, so what looks like one is a name."""
    return str(node.value)


def _truth(loader: _Loader, node: yaml.ScalarNode) -> bool | str:
    """Returns a boolean for true and false only: `mode: off` is a word."""
    is_truth = node.value.lower() in {"true", "false"}
    return loader.construct_yaml_bool(node) if is_truth else str(node.value)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int | str:
    """Returns an integer, but as text what is another number than it looks like: `1:30` is not 90,
    and `010` not 8."""
    if ":" in node.value or re.match(r"[-+]?0[0-9_]", node.value):
        return str(node.value)
    number = loader.construct_yaml_int(node)
    if abs(number) > _MAX_INTEGER:
        raise _no_number(node)
    return number


def _number(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    if ":" in node.value:
        return str(node.value)
    number = loader.construct_yaml_float(node)
    if not math.isfinite(number):
        raise _no_number(node)
    return number


for _tag, _constructor in {
    "timestamp": _text,
    "bool": _truth,
    "int": _integer,
    "float": _number,
}.items():
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _constructor)


def _no_number(node: yaml.ScalarNode) -> yaml.MarkedYAMLError:
    return _mark_problem(f"{node.value[:40]} is not a number that can be used", node)


def _mark_problem(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _problem(error: yaml.YAMLError) -> YamlProblemError:
    mark, remedy = getattr(error, "problem_mark", None), "Fix the line."
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    if problem.startswith("expected <block end>"):
        problem = "it does not continue what stands above it"
        remedy = "Check the indentation of this line and of those above it."
    elif problem.startswith("but "):
        problem = f"{getattr(error, 'context', '')}, {problem}"
    if mark is None:
        return YamlProblemError(f"{problem}. {remedy}")
    line = mark.line + 1
    return YamlProblemError(f"line {line}: {problem}. {remedy}", line)

"""YAML without its surprises: what YAML 1.1 reads into a word or a clock time is text here, and what
it lets pass, such as a key given twice, is refused with its line."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import yaml


def read_yaml(text: str) -> Any:
    """Raises yaml.YAMLError, whose text is one line for who wrote the file."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 -- a SafeLoader
    except yaml.YAMLError as error:
        raise yaml.YAMLError(_problem(error)) from error
    except RecursionError as error:
        message = "nested too deeply. Simplify it."
        raise yaml.YAMLError(message) from error
    except ValueError as error:
        message = f"{error}. Correct the value."
        raise yaml.YAMLError(message) from error


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The second of two equal keys would silently win."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key must be a text", key)
            if key.value in seen:
                raise _refused(f"key {key.value} is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _text(_: _Loader, node: yaml.ScalarNode) -> str:
    """No setting is a date: what looks like one is a name."""
    return str(node.value)


def _truth(loader: _Loader, node: yaml.ScalarNode) -> bool | str:
    """Only true and false are: `mode: off` is a word."""
    is_truth = node.value.lower() in {"true", "false"}
    return loader.construct_yaml_bool(node) if is_truth else str(node.value)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int | str:
    """`1:30` is not 90."""
    return str(node.value) if ":" in node.value else loader.construct_yaml_int(node)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    if ":" in node.value:
        return str(node.value)
    number = loader.construct_yaml_float(node)
    if not math.isfinite(number):
        raise _refused(f"{node.value} is no number to work with", node)
    return number


for _tag, _constructor in {
    "timestamp": _text,
    "bool": _truth,
    "int": _integer,
    "float": _number,
}.items():
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _constructor)


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    if said.startswith("but "):
        said = f"{getattr(error, 'context', '')}, {said}"
    at = f"line {mark.line + 1}: " if mark is not None else ""
    return f"{at}{said}. Fix the line."

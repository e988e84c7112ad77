"""The search for the line of a key in a configuration's text, so that a
problem can be shown beside it."""

from __future__ import annotations

import re

import yaml

_STEP = re.compile(r"[^.\[\]]+")


def line_of(text: str, key: str) -> int:
    """The line of a key like `targets[0].name`, or of the nearest one above it that is there; the
    first line where nothing of it is."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return 1
    line = 1
    for step in _STEP.findall(key):
        found = _inside(node, step)
        if found is None:
            break
        line, node = found
    return line


def _inside(node: yaml.Node | None, step: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == step:
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        value = node.value[int(step)]
        return value.start_mark.line + 1, value
    return None

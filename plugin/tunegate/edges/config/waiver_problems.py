"""Problems of waivers as they are written: all of them at once, in words for their author."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from tunegate.artifacts.waivers import Waiver
from tunegate.edges.config.problem import key_place, meant_key, unknown_key, value_problem

_KEYS = {field.encode_name: field.type for field in msgspec.structs.fields(Waiver)}
_FILE = {"waivers": list[Any]}
_MAPPING = inspect.type_info(dict[str, Any])


def file_problems(content: Any) -> tuple[str, ...]:
    """One line each, for a whole file."""
    problems = tuple(_of_mapping(content, "", _FILE))
    if problems:
        return problems
    entries = enumerate(content["waivers"])
    problems = tuple(
        line for number, each in entries for line in waiver_problems(each, f"waivers[{number}]")
    )
    return (*problems, f"A waiver has {', '.join(_KEYS)}.") if problems else ()


def waiver_problems(entry: Any, path: str = "") -> tuple[str, ...]:
    """One line each, for one waiver at that path."""
    return tuple(_of_mapping(entry, path, _KEYS))


def _of_mapping(content: Any, path: str, keys: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(content, dict):
        yield value_problem(_MAPPING, path, content)
        return
    meant = {key: meant_key(str(key), keys) for key in content if key not in keys}
    for key, near in meant.items():
        yield unknown_key(key_place(path, str(key)), near)
    for key, kind in keys.items():
        if key in content:
            yield from _of_value(content[key], key_place(path, key), kind)
        elif key not in meant.values():
            yield f"{key_place(path, key)} is missing. Add it."


def _of_value(value: Any, path: str, kind: Any) -> Iterator[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        unit = "percent" if path.endswith("-percent") else ""
        yield value_problem(inspect.type_info(kind), path, value, unit)

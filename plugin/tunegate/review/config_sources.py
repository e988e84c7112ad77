"""Each effective setting with where it came from, for `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from tunegate.config import Config
from tunegate.system.strict_yaml import read_yaml

SettingSource = Literal["file", "default", "argument"]


class Setting(msgspec.Struct, frozen=True):
    """`key` is the dotted path in the file; `value` is as the file would write it."""

    key: str
    value: str
    source: SettingSource


def sources(path: Path, of_file: Config, effective: Config) -> tuple[Setting, ...]:
    """`of_file` is what the file gave, `effective` the same with the arguments laid over it."""
    try:
        written = read_yaml(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        written = None
    before = dict(_leaves(msgspec.to_builtins(of_file)))
    return tuple(
        Setting(key, _text(value), _source(key, value, before, written))
        for key, value in _leaves(msgspec.to_builtins(effective))
    )


def _source(key: str, value: Any, before: dict[str, Any], written: Any) -> SettingSource:
    if before.get(key) != value:
        return "argument"
    return "file" if _is_written(written, key.split(".")) else "default"


def _is_written(written: Any, parts: list[str]) -> bool:
    for part in parts:
        if isinstance(written, list) and part.isdigit():
            if int(part) >= len(written):
                return False
            written = written[int(part)]
        elif isinstance(written, dict) and part in written:
            written = written[part]
        else:
            return False
    return True


def _leaves(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        pairs = [(f"{prefix}.{key}" if prefix else str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        pairs = [(f"{prefix}.{index}", item) for index, item in enumerate(value)]
    else:
        return [(prefix, value)]
    return [leaf for key, item in pairs for leaf in _leaves(item, key)]


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()

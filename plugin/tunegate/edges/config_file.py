"""`tunegate.yaml` to a Config. Every mistake is one line: file, key, what is wrong, what to do."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    GateConfig,
    ModelConfig,
    TargetConfig,
)
from tunegate.errors import ConfigError
from tunegate_cache.names import zone_problem

NAME = "tunegate.yaml"

_SECTIONS = (Config, ModelConfig, TargetConfig, CacheConfig, BudgetConfig, GateConfig)
_SECTION_OF: dict[str, type[msgspec.Struct]] = {
    "models": ModelConfig,
    "targets": TargetConfig,
    "cache": CacheConfig,
    "budget": BudgetConfig,
    "gate": GateConfig,
}
_KEYS = sorted({f.encode_name for s in _SECTIONS for f in msgspec.structs.fields(s)})
_SCHEMES = ("", "file", "memory", "s3")
_CHOICES = {"kind": "llvm or cuda", "mode": "off, ro or rw", "inconclusive": "fail or warn"}
_UNITS = {
    "minutes": "a number of minutes",
    "usd": "a number of US dollars",
    "usd-per-hour": "a number of US dollars",
    "seconds": "a number of seconds",
    "margin-percent": "a number of percent",
    "trials": "a whole number",
}


def load(path: Path) -> Config:
    """Read the file. Raises ConfigError."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        message = f"{path}: not found. Run `tunegate init` to write one."
        raise ConfigError(message) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read ({error}). Fix the file, or name another with --config."
        raise ConfigError(message) from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Config:
    """Read a configuration's text; `where` names it in messages. Raises ConfigError."""
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 -- a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: {_yaml_problem(error)}") from error
    if content is None:
        message = f"{where}: empty. Run `tunegate init` to see what belongs in it."
        raise ConfigError(message)
    try:
        config = msgspec.convert(content, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_problem(str(error), content)}") from error
    _check(config, where)
    return config


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice: the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                problem = f"key {key} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not YAML"
    at = f"line {mark.line + 1}: " if mark is not None else ""
    return f"{at}{problem}. Fix the line."


def _problem(text: str, content: Any) -> str:
    said, _, where = text.partition(" - at ")
    path = where.strip("`").removeprefix("$").removeprefix(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", said)
    if unknown is not None:
        return _unknown(unknown[1], path)
    missing = re.fullmatch(r"Object missing required field `(.+)`", said)
    if missing is not None:
        return f"{_join(path, missing[1])} is missing. Add it; `tunegate init` shows an example."
    unit = _UNITS.get(path.rpartition(".")[2])
    value = _at(content, path)
    if unit is not None and isinstance(value, str):
        return f'{path} must be {unit} without a unit, not "{value}".'
    known = _CHOICES.get(path.rpartition(".")[2])
    if known is not None and said.startswith("Invalid enum value"):
        return f'{path} is {known}, not "{value}".'
    got = "" if value is None else f", not {value!r}"
    return f"{path or 'the file'}: {_plainly(said)}{got}."


def _unknown(key: str, path: str) -> str:
    """The keys of the same section come first; any other may be meant for another section."""
    section = _SECTION_OF.get(re.sub(r"\[.*", "", path), Config)
    own = [field.encode_name for field in msgspec.structs.fields(section)]
    same_word = [name for name in own if key in name.split("-")]
    near = (
        same_word
        or difflib.get_close_matches(key, own, n=1)
        or difflib.get_close_matches(key, _KEYS, n=1)
    )
    hint = f"Did you mean {near[0]}?" if near else "Remove it."
    return f"unknown key {_join(path, key)}. {hint}"


def _plainly(said: str) -> str:
    names = {
        "`array`": "a list", "`object`": "a mapping", "`str`": "a text", "`float`": "a number",
        "`int`": "a whole number",
    }  # fmt: skip
    text = re.sub(r", got `\w+`", "", said)
    for name, word in names.items():
        text = text.replace(name, word)
    return text[:1].lower() + text[1:]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _at(content: Any, path: str) -> Any:
    """The offending value; msgspec writes `[...]` where any element may be meant."""
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", path.replace("[...]", "")):
        try:
            content = content[int(part[1:-1]) if part.startswith("[") else part]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _check(config: Config, where: str) -> None:
    """What no type can say."""
    _check_cache(config.cache, where)
    names = [target.name for target in config.targets]
    for name, count in Counter(names).items():
        if count > 1:
            message = f'{where}: targets: the name "{name}" is given {count} times.'
            raise ConfigError(message)
    for entry in config.models:
        for name in entry.targets:
            if name not in names:
                known = ", ".join(names)
                message = f'{where}: models: {entry.path}: unknown target "{name}". Known: {known}.'
                raise ConfigError(message)
    if config.budget.usd is not None and config.budget.usd_per_hour is None:
        unpriced = [target.name for target in config.targets if target.usd_per_hour is None]
        if unpriced:
            message = (
                f"{where}: budget.usd needs a price: give usd-per-hour under budget, "
                f"or on target {unpriced[0]}."
            )
            raise ConfigError(message)


def _check_cache(cache: CacheConfig, where: str) -> None:
    parts = urlsplit(cache.url)
    if parts.scheme not in _SCHEMES or (parts.scheme == "s3" and not parts.netloc):
        message = f'{where}: cache.url "{cache.url}": write s3://bucket/prefix or a directory.'
        raise ConfigError(message)
    for zone in (cache.zone, *cache.read_zones):
        problem = zone_problem(zone)
        if problem is not None:
            raise ConfigError(f"{where}: cache: {problem}.")

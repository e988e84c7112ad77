"""What a value of `tunegate.yaml` should have been, in words for who wrote it."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    GateConfig,
    InputConfig,
    ModelConfig,
    ProfileConfig,
    TargetConfig,
    ValuesConfig,
)

_SECTION_OF: dict[str, type[msgspec.Struct]] = {
    "models": ModelConfig,
    "targets": TargetConfig,
    "cache": CacheConfig,
    "budget": BudgetConfig,
    "gate": GateConfig,
}
_INSIDE_MODEL: dict[str, type[msgspec.Struct]] = {
    r".*\.values": ValuesConfig,
    r".*\.inputs\..+": InputConfig,
    r".*\.profiles\.[^.]+": ProfileConfig,
}
_LISTS = ("models", "targets")
_PLACES = {
    field.encode_name: f"{name}[].{field.encode_name}"
    if name in _LISTS
    else f"{name}.{field.encode_name}"
    for name, section in reversed(_SECTION_OF.items())
    for field in msgspec.structs.fields(section)
} | {field.encode_name: field.encode_name for field in msgspec.structs.fields(Config)}
"""Each key with its place; the earlier section where two have it."""
_CHOICES = {"kind": "llvm or cuda", "mode": "off, ro or rw", "inconclusive": "fail or warn"}
_UNITS = {
    "minutes": "a number of minutes",
    "usd": "a number of US dollars",
    "usd-per-hour": "a number of US dollars",
    "seconds": "a number of seconds",
    "margin-percent": "a number of percent",
    "ceiling-percent": "a number of percent",
    "max-error": "a number of percent",
    "min-agreement": "a number of percent",
    "trials": "a whole number",
}
_WORDS = {
    r"`(?:array \| object|object \| array)`": "a list or a mapping",
    r", got `\w+`": "",
    r"`str \| object`": "`same` or a mapping",
    r"`int \| float(?: \| null)?`": "a number",
    r"`array` of length >= 1": "a list of at least one",
    r"`array`": "a list",
    r"`object`": "a mapping",
    r"`str` matching regex .*": "letters, digits, dots, dashes and underscores",
    r"`str(?: \| null)?`": "a text",
    r"`(?:int \| )?float(?: \| null)?`": "a number",
    r"`int(?: \| null)?`": "a whole number",
    r"Invalid RFC3339 encoded date": "expected a date as year-month-day",
    r"`date`": "a date as year-month-day",
    r"(?<=\d)\.0\b": "",
}


_REMOVED = {
    "budget.joules": "budget.minutes, usd and trials cap tuning, and counted energy is reported",
    "targets.watts": "energy is reported where the machine counts it",
}
"""Keys of earlier versions, and what there is instead."""


class KeyProblem(NamedTuple):
    """A key that is wrong, and the line that says so; an empty key is the whole file."""

    key: str
    text: str


def problem_of(error: msgspec.ValidationError, content: Any) -> KeyProblem:
    """One line that says where in the content something is wrong, what it is,
    and what belongs there instead."""
    said, _, where = str(error).partition(" - at ")
    if where.startswith("`key`"):
        key = _dotted(where)
        return KeyProblem(key, _bare_key(key, content))
    path, value = _pointed_at(content, _dotted(where))
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", said, re.DOTALL)
    if unknown is not None:
        return KeyProblem(key_place(path, unknown[1]), _unknown(unknown[1], path))
    missing = re.fullmatch(r"Object missing required field `(.+)`", said)
    if missing is not None:
        key = key_place(path, missing[1])
        return KeyProblem(key, f"{key} is missing. Add it; `tunegate init` shows an example.")
    if isinstance(error.__cause__, ValueError):  # a section's own rule says it whole
        return KeyProblem(path, f"{path or 'the file'}: {said}.")
    return KeyProblem(path, value_problem(said, path, value))


def _bare_key(place: str, content: Any) -> str:
    """The line for a key that YAML reads as something else than a text."""
    path, inside = _pointed_at(content, place)
    bare = [key for key in inside if not isinstance(key, str)] if isinstance(inside, dict) else []
    named = f"key {_shown(bare[0])}" if bare else "a key"
    return f"{path or 'the file'}: {named} is no text. Put it in quotes."


def value_problem(said: str, path: str, value: Any) -> str:
    """The line for a value of another kind; `said` is what msgspec says of it."""
    last = path.rpartition(".")[2]
    if last in _UNITS and isinstance(value, str):
        return f'{path} must be {_UNITS[last]} without a unit, not "{value}".'
    if last in _CHOICES and said.startswith("Invalid enum value"):
        return f'{path} is {_CHOICES[last]}, not "{value}".'
    return f"{path or 'the file'}: {_plainly(said)}, not {_shown(value)}.{_hint(said, path, value)}"


def _dotted(where: str) -> str:
    """`$.gate.margin` in its quotes, without what only msgspec knows."""
    return where.removeprefix("`key` in ").strip("`").removeprefix("$").removeprefix(".")


def _pointed_at(content: Any, path: str) -> tuple[str, Any]:
    """The path and its value. msgspec writes `[...]` for any key of a mapping; we name the key."""
    keys: list[str | int] = []
    for step in re.findall(r"\[\.\.\.\]|\[\d+\]|[^.\[\]]+", path):
        value = _at(content, keys)
        if step == "[...]":
            wrong = (
                name for name in value if _is_refused(_with(content, keys, {name: value[name]}))
            )
            keys.append(next(wrong, ""))
        else:
            keys.append(int(step[1:-1]) if step.startswith("[") else step)
    return _path(keys), _at(content, keys)


def _at(content: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _with(content: Any, keys: Sequence[str | int], value: Any) -> Any:
    """The content with another value at one place."""
    if not keys:
        return value
    key, *rest = keys
    changed = content.copy()
    changed[key] = _with(content[key], rest, value)
    return changed


def _is_refused(content: Any) -> bool:
    try:
        msgspec.convert(content, Config)
    except msgspec.ValidationError:
        return True
    return False


def _path(keys: Sequence[str | int]) -> str:
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".")


def _unknown(key: str, path: str) -> str:
    """The keys of the same section come first; any other may be meant for another section."""
    instead = _REMOVED.get(re.sub(r"\[\d+\]", "", key_place(path, key)))
    if instead is not None:
        return f"{key_place(path, key)} was removed: {instead}. Remove the key."
    inside = (section for form, section in _INSIDE_MODEL.items() if re.fullmatch(form, path))
    section = next(inside, None) or _SECTION_OF.get(re.sub(r"\[.*", "", path), Config)
    own = [field.encode_name for field in msgspec.structs.fields(section)]
    elsewhere = difflib.get_close_matches(key, sorted(_PLACES), n=1)
    meant = meant_key(key, own) or (_PLACES[elsewhere[0]] if elsewhere else "")
    return unknown_key(key_place(path, key), meant)


def meant_key(word: str, own: Collection[str]) -> str:
    """The key that has the word as a part, or looks like it; '' where none does."""
    same_word = [name for name in own if word in name.split("-")]
    near = same_word or difflib.get_close_matches(word, own, n=1)
    return near[0] if near else ""


def unknown_key(place: str, meant: str) -> str:
    """The line for a key that nothing reads; `meant` is the one that was, '' for none."""
    hint = f"Did you mean {meant}?" if meant else "Remove it."
    return f"unknown key {place}. {hint}"


def _plainly(said: str) -> str:
    for pattern, words in _WORDS.items():
        said = re.sub(pattern, words, said)
    return said[:1].lower() + said[1:]


def _shown(value: Any) -> str:
    """A value as text, on one line and not longer than one."""
    match value:
        case None:
            return "nothing"
        case str():
            text = msgspec.json.encode(value).decode()
        case bool():
            text = str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            text = str(value)
    return textwrap.shorten(text, 60, placeholder="…")


def _hint(said: str, path: str, value: Any) -> str:
    if path.endswith(".accuracy") and isinstance(value, int | float):
        return f" Write {{max-error: {value:g}}}, or what else the budget is."
    power = re.fullmatch(r"([-+]?\d+)(\.\d*)?e([-+]?)(\d+)", str(value), re.IGNORECASE)
    if power is not None and isinstance(value, str):
        whole, part, sign, exponent = power.groups()
        return f" YAML wants a point and a sign: {whole}{part or '.0'}e{sign or '+'}{exponent}."
    is_bare = isinstance(value, int | float)
    if said.startswith("Expected `str") and is_bare:
        return " Put it in quotes."
    is_nameless = path.endswith(".profiles") and isinstance(value, list)
    return " Give each profile a name." if is_nameless else ""


def key_place(path: str, key: str) -> str:
    """The place of a key of the section at that path."""
    return f"{path}.{key}" if path else key

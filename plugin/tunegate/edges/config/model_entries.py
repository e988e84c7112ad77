"""Checks of `models` entries that no type can say: names of targets and profiles, forms of
values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tunegate.config import Config, Inputs, ModelConfig, ValuesConfig
from tunegate.selection import values_of

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MODEL_ENDING = ".onnx"


class EntryProblem(NamedTuple):
    """A key of the file, and what is wrong there."""

    key: str
    text: str


def entry_problems(config: Config, *, is_merged: bool = False) -> Iterator[EntryProblem]:
    """Every problem of every entry, in the order of the file. A merged entry may ask for a model
    without a profile beside its profiles: base and head need not both have some."""
    known = [target.name for target in config.targets]
    for number, entry in enumerate(config.models):
        at = f"models[{number}]"
        yield from _of_targets(entry, at, known)
        yield from _of_values(entry.inputs, at, entry.path)
        yield from _of_metric(entry, at)
        for name, profile in entry.profiles.items():
            if name or not is_merged:
                yield from _of_profile_name(name, at, entry.path)
            yield from _of_values(profile.inputs, f"{at}.profiles.{name}", entry.path)


def _of_targets(entry: ModelConfig, at: str, known: list[str]) -> Iterator[EntryProblem]:
    for name in entry.targets:
        if name not in known:
            text = f'models: {entry.path}: unknown target "{name}". Known: {", ".join(known)}.'
            yield EntryProblem(f"{at}.targets", text)


def _of_metric(entry: ModelConfig, at: str) -> Iterator[EntryProblem]:
    metric = None if entry.accuracy == "same" else entry.accuracy.metric_command
    if metric is None:
        return
    try:
        words = shlex.split(metric.run)
    except ValueError as error:
        problem = f"is no command line ({error})"
    else:
        problem = "" if words else "is empty. Write a program and its arguments"
    if problem:
        key = f"{at}.accuracy.metric-command.run"
        yield EntryProblem(key, f"models: {entry.path}: accuracy.metric-command.run {problem}.")


def _of_profile_name(name: str, at: str, path: str) -> Iterator[EntryProblem]:
    problem = _name_problem(name)
    if problem:
        yield EntryProblem(f"{at}.profiles", f"models: {path}: profiles: {problem}.")


def _name_problem(name: str) -> str:
    if not name:
        return "a profile has no name. Write one before its colon"
    if not _PROFILE_NAME.fullmatch(name):
        return f'the name "{name}" may have letters, digits, dots, dashes and underscores'
    if name.casefold().endswith(_MODEL_ENDING):
        return f'the name "{name}" looks like that of a file. Leave out {_MODEL_ENDING}'
    return ""


def _of_values(inputs: Inputs, at: str, path: str) -> Iterator[EntryProblem]:
    for name, values in values_of(inputs).items():
        problem = _form_problem(values)
        if problem:
            text = f"models: {path}: inputs.{name}.values: {problem}."
            yield EntryProblem(f"{at}.inputs.{name}.values", text)


def _form_problem(values: ValuesConfig) -> str:
    low, high = values.low, values.high
    forms = (
        low is not None or high is not None,
        values.file is not None,
        bool(values.cases),
        values.sequence is not None,
    )
    if sum(forms) != 1:
        return "give low and high, or a file, or cases, or a sequence"
    if forms[0] and (low is None or high is None):
        return (
            f"{'high' if high is None else 'low'} is missing beside {low if high is None else high}"
        )
    if low is not None and high is not None and low > high:
        return f"low is {low}, which is more than high, {high}"
    return ""

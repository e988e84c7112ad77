"""Files of values that lie on the runner: who may name them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from tunegate.config import Config, Inputs
from tunegate.selection import values_of


def newly_outside(base: Config, judging: Config) -> tuple[str, ...]:
    """Returns a line for each absolute path that the base's configuration does not have: a change,
    of a fork for one, must not choose what is read on the runner."""
    known = {file for _, file in _outside(base)}
    return tuple(
        f"models: {where}: {file} lies outside of the repository, and only a configuration that is "
        "merged may name it. Commit the file, or merge the configuration first."
        for where, file in _outside(judging)
        if file not in known
    )


def _outside(config: Config) -> Iterator[tuple[str, str]]:
    for entry in config.models:
        yield from _named(entry.inputs, entry.path)
        for name, profile in entry.profiles.items():
            yield from _named(profile.inputs, f"{entry.path}: profiles.{name}")


def _named(inputs: Inputs, where: str) -> Iterator[tuple[str, str]]:
    for name, values in values_of(inputs).items():
        for file in values.files:
            if PurePath(file).is_absolute():
                yield f"{where}: inputs.{name}.values", file

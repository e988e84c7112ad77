"""The axes of a study and their levels. `study_file.py` reads them from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from tunegate.config import (
    Algorithm,
    Dims,
    Inputs,
    Name,
    Positive,
    PositiveInt,
    ProfileConfig,
    TargetConfig,
)

_Rounds = Annotated[int, msgspec.Meta(ge=3, le=50)]
Tuning = Literal["untuned", "zero-trial"] | PositiveInt
"""Loops as written; a build without trials; or this many trials of a model."""
GIVEN_FILE: Literal["given"] = "given"
"""The variant that is the model's own file."""


class _Section(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """A mapping of the file: kebab-case keys, unknown keys rejected."""


class StudyModel(_Section, frozen=True, kw_only=True):
    """A model file, with the sizes of its dynamic dimensions. Each of its `profiles` is a level of
    its own. `variants` are pruned files of the same model, by name."""

    path: str
    name: str = ""
    dims: Dims = {}
    inputs: Inputs = {}
    profiles: dict[str, ProfileConfig] = {}
    variants: dict[Name, str] = {}


class StudyAxes(_Section, frozen=True, kw_only=True):
    """The levels of each axis, compared with the first. An axis that is not given does not vary.
    `runtime` is any installed one, `threads` the target's."""

    runtime: tuple[str, ...] = ()
    precision: tuple[str, ...] = ("float32",)
    variant: tuple[str, ...] = (GIVEN_FILE,)
    layout: tuple[Literal["auto", "nchw", "nhwc"], ...] = ("auto",)
    algorithm: tuple[Algorithm, ...] = ("auto",)
    tuning: tuple[Tuning, ...] = ("zero-trial",)
    threads: tuple[PositiveInt, ...] = ()
    target: tuple[Name, ...] = ()


class StudyBudget(_Section, frozen=True, kw_only=True):
    """The most minutes on one machine, and the most cells."""

    minutes: Positive = 60.0
    cells: Annotated[int, msgspec.Meta(ge=2)] | None = None


class StudyConfig(_Section, frozen=True, kw_only=True):
    """`rounds` are the launches of each cell. Another `seed` draws another fraction of the
    cells."""

    models: Annotated[tuple[str | StudyModel, ...], msgspec.Meta(min_length=1)]
    axes: StudyAxes = StudyAxes()
    targets: Annotated[tuple[TargetConfig, ...], msgspec.Meta(min_length=1)] = (
        TargetConfig(name="cpu"),
    )
    rounds: _Rounds = 5
    budget: StudyBudget = StudyBudget()
    seed: Annotated[int, msgspec.Meta(ge=0)] = 1


class StudiedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A level of the model axis: a profile of a model, or all of it. `files` are its variants by
    name."""

    name: str
    files: Mapping[str, str]
    dims: Dims = {}
    inputs: Inputs = {}

"""The possible cells among all settings of the axes, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import msgspec

from tunegate.artifacts.candidates import FLOAT32, CandidateBuild
from tunegate_study.design.measured import (
    ALGORITHM,
    LAYOUT,
    MODEL,
    PRECISION,
    RUNTIME,
    TARGET,
    TUNING,
    VARIANT,
)
from tunegate_study.studies import Axis, CellSetting, LeftOut

_OF_COMPILERS = (LAYOUT, ALGORITHM, TUNING)
"""The axes that do not apply to a runtime that takes a model as it is."""


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of a study: the candidates of each target, the variants of each model, the models
    whose inputs have values to calibrate on, and why a runtime lacks a precision on this machine,
    by both."""

    candidates: Mapping[str, Sequence[CandidateBuild]]
    variants: Mapping[str, frozenset[str]]
    calibrated: frozenset[str] = frozenset()
    lacks: Mapping[tuple[str, str], str] = {}


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The settings to measure; `repeats` are others that one of these stands for."""

    possible: tuple[CellSetting, ...]
    left_out: tuple[LeftOut, ...]
    repeats: tuple[tuple[CellSetting, CellSetting], ...]


def precision_level(candidate: CandidateBuild) -> str:
    """Returns the level of a candidate: its precision, and how it was quantized."""
    if candidate.precision == "int8" and not candidate.is_calibrated:
        return "int8-dynamic"
    return candidate.precision


def candidate_for(setting: CellSetting, offers: Offers) -> CandidateBuild | None:
    """Returns the candidate of a setting's runtime in its precision."""
    return next(
        (
            each
            for each in offers.candidates[setting[TARGET]]
            if each.runtime == setting[RUNTIME] and precision_level(each) == setting[PRECISION]
        ),
        None,
    )


def space_of(axes: Sequence[Axis], offers: Offers) -> Space:
    first = {axis.name: axis.levels[0] for axis in axes}
    possible: list[CellSetting] = []
    repeats: list[tuple[CellSetting, CellSetting]] = []
    reasons: dict[str, list[CellSetting]] = {}
    for levels in product(*(axis.levels for axis in axes)):
        setting = dict(zip(first, levels, strict=True))
        reason = _impossible(setting, offers)
        stand_in = setting if reason else _stand_in(setting, first, offers)
        if not reason and stand_in != setting:
            repeats.append((setting, stand_in))
            reason = _why_repeated(setting, axes, offers)
        if reason:
            reasons.setdefault(reason, []).append(setting)
        else:
            possible.append(setting)
    left_out = tuple(
        LeftOut(reason=reason, count=len(settings), example=settings[0])
        for reason, settings in reasons.items()
    )
    return Space(possible=tuple(possible), left_out=left_out, repeats=tuple(repeats))


def _impossible(setting: CellSetting, offers: Offers) -> str:
    model, runtime, precision = setting[MODEL], setting[RUNTIME], setting[PRECISION]
    if setting[VARIANT] not in offers.variants[model]:
        return f"{model} has no variant {setting[VARIANT]}"
    candidate = candidate_for(setting, offers)
    if candidate is None:
        return f"{runtime} offers no {precision} on {setting[TARGET]}"
    lacking = offers.lacks.get((runtime, precision), "")
    if lacking:
        return f"{runtime} offers no {precision} here: {lacking}"
    if candidate.is_calibrated and model not in offers.calibrated:
        return f"{precision} is calibrated, and the inputs of {model} have no values"
    if candidate.is_tuned and setting[ALGORITHM] != "auto" and candidate.precision != FLOAT32:
        return f"{runtime} has an algorithm of its own for {precision}"
    return ""


def _stand_in(setting: CellSetting, first: CellSetting, offers: Offers) -> CellSetting:
    candidate = candidate_for(setting, offers)
    if candidate is None or candidate.is_tuned:
        return setting
    return {**setting, **{axis: first[axis] for axis in _OF_COMPILERS}}


def _why_repeated(setting: CellSetting, axes: Sequence[Axis], offers: Offers) -> str:
    candidate = candidate_for(setting, offers)
    title = setting[RUNTIME] if candidate is None else candidate.title.partition(" (")[0]
    varied = [axis.name for axis in axes if axis.name in _OF_COMPILERS and len(axis.levels) > 1]
    return f"{title} compiles nothing: {' and '.join(varied)} would change nothing"

"""Studies whose true effects are known: cells with launches drawn around them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import product

from tunegate_study.studies import Axis, CellSetting, StudyCell, StudyLaunch

NOISE = 0.01
REFERENCE_MS = 10.0
Truth = Callable[[CellSetting], float]
"""The logarithm of a setting's time over the reference's."""

RUNTIME = Axis(name="runtime", levels=("onnxruntime", "tvm", "openvino"))
TUNING = Axis(name="tuning", levels=("untuned", "64"))
LAYOUT = Axis(name="layout", levels=("nchw", "nhwc"))
THREADS = Axis(name="threads", levels=("1", "2"))


def settings_of(axes: Sequence[Axis]) -> list[CellSetting]:
    names = [axis.name for axis in axes]
    return [dict(zip(names, each, strict=True)) for each in product(*(a.levels for a in axes))]


def cell(
    setting: CellSetting, effects: Sequence[float], operations: float | None = None
) -> StudyCell:
    launches = tuple(
        StudyLaunch(
            round=number,
            effect=effect,
            ms=REFERENCE_MS * math.exp(effect),
            reference_ms=REFERENCE_MS,
            peak_bytes=50_000_000,
        )
        for number, effect in enumerate(effects, start=1)
    )
    key = "-".join(setting.values())
    return StudyCell(
        key=key,
        setting=setting,
        size_bytes=1_000_000,
        digest="d",
        operations=operations,
        launches=launches,
    )


def measured_study(
    settings: Sequence[CellSetting],
    truth: Truth,
    *,
    rounds: int = 5,
    noise: float = NOISE,
    seed: int = 1,
) -> list[StudyCell]:
    chance = random.Random(seed)
    return [
        cell(each, [truth(each) + chance.gauss(0, noise) for _ in range(rounds)])
        for each in settings
    ]

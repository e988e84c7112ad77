"""A study whose pages have something in each section."""

from __future__ import annotations

from pathlib import Path

import msgspec

from study_tests.design.synthetic import LAYOUT, THREADS, TUNING, measured_study, settings_of
from tunegate.artifacts.builds import ErrorEstimate
from tunegate_study.design.summary import StudiedCells, summarize
from tunegate_study.studies import Axis, CellSetting, LeftOut, Study, StudyCell, StudyDesign

GOLDEN = Path(__file__).parents[2] / "golden"

MODELS = Axis(name="model", levels=("small", "large"))
VARIANT = Axis(name="variant", levels=("given",))
TARGET = Axis(name="target", levels=("cpu",))
AXES = (MODELS, VARIANT, LAYOUT, TUNING, THREADS, TARGET)
_OPERATIONS = {"small": 1e6, "large": 4e6}


def truth(each: CellSetting) -> float:
    is_last, is_tuned = each["layout"] == "nhwc", each["tuning"] == "64"
    size = 0.2 if each["model"] == "small" and not is_tuned else 0.0
    return size + 0.2 * is_last - 0.5 * is_tuned - 0.4 * (is_last and is_tuned)


def study(model: str = "small") -> Study:
    """A name other than `small` stands where that stood."""
    cells = [_named(each, model) for each in measured_study(settings_of(AXES), truth)]
    first, last = cells[0], cells[-1]
    error = ErrorEstimate(what="max-error", center=1.25, low=1, high=2, samples=74)
    cells[0] = msgspec.structs.replace(first, error=error, trials=64)
    refused = msgspec.structs.replace(last, launches=(), digest="", reason="no such operator")
    unfinished = msgspec.structs.replace(cells[-2], launches=cells[-2].launches[:1])
    cells[-2:] = [unfinished, refused]
    axes = tuple(_with_name(axis, model) for axis in AXES)
    left = LeftOut(reason="tvm offers no int8 on cpu", count=3, example=first.setting)
    design = StudyDesign(
        kind="full",
        axes=axes,
        possible=len(cells),
        chosen=len(cells),
        left_out=(left,),
        untold=(("layout", "threads"),),
    )
    subject = StudiedCells(
        file="study.yaml",
        rounds=5,
        design=design,
        repeats=(),
        environment={"cpu": "some processor", "cores usable": "2"},
    )
    return summarize(subject, cells, [f"tunegate study {cell.key}" for cell in cells])


def _named(each: StudyCell, model: str) -> StudyCell:
    operations = _OPERATIONS[each.setting["model"]]
    name = model if each.setting["model"] == "small" else each.setting["model"]
    setting = {**each.setting, "model": name}
    return msgspec.structs.replace(each, setting=setting, operations=operations)


def _with_name(axis: Axis, model: str) -> Axis:
    levels = tuple(model if level == "small" else level for level in axis.levels)
    return Axis(name=axis.name, levels=levels)

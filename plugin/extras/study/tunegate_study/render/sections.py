"""The sections of a study that Markdown and the page share."""

from __future__ import annotations

import msgspec

from tunegate.report.table import ReportTable
from tunegate.wording import plural
from tunegate_study.render.tables import (
    axes_table,
    cells_table,
    effects_table,
    flips_table,
    fronts_table,
    left_out_table,
    operations_table,
    pairs_table,
)
from tunegate_study.studies import Study

_SHOWN_PAIRS = 30
_SHOWN_FLIPS = 30
_OPERATIONS = "Models, or variants, that compute less and take longer in the same setting."
_FRONTS = (
    "No other cell of the same model on the same target is as good in time, error, size, memory "
    "and energy, to 2%, and better in one. The error is of builds in other numbers than float32; "
    "memory is the peak of the process that runs it. Energy is that of the whole machine during "
    "one inference, and compared where a counter told it for all cells."
)
_LEFT_OUT = "Settings that cannot be, or that would repeat a cell."
_CELLS = (
    "Each time is the median of its launches. In each launch a cell runs in turn with ONNX "
    "Runtime, in float32 with one thread, whose time it is divided by."
)


class StudySection(msgspec.Struct, frozen=True, kw_only=True):
    """A title, the text below it, and a table that may have no rows."""

    title: str
    text: str
    table: ReportTable


def study_headline(study: Study) -> str:
    """Returns the study in one sentence."""
    clear = sum(effect.is_clear for effect in study.pair_effects)
    measured = sum(1 for cell in study.cells if cell.launches)
    return (
        f"{plural(measured, 'cell')} measured in {study.rounds} rounds: "
        f"{plural(sum(e.is_clear for e in study.main_effects), 'clear main effect')}, "
        f"{plural(clear, 'interaction')}, {plural(len(study.rank_flips), 'flip')} of rank"
    )


def study_sections(study: Study) -> tuple[StudySection, ...]:
    found = (
        StudySection(title="Axes", text=_design(study), table=axes_table(study)),
        StudySection(title="Main effects", text=_effects(study), table=effects_table(study)),
        StudySection(
            title="Pairs that do not add up",
            text=_pairs(study),
            table=pairs_table(_clear_pairs(study)),
        ),
        StudySection(
            title="Flips of rank",
            text=_flips(study),
            table=flips_table(study.rank_flips[:_SHOWN_FLIPS]),
        ),
        StudySection(
            title="Fewer operations, more time", text=_OPERATIONS, table=operations_table(study)
        ),
        StudySection(title="Pareto fronts", text=_FRONTS, table=fronts_table(study)),
        StudySection(title="Left out", text=_LEFT_OUT, table=left_out_table(study)),
        StudySection(title="Cells", text=_CELLS, table=cells_table(study)),
    )
    return tuple(each for each in found if each.table.rows)


def _clear_pairs(study: Study) -> Study:
    clear = [effect for effect in study.pair_effects if effect.is_clear]
    return msgspec.structs.replace(study, pair_effects=tuple(clear[:_SHOWN_PAIRS]))


def _design(study: Study) -> str:
    design = study.design
    what = (
        f"All {design.possible} possible cells."
        if design.kind == "full"
        else f"{design.chosen} of {design.possible} possible cells, a D-optimal fraction."
    )
    untold = ", ".join(" and ".join(pair) for pair in design.untold)
    return f"{what} They cannot tell whether these pairs add up: {untold}." if untold else what


def _effects(study: Study) -> str:
    is_matched = any(effect.settings for effect in study.main_effects)
    how = "as the mean of settings that have both" if is_matched else "by a fit to all cells"
    return (
        f"The time at a level against that at the first one, {how}. All intervals together miss "
        "with 5% at the most (Bonferroni); clear is what lies on one side of 0 as a whole. They "
        "count the scatter of launches: other models would have other effects."
    )


def _pairs(study: Study) -> str:
    total = len(study.pair_effects)
    clear = sum(effect.is_clear for effect in study.pair_effects)
    return (
        f"{clear} of {total} pairs of levels are clear. The number is how much longer both take "
        "together than each of them alone would make of it."
    )


def _flips(study: Study) -> str:
    more = len(study.rank_flips) - _SHOWN_FLIPS
    told = (
        "With all else the same, another choice is the best once the level changes. Each is "
        "clearly faster than the other where it is the best."
    )
    return f"{told} {more} more are in study.json." if more > 0 else told

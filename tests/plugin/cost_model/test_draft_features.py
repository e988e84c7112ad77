from __future__ import annotations

import math
import random

from tests.plugin.tuning.test_drafts import TEMPLATES
from tunegate.cost_model.draft_features import DraftFeatures
from tunegate.cost_model.experience import NEST_COLUMNS, Sketch, nest_columns
from tunegate.cost_model.loop_nest import LoopNest
from tunegate.tuning.drafts import Draft, DraftSpace

NEST = LoopNest(((0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)))
SKETCHES = {"a": Sketch("direct", NEST), "b": Sketch("direct", None)}
A = Draft("a", ((3, (2, 3, 4, 4)), (5, (9, 3)), (8, (1,)), (9, (2,))))


def test_the_columns_are_the_template_the_decisions_and_the_volumes() -> None:
    row = DraftFeatures(TEMPLATES, SKETCHES).of(A)[NEST_COLUMNS:]
    logs = [1.0, math.log2(3), 2.0, 2.0]
    reduction = [math.log2(9), math.log2(3)]
    assert row[:9] == [0.0, *logs, *reduction, 1.0, 2.0]
    assert row[9:13] == logs  # of the spatial tiles, level by level
    assert row[13:15] == reduction
    assert row[-1] == 2.0 + math.log2(3)  # what the innermost loops hold


def test_every_draft_of_a_task_has_as_many_columns() -> None:
    features = DraftFeatures(TEMPLATES, SKETCHES)
    pool = DraftSpace(TEMPLATES, random.Random(1)).pool([], 50)
    assert {draft.template for draft in pool} == {"a", "b"}
    assert {len(features.of(draft)) for draft in pool} == {len(features.of(A))}


def test_different_drafts_have_different_columns() -> None:
    features = DraftFeatures(TEMPLATES, SKETCHES)
    pool = DraftSpace(TEMPLATES, random.Random(1)).pool([], 100)
    rows = {str(features.of(draft)) for draft in pool}
    assert len(rows) == len(pool)


def test_what_is_the_same_for_every_task_comes_first() -> None:
    row = DraftFeatures(TEMPLATES, SKETCHES).of(A)
    assert row[:NEST_COLUMNS] == nest_columns(
        SKETCHES["a"], tuple(values for _, values in A.decisions)
    )


def test_drafts_of_one_kind_have_the_same_innermost_loops() -> None:
    features = DraftFeatures(TEMPLATES, SKETCHES)
    other = Draft("a", ((3, (3, 2, 4, 4)), (5, (9, 3)), (8, (3,)), (9, (2,))))
    narrow = Draft("a", ((3, (2, 3, 8, 2)), (5, (9, 3)), (8, (1,)), (9, (2,))))
    assert features.kind(A) == features.kind(other) != features.kind(narrow)

from __future__ import annotations

import math
import random

from tests.plugin.tuning.test_drafts import TEMPLATES
from tunegate.tuning.draft_features import DraftFeatures
from tunegate.tuning.drafts import Draft, DraftSpace

A = Draft("a", ((3, (2, 3, 4, 4)), (5, (9, 3)), (8, (1,)), (9, (2,))))


def test_the_columns_are_the_template_the_decisions_and_the_volumes() -> None:
    row = DraftFeatures(TEMPLATES).of(A)
    logs = [1.0, math.log2(3), 2.0, 2.0]
    reduction = [math.log2(9), math.log2(3)]
    assert row[:9] == [0.0, *logs, *reduction, 1.0, 2.0]
    assert row[9:13] == logs  # of the spatial tiles, level by level
    assert row[13:15] == reduction
    assert row[-1] == 2.0 + math.log2(3)  # what the innermost loops hold


def test_every_draft_of_a_task_has_as_many_columns() -> None:
    features = DraftFeatures(TEMPLATES)
    pool = DraftSpace(TEMPLATES, random.Random(1)).pool([], 50)
    assert {draft.template for draft in pool} == {"a", "b"}
    assert {len(features.of(draft)) for draft in pool} == {len(features.of(A))}


def test_different_drafts_have_different_columns() -> None:
    features = DraftFeatures(TEMPLATES)
    pool = DraftSpace(TEMPLATES, random.Random(1)).pool([], 100)
    rows = {str(features.of(draft)) for draft in pool}
    assert len(rows) == len(pool)

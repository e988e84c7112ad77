from __future__ import annotations

import math
import random

from tests.tune.test_schedule_samples import TEMPLATES
from tunegate.tune.loop_nest import LoopNest
from tunegate.tune.prior import NEST_COLUMNS, Sketch, nest_columns
from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import SampleSpace, ScheduleSample

NEST = LoopNest(((0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)))
SKETCHES = {"a": Sketch("direct", NEST), "b": Sketch("direct", None)}
A = ScheduleSample("a", ((3, (2, 3, 4, 4)), (5, (9, 3)), (8, (1,)), (9, (2,))))


def test_the_columns_are_the_template_the_decisions_and_the_volumes() -> None:
    row = SampleFeatures(TEMPLATES, SKETCHES).of(A)[NEST_COLUMNS:]
    logs = [1.0, math.log2(3), 2.0, 2.0]
    reduction = [math.log2(9), math.log2(3)]
    assert row[:9] == [0.0, *logs, *reduction, 1.0, 2.0]
    assert row[9:13] == logs  # of the spatial tiles, level by level
    assert row[13:15] == reduction
    assert row[-1] == 2.0 + math.log2(3)  # what the innermost loops hold


def test_every_sample_of_a_task_has_as_many_columns() -> None:
    features = SampleFeatures(TEMPLATES, SKETCHES)
    pool = SampleSpace(TEMPLATES, random.Random(1)).pool([], 50)
    assert {sample.template for sample in pool} == {"a", "b"}
    assert {len(features.of(sample)) for sample in pool} == {len(features.of(A))}


def test_different_samples_have_different_columns() -> None:
    features = SampleFeatures(TEMPLATES, SKETCHES)
    pool = SampleSpace(TEMPLATES, random.Random(1)).pool([], 100)
    rows = {str(features.of(sample)) for sample in pool}
    assert len(rows) == len(pool)


def test_what_is_the_same_for_every_task_comes_first() -> None:
    row = SampleFeatures(TEMPLATES, SKETCHES).of(A)
    assert row[:NEST_COLUMNS] == nest_columns(
        SKETCHES["a"], tuple(values for _, values in A.decisions)
    )


def test_samples_of_one_kind_have_the_same_innermost_loops() -> None:
    features = SampleFeatures(TEMPLATES, SKETCHES)
    other = ScheduleSample("a", ((3, (3, 2, 4, 4)), (5, (9, 3)), (8, (3,)), (9, (2,))))
    narrow = ScheduleSample("a", ((3, (2, 3, 8, 2)), (5, (9, 3)), (8, (1,)), (9, (2,))))
    assert features.kind(A) == features.kind(other) != features.kind(narrow)

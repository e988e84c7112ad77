import json
import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.present import present
from tests.tune.test_prior import SKETCH, decided, experience
from tunegate.tune.candidate_filter import MIN_EVIDENCE, rank_correlation
from tunegate.tune.loop_nest import DecisionValues, LoopNest, nest_of
from tunegate.tune.prior import NEST_COLUMNS, BoostedTrees, Prior, Sketch, nest_columns
from tunegate.tune.samples import SampleFeatures, SampleSpace, ScheduleSample
from tunegate.tune.surrogate import POOL, SamplePools, Surrogate
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions


def fitted(count: int, milliseconds: object = None, seed: int = 1) -> Surrogate:
    rng = random.Random(seed)
    surrogate = Surrogate()
    for _ in range(count):
        row = [rng.uniform(0, 6) for _ in range(8)]
        surrogate.add(row, slow(row) if milliseconds is None else rng.uniform(1, 9))
    return surrogate


def slow(row: list[float]) -> float:
    return 0.1 + (row[0] - 3) ** 2 + 0.5 * abs(row[1] - 2)


def samples(count: int = 200) -> list[list[float]]:
    rng = random.Random(99)
    return [[rng.uniform(0, 6) for _ in range(8)] for _ in range(count)]


def scored(surrogate: Surrogate) -> list[float] | None:
    score = surrogate.score()
    return None if score is None else score(samples()).tolist()


def test_it_ranks_what_it_has_not_seen() -> None:
    surrogate = fitted(64)
    scores = present(scored(surrogate))
    assert surrogate.evidence > 0.4
    assert rank_correlation(scores, [-slow(row) for row in samples()]) > 0.4


def test_times_that_mean_nothing_are_no_evidence() -> None:
    assert sum(fitted(48, "noise", seed).score() is not None for seed in range(20)) <= 4


def test_where_candidates_fail_is_learned_too() -> None:
    surrogate = Surrogate()
    rng = random.Random(1)
    for _ in range(48):
        row = [rng.uniform(0, 6) for _ in range(8)]
        surrogate.add(row, None if row[2] > 3 else 1.0)
    scores = present(scored(surrogate))
    works = [score for score, row in zip(scores, samples(), strict=True) if row[2] < 2]
    fails = [score for score, row in zip(scores, samples(), strict=True) if row[2] > 4]
    assert min(works) > max(fails)


def test_nothing_that_works_is_no_evidence() -> None:
    surrogate = Surrogate()
    for row in samples(32):
        surrogate.add(row, None)
    assert surrogate.score() is None


PRIOR = Prior([experience()])


def row_of(decided: DecisionValues) -> list[float]:
    return nest_columns(SKETCH, decided)


def lead_of_wide(surrogate: Surrogate) -> float:
    wide, narrow = present(surrogate.score())([row_of(decided(16)), row_of(decided(1))])
    return float(wide - narrow)


def test_before_a_task_has_evidence_the_prior_decides() -> None:
    assert lead_of_wide(Surrogate(PRIOR)) > 0


def test_a_prior_that_a_task_contradicts_is_overruled() -> None:
    """Here narrow loops are the fast ones."""
    surrogate = Surrogate(PRIOR)
    for rows in range(2, 8):
        for lanes in (1, 2, 4, 8, 16):
            surrogate.add(row_of(decided(lanes, rows)), float(lanes))
    assert lead_of_wide(surrogate) < 0


def test_few_measurements_move_the_prior_less_than_many() -> None:
    """The same contradiction, measured once and four times."""

    def margin(times: int) -> float:
        surrogate = Surrogate(PRIOR)
        for rows in range(2, 2 + MIN_EVIDENCE // 2):
            for lanes in (1, 16) * times:
                surrogate.add(row_of(decided(lanes, rows)), float(lanes))
        return lead_of_wide(surrogate)

    prior_wide, prior_narrow = PRIOR.ratios([row_of(decided(16)), row_of(decided(1))])
    assert prior_wide - prior_narrow >= margin(1) > margin(4)


def test_where_it_knows_nothing_and_the_prior_is_contradicted_nothing_is_picked() -> None:
    """Wide and narrow loops in turn, the narrow ones faster, but nothing
    that trees could learn it from."""
    blind = [math.nan] * NEST_COLUMNS
    surrogate = Surrogate(Contrary())
    for number in range(2 * MIN_EVIDENCE):
        surrogate.add(blind, 1.0 + number % 2)
    assert surrogate.score() is None


class Contrary(Prior):
    """Expects of each row the opposite of what comes."""

    def __init__(self) -> None:
        pass

    def ratios(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        return np.array([0.5 + 0.5 * (number % 2) for number in range(len(rows))])


def test_a_prior_that_a_task_confirms_is_more_evidence() -> None:
    def evidence(prior: Prior | None, seed: int) -> float:
        surrogate = Surrogate(prior)
        rng = random.Random(seed)
        for _ in range(MIN_EVIDENCE):
            lanes, rows = rng.choice((1, 2, 4, 8, 16)), rng.choice((2, 3, 5))
            surrogate.add(row_of(decided(lanes, rows)), rng.uniform(0.5, 1.5) / lanes)
        surrogate.score()
        return surrogate.evidence

    seeds = range(10)
    assert sum(evidence(PRIOR, s) for s in seeds) > sum(evidence(None, s) for s in seeds) + 1.0


FEATURES = np.arange(64, dtype=np.float32).reshape(-1, 1)
LABELS = (FEATURES[:, 0] > 30).astype(np.float64)
PARAMETERS = {"max_depth": 2, "eta": 0.3}


def test_they_expect_what_they_were_fitted_to() -> None:
    predicted = BoostedTrees(FEATURES, LABELS, PARAMETERS, rounds=20).predict(FEATURES)
    assert np.abs(predicted - LABELS).max() < 0.1


# Which decision makes which loop, read from a sketch's own instructions.

TILED = [
    ["GetSBlock", [], [0], 1],  # @0
    ["GetLoops", ["@0"], [], 2],  # @1, @2
    ["SamplePerfectTile", ["@1"], [2, 64], 2],  # @3, @4
    ["Split", ["@1", "@3", "@4"], [1, 0], 2],  # @5, @6
    ["SamplePerfectTile", ["@2"], [2, 64], 2],  # @7, @8
    ["Split", ["@2", "@7", "@8"], [1, 0], 2],  # @9, @10
    ["Reorder", ["@5", "@9", "@6", "@10"], [], 0],
    ["ReverseComputeAt", ["@0", "@10"], [1], 0],
    ["SampleCategorical", [], [[0, 16, 64], [0.3, 0.3, 0.4]], 1],  # @11
    ["Annotate", ["@0", "@11"], ["meta_schedule.unroll_explicit"], 0],
]


def test_the_order_of_the_block_with_the_most_loops_counts() -> None:
    nest = present(nest_of(json.dumps([*TILED, ["Reorder", ["@9", "@5"], [], 0]])))
    assert nest.order == ((0, 0), (1, 0), (0, 1), (1, 1))


# Pools of samples.


TEMPLATE = "t"
Templates = dict[str, tuple[SamplingInstruction, ...]]


def tile(index: int, extent: int, n: int = 4, innermost: int = 64) -> SamplingInstruction:
    return SamplingInstruction(
        index=index, kind="perfect-tile", n=n, max_innermost=innermost, extent=extent
    )


CHOICE = SamplingInstruction(index=9, kind="categorical", candidates=4)
SAMPLING: Templates = {TEMPLATE: (tile(3, 4096), tile(5, 4096), tile(7, 4096, n=2), CHOICE)}


def pools(kind: str = "llvm") -> SamplePools:
    features = SampleFeatures(SAMPLING, {TEMPLATE: SKETCH})
    return SamplePools(SampleSpace(SAMPLING, random.Random(1)), features, kind)


def lanes(rows: Sequence[Sequence[float]]) -> np.ndarray:
    return np.array([row[0] for row in rows])


def test_what_was_seen_is_not_drawn_again() -> None:
    first, is_small = pools().draw_pool((), ())
    again, _ = pools().draw_pool((), set(first))
    assert (is_small, again) == (False, [])


def test_what_keeps_the_compiler_busy_is_left_out() -> None:
    """A CPU's; the nest is not one that a GPU has."""
    every, _ = pools("cuda").draw_pool((), ())
    kept, _ = pools().draw_pool((), ())
    assert len(every) == POOL
    assert set(kept) < set(every)


def test_what_is_bred_scores_higher_than_what_was_drawn() -> None:
    mine = pools()
    drawn, _ = mine.draw_pool((), ())
    few = drawn[:8]
    bred = mine.breed(lanes, few, (), ())
    assert max(bred.values()) > max(bred[sample] for sample in few)


def test_what_was_seen_is_not_bred_again() -> None:
    mine = pools()
    drawn, _ = mine.draw_pool((), ())
    bred = set(mine.breed(lanes, drawn[:8], (), ()))
    assert set(pools().breed(lanes, drawn[:8], (), bred)) & bred == set(drawn[:8])


# Samples are always legal, new, and come from what is good.

TEMPLATES: Templates = {
    "a": (
        tile(3, 96),
        tile(5, 27, n=2),
        SamplingInstruction(index=8, kind="categorical", candidates=4),
        SamplingInstruction(index=9, kind="compute-location", extent=5),
    ),
    "b": (tile(2, 128), tile(4, 1)),
}

extents = st.integers(1, 5000)
templates = st.builds(
    lambda one, two, n: {
        "a": (tile(1, one, n=n), tile(4, two, n=2)),
        "b": TEMPLATES["a"],
        "nothing to decide": (),
    },
    extents,
    extents,
    st.integers(1, 5),
)


def products(sample: ScheduleSample, space: Templates) -> list[tuple[int, int | None]]:
    return [
        (math.prod(values), sampling.extent)
        for (_, values), sampling in zip(sample.decisions, space[sample.template], strict=True)
        if sampling.kind == "perfect-tile"
    ]


@given(templates, st.integers(0, 2**32))
def test_every_sample_is_one_that_the_template_allows(space: Templates, seed: int) -> None:
    samples = SampleSpace(space, random.Random(seed))
    first = samples.pool([], 24)
    later = samples.pool(first[:6], 24)
    for sample in (*first, *later):
        has_fitting_bound = all(s.n > 1 for s in space[sample.template] if s.kind.endswith("tile"))
        reason = check_decisions(sample.decisions, space[sample.template])
        assert reason is None or not has_fitting_bound
        assert all(product == extent for product, extent in products(sample, space))


def test_a_pool_holds_each_sample_once_and_none_that_is_known() -> None:
    samples = SampleSpace(TEMPLATES, random.Random(1))
    good = samples.pool([], 10)
    pool = samples.pool(good, 300)
    assert len(pool) == len(set(pool)) == 300
    assert not set(pool) & set(good)


def test_a_seed_decides_everything() -> None:
    one, other = (SampleSpace(TEMPLATES, random.Random(7)) for _ in range(2))
    assert one.pool([], 50) == other.pool([], 50)


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


def test_samples_of_one_kind_have_the_same_innermost_loops() -> None:
    features = SampleFeatures(TEMPLATES, SKETCHES)
    other = ScheduleSample("a", ((3, (3, 2, 4, 4)), (5, (9, 3)), (8, (3,)), (9, (2,))))
    narrow = ScheduleSample("a", ((3, (2, 3, 8, 2)), (5, (9, 3)), (8, (1,)), (9, (2,))))
    assert features.kind(A) == features.kind(other) != features.kind(narrow)

"""The analysis of a product on a GPU ranks what a card cannot do well behind what it can."""

import msgspec
import pytest

from tunegate.tune.gpu_analysis import GpuKernel, KernelAnalysis, Operand, analysis_of, card_of
from tunegate.tune.loop_nest import DecisionValues, LoopNest

ROWS, COLUMNS, SUM = 0, 1, 2
NEST = LoopNest(
    (
        *((place, level) for level in range(5) for place in (ROWS, COLUMNS)),
        *((SUM, n) for n in range(3)),
    ),
    unrolled_by=5,
    unrolls=(0, 512),
    axes=((ROWS, 0), (COLUMNS, 1), (SUM, 2)),
    fetches=((0, 3), (1, 4)),
    widths=(1, 2, 4),
)
LEFT, RIGHT = Operand(4, (((0, 1),), ((2, 1),))), Operand(4, (((2, 1),), ((1, 1),)))
KERNEL = GpuKernel((LEFT, RIGHT), card_of("sm_80"), 48 * 1024)
GOOD: DecisionValues = ((16, 1, 16, 1, 4), (16, 1, 16, 1, 4), (64, 4, 4), (2,), (2,), (1,))
"""A product of 1024 x 1024: tiles of 64 x 64 by 256 threads, in steps of 16."""


def share(rows: tuple[int, ...], columns: tuple[int, ...], sums: tuple[int, ...]) -> float:
    return KernelAnalysis(NEST, KERNEL).share((rows, columns, sums, *GOOD[3:]))


@pytest.mark.parametrize(
    "worse",
    [
        pytest.param(((64, 1, 16, 1, 1), GOOD[1], GOOD[2]), id="little is computed with a load"),
        pytest.param(((256, 1, 4, 1, 1), (256, 1, 4, 1, 1), GOOD[2]), id="half of a warp"),
        pytest.param(((4, 4, 16, 1, 4), (4, 1, 16, 1, 16), GOOD[2]), id="idle multiprocessors"),
        pytest.param((GOOD[0], GOOD[1], (1024, 1, 1)), id="a latency for each term of the sum"),
        pytest.param(((16, 16, 4, 1, 1), (16, 16, 4, 1, 1), GOOD[2]), id="registers spill"),
    ],
)
def test_what_a_card_cannot_do_well_ranks_behind(worse: tuple[tuple[int, ...], ...]) -> None:
    assert 0 < share(*worse) < share(*GOOD[:3]) < 1


def test_a_block_with_more_shared_memory_than_it_may_have_has_no_share() -> None:
    assert share(GOOD[0], GOOD[1], (4, 64, 4)) == 0
    roomy = GpuKernel(KERNEL.operands, KERNEL.card, 160 * 1024)
    assert KernelAnalysis(NEST, roomy).share((*GOOD[:2], (4, 64, 4), *GOOD[3:])) > 0


def test_a_window_reads_its_overlap_once() -> None:
    image = Operand(4, (((0, 2), (1, 1)), ((2, 1),)))
    assert image.extents((4, 3, 8)) == [9, 8], "rows of four outputs, two apart, three wide"


def test_a_card_is_known_by_its_capability_and_its_own_multiprocessors() -> None:
    assert card_of("sm_90a", 114).processors == 114
    assert card_of("sm_87") == card_of("sm_86"), "an unknown one counts as the nearest older"
    assert card_of("sm_60") == card_of("sm_75")


def test_tiles_of_tensor_cores_and_unstaged_operands_are_not_analyzed() -> None:
    assert analysis_of(NEST, KERNEL) is not None
    assert analysis_of(msgspec.structs.replace(NEST, is_of_warps=True), KERNEL) is None
    assert analysis_of(msgspec.structs.replace(NEST, fetches=()), KERNEL) is None
    assert analysis_of(NEST, None) is None

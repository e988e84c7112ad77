from __future__ import annotations

from tunegate.artifacts.measurements import GpuState
from tunegate.measure.pair_bench import Blocks


def blocks(*base_and_head: tuple[list[float], list[float]]) -> Blocks:
    found = Blocks()
    for base, head in base_and_head:
        found.add("base", base, None)
        found.add("head", head, None)
    return found


def test_every_block_has_its_median_and_its_mean() -> None:
    found = blocks(([1.0, 2.0, 6.0], [4.0, 4.0, 4.0]), ([2.0, 2.0, 2.0], [1.0, 2.0, 9.0]))
    assert found.counted_medians() == ([2.0, 2.0], [4.0, 2.0])
    assert found.counted_means() == ([3.0, 2.0], [4.0, 4.0])
    assert found.times("head") == [4.0, 4.0, 4.0, 1.0, 2.0, 9.0]
    assert found.pairs == 2


def test_without_a_clock_of_the_device_every_pair_counts() -> None:
    found = blocks(([1.0], [2.0]))
    assert found.clocks() is None
    assert found.times("base") == [1.0]


def test_pairs_whose_clock_moved_do_not_count() -> None:
    found = Blocks()
    for number, mhz in enumerate([1500] * 7 + [900]):
        found.add("base", [float(number)], GpuState(sm_mhz=1500))
        found.add("head", [float(number)], GpuState(sm_mhz=mhz))
    assert found.pairs == 8
    assert found.times("head") == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    clocks = found.clocks()
    assert clocks is not None
    assert clocks.dropped == 1


def test_where_no_pair_counts_all_are_told() -> None:
    found = Blocks()
    found.add("base", [1.0], GpuState(sm_mhz=1500, throttled=("sync boost",)))
    found.add("head", [2.0], GpuState(sm_mhz=900, throttled=("thermal",)))
    assert (found.times("base"), found.times("head")) == ([1.0], [2.0])

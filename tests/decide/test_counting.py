from __future__ import annotations

import math

import msgspec

from tests.support.measured_cells import make_launches
from tunegate.artifacts.measurements import Clocks, Launch
from tunegate.decide.gpu_clocks import MAX_DROPPED
from tunegate.decide.guards import counted, left_out, noise_of

MARGIN = math.log(1.03)


def noisy(*noises: float) -> list[Launch]:
    launches = make_launches([0.0] * len(noises))
    pairs = zip(launches, noises, strict=True)
    return [msgspec.structs.replace(launch, noise=noise) for launch, noise in pairs]


def with_dropped(dropped: int) -> Launch:
    (launch,) = noisy(0.001)
    clocks = Clocks(base_mhz=1500.0, head_mhz=1500.0, dropped=dropped, is_mediated=False)
    return msgspec.structs.replace(launch, clocks=clocks)


def test_a_launch_counts_or_is_left_out() -> None:
    launches = noisy(0.001, 0.002, 0.5, 0.001)
    assert counted(launches, MARGIN) == [launches[0], launches[1], launches[3]]
    assert left_out(launches, MARGIN) == [launches[2]]


def test_a_machine_that_is_always_noisy_keeps_its_launches() -> None:
    launches = noisy(0.2, 0.25, 0.3)
    assert counted(launches, MARGIN) == launches
    assert left_out(launches, MARGIN) == []


def test_a_launch_whose_clock_left_too_few_pairs_counts_as_infinitely_noisy() -> None:
    most = int(MAX_DROPPED * with_dropped(0).pairs)
    assert noise_of(with_dropped(most)) == 0.001
    assert noise_of(with_dropped(most + 1)) == math.inf
    launches = [*noisy(0.001, 0.001), with_dropped(most + 1)]
    assert left_out(launches, MARGIN) == launches[2:]

from __future__ import annotations

import numpy as np
import pytest

from research.gate_rules import peer_rules
from research.gate_rules.power import PEERS, Peer
from research.tests.gate_rules.launch_series import make_series

QUIET = make_series(200, spread=1e-4)


def base_and_head(peer: Peer, slowdown: float) -> tuple[np.ndarray, np.ndarray]:
    if peer.sees == "in turn":
        return QUIET.base(0, peer.launches), QUIET.head(0, peer.launches, slowdown)
    if peer.sees == "history":
        return QUIET.base(0, 64), QUIET.head(64, 1, slowdown)
    return QUIET.base(0, peer.launches), QUIET.head(peer.launches, peer.launches, slowdown)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_on_a_quiet_machine_every_rule_sees_a_model_that_takes_three_times_as_long(
    peer: Peer,
) -> None:
    assert peer.rule(*base_and_head(peer, 2.0))


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_no_rule_calls_a_model_slower_that_takes_half_the_time(peer: Peer) -> None:
    assert not peer.rule(*base_and_head(peer, -0.5))


def test_the_alert_threshold_is_the_ratio_of_the_means() -> None:
    base = np.ones((1, 4, 3))
    assert peer_rules.github_action_benchmark(110)(base, base * 1.11)
    assert not peer_rules.github_action_benchmark(110)(base, base * 1.09)


def test_a_factor_keeps_asv_quiet_about_what_is_small_and_certain() -> None:
    peer = next(peer for peer in PEERS if peer.name.startswith("asv"))
    assert not peer.rule(*base_and_head(peer, 0.08))
    assert peer.rule(*base_and_head(peer, 0.12))


def test_repetitions_are_means_of_neighbouring_blocks() -> None:
    times = np.arange(12.0).reshape(2, 3, 2)  # block means 0.5, 2.5, ... 10.5
    np.testing.assert_allclose(peer_rules.repetitions(times, 3), [1.5, 5.5, 9.5])
    assert len(peer_rules.repetitions(times, 4)) == 4

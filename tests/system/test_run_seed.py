from __future__ import annotations

from tunegate.system.clock import BITS, derived, new_seed


def test_a_new_seed_is_nobodys_guess() -> None:
    seeds = {new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**BITS for seed in seeds)
    assert max(seeds) >= 2 ** (BITS - 4)


def test_a_purpose_has_a_seed_of_its_own() -> None:
    purposes = [("launch", 1), ("launch", 2), ("pair", 1), ("launch", 1, 2), ("alone",)]
    assert len({derived(1, *purpose) for purpose in purposes}) == len(purposes)
    assert derived(1, "alone") == derived(1, "alone") != derived(2, "alone")

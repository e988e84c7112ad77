from __future__ import annotations

import numpy as np
import pytest

from research.gate_rules.recorded import RecordedSeries
from research.one_percent.operating_table import ROWS, SLOWDOWNS, Row, powers


def _series(spread: float) -> RecordedSeries:
    """Launches whose effects are normal, twenty in the time."""
    rng = np.random.default_rng(3)
    effects = rng.normal(0, spread, (200, 1, 1, 1))
    pairs = rng.normal(0, spread / 100, (200, 12, 2, 5))
    arms = np.concatenate([np.zeros_like(effects), effects], axis=2)
    return RecordedSeries("made up", np.exp(pairs + arms), 3.0)


@pytest.mark.parametrize("row", ROWS[:3], ids=lambda row: row.name)
def test_a_rule_keeps_its_word_at_zero_and_finds_what_is_large(row: Row) -> None:
    found = powers(_series(0.005), row)
    assert found[0] < 0.02
    assert found[: len(SLOWDOWNS)] == sorted(found[: len(SLOWDOWNS)])
    assert found[SLOWDOWNS.index(0.02)] > 0.99


def test_the_trimmed_mean_is_blind_to_rare_slow_launches() -> None:
    mean, trimmed = (powers(_series(0.005), row)[-1] for row in ROWS[:2])
    assert trimmed < mean

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from tests.support.simulated.scripted_pairs import ScriptedPairs

from study_tests.design.synthetic import cell
from tunegate.system.progress.shown_progress import PlainLog
from tunegate_study.run.rounds import Rounds
from tunegate_study.studies import StudyCell

KEYS = ("a", "b", "c")


def measured(
    effects: Sequence[float | None], *, rounds: int = 3, most: int = 99, launched: int = 0
) -> tuple[dict[str, StudyCell], list[str]]:
    """Three cells, and the order in which they were kept; time is over after `most` launches."""
    kept: list[StudyCell] = []
    pairs = ScriptedPairs(effects)
    references = {key: Path("reference") for key in KEYS}
    measuring = Rounds(pairs, Path("b"), references, kept.append, lambda: pairs.asked >= most)
    cells = {key: cell({"runtime": key}, [0.0] * launched) for key in KEYS}
    found = measuring.measure(cells, rounds, 1, PlainLog(io.StringIO()))
    return found, [each.key for each in kept]


def test_each_round_has_every_cell_once_in_an_order_of_its_own() -> None:
    found, order = measured([0.1] * 9)
    assert all(len(each.launches) == 3 for each in found.values())
    thirds = [order[:3], order[3:6], order[6:]]
    assert [sorted(each) for each in thirds] == [list(KEYS)] * 3
    assert len({tuple(each) for each in thirds}) > 1


def test_what_is_finished_is_kept_when_time_is_over() -> None:
    found, order = measured([0.1] * 9, most=4)
    assert len(order) == 4
    assert sorted(len(each.launches) for each in found.values()) == [1, 1, 2]


def test_only_the_missing_rounds_are_launched() -> None:
    found, order = measured([0.1] * 3, launched=2)
    assert len(order) == 3
    assert all(each.launches[-1].round == 3 for each in found.values())


def test_a_launch_that_breaks_once_is_made_again_and_twice_ends_its_cell() -> None:
    found, _ = measured([None, *[0.1] * 9])
    assert all(len(each.launches) == 3 for each in found.values())
    found, _ = measured([None, None, *[0.1] * 6])
    reasons = sorted(each.reason for each in found.values())
    assert reasons == ["", "", "not measured: no answer in 120 s"]

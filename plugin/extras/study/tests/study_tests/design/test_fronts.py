from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from study_tests.design.synthetic import cell
from tunegate.artifacts.builds import ErrorEstimate
from tunegate_study.design.fronts import fronts
from tunegate_study.studies import FrontCell, StudyCell

VALUES = st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.integers(0, 2), st.integers(1, 3))


def point(number: int, effect: float, error: float, size: int) -> StudyCell:
    made = cell({"model": "a", "target": "cpu", "runtime": str(number)}, [effect, effect])
    estimate = ErrorEstimate(what="max-error", center=error, low=0, high=None, samples=9)
    return msgspec.structs.replace(made, error=estimate if error else None, size_bytes=size)


def values(found: FrontCell) -> tuple[float, float, float]:
    return found.ms, found.error_percent, found.size_bytes


@given(st.lists(VALUES, min_size=1, max_size=12))
def test_nobody_beats_who_is_on_the_front_and_somebody_beats_all_others(
    drawn: list[tuple[float, int, int]],
) -> None:
    cells = [point(at, *each) for at, each in enumerate(drawn)]
    found = fronts(cells)
    names = {each.setting["runtime"] for each in found}
    every = [as_point(each) for each in cells]
    for each in every:
        beaten = any(
            all(a <= b for a, b in zip(values(other), values(each), strict=True))
            and values(other) != values(each)
            for other in every
        )
        assert (each.setting["runtime"] in names) == (not beaten)
    assert [each.ms for each in found] == sorted(each.ms for each in found)


def as_point(made: StudyCell) -> FrontCell:
    return FrontCell(
        setting=made.setting,
        ms=made.launches[0].ms,
        error_percent=made.error.center if made.error else 0.0,
        size_bytes=made.size_bytes,
        memory_bytes=made.launches[0].peak_bytes,
    )


def test_a_few_bytes_less_are_not_worth_five_times_the_time() -> None:
    found = fronts([point(0, 0.0, 0, 1_000_000), point(1, 1.6, 0, 999_000)])
    assert [each.setting["runtime"] for each in found] == ["0"]


def test_each_model_has_a_front_of_its_own_and_nothing_unmeasured_is_on_it() -> None:
    slow = cell({"model": "b", "target": "cpu", "runtime": "x"}, [2.0, 2.0])
    empty = cell({"model": "c", "target": "cpu", "runtime": "x"}, [])
    found = fronts([point(0, 0.1, 0, 1), slow, empty])
    assert [each.setting["model"] for each in found] == ["a", "b"]


def with_energy(made: StudyCell, joules: float | None) -> StudyCell:
    source = None if joules is None else "rapl"
    launches = (
        msgspec.structs.replace(each, joules=joules, energy_source=source) for each in made.launches
    )
    return msgspec.structs.replace(made, launches=tuple(launches))


def test_a_slower_cell_that_uses_less_is_on_the_front_where_all_were_counted() -> None:
    fast, slow = (point(n, effect, 0, 1) for n, effect in enumerate((0.1, 0.2)))
    found = fronts([with_energy(fast, 3.0), with_energy(slow, 2.0)])
    assert [(each.joules, each.energy_source) for each in found] == [(3.0, "rapl"), (2.0, "rapl")]
    (alone,) = fronts([with_energy(fast, 3.0), with_energy(slow, None)])
    assert alone.joules == 3.0

"""The energy of an inference has a margin of its own, and only counters tell it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.decide.test_checks import SAME, verdict
from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tunegate.artifacts.measurements import CellMeasurement, Comparison
from tunegate.config import GateConfig
from tunegate.decide.compare import compare
from tunegate.decide.energy import check_energy
from tunegate.review.gate_rules import Policies


def with_joules(measured: CellMeasurement, factors: Sequence[float]) -> CellMeasurement:
    launches = tuple(
        msgspec.structs.replace(x, base_joules=2.0, head_joules=2.0 * more, energy_source="rapl")
        for x, more in zip(measured.launches, factors, strict=True)
    )
    return msgspec.structs.replace(measured, launches=launches)


@pytest.mark.parametrize(
    ("factors", "status", "said"),
    [
        ((1.2, 1.21, 1.2, 1.19), "fail", "by rapl), over its 5% margin"),
        ((1.0, 1.001, 1.0, 0.999), "pass", "to 2 J by rapl), within its 5% margin"),
        ((0.8, 1.4, 0.9, 1.2), "inconclusive", "by rapl) spans its 5% margin"),
    ],
)
def test_more_energy_fails_where_it_has_a_margin(
    factors: Sequence[float], status: str, said: str
) -> None:
    judged = check_energy(compared(with_joules(make_measurement(SAME), factors)), 5.0)
    assert judged is not None
    assert judged.status == status
    assert said in judged.reason


def compared(measured: CellMeasurement) -> Comparison:
    builds = make_builds(make_build("a"), make_build("b"))
    (found,) = compare(make_run(measured, builds), GateConfig(energy_margin_percent=5.0))
    return found


def test_a_margin_of_energy_that_no_counter_can_tell_is_no_pass() -> None:
    gate = GateConfig(energy_margin_percent=5.0)
    judged = verdict(make_measurement(SAME), Policies(), gate)
    assert judged.status == "invalid-env"
    assert "no counter of it can be read here" in judged.findings[0].reason
    assert judged.findings[0].energy is None


def test_energy_is_told_without_a_margin_and_judged_by_none() -> None:
    measured = with_joules(make_measurement(SAME), (1.5, 1.5, 1.51, 1.5))
    judged = verdict(measured, Policies(), GateConfig())
    assert judged.status == "pass"
    assert judged.findings[0].energy is not None
    assert judged.findings[0].energy.decision is None

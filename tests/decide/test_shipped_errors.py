from __future__ import annotations

import msgspec

from tests.report.budgeted import make_error
from tests.support.measured_cells import make_build, make_builds
from tunegate.artifacts.builds import Build, ErrorLimit, ShippedErrors, SideError
from tunegate.decide.error_budget import shipped_errors

ERROR = make_error(0.8, 0.7, 1.1)
LIMIT = ErrorLimit(what="max-error", limit=2.0)


def budgeted(key: str, *, error: str | None = None, is_exact: bool = True) -> Build:
    estimates = () if is_exact else (ERROR,)
    return msgspec.structs.replace(
        make_build(key, error=error), limits=(LIMIT,), error_estimate=estimates
    )


def test_a_model_without_a_budget_has_no_error_to_tell() -> None:
    assert shipped_errors(None) is None
    assert shipped_errors(make_builds(make_build("a"), make_build("b"))) is None


def test_both_sides_are_told_and_float32_has_no_estimate() -> None:
    found = shipped_errors(make_builds(budgeted("a"), budgeted("b", is_exact=False)))
    title = make_build("a").title
    assert found == ShippedErrors(
        base=SideError(title=title),
        head=SideError(title=title, estimates=(ERROR,)),
        moved=("max-error",),
        limits=(LIMIT,),
    )


def test_a_side_that_ships_nothing_has_no_error() -> None:
    found = shipped_errors(make_builds(budgeted("a", error="no LSTM"), budgeted("b")))
    assert found is not None
    assert (found.base, found.head) == (None, SideError(title=make_build("b").title))
    assert shipped_errors(make_builds(None, budgeted("b", error="no LSTM"))) is None

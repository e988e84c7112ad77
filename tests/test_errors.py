from __future__ import annotations

import inspect

from tunegate import errors
from tunegate.errors import ConfigError, TunegateError

OURS = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, TunegateError) and kind is not TunegateError
}


def test_every_error_ends_with_an_exit_code_of_the_contract() -> None:
    assert {kind.exit_code for kind in OURS.values()} <= {2, 3, 4, 5, 70, 130}
    assert OURS["ConfigError"].exit_code == 2
    assert OURS["EnvironmentUnfitError"].exit_code == 4
    assert OURS["NoBaselineError"].exit_code == 5
    assert OURS["CancelledError"].exit_code == 130


def test_an_error_is_named_as_the_fact_and_says_its_line() -> None:
    assert all(name.endswith("Error") for name in OURS)
    found = ConfigError("cache.url: no such scheme")
    assert (str(found), found.about) == ("cache.url: no such scheme", None)

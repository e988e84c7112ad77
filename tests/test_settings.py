import inspect

import pytest

from tunegate import errors
from tunegate.config import CacheConfig, Config, ModelConfig
from tunegate.errors import ConfigError, TunegateError
from tunegate.ports import NO_COUNTER, EnergyCounter
from tunegate.settings import Overrides, apply_overrides
from tunegate.wording import compared_times, milliseconds


def zones(written: CacheConfig, zone: str | None = None) -> tuple[str, tuple[str, ...]]:
    config = Config(models=(ModelConfig(path="m.onnx"),), cache=written)
    cache = apply_overrides(config, Overrides({"cache.zone": zone})).cache
    return cache.zone, cache.read_zones


def test_the_zone_of_the_file_is_the_teams_own_and_is_read() -> None:
    assert zones(CacheConfig(zone="team/a", read_zones=("rel",))) == ("team/a", ("team/a", "rel"))


def test_a_zone_that_only_an_argument_names_is_written_and_not_read() -> None:
    assert zones(CacheConfig(), "pr/o/x/1") == ("pr/o/x/1", ("main", "rel"))


def test_a_zone_that_both_name_is_read() -> None:
    assert zones(CacheConfig(), "main") == ("main", ("main", "rel"))


def test_a_machine_without_a_counter_says_nothing() -> None:
    counter: EnergyCounter = NO_COUNTER
    assert counter.reading() is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.000 µs"),
        (0.0214, "21.40 µs"),
        (0.5, "0.5000 ms"),
        (0.9999999, "1.000 ms"),
        (4.812, "4.812 ms"),
        (9.99999, "10.00 ms"),
        (48.123, "48.12 ms"),
        (4812.3, "4812 ms"),
        (61_000, "61.00 s"),
    ],
)
def test_a_time_keeps_four_digits_in_a_readable_unit(value: float | None, text: str) -> None:
    assert milliseconds(value) == text


def test_a_sentence_has_fewer_digits() -> None:
    assert milliseconds(3.0294, 3) == "3.03 ms"
    assert milliseconds(0.00041, 3) == "0.410 µs"


def test_who_is_faster_is_said_in_percent_of_the_other() -> None:
    assert compared_times(0.5, 1.0) == "50% faster"
    assert compared_times(0.75, 1.0, "TVM") == "25% faster than TVM"
    assert compared_times(1.01, 1.0) == "1% slower (not clearly)"
    assert compared_times(1.01, 1.0, "TVM") == "1% slower than TVM (not clearly)"


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

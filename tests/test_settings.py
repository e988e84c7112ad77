from __future__ import annotations

from tunegate.config import CacheConfig, Config, ModelConfig
from tunegate.settings import Overrides, overridden


def zones(written: CacheConfig, zone: str | None = None) -> tuple[str, tuple[str, ...]]:
    config = Config(models=(ModelConfig(path="m.onnx"),), cache=written)
    cache = overridden(config, Overrides({"cache.zone": zone})).cache
    return cache.zone, cache.read_zones


def test_the_zone_of_the_file_is_the_teams_own_and_is_read() -> None:
    own = CacheConfig(zone="team/a", read_zones=("rel",))
    assert zones(own) == ("team/a", ("team/a", "rel"))


def test_a_zone_that_only_an_argument_names_is_written_and_not_read() -> None:
    assert zones(CacheConfig(), "pr/o/x/1") == ("pr/o/x/1", ("main", "rel"))


def test_a_zone_that_both_name_is_read() -> None:
    assert zones(CacheConfig(), "main") == ("main", ("main", "rel"))

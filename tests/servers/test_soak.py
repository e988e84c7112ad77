"""Eight processes on a real server, killed at random, for eight seconds or more. The ten minutes
are in benchmarks/cache/cache_soak.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.cache_soak import soak


@pytest.mark.e2e
def test_killed_processes_lose_nothing_that_was_acknowledged(
    tmp_path: Path, endpoint: str, credentials: None
) -> None:
    soaked = soak(endpoint, tmp_path, seconds=8, seed=1, records=9)
    assert soaked.acknowledged > 8
    assert soaked.compactions > 0
    assert soaked.kills > 3
    assert soaked.visible == soaked.acknowledged
    assert soaked.gaps == 0

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from tunegate.errors import EnvironmentUnfitError
from tunegate_ray.door import Ray


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EnvironmentUnfitError, match=r"pip install 'tunegate\[ray\]'"):
        Ray()


def test_a_cluster_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(EnvironmentUnfitError, match=r"no cluster answers at 127\.0\.0\.1:1"):
        Ray()


def test_a_machine_without_a_cluster_is_told_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    # Ray takes any cluster whose process it sees: a test beside this one may have started one.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", cache(set))
    with pytest.raises(EnvironmentUnfitError, match="ray start --head"):
        Ray()

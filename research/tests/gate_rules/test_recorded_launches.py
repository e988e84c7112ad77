from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from research.gate_rules.recorded_launches import MIN_LAUNCHES, read_launches, write_launches
from research.tests.gate_rules.launch_series import make_times
from tunegate.errors import ArtifactError


def nanoseconds(launches: int) -> np.ndarray:
    return (make_times(launches) * 1e6).astype(np.uint32)


def test_what_was_written_is_read_in_milliseconds(tmp_path: Path) -> None:
    times = nanoseconds(MIN_LAUNCHES)
    write_launches(tmp_path / "l.npz", {"b": (times, 2.5), "a": (times, 1.0)})
    first, second = read_launches(tmp_path / "l.npz")
    assert (first.name, second.name, second.seconds_per_launch) == ("a", "b", 2.5)
    np.testing.assert_allclose(second.times_ms, times / 1e6)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "no array is called <series>.times_ns"),
        ({"a.times_ns": np.ones((70, 12, 3, 5), np.uint32)}, "not unsigned"),
        ({"a.times_ns": np.ones((70, 12, 2, 5), np.float64)}, "not unsigned"),
        ({"a.times_ns": np.ones((10, 12, 2, 5), np.uint32)}, "fewer than 65 launches"),
        ({"a.times_ns": np.zeros((70, 12, 2, 5), np.uint32)}, "a time of 0"),
        ({"a.times_ns": np.ones((70, 12, 2, 5), np.uint32)}, "a.seconds is not a positive"),
        (
            {"a.times_ns": np.ones((70, 1, 2, 1), np.uint32), "a.seconds": np.float64("nan")},
            "a.seconds is not a positive",
        ),
    ],
)
def test_a_file_that_holds_no_launches_is_one_clear_error(
    tmp_path: Path, arrays: dict[str, Any], said: str
) -> None:
    np.savez(tmp_path / "l.npz", **arrays)
    with pytest.raises(ArtifactError, match=r"l\.npz: ") as caught:
        read_launches(tmp_path / "l.npz")
    assert said in str(caught.value)


def test_code_in_a_file_is_never_run(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"a.times_ns": np.array([print], dtype=object)}
    np.savez(tmp_path / "l.npz", **arrays)
    with pytest.raises(ArtifactError, match="not a file of recorded launches"):
        read_launches(tmp_path / "l.npz")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "l.npz").write_text("nonsense")
    with pytest.raises(ArtifactError, match="not a file of recorded launches"):
        read_launches(tmp_path / "l.npz")

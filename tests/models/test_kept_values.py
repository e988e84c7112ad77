from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tunegate.models.kept_values import load_value, save_value


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3),
        np.zeros((0, 2)),
        [],
        [np.arange(2), np.ones((1, 1))],
        [np.array([at]) for at in range(12)],
        np.array(["a", "bc"], dtype=object),
        [np.array(["a"], dtype=object), np.array(["bc", ""], dtype=object)],
    ],
)
def test_what_was_kept_is_the_same_again(value: Any, tmp_path: Path) -> None:
    arrays = value if isinstance(value, list) else [value]
    dtype = arrays[0].dtype if arrays else np.dtype("float32")
    found = load_value(save_value(value, tmp_path / "value"), dtype)
    assert isinstance(found, list) == isinstance(value, list)
    again = found if isinstance(found, list) else [found]
    assert [each.tolist() for each in again] == [each.tolist() for each in arrays]
    assert {each.dtype for each in again} <= {dtype}


def test_what_is_absent_stays_so(tmp_path: Path) -> None:
    assert load_value(save_value(None, tmp_path / "value"), np.dtype("float32")) is None

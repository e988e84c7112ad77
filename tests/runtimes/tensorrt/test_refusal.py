from __future__ import annotations

import pytest

from tunegate.runtimes.tensorrt.runtime import engine_refusal


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([], "gives no reason"),
        (
            ["CUDA initialization failure with error: 35. Please check your CUDA installation"],
            (
                "does not start: CUDA initialization failure with error: 35. Please check your "
                "CUDA installation"
            ),
        ),
        (
            ["In node 3 with name: loop: No importer registered for op: Unique", "later"],
            (
                "does not take the model: In node 3 with name: loop: No importer registered for "
                "op: Unique"
            ),
        ),
        (
            ["IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any"],
            "does not take the model: Internal Error (Could not find any",
        ),
        (["x" * 400], "does not take the model: " + "x" * 175),
    ],
)
def test_the_first_error_is_told_in_one_line(said: list[str], told: str) -> None:
    assert engine_refusal(said) == told

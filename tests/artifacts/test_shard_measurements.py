from __future__ import annotations

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import UnmeasuredShard

LOST = UnmeasuredShard(
    shard=2, target="cpu", models=("a.onnx",), status="invalid-env", problem="nothing came"
)


def test_a_shard_says_what_is_wrong_and_what_to_run_again() -> None:
    assert LOST.reason == (
        "measuring shard 2 on cpu: nothing came. "
        "Run tunegate measure --shard 2 again, then tunegate verdict."
    )


def test_it_has_its_own_models_on_its_own_target() -> None:
    assert LOST.has(Cell(model="a.onnx", target="cpu"))
    assert not LOST.has(Cell(model="a.onnx", target="gpu"))
    assert not LOST.has(Cell(model="b.onnx", target="cpu"))

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from study_tests.design.synthetic import settings_of
from tunegate_study.design.shards import cells_of_shard
from tunegate_study.studies import Axis


@given(models=st.integers(1, 6), shards=st.integers(1, 8))
def test_every_cell_is_in_one_shard_and_a_model_is_in_one(models: int, shards: int) -> None:
    cells = settings_of(
        [
            Axis(name="model", levels=tuple(f"m{n}" for n in range(models))),
            Axis(name="target", levels=("cpu", "other")),
            Axis(name="runtime", levels=("tvm", "onnxruntime")),
            Axis(name="precision", levels=("float32",)),
            Axis(name="tuning", levels=("untuned",)),
        ]
    )
    parts = [cells_of_shard(cells, n, shards, {"tvm"}, 5) for n in range(1, shards + 1)]
    every = [tuple(cell.items()) for part in parts for cell in part]
    assert sorted(every) == sorted(tuple(cell.items()) for cell in cells)
    homes = [{(cell["model"], cell["target"]) for cell in part} for part in parts]
    assert sum(map(len, homes)) == 2 * models

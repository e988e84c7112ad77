from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import Config, ModelConfig
from tunegate.sides.unmatched_paths import unmatched_paths

NAMES = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True)


@given(NAMES, NAMES)
def test_each_path_without_a_model_has_a_line_and_no_other_has(
    written: list[str], there: list[str]
) -> None:
    config = Config(models=tuple(ModelConfig(path=f"m/{name}.onnx") for name in written))
    lines = [*unmatched_paths(config, [f"m/{name}.onnx" for name in there], "the revision")]
    named = [line.split()[1] for line in lines]
    assert named == [f"m/{name}.onnx" for name in written if name not in there]

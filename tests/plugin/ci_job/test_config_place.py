from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.ci_job.config_place import ConfigPlace, place_of
from tunegate.edges.config import file as config_file
from tunegate.errors import ConfigError

CONFIG = """\
models:
  - path: "*.onnx"
targets:
  - name: cpu
  - name: gpu
    kind: cuda
cache:
  url: here
gate:
  margin-percent: {margin}
  pairs: {pairs}
"""


@pytest.mark.parametrize(
    ("margin", "pairs", "line"), [("'3%'", "4", 10), ("3", "99", 11), ("[", "4", 12)]
)
def test_a_problem_of_the_configuration_has_a_line(
    tmp_path: Path, margin: str, pairs: str, line: int
) -> None:
    path = tmp_path / "ci" / "tunegate.yaml"
    path.parent.mkdir()
    path.write_text(CONFIG.format(margin=margin, pairs=pairs))
    with pytest.raises(ConfigError) as caught:
        config_file.load_config(path)
    assert place_of(str(caught.value), tmp_path) == ConfigPlace("ci/tunegate.yaml", line)


@pytest.mark.parametrize("text", ["no file", "/etc/tunegate.yaml: line 3: x", "gone.yaml: gate: x"])
def test_a_text_about_no_file_of_the_workspace_has_none(tmp_path: Path, text: str) -> None:
    assert place_of(text, tmp_path) is None

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.ci.job_results import ConfigPlace, place_of
from tunegate.errors import ConfigError, ConfigKey
from tunegate.review import config_file

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
    ("margin", "pairs", "line"),
    [("'3%'", "4", 10), ("3", "99", 11), ("[", "4", 12), ("3", "4\n  margine: 3", 12)],
)
def test_a_problem_of_the_configuration_has_a_line(
    tmp_path: Path, margin: str, pairs: str, line: int
) -> None:
    path = tmp_path / "ci" / "tunegate.yaml"
    path.parent.mkdir()
    path.write_text(CONFIG.format(margin=margin, pairs=pairs))
    with pytest.raises(ConfigError) as caught:
        config_file.load_config(path)
    assert place_of(caught.value.about, tmp_path) == ConfigPlace("ci/tunegate.yaml", line)


@pytest.mark.parametrize(
    "about",
    [None, ConfigKey("/etc/tunegate.yaml", line=3), ConfigKey("gone.yaml", "gate")],
)
def test_an_error_about_no_file_of_the_workspace_has_none(
    tmp_path: Path, about: ConfigKey | None
) -> None:
    assert place_of(about, tmp_path) is None

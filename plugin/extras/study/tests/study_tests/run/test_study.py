from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save

from tunegate.errors import PASS, ConfigError
from tunegate_study.command import StudyOptions
from tunegate_study.run.study import run

STUDY = "axes: {runtime: [onnxruntime, tvm], tuning: [untuned, 8]}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(conv_model(), tmp_path / "m.onnx")
    written = tmp_path / "study.yaml"
    written.write_text(f"models: [{tmp_path}/m.onnx]\n{STUDY}")
    return written


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (("runtme", "tvm"), "no such axis. Did you mean runtime?"),
        (("tuning", "9"), "no such level. Known: untuned, 8."),
    ],
)
def test_a_level_that_is_not_there_is_one_line(
    file: Path, level: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=f"--only {level[0]}={level[1]}: {said}"):
        run(StudyOptions(file=file, only=(level,)))


def test_levels_that_no_cell_has_together_are_one_line(file: Path) -> None:
    """ONNX Runtime is not tuned."""
    options = StudyOptions(file=file, only=(("runtime", "onnxruntime"), ("tuning", "8")))
    with pytest.raises(ConfigError, match="no cell of this study has all of these levels"):
        run(options)


def test_a_plan_shows_the_cells_and_builds_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert run(StudyOptions(file=file, is_plan=True)) == PASS
    shown = capsys.readouterr().out
    assert "3 cells of 3 possible ones" in shown
    assert "ONNX Runtime compiles nothing: tuning would change nothing" in shown
    assert not (file.parent / ".tunegate").exists()

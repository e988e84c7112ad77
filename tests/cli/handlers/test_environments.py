"""What `tunegate compare --env` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.handlers.compare import run
from tunegate.errors import ConfigError

TWO = (Path("old"), Path("new"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (CompareOptions(base="m.onnx", environments=TWO[:1]), "give it twice"),
        (CompareOptions(base="m.onnx", head="n.onnx", environments=TWO), "one ONNX file"),
        (CompareOptions(base="m", environments=TWO, are_commands=True), "one ONNX file"),
        (CompareOptions(base="tvm:m.onnx", environments=TWO), "compiles the model"),
        (CompareOptions(base="m.onnx", environments=TWO), "no virtual environment"),
        (CompareOptions(base="m.onnx"), r"HEAD is missing\. See: tunegate"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    options: CompareOptions, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=problem):
        run(options)
    assert list(tmp_path.iterdir()) == []

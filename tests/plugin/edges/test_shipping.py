from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.edges.shipping import BuildDirectories
from tunegate.errors import OutputError


def directory(at: Path, content: str) -> Path:
    at.mkdir(parents=True)
    (at / "artifact.json").write_text(content)
    return at


def test_the_chosen_build_replaces_what_was_there_and_the_others_go(tmp_path: Path) -> None:
    at = directory(tmp_path / "head", "of an earlier run")
    chosen = directory(tmp_path / "head-tvm", "chosen")
    other = directory(tmp_path / "head-onnxruntime", "other")
    BuildDirectories().keep(chosen, [other], at)
    assert [path.name for path in tmp_path.iterdir()] == ["head"]
    assert (at / "artifact.json").read_text() == "chosen"


def test_a_build_that_is_gone_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"head: cannot be written"):
        BuildDirectories().keep(tmp_path / "nothing", [], tmp_path / "head")

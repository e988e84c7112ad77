from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save

from study_tests.design.synthetic import cell
from tunegate.config import InputConfig, TargetConfig, ValuesConfig
from tunegate.errors import ConfigError
from tunegate_study.design.study_config import StudiedModel
from tunegate_study.run.kept_cells import KeptCells, cell_key, folder_name, model_digest

SETTING = {"model": "m", "variant": "given", "threads": "1"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(conv_model(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def key(file: Path, threads: int = 1, dims: dict[str, int] | None = None) -> str:
    model = StudiedModel(name="m", files={"given": str(file)}, dims=dims or {})
    return cell_key(SETTING, model, TargetConfig(name="cpu", threads=threads))


def test_a_cell_is_read_as_it_was_kept_and_what_was_cut_short_is_none(tmp_path: Path) -> None:
    kept, made = KeptCells(tmp_path / "cells"), cell(SETTING, [0.1, 0.2])
    assert kept.of(made.key) is None
    kept.keep(made)
    assert kept.of(made.key) == made
    (written,) = (tmp_path / "cells").iterdir()
    written.write_bytes(written.read_bytes()[:-30])
    assert kept.of(made.key) is None


def test_other_bytes_sizes_or_threads_are_another_cell(file: Path) -> None:
    first = key(file)
    assert key(file) == first
    assert len({first, key(file, threads=2), key(file, dims={"n": 2})}) == 3
    save(conv_model(seed=1), file)
    assert key(file) != first


def test_the_files_of_values_count_with_the_model(file: Path) -> None:
    values = file.parent / "x.npy"
    inputs = {"x": InputConfig(values=ValuesConfig(file="x.npy"))}
    model = StudiedModel(name="m", files={"given": str(file)}, inputs=inputs)
    keys = set()
    for body in (b"1", b"2"):
        values.write_bytes(body)
        keys.add(cell_key(SETTING, model, TargetConfig(name="cpu")))
    assert len(keys) == 2


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        model_digest(tmp_path / "none.onnx")


def test_any_name_is_a_folder() -> None:
    assert [folder_name(each) for each in ("a/b@c", "..", "ok-1")] == ["a_b_c", "model", "ok-1"]

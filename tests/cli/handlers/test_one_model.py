from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support.small_onnx import matmul_model, save
from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.handlers import compare
from tunegate.cli.handlers.compare_models import (
    AgainstModel,
    Artifact,
    Model,
    is_one_model,
    paired,
    unchanged,
)
from tunegate.cli.shared_options import Common
from tunegate.errors import ModelError


def saved(path: Path, **what: int) -> Path:
    save(matmul_model(**what), path)
    return path


def asked(base: Model | Artifact, head: Model) -> bool:
    both = AgainstModel(base, head)
    return is_one_model(both, paired(both))


def test_it_is_one_where_content_and_runtime_are_the_same(tmp_path: Path) -> None:
    first, copy = saved(tmp_path / "a.onnx"), saved(tmp_path / "b.onnx")
    assert asked(Model(first), Model(first))
    assert asked(Model(first, "tvm"), Model(copy, "tvm"))
    assert not asked(Model(first, "tvm"), Model(first, "onnxruntime"))
    assert not asked(Artifact(tmp_path), Model(first))


def test_the_data_of_a_model_is_part_of_it(tmp_path: Path) -> None:
    files = []
    for name, value in (("one", 1.0), ("two", 2.0)):
        model = matmul_model()
        for tensor in model.graph.initializer:
            values = onnx.numpy_helper.to_array(tensor) * value
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "m.onnx")
        onnx.save(model, files[-1], save_as_external_data=True, location="m.data", size_threshold=0)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not asked(Model(files[0]), Model(files[1]))
    files[0].with_name("m.data").unlink()
    with pytest.raises(ModelError, match=r"m\.data: no such file"):
        asked(Model(files[0]), Model(files[1]))


def test_what_is_no_model_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"words")
    with pytest.raises(ModelError):
        asked(Model(tmp_path / "a.onnx"), Model(tmp_path / "a.onnx"))


def test_nothing_of_one_model_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(saved(tmp_path / "a.onnx"))
    common = Common(repository=tmp_path, out=tmp_path / "out")
    assert compare.run(CompareOptions(common=common, base=model, head=model)) == 0
    assert "Pass: nothing to compare: base and head are the same" in capsys.readouterr().err
    assert not (tmp_path / "out" / "builds").exists()
    model_itself = Model(Path(model))
    assert unchanged(AgainstModel(model_itself, model_itself)).unchanged == ("a.onnx",)
